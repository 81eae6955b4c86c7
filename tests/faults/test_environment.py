"""Errors, short reads, and files that change or are none: the file system fails, and a reader reports it."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from format.io import live_broker
from format.io.live_broker import BrokerLock
from format.layout import MESSAGE_V0
from format.verbs.verify.walk import Level
from tests.building import batch, batches, write_segment
from tests.faults.judging import codes_of, findings_of, partition_of

LOG = b"".join(batches(20))
NAME = "00000000000000000000.log"
INDEX = "00000000000000000000.index"
pread = os.pread


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Two segments and an index."""
    return partition_of(tmp_path, {0: LOG, 60: b"".join(batches(3, 60))}, {INDEX: b""})


@pytest.fixture
def on_pread(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int, int, int, int], bytes | None]], None]:
    """Puts a function in front of every positioned read: it gets the call's number too, and may answer or pass.

    Not of the look at a log's first message that says whether a missing time index is missed.
    """

    def install(answer: Callable[[int, int, int, int], bytes | None]) -> None:
        calls = iter(range(1_000_000))

        def fake(descriptor: int, length: int, position: int) -> bytes:
            if length == MESSAGE_V0.size_bytes:
                return pread(descriptor, length, position)
            answered = answer(next(calls), descriptor, length, position)
            return pread(descriptor, length, position) if answered is None else answered

        monkeypatch.setattr("format.io.source.os.pread", fake)

    return install


# -- reads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
def test_an_io_error_at_any_read_is_reported_and_the_rest_is_read(partition: Path, on_pread, level: Level) -> None:  # type: ignore[no-untyped-def]
    reads = 0

    def count(call: int, descriptor: int, length: int, position: int) -> bytes | None:
        nonlocal reads
        reads = max(reads, call + 1)
        return None

    on_pread(count)
    assert findings_of(partition, level=level) == []
    assert reads >= 2
    for failing in range(reads):

        def fail(call: int, descriptor: int, length: int, position: int, failing: int = failing) -> bytes | None:
            if call == failing:
                raise OSError(errno.EIO, "Input/output error")
            return None

        on_pread(fail)
        found = findings_of(partition, level=level)
        assert "file-unreadable" in codes_of(found), failing
        reported = next(each for each in found if each.code == "file-unreadable")
        assert reported.is_incomplete
        assert "Input/output error" in reported.message


@pytest.mark.parametrize("most", [1, 7, 61, 100])
def test_short_reads_change_nothing(partition: Path, on_pread, most: int) -> None:  # type: ignore[no-untyped-def]
    on_pread(lambda call, descriptor, length, position: pread(descriptor, min(length, most), position))
    assert findings_of(partition) == []


# -- files that change while they are read -------------------------------------------------------------------


def at_first_log_read(on_pread, change: Callable[[], None]) -> None:  # type: ignore[no-untyped-def]
    """Runs ``change`` once, just before the log is read for the first time."""
    done = threading.Event()

    def answer(call: int, descriptor: int, length: int, position: int) -> None:
        if not done.is_set() and os.fstat(descriptor).st_size > 1000:
            done.set()
            change()

    on_pread(answer)


def test_a_file_that_shrinks(partition: Path, on_pread) -> None:  # type: ignore[no-untyped-def]
    at_first_log_read(on_pread, lambda: os.truncate(partition / NAME, 100))
    found = findings_of(partition)
    assert codes_of(found) == ["file-changed"]
    assert found[0].is_incomplete


def test_a_file_that_grows_is_read_as_it_was(partition: Path, on_pread) -> None:  # type: ignore[no-untyped-def]
    def grow() -> None:
        with open(partition / NAME, "ab") as file:
            file.write(b"garbage that was not there yet")

    at_first_log_read(on_pread, grow)
    assert findings_of(partition) == []


@pytest.mark.parametrize("change", ["unlink", "replace"])
def test_a_file_that_goes_while_it_is_read(partition: Path, on_pread, change: str) -> None:  # type: ignore[no-untyped-def]
    path = partition / NAME
    other = partition.parent / "other"
    other.write_bytes(LOG)
    at_first_log_read(on_pread, path.unlink if change == "unlink" else lambda: os.replace(other, path))
    assert codes_of(findings_of(partition)) == ["file-changed"]


