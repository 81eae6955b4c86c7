"""Looks up the producer of one record by its partition and offset, in the first replica that has it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from format.errors import InputError
from format.layout import NO_PRODUCER_ID
from format.limits import DEFAULT_LIMITS, Limits
from format.node.partition import parse_partition_dir
from format.node.target import Target
from format.verbs.find.find import find_offset
from format.wording import did_you_mean


class RecordPlace(msgspec.Struct, frozen=True):
    """The partition and the offset of a record."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}:{self.offset}"


def record_place(text: str) -> RecordPlace:
    """The place in a text such as ``orders-0:4711``. Raises ValueError for other text."""
    name, _, offset = text.rpartition(":")
    parsed = parse_partition_dir(name)
    if parsed is None or parsed[2] is not None or not (offset.isascii() and offset.isdigit() and len(offset) < 20):
        raise ValueError(f"'{text}' is not a record: give TOPIC-PARTITION:OFFSET, such as orders-0:4711")
    return RecordPlace(parsed[0], parsed[1], int(offset))


def producer_of(targets: Iterable[Target], place: RecordPlace, limits: Limits = DEFAULT_LIMITS) -> int:
    """The producer id of the batch with this record, -1 for a producer without one.

    Raises InputError where no partition of this name is at the targets, and where none of its replicas has the offset.
    """
    is_there = False
    names = set()
    for target in targets:
        for partition in target.partitions():
            names.add(partition.name)
            if (partition.topic, partition.number) != (place.topic, place.partition) or partition.mark is not None:
                continue
            is_there = True
            match = find_offset(partition, place.offset, visibility_limit=0, limits=limits).match
            if match is not None:  # reading the partition reports what cannot be read
                return NO_PRODUCER_ID if match.batch is None else match.batch.producer_id
    if not is_there:
        name = f"{place.topic}-{place.partition}"
        suggested = did_you_mean(name, sorted(names))
        raise InputError(f"{place}: there is no partition {name} at the paths{'.' * bool(suggested)}{suggested}")
    raise InputError(f"{place}: no replica at the paths has a batch with this offset")
