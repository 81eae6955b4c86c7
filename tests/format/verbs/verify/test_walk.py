"""verify by several processes finds what one finds, in the same order."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pytest

from format.verbs.verify import walk
from format.verbs.verify.verify import VerifyTerms, verify
from format.verbs.verify.walk import Level, WalkedChunk
from tests.building import batch, wrapper
from tests.corpora import Corpus

pytestmark = pytest.mark.long

CHUNK_BYTES = 6000


@pytest.fixture(autouse=True)
def small_work_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)
    monkeypatch.setattr(walk, "WALK_CHUNK_BYTES", CHUNK_BYTES)


def found(path: Path, level: Level, jobs: int) -> tuple[list[object], object]:
    verified = verify(path, VerifyTerms(level, jobs=jobs))
    return list(verified), verified.coverage


def test_two_processes_find_what_one_finds(corpus: Corpus) -> None:
    for log_dir in corpus.log_dirs:
        alone = found(log_dir, Level.FULL, 1)
        assert found(log_dir, Level.FULL, 2) == alone
        assert alone[1].batches > 10  # type: ignore[attr-defined]


@pytest.mark.parametrize("level", [Level.CRC, Level.RECORDS])
def test_damage_is_reported_alike(level: Level, tmp_path: Path) -> None:
    chance = random.Random(7)
    log = b"".join(
        wrapper(number, number * 3) if number % 50 < 3 else batch(number * 3, [b"v" * (number % 90), None, b"w"])
        for number in range(300)
    )
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    count = 0
    for _ in range(40):
        damaged = bytearray(log)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if chance.random() < 0.2:
            del damaged[chance.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        alone = found(path, level, 1)
        assert found(path, level, 2) == alone
        count += len(alone[0])
    assert count > 20


def test_a_pickled_chunk_has_its_findings_and_counts(tmp_path: Path) -> None:
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(batch(0, [b"a", b"b"]) + batch(2, [b"c"])[:-1] + b"?")
    walk_of_records = VerifyTerms(Level.RECORDS).walk
    from format.location import Location
    from format.scan.drivers import SerialDriver
    from format.scan.protocol import LogUnit

    log = LogUnit(path, Location(str(path)))
    kept = [pickle.loads(pickle.dumps(each)) for each in SerialDriver(walk_of_records).parts(log)]
    assert all(isinstance(each, WalkedChunk) for each in kept)
    assert sum(each.record_count for each in kept) == 2
    assert [each.code for chunk in kept for each in chunk.header_findings] == ["batch-crc-mismatch"]
