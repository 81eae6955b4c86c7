"""A file in a store: what its reader is told when the object is replaced, goes away, or cannot be read."""

from __future__ import annotations

import errno
import random

import pytest

from format.errors import FileChanged, KafkaLogError, UnreadableFile
from format.io.remote_files import RemoteFile, Stores
from format.io.store import ObjectReplaced, RemoteEntry

ADDRESS = "s3://bucket/t-0/00000000000000000000.log"
CONTENT = random.Random(1).randbytes(12 * 1024 * 1024)


class Opened:
    """An object that raises the error of its store, if that has one."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def read_at(self, length: int, position: int) -> bytes:
        if self._store.error is not None:
            raise self._store.error
        return CONTENT[position : position + length]

    def close(self) -> None:
        self._store.is_closed = True


class FakeStore:
    """A store with one object."""

    error: OSError | None = None
    is_closed = False

    def open(self, inner: str, entry: RemoteEntry) -> Opened:
        if self.error is not None:
            raise self.error
        return Opened(self)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> FakeStore:
    fake = FakeStore()
    entry = RemoteEntry("0.log", False, len(CONTENT), 1_700_000_000, "tag")
    monkeypatch.setattr(Stores, "entry_of", lambda self, path: entry)
    monkeypatch.setattr(Stores, "store_of", lambda self, path: (fake, "t-0/0.log"))
    return fake


GONE = FileNotFoundError(errno.ENOENT, "no such object")
REPLACED = ObjectReplaced("the object was replaced while it was read")
FAILED = OSError(errno.EIO, "the server answers with 500")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (REPLACED, FileChanged, "the object was replaced while it was read"),
        (GONE, FileChanged, "the file no longer exists"),
        (FAILED, UnreadableFile, "read failed: "),
    ],
)
@pytest.mark.parametrize("position", [64 * 1024, 2 * 1024 * 1024])
def test_an_object_that_changes_while_it_is_read(
    error: OSError, kind: type[KafkaLogError], words: str, position: int, store: FakeStore
) -> None:
    file = RemoteFile(Stores(), ADDRESS)
    assert file.read(100, 1000) == (CONTENT[1000:1100], 64 * 1024)
    store.error = error
    with pytest.raises(KafkaLogError, match=words) as raised:
        file.read(1024 * 1024, position)
    assert type(raised.value) is kind
    assert raised.value.location.path == ADDRESS
    assert raised.value.location.position == (position if kind is UnreadableFile else None)


def _read_on(file: RemoteFile, position: int) -> None:
    while position < len(CONTENT):
        position += len(file.read(300_000, position)[0])


def test_a_fetch_ahead_of_the_reader_sees_the_replacement_too(store: FakeStore) -> None:
    file = RemoteFile(Stores(), ADDRESS)
    position = 0
    while not file._ahead and position < len(CONTENT):
        position += len(file.read(300_000, position)[0])
    store.error = REPLACED
    with pytest.raises(FileChanged, match="replaced"):
        _read_on(file, position)
    file.close()
    assert store.is_closed


@pytest.mark.parametrize(("error", "kind"), [(GONE, FileChanged), (FAILED, UnreadableFile), (REPLACED, UnreadableFile)])
def test_an_object_that_cannot_be_opened(error: OSError, kind: type[KafkaLogError], store: FakeStore) -> None:
    store.error = error
    with pytest.raises(KafkaLogError, match="cannot open: ") as raised:
        RemoteFile(Stores(), ADDRESS)
    assert type(raised.value) is kind


def test_a_closed_file_is_not_read(store: FakeStore) -> None:
    file = RemoteFile(Stores(), ADDRESS)
    file.close()
    with pytest.raises(UnreadableFile, match="closed"):
        file.read(1, 0)


def test_reads_in_order_and_out_of_it_give_the_bytes_of_the_object(store: FakeStore) -> None:
    file, rnd = RemoteFile(Stores(), ADDRESS), random.Random(7)
    position = 0
    for _ in range(200):
        length = rnd.choice((61, 5_000, 70_000, 600_000))
        position = rnd.choice((position, position, position, position + 100, rnd.randrange(len(CONTENT))))
        assert file.read(length, position)[0] == CONTENT[position : position + length]
        position = min(position + length, len(CONTENT))
    file.close()
