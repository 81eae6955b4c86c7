"""The last batch of a log as a start finds it: the same by hopping as by reading one header after the other."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from format.log.kafka_batch import BatchFacts
from format.verbs.boot.one_log.batches import CorruptRecords, batches_from, last_batch
from tests.building import batch, wrapper
from tests.faults.mutations import damaged_bytes
from tests.sources import BytesSource

PATH = Path("00000000000000000000.log")


def naive(source: BytesSource, end: int) -> BatchFacts | str | None:
    last = None
    try:
        for each in batches_from(source, 0, end, PATH):
            last = each
    except CorruptRecords as error:
        return f"{error.position} {error.text}"
    return last


def hopping(source: BytesSource, end: int) -> BatchFacts | str | None:
    try:
        first = next(batches_from(source, 0, end, PATH), None)
        return None if first is None else last_batch(source, first, end, PATH)
    except CorruptRecords as error:
        return f"{error.position} {error.text}"


@pytest.mark.slow
def test_hopping_finds_the_same_end() -> None:
    random = Random(7)
    sound = b"".join(
        wrapper(1, number * 3) if number % 11 == 5 else batch(number * 3, [b"v" * random.randrange(900)] * 3)
        for number in range(400)
    )
    ends: set[str] = set()
    for _ in range(150):
        content = damaged_bytes(random, sound) if random.random() < 0.8 else sound
        end = random.choice((len(content), random.randrange(len(content))))
        expected = naive(BytesSource(content), end)
        assert hopping(BytesSource(content), end) == expected
        ends.add(type(expected).__name__)
    assert ends >= {"BatchFacts", "str"}


@pytest.mark.parametrize("size", [1, 12, 16, 17, 18])
def test_a_reader_looks_at_no_length_unless_more_follows_than_a_header_up_to_the_magic(size: int) -> None:
    content = batch(0) + b"\xff" * size
    found = naive(BytesSource(content), len(content))
    assert isinstance(found, str) == (size == 18)
