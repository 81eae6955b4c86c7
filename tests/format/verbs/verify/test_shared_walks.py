"""verify by several processes finds what one finds, in the same order, and tells when one of them dies."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from format.errors import KafkaLogError, WorkerDied
from format.io.source import BytesSource, FileSource
from format.log.batch_ranges import batch_ranges
from format.log.walker import batch_chunks
from format.node.target import Target
from format.scan.workers import Outbox, SharedBytes, Workers
from format.verbs.verify import log_checks, shared_walks, walk
from format.verbs.verify.shared_walks import SharedWalks
from format.verbs.verify.verify import Verification, logs_to_walk, verify
from format.verbs.verify.walk import Level, OwnWalks, WalkedChunk
from tests.building import batch, wrapper
from tests.corpora import Corpus

CHUNK_BYTES = 6000


def found_alone(path: Path, level: Level, monkeypatch: pytest.MonkeyPatch) -> tuple[list[object], object]:
    monkeypatch.setattr(walk, "WALK_CHUNK_BYTES", CHUNK_BYTES)
    terms = Verification(level)
    return list(verify(path, terms)), terms.coverage


def found_by_two(path: Path, level: Level) -> tuple[list[object], object]:
    terms = Verification(level)
    with SharedWalks(list(logs_to_walk(Target(path), terms)), 2) as terms.walks:
        return list(verify(path, terms)), terms.coverage


def test_two_processes_find_what_one_finds(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    for log_dir in corpus.log_dirs:
        alone = found_alone(log_dir, Level.FULL, monkeypatch)
        assert found_by_two(log_dir, Level.FULL) == alone
        assert alone[1].batches > 10


@pytest.mark.parametrize("level", [Level.CRC, Level.RECORDS])
def test_damage_is_told_alike(level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    log = b"".join(
        wrapper(number, number * 3) if number % 50 < 3 else batch(number * 3, [b"v" * (number % 90), None, b"w"])
        for number in range(300)
    )
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    found = 0
    for _ in range(40):
        damaged = bytearray(log)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if chance.random() < 0.2:
            del damaged[chance.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        alone = found_alone(path, level, monkeypatch)
        assert found_by_two(path, level) == alone
        found += len(alone[0])
    assert found > 20


def test_ranges_are_what_one_reader_reads_at_once() -> None:
    log = b"".join(batch(number * 3, [b"v" * (number * 37 % 900), None, b"w"]) for number in range(200))
    log += batch(600, [b"x" * 20_000, b"", b""]) + batch(603) + batch(606, [b"x" * 9000, b"", b""])
    source = BytesSource(log)
    for chunk_bytes in (100, 1000, 5000, 50_000, len(log), 2 * len(log)):
        chunks = list(batch_chunks(source, chunk_bytes=chunk_bytes))
        ranges = list(batch_ranges(source, chunk_bytes))
        assert [each.start for each in ranges] == [int(chunk.table.position[0]) for chunk in chunks]
        lasts = [int(chunk.table.last_offset[-1]) for chunk in chunks]
        assert [each.after_offset for each in ranges] == [None, *lasts[:-1]]


def test_a_worker_that_is_killed_is_told(monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> None:
    def die(source: FileSource, *_: object) -> object:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(shared_walks, "walk_log", die)
    with pytest.raises(WorkerDied, match="killed by signal 9"):
        found_by_two(data_dir / "kafka-4.3" / "node-1", Level.FULL)


def _task(task: int, outbox: Outbox) -> None:
    for number in range(task):
        outbox.send((task, number))
        room = outbox.room()
        room[:2] = bytes((task, number))
        outbox.send_room(2)
    if task == 5:
        raise KafkaLogError("five")
    if task == 6:
        raise ZeroDivisionError("six")


def test_results_come_in_the_order_of_the_tasks() -> None:
    seen: list[object] = []
    with Workers(3, _task) as workers:
        for task, items in workers.results(range(1, 12)):
            if task == 9:
                continue  # nobody looks at these
            try:
                for each in items:
                    seen.append(bytes(each.view) if isinstance(each, SharedBytes) else each)
            except (KafkaLogError, ZeroDivisionError) as error:
                seen.append(str(error).splitlines()[0])
    expected: list[object] = []
    for task in range(1, 12):
        if task != 9:
            for number in range(task):
                expected += [(task, number), bytes((task, number))]
            expected += [word for word in ("five", "six") if task == {"five": 5, "six": 6}[word]]
    assert seen == expected


def test_a_walk_that_nobody_planned_is_made_here(data_dir: Path) -> None:
    log_dir = data_dir / "kafka-4.3" / "node-1"
    logs = list(logs_to_walk(Target(log_dir), Verification()))
    with SharedWalks(logs[1:], 1) as walks:
        for log in logs:
            shared, own = (list(each.chunks(log)) for each in (walks, OwnWalks()))
            assert [type(each) for each in shared] == [type(each) for each in own]
            batches = [len(each.table) for each in own if isinstance(each, WalkedChunk)]
            assert [len(each.table) for each in shared if isinstance(each, WalkedChunk)] == batches
    assert log_checks.OpenedLog(7).size_bytes == 7
