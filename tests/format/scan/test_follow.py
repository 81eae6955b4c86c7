"""The follow driver: each record once and in order, whatever happens to the files meanwhile."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from format.findings import Finding
from format.limits import MIB
from format.node.target import Target
from format.scan import follow as following
from format.scan.follow import Broken, CaughtUp, FollowDriver, FollowTerms, Grown, Stopping
from format.scan.selection import Selection
from tests.building import batch, write_segment
from tests.format.scan.toy import Toy

#: What is done to the files, and what the follower then reports: offsets of batches and codes of findings.
Step = tuple[Callable[[], object], list[int | str]]
_MOST_S = 120


@pytest.fixture(autouse=True)
def looks_are_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_S", 0.005)
    monkeypatch.setattr(following, "_PATIENCE_S", 0.1)


@pytest.fixture
def terms() -> FollowTerms:
    return FollowTerms()


def follow(root: Path, steps: list[Step], terms: FollowTerms, begins_with: list[int | str] | None = None) -> None:
    """Run the steps, each once the one before it has shown what it must; fails where something else is shown."""
    expected = list(begins_with or [])
    shown: list[int | str] = []
    left = iter(steps)
    until = time.monotonic() + _MOST_S
    is_over = False
    stopping = Stopping(lambda: is_over or time.monotonic() > until)
    followed = FollowDriver([Target(root)], replace(terms, stopping=stopping))
    for item in _shown(followed):
        if not isinstance(item, CaughtUp):
            shown.append(item)
            assert shown == expected[: len(shown)]
        elif shown == expected:
            step = next(left, None)
            is_over = step is None
            if step is not None:
                expected += step[1]
                step[0]()
    assert shown == expected
    assert is_over


def _shown(followed: FollowDriver) -> Iterator[int | str | CaughtUp]:
    for event in followed.events():
        if isinstance(event, Grown):
            yield from (offset for _, offset in Toy().fold(event.log, event.parts(Toy())))
        elif isinstance(event, Broken):
            yield event.finding.code
        elif isinstance(event, Finding):
            yield event.code
        else:
            yield event


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def log_of(directory: Path, base_offset: int) -> Path:
    return directory / f"{base_offset:020d}.log"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A partition of three batches of three records each, in a log directory."""
    root = tmp_path / "logs"
    write_segment(root / "t-0", 0, [batch(0), batch(3), batch(6)])
    (root / "meta.properties").write_text("version=1\n")
    return root / "t-0"


def test_only_what_is_appended(partition: Path, terms: FollowTerms) -> None:
    log = log_of(partition, 0)
    steps: list[Step] = [
        (lambda: append(log, batch(9)), [9]),
        (lambda: append(log, batch(12) + batch(15)), [12, 15]),
    ]
    follow(partition.parent, steps, terms)
    follow(partition, [(lambda: append(log, batch(18)), [18])], terms)


def test_from_an_offset_and_from_the_start(partition: Path, terms: FollowTerms) -> None:
    log = log_of(partition, 0)
    steps: list[Step] = [(lambda: append(log, batch(9)), [9])]
    follow(partition, steps, replace(terms, from_start=True), [0, 3, 6])
    write_segment(partition, 12, [batch(12)])
    follow(partition, [], replace(terms, selection=Selection(from_offset=12)), [12])


def test_an_incomplete_batch_is_waited_for(partition: Path, terms: FollowTerms) -> None:
    log, content = log_of(partition, 0), batch(9)
    pieces = [content[:5], content[5:40], content[40:-1]]
    steps: list[Step] = [(lambda piece=piece: append(log, piece), []) for piece in pieces]  # type: ignore[misc]
    follow(partition, [*steps, (lambda: append(log, content[-1:] + batch(12)), [9, 12])], terms)


def test_an_incomplete_batch_stays_unreported(partition: Path, terms: FollowTerms) -> None:
    log = log_of(partition, 0)

    def tear() -> None:
        append(log, batch(9)[:-1])
        time.sleep(0.3)

    follow(partition, [(tear, []), (lambda: time.sleep(0.3), []), (lambda: append(log, batch(9)[-1:]), [9])], terms)