def test_a_file_that_goes_between_listing_and_opening(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from format.verbs.verify import partition_checks

    original = partition_checks.LogFold.folded

    def vanish(fold: partition_checks.LogFold, parts: Iterator[None]) -> Iterator[None]:
        fold.log.path.unlink(missing_ok=True)
        return original(fold, parts)  # type: ignore[arg-type]

    monkeypatch.setattr(partition_checks.LogFold, "folded", vanish)
    found = findings_of(partition)
    assert codes_of(found) == ["file-changed", "file-changed"]


def test_segments_that_compaction_puts_into_one_while_they_are_read(  # type: ignore[no-untyped-def]
    tmp_path: Path, on_pread, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = b"".join(batches(20)), b"".join(batches(20, 60))
    partition = partition_of(tmp_path, {0: first, 60: second, 120: b"".join(batches(3, 120))})

    def swap() -> None:
        (partition / NAME).write_bytes(first + second)
        (partition / "00000000000000000060.log").unlink()

    swap()
    (partition / "00000000000000000060.log").write_bytes(second)
    assert "offset-out-of-segment" in codes_of(findings_of(partition))
    monkeypatch.setattr(live_broker, "probe", lambda path: BrokerLock(str(path), True))
    at_first_log_read(on_pread, (partition / "00000000000000000060.log").unlink)
    assert codes_of(findings_of(partition)) == []


# -- a log that is being written -----------------------------------------------------------------------------


def test_a_tail_that_is_written_meanwhile_is_live(tmp_path: Path, on_pread) -> None:  # type: ignore[no-untyped-def]
    whole = LOG + batch(60)
    partition = partition_of(tmp_path, whole[:-20])

    def finish() -> None:
        (partition / NAME).write_bytes(whole)

    at_first_log_read(on_pread, finish)
    assert codes_of(findings_of(partition)) == ["live-tail"]


def test_a_tail_that_grows_and_is_still_cut_is_live(tmp_path: Path, on_pread) -> None:  # type: ignore[no-untyped-def]
    whole = LOG + batch(60)
    partition = partition_of(tmp_path, whole[:-20])

    def grow() -> None:
        (partition / NAME).write_bytes(whole[:-10])

    at_first_log_read(on_pread, grow)
    assert codes_of(findings_of(partition)) == ["live-tail"]


def test_zeros_that_are_written_over_meanwhile_are_live(tmp_path: Path, on_pread) -> None:  # type: ignore[no-untyped-def]
    partition = partition_of(tmp_path, LOG + bytes(1000))
    done = threading.Event()

    def answer(call: int, descriptor: int, length: int, position: int) -> bytes | None:
        if done.is_set() or os.fstat(descriptor).st_size < 1000:
            return None
        done.set()
        got = pread(descriptor, length, position)
        more = batch(60)
        (partition / NAME).write_bytes(LOG + more + bytes(1000 - len(more)))
        return got

    on_pread(answer)
    assert codes_of(findings_of(partition)) == ["live-tail"]


def test_a_batch_that_is_written_over_meanwhile_is_a_change(tmp_path: Path, on_pread) -> None:  # type: ignore[no-untyped-def]
    broken = LOG[:-5] + bytes(5)
    partition = partition_of(tmp_path, broken)
    done = threading.Event()

    def answer(call: int, descriptor: int, length: int, position: int) -> bytes | None:
        if done.is_set() or os.fstat(descriptor).st_size < 1000:
            return None
        done.set()
        got = pread(descriptor, length, position)
        (partition / NAME).write_bytes(LOG)
        return got

    on_pread(answer)
    assert codes_of(findings_of(partition)) == ["file-changed"]


def test_a_log_that_grew_is_still_damaged_where_it_is(tmp_path: Path, on_pread) -> None:  # type: ignore[no-untyped-def]
    partition = partition_of(tmp_path, LOG + b"\xff" * 100)

    def grow() -> None:
        with open(partition / NAME, "ab") as file:
            file.write(b"\xfe" * 100)

    at_first_log_read(on_pread, grow)
    assert codes_of(findings_of(partition)) == ["log-framing-broken"]


# -- what is no file -----------------------------------------------------------------------------------------


def as_fifo(path: Path) -> None:
    os.mkfifo(path)


def as_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path may be no longer than a hundred bytes or so
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def as_device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make a device")


def as_loop(path: Path) -> None:
    path.symlink_to(path)


def as_link(path: Path) -> None:
    (path.parent.parent / "elsewhere").write_bytes(LOG)
    path.symlink_to(path.parent.parent / "elsewhere")


def as_directory(path: Path) -> None:
    path.mkdir()


KINDS = (as_fifo, as_socket, as_device, as_loop, as_link, as_directory)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", ["00000000000000000100.log", INDEX, "leader-epoch-checkpoint", "partition.metadata"])
def test_a_file_that_is_not_regular_is_reported_and_not_opened(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    partition = partition_of(tmp_path, LOG)
    make(partition / name)
    found = findings_of(partition)
    assert len(found) == 1
    assert found[0].code in ("file-unreadable", "entry-unexpected")
    assert name in found[0].location.path


@pytest.mark.parametrize("make", KINDS)
def test_what_is_no_regular_file_named_outright(tmp_path: Path, make: Callable[[Path], None], run_kafkalog) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "t-0"
    folder.mkdir()
    make(folder / NAME)
    done = run_kafkalog("verify", "--format", "jsonl", folder / NAME)
    assert done.code in (2, 3), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(tmp_path: Path) -> None:
    partition = partition_of(tmp_path, LOG)
    (partition / NAME).chmod(0)
    assert codes_of(findings_of(partition)) == ["file-unreadable"]


def test_a_file_that_may_not_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for root, who may read everything."""
    partition = partition_of(tmp_path, LOG)
    original = os.open

    def refuse(path: str, flags: int, *more: int, **keywords: int) -> int:
        if str(path).endswith(".log"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return original(path, flags, *more, **keywords)

    monkeypatch.setattr("format.io.source.os.open", refuse)
    (found,) = findings_of(partition)
    assert (found.code, found.is_incomplete) == ("file-unreadable", True)
    assert "Permission denied" in found.message


def test_names_that_are_not_utf8(tmp_path: Path, run_kafkalog) -> None:  # type: ignore[no-untyped-def]
    log_dir = tmp_path / os.fsdecode(b"log\xff\x1b[2J")
    write_segment(log_dir / "t-0", 0, batches(2))
    with open(os.fsencode(log_dir / "t-0") + b"/\xfe\x07.log", "wb") as file:
        file.write(LOG)
    for form in ("text", "jsonl", "csv", "table", "logfmt"):
        done = run_kafkalog("verify", "--format", form, log_dir)
        assert done.code == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x07" not in done.stdout + done.stderr


def test_a_directory_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition_of(tmp_path, LOG)
    original = os.open

    def refuse(path: object, *more: int, **keywords: int) -> int:
        if str(path).endswith("t-0"):
            raise OSError(errno.EIO, "Input/output error")
        return original(path, *more, **keywords)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr("os.open", refuse)
    found = findings_of(tmp_path)
    assert codes_of(found) == ["file-unreadable"]
