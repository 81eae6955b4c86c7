"""The damaged copies: the same for the same number, and each of them damaged."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.recording.damage import KINDS, LEGACY_LOG, SEED, damaged_case, subject
from tests.recording.framing import batches_of, sealed


def test_a_case_is_known_by_its_number(data_dir: Path) -> None:
    unchanged = []
    for number in range(3 * len(KINDS)):
        case = damaged_case(data_dir, number)
        assert case == damaged_case(data_dir, number)
        sound = subject(data_dir, Random(f"{SEED}-{number}"))
        if case.files == sound.files:
            unchanged.append(case.steps)
    assert len(unchanged) <= 2, unchanged


def test_brokers_sealed_what_they_wrote_as_this_does(data_dir: Path) -> None:
    seen = set()
    for path in (data_dir / LEGACY_LOG, *sorted((data_dir / "kafka-4.3-single" / "node-1").glob("c*-0/*.log"))):
        content = path.read_bytes()
        batches = batches_of(content)
        assert batches[-1].end == len(content)
        for batch in batches:
            image = content[batch.position : batch.end]
            assert sealed(image) == image
            seen.add((batch.magic, batch.codec))
    assert seen == {(magic, codec) for magic in (0, 1) for codec in range(4)} | {(2, codec) for codec in range(5)}