def test_rolls(partition: Path, terms: FollowTerms) -> None:
    def roll() -> None:
        append(log_of(partition, 0), batch(9))
        write_segment(partition, 12, [batch(12)])
        write_segment(partition, 15, [])

    steps: list[Step] = [(roll, [9, 12]), (lambda: append(log_of(partition, 15), batch(15)), [15])]
    follow(partition, steps, terms)


def test_a_torn_end_of_a_segment_that_others_follow_is_damage(partition: Path, terms: FollowTerms) -> None:
    def roll() -> None:
        append(log_of(partition, 0), batch(9)[:-1])
        write_segment(partition, 12, [batch(12)])

    seen: list[bool] = []
    deadline = time.monotonic() + _MOST_S
    stopping = Stopping(lambda: len(seen) > 1 or time.monotonic() > deadline)
    followed = FollowDriver([Target(partition)], replace(terms, stopping=stopping))
    is_rolled = False
    for event in followed.events():
        if isinstance(event, Grown):
            seen += [part.has_damage for part in event.parts(Toy())]
        elif not is_rolled:
            is_rolled = True
            roll()
    assert seen == [True, False]


def test_partitions_that_appear(partition: Path, terms: FollowTerms) -> None:
    root = partition.parent

    def moved_in() -> None:
        write_segment(root.parent / "elsewhere", 0, [batch(0), batch(3)])
        (root.parent / "elsewhere").rename(root / "new-7")

    steps: list[Step] = [
        (moved_in, [0, 3]),
        (lambda: append(log_of(root / "new-7", 0), batch(6)), [6]),
        (lambda: (root / "empty-1").mkdir(), []),
        (lambda: write_segment(root / "empty-1", 40, [batch(40)]), [40]),
        (lambda: write_segment(root / "gone-1.0123456789abcdef0123456789abcdef-delete", 0, [batch(0)]), []),
        (lambda: append(log_of(partition, 0), batch(9)), [9]),
    ]
    follow(root, steps, terms)


def test_a_log_that_is_cut(partition: Path, terms: FollowTerms) -> None:
    log = log_of(partition, 0)
    size = log.stat().st_size

    def cut_and_grown() -> None:
        os.truncate(log, size)
        append(log, batch(9, [b"other", b"values"]) + batch(11, [b"x"] * 9))

    steps: list[Step] = [
        (lambda: append(log, batch(9) + batch(12)), [9, 12]),
        (lambda: os.truncate(log, size), ["followed-log-cut"]),
        (lambda: append(log, batch(9) + batch(12)), [9, 12]),
        (cut_and_grown, ["followed-log-cut", 9, 11]),
        (lambda: append(log, batch(20)), [20]),
    ]
    follow(partition, steps, terms)


def test_a_cut_across_segments(partition: Path, terms: FollowTerms) -> None:
    log = log_of(partition, 0)
    size = log.stat().st_size

    def roll() -> None:
        append(log, batch(9))
        write_segment(partition, 12, [batch(12)])

    def cut() -> None:
        log_of(partition, 12).unlink()
        os.truncate(log, size)
        append(log, batch(9, [b"z"]))

    follow(partition, [(roll, [9, 12]), (cut, ["followed-log-cut", 9])], terms)


def test_a_log_that_begins_anew_further_on(partition: Path, terms: FollowTerms) -> None:
    def begin_anew() -> None:
        log_of(partition, 0).rename(partition / "00000000000000000000.log.deleted")
        write_segment(partition, 100, [batch(100)])

    follow(partition, [(begin_anew, ["followed-offsets-deleted", 100])], terms)


def test_retention_before_the_follower_has_read(partition: Path, terms: FollowTerms) -> None:
    def delete() -> None:
        write_segment(partition, 9, [batch(9)])
        write_segment(partition, 12, [batch(12)])
        log_of(partition, 0).unlink()
        log_of(partition, 9).unlink()

    def mark_as_deleted() -> None:
        append(log_of(partition, 12), batch(15))
        write_segment(partition, 18, [batch(18)])
        write_segment(partition, 21, [batch(21)])
        for base_offset in (12, 18):
            log_of(partition, base_offset).rename(partition / f"{base_offset:020d}.log.deleted")

    steps: list[Step] = [(delete, ["followed-offsets-deleted", 12]), (mark_as_deleted, [15, 18, 21])]
    follow(partition, steps, terms)


