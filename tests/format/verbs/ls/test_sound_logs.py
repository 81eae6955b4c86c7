"""Logs that are added up in one go: the same listings as those of logs that are read header by header."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from format.io.session import Description, Session
from format.node.partition import read_partition
from format.scan.progress import no_progress
from format.verbs.ls import partition_listing
from format.verbs.ls.partition_listing import SoundLogs
from tests.building import batch, batches, damaged_at_random, mixed_log, wrapper, write_segment
from tests.corpora import Corpus
from tests.format.verbs.ls.listings import listed


def listed_one_by_one(path: Path, **wishes: Any) -> list[Any]:
    """The listings where no log is added up in one go."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SoundLogs, "add", lambda _, start, end: start)
        return listed(path, **wishes)


def write_with_indexes(partition: Path, base_offset: int, content: list[bytes]) -> Path:
    """A log with its two indexes, which are empty."""
    log = write_segment(partition, base_offset, content)
    log.with_suffix(".index").touch()
    log.with_suffix(".timeindex").touch()
    return log


def added(partition: Path) -> list[bool]:
    """Which logs of a partition are added up in one go."""
    found = read_partition(partition)
    with closing(SoundLogs(found, no_progress)) as sound:
        return [sound.add(number, number + 1) > number for number in range(found.segment_count)]


def test_listings_of_brokers_logs(corpus: Corpus) -> None:
    for log_dir in corpus.log_dirs:
        for segments in (False, True):
            assert listed(log_dir, segments=segments) == listed_one_by_one(log_dir, segments=segments)


@pytest.mark.slow
def test_listings_of_damaged_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_listing, "HEADER_CHUNK_BYTES", 500)  # so that some logs are larger
    chance = Random(4)
    sound = [b"".join(batches(3, first)) for first in (0, 9, 18)]
    kinds = set()
    for number in range(60):
        partition = tmp_path / f"orders-{number}"
        partition.mkdir()
        for base_offset, log in zip((0, 9, 18), sound, strict=True):
            content = [mixed_log(), log, damaged_at_random(log, chance), log][chance.randrange(4)]
            write_segment(partition, base_offset, [content])
            if chance.random() < 0.8:
                (partition / f"{base_offset:020d}.index").touch()
                (partition / f"{base_offset:020d}.timeindex").touch()
        kinds |= set(added(partition))
        for segments in (False, True):
            assert listed(partition, segments=segments) == listed_one_by_one(partition, segments=segments)
    assert kinds == {False, True}
    assert listed(tmp_path) == listed_one_by_one(tmp_path)


@pytest.mark.parametrize(
    ("content", "is_sound"),
    [
        (batches(2), True),
        ([], True),
        ([wrapper(1, 0)], False),  # its header does not say the first offset
        ([*batches(1), wrapper(1, 3)], True),
        ([batch(5), batch(3)], False),
        ([batch(2**31 + 5)], False),  # more than the segment can hold
        ([*batches(2), bytes(10)], False),
        ([batch(0)[:-1]], False),
        (batches(2000), False),  # more than is read at once
    ],
)
def test_what_is_added_up(content: list[bytes], is_sound: bool, tmp_path: Path) -> None:
    write_with_indexes(tmp_path / "orders-0", 0, content)
    assert added(tmp_path / "orders-0") == [is_sound]
    assert listed(tmp_path / "orders-0") == listed_one_by_one(tmp_path / "orders-0")


def test_a_log_that_reaches_into_the_next_one(tmp_path: Path) -> None:
    write_with_indexes(tmp_path / "orders-0", 0, batches(3))
    write_with_indexes(tmp_path / "orders-0", 8, batches(1, 8))
    assert added(tmp_path / "orders-0") == [False, True]


def test_a_log_that_changed_since_it_was_listed(tmp_path: Path) -> None:
    log = write_with_indexes(tmp_path / "orders-0", 0, batches(3))
    partition = read_partition(tmp_path / "orders-0")
    for change in (lambda: os.truncate(log, 50), lambda: log.write_bytes(bytes(9000)), log.unlink):
        with closing(SoundLogs(partition, no_progress)) as sound:
            change()
            assert sound.add(0, 1) == 0
            assert sound.taken().batch_count == 0


def test_logs_that_are_read_at_a_rate_are_left_out(tmp_path: Path) -> None:
    write_with_indexes(tmp_path / "orders-0", 0, batches(3))
    paced = Session(Description(max_bytes_per_s=10**6))
    assert added(paced.path(tmp_path / "orders-0")) == [False]
    assert added(tmp_path / "orders-0") == [True]
