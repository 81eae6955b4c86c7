"""scrub --compare: what differs between the replicas of two nodes, by the digests of their states; no log is read."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from format.offset_ranges import runs
from format.rows.record_rows import Row
from format.verbs.scrub.digest import Digest, merged
from format.verbs.scrub.state import KnownPartition, State, VerifiedSegment

#: Why a compacted log is not compared.
COMPACTED = "compacted, and each replica is cleaned by itself"


class Difference(msgspec.Struct, frozen=True):
    """A row of columns.SCRUB_DIFFERENCE: offsets whose batches are others in the two replicas."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    path_1: str
    path_2: str

    def row(self) -> Row:
        return msgspec.structs.astuple(self)


class Compared(msgspec.Struct):
    """What two states say of each other: the differences, and how much could be compared.

    ``apart`` are the partitions of both states of which nothing could be compared, each with the reason.
    """

    differences: list[Difference] = msgspec.field(default_factory=list)
    partition_count: int = 0
    apart: dict[str, str] = msgspec.field(default_factory=dict)


def compare(first: State, second: State) -> Compared:
    """Compare the partitions that both states have. Raises InputError for a state that cannot be read."""
    compared = Compared()
    others: dict[tuple[str, int], list[KnownPartition]] = {}
    for each in second.partitions():
        others.setdefault((each.topic, each.partition), []).append(each)
    for one in first.partitions():
        for other in others.get((one.topic, one.partition), ()):
            reason = _why_apart(one, other)
            if reason is None:
                both = [_Run.of(first.segments(one.id)), _Run.of(second.segments(other.id))]
                reason = _add(compared, one, other, *both)
            if reason is not None:
                compared.apart[f"{one.topic}-{one.partition}"] = reason
    return compared


def _why_apart(one: KnownPartition, other: KnownPartition) -> str | None:
    if one.cluster_id is not None and other.cluster_id is not None and one.cluster_id != other.cluster_id:
        return "the cluster ids differ"
    if one.topic_id is not None and other.topic_id is not None and one.topic_id != other.topic_id:
        return "the topic ids differ"
    if one.is_compacted or other.is_compacted:
        return COMPACTED
    return None


class _Run(msgspec.Struct, frozen=True):
    """The longest run of sound segments without a gap: its segments, their digests, and its offsets."""

    segments: list[VerifiedSegment]
    digests: list[Digest]

    @classmethod
    def of(cls, segments: Sequence[VerifiedSegment]) -> _Run:
        found: list[list[VerifiedSegment]] = [[]]
        for each in segments:
            if each.is_damaged or (found[-1] and found[-1][-1].end_offset != each.base_offset):
                found.append([])
            if not each.is_damaged:
                found[-1].append(each)
        longest = max(found, key=lambda run: run[-1].end_offset - run[0].base_offset if run else 0)
        return cls(longest, [Digest.of_packed(each.digest) for each in longest])

    @property
    def shift(self) -> int:
        return max((each.shift for each in self.digests), default=0)

    def file_at(self, offset: int, directory: str) -> str:
        base_offset = max(each.base_offset for each in self.segments if each.base_offset <= offset)
        return f"{directory}/{base_offset:020d}.log"


def _add(compared: Compared, one: KnownPartition, other: KnownPartition, left: _Run, right: _Run) -> str | None:
    """Compare two replicas range by range; the reason where no range is whole in both."""
    if not left.segments or not right.segments:
        return "no segment was verified"
    shift = max(left.shift, right.shift)
    start = max(left.segments[0].base_offset, right.segments[0].base_offset)
    ends = left.segments[-1].end_offset, right.segments[-1].end_offset
    sums = merged(left.digests, shift), merged(right.digests, shift)
    # The last range is whole where both logs end at one offset; an earlier one where both go on after it.
    first_key = -(-start >> shift)
    end_key = ((ends[0] - 1) >> shift) + 1 if ends[0] == ends[1] else min(ends) >> shift
    if end_key <= first_key:
        return "the verified offsets of the two do not overlap by a whole range"
    compared.partition_count += 1
    differing = [key for key in range(first_key, end_key) if sums[0].get(key, 0) != sums[1].get(key, 0)]
    for first, last in runs(np.array(differing, np.int64)):
        first_offset, last_offset = first << shift, min(((last + 1) << shift), *ends) - 1
        compared.differences.append(
            Difference(
                one.topic,
                one.partition,
                first_offset,
                last_offset,
                left.file_at(first_offset, one.path),
                right.file_at(first_offset, other.path),
            )
        )
    return None