def test_a_file_that_is_renamed_while_it_is_read_is_read_once(partition: Path, terms: FollowTerms) -> None:
    def delete() -> None:
        write_segment(partition, 9, [batch(9)])
        log_of(partition, 0).rename(partition / "00000000000000000000.log.deleted")

    shown: list[int] = []
    until = time.monotonic() + _MOST_S
    stopping = Stopping(lambda: 9 in shown or time.monotonic() > until)
    followed = FollowDriver([Target(partition)], replace(terms, from_start=True, stopping=stopping))
    for event in followed.events():
        if isinstance(event, Grown):
            for _, offset in Toy().fold(event.log, event.parts(Toy())):
                shown.append(offset)
                if offset == 0:
                    delete()
    assert shown == [0, 3, 6, 9]


def test_compaction_of_what_is_still_to_be_read(partition: Path, terms: FollowTerms) -> None:
    def compact() -> None:
        append(log_of(partition, 0), batch(9) + batch(12))
        write_segment(partition, 15, [batch(15)])
        write_segment(partition, 18, [batch(18)])
        cleaned = write_segment(partition.parent / "cleaned", 0, [batch(3), batch(12), batch(15)])
        log_of(partition, 0).unlink()
        log_of(partition, 15).unlink()
        cleaned.rename(log_of(partition, 0))
        shutil.rmtree(cleaned.parent)

    follow(partition, [(compact, [12, 15, 18])], terms)


def test_a_topic_that_is_deleted_and_made_again(partition: Path, terms: FollowTerms) -> None:
    root = partition.parent

    def make_again() -> None:
        write_segment(root / "new", 0, [batch(0)])
        partition.rename(root / "t-0.0123456789abcdef0123456789abcdef-delete")
        (root / "new").rename(partition)

    steps: list[Step] = [
        (make_again, ["followed-log-replaced", 0]),
        (lambda: append(log_of(partition, 0), batch(3)), [3]),
        (lambda: shutil.rmtree(partition), ["followed-log-gone"]),
        (lambda: write_segment(partition, 0, [batch(0)]), [0]),
    ]
    follow(root, steps, terms)


def test_a_named_partition_that_goes_and_comes_back(
    partition: Path, terms: FollowTerms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_LOOK_AGAIN_S", 0.05)
    steps: list[Step] = [
        (lambda: shutil.rmtree(partition), ["followed-log-gone"]),
        (lambda: write_segment(partition, 5, [batch(5)]), [5]),
    ]
    follow(partition, steps, terms)


def test_a_preallocated_file_is_filled(partition: Path, terms: FollowTerms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_PATIENCE_S", _MOST_S)  # however long it takes until the batch is whole
    log = log_of(partition, 0)
    size = log.stat().st_size
    os.truncate(log, size + MIB)

    def fill(content: bytes) -> None:
        nonlocal size
        with log.open("r+b") as file:
            file.seek(size)
            file.write(content)
        size += len(content)

    def header_first() -> None:
        content = batch(12)
        with log.open("r+b") as file:
            file.seek(size)
            file.write(content[:61])
        time.sleep(0.05)

    follow(partition, [(lambda: fill(batch(9)), [9]), (header_first, []), (lambda: fill(batch(12)), [12])], terms)


def test_damage_that_batches_follow_is_read(partition: Path, terms: FollowTerms) -> None:
    log = log_of(partition, 0)
    bad = bytearray(batch(9))
    bad[-1] ^= 1
    steps: list[Step] = [
        (lambda: append(log, b"\xff" * 40 + batch(9)), [9]),
        (lambda: append(log, bytes(bad)), [9]),
        (lambda: append(log, batch(12)), [12]),
    ]
    follow(partition, steps, terms)


def test_marks_are_bounded(partition: Path, terms: FollowTerms) -> None:
    append(log_of(partition, 0), b"".join(batch(9 + number, [b"x"]) for number in range(1000)))
    done = time.monotonic() + _MOST_S
    followed = FollowDriver([Target(partition)], replace(terms, from_start=True, step_bytes=2000))
    sizes = []
    for event in followed.events():
        if isinstance(event, CaughtUp) or time.monotonic() > done:
            break
        if isinstance(event, Grown):
            sizes.append(event.size_bytes)
            list(event.parts(Toy()))
    (only,) = followed.partitions.values()
    assert only.next_offset == 1009
    assert len(only.marks) == 128
    assert max(sizes) <= 2000
