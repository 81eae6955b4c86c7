"""Where results go: whole or not at all, and never into a source."""

from __future__ import annotations

import errno
import os

import pytest

from format.errors import InputError, OutputError, OutputExists, OutputInsideSource
from kafkalog_cli import output as output_module
from kafkalog_cli.output import OutputStream, ReaderGone, open_output


class Raw:
    """A stream that takes a few bytes at a time, then fails."""

    def __init__(self, failure: OSError | None = None, room: int = 10**9, piece: int = 3) -> None:
        self.taken = b""
        self.failure = failure
        self.room = room
        self.piece = piece

    def write(self, data: memoryview) -> int:
        if self.failure is not None and len(self.taken) >= self.room:
            raise self.failure
        part = bytes(data[: self.piece])
        self.taken += part
        return len(part)


def test_short_writes_are_continued():
    raw = Raw()
    stream = OutputStream(raw, "x")
    stream.write(b"0123456789")
    stream.write(b"abc")
    assert raw.taken == b""
    stream.flush()
    assert raw.taken == b"0123456789abc"


def test_a_terminal_sees_every_write_at_once():
    raw = Raw()
    OutputStream(raw, "x", is_terminal=True).write(b"line\n")
    assert raw.taken == b"line\n"


def test_much_is_not_kept_in_memory():
    raw = Raw(piece=10**9)
    stream = OutputStream(raw, "x")
    for _ in range(100):
        stream.write(b"x" * 10_000)
    assert len(raw.taken) > 800_000


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, OutputError), (errno.EIO, OutputError), (errno.EPIPE, ReaderGone)]
)
def test_a_failure_is_reported_once_and_nothing_more_is_written(number, kind):
    raw = Raw(OSError(number, os.strerror(number)), room=3)
    stream = OutputStream(raw, "x")
    stream.write(b"012345")
    with pytest.raises(kind):
        stream.flush()
    stream.write(b"more")
    stream.flush()
    assert raw.taken == b"012"


def test_an_address_is_no_file_of_this_host():
    with pytest.raises(InputError, match="is an address; a new file can only be written to a file system of this host"):
        open_output("s3://bucket/incident.html")


def test_the_address_of_a_local_file_is_this_file(tmp_path):
    stream = open_output(f"file://{tmp_path}/a%20page.html")
    stream.publish()
    assert [each.name for each in tmp_path.iterdir()] == ["a page.html"]


def test_a_file_is_there_only_when_it_is_published(tmp_path):
    target = tmp_path / "out.jsonl"
    stream = open_output(str(target))
    stream.write(b"x" * 200_000)
    stream.flush()
    assert not target.exists()
    assert [each.name.startswith(".out.jsonl.partial-") for each in tmp_path.iterdir()] == [True]
    stream.publish()
    stream.discard()
    assert target.read_bytes() == b"x" * 200_000
    assert list(tmp_path.iterdir()) == [target]


def test_a_discarded_file_leaves_nothing(tmp_path):
    stream = open_output(str(tmp_path / "out"))
    stream.write(b"x")
    stream.discard()
    stream.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["fsync", "rename", "sync_directory"])
def test_what_cannot_be_published_leaves_nothing(tmp_path, monkeypatch, call):
    def fail(*_arguments: object) -> None:
        raise OSError(errno.EIO, "no")

    stream = open_output(str(tmp_path / "out"))
    stream.write(b"x")
    monkeypatch.setattr(output_module if call == "sync_directory" else output_module.os, call, fail)
    with pytest.raises(OutputError, match="cannot publish: Input/output error"):
        stream.publish()
    monkeypatch.undo()
    stream.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_holds_something_is_refused(tmp_path):
    target = tmp_path / "out"
    target.write_bytes(b"precious")
    with pytest.raises(OutputExists):
        open_output(str(target))
    with pytest.raises(OutputExists):
        open_output(str(tmp_path))
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(OutputExists):
        open_output(str(link))
    assert target.read_bytes() == b"precious"


def test_an_empty_file_is_filled(tmp_path):
    target = tmp_path / "out"
    target.touch()
    stream = open_output(str(target))
    stream.write(b"x")
    stream.publish()
    assert target.read_bytes() == b"x"


def test_nothing_goes_into_a_source(tmp_path):
    source = tmp_path / "logs"
    (source / "t-0").mkdir(parents=True)
    (tmp_path / "link").symlink_to(source)
    for place in (
        source / "out",
        source / "t-0" / "out",
        tmp_path / "link" / "out",
        source,
        tmp_path / "logs" / ".." / "logs" / "x",
    ):
        with pytest.raises(OutputInsideSource):
            open_output(str(place), [str(source)])
    assert sorted(each.name for each in source.rglob("*")) == ["t-0"]
    open_output(str(tmp_path / "logs.jsonl"), [str(source)]).discard()


def test_a_source_under_another_name_is_known_by_its_inode(tmp_path, monkeypatch):
    """As with a bind mount, which has a path of its own."""
    source, mounted = tmp_path / "source", tmp_path / "mounted"
    mounted.mkdir(parents=True)
    source.mkdir()
    real_stat = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **more: real_stat(source if path == mounted else path, **more))
    with pytest.raises(OutputInsideSource, match="lies inside the source"):
        open_output(str(mounted / "out.jsonl"), [str(source)])


def test_a_device_is_written_as_it_is():
    stream = open_output("/dev/null")
    stream.write(b"x")
    stream.publish()
    full = open_output("/dev/full")
    full.write(b"x")
    with pytest.raises(OutputError, match="No space left on device"):
        full.publish()


def test_a_place_that_is_not_there(tmp_path):
    with pytest.raises(OutputError, match="cannot create: No such file or directory"):
        open_output(str(tmp_path / "no" / "out"))


@pytest.mark.parametrize("name", ["findings", "orders-0/findings"])
def test_no_file_goes_into_a_log_directory(tmp_path, name):
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "meta.properties").touch()
    with pytest.raises(OutputInsideSource, match="inside the log directory"):
        open_output(str(tmp_path / name))
    assert sorted(os.listdir(tmp_path)) == ["meta.properties", "orders-0"]
    assert os.listdir(tmp_path / "orders-0") == []
