"""verify --follow: checks the batches that are appended to logs, also against those before them in their partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from format.checks.losses import CauseAccount
from format.checks.offset_chain import OffsetChain
from format.checks.producers import check_producer_events
from format.findings import Finding
from format.limits import Limits
from format.node.target import Target
from format.scan.drivers import SerialDriver, results_of
from format.scan.follow import Broken, CaughtUp, FollowDriver, FollowTerms, Grown
from format.scan.followed_partition import FollowedPartition, logs_before
from format.scan.protocol import LogParts, LogUnit
from format.state.header_scan import HeaderScan
from format.state.producers import ProducerState, newest_sound_snapshot
from format.verbs.verify.log_checks import SegmentOutcome, SoundBatches, verify_log_file
from format.verbs.verify.terms import Coverage, Verification
from format.verbs.verify.walk import Level, LogWalk, WalkedChunk

#: What following does not check, at any level.
NOT_FOLLOWED = "batches that were there before, indexes, checkpoints and snapshots: they are checked without --follow"


def follow_verify(targets: Sequence[Target], terms: Verification, follow: FollowTerms) -> Iterator[Finding | CaughtUp]:
    """Findings about what is appended from now on. Raises InputError as ``Target.kind`` does."""
    checks: dict[Path, _Checks] = {}
    segments: set[tuple[Path, int | None]] = set()
    follow = replace(follow, limits=terms.limits, step_bytes=terms.walk.needs.range_bytes)
    with FollowDriver(targets, follow) as driver:
        yield from driver.begin()
        for event in driver.events():
            if isinstance(event, Grown):
                path, base_offset = event.partition.path, event.log.location.base_offset
                if path not in checks:
                    checks[path] = _Checks.before(event.partition, terms)
                yield from checks[path].findings(event, terms)
                if (path, base_offset) not in segments:
                    segments = {each for each in segments if each[0] != path} | {(path, base_offset)}
                    terms.coverage.segments += 1
                terms.coverage.partitions = max(terms.coverage.partitions, len(checks))
            elif isinstance(event, Broken):
                checks.pop(event.partition.path, None)
                yield event.finding
            else:
                yield event


class _Checks(msgspec.Struct):
    """The state of the checks of one partition; ``segment`` is the base offset of the segment that is read."""

    chain: OffsetChain
    causes: CauseAccount
    producers: ProducerState | None
    segment: int | None

    @classmethod
    def before(cls, partition: FollowedPartition, terms: Verification) -> _Checks:
        """The state where following begins. The producers' state is read from a snapshot and the headers after it."""
        chain = OffsetChain()
        place = partition.place
        base_offset = None if place is None else place.segment_base_offset
        chain.resume(base_offset, partition.next_offset)
        is_full = terms.level is Level.FULL
        return cls(chain, CauseAccount(), _producers_before(partition, terms.limits) if is_full else None, base_offset)

    def findings(self, event: Grown, terms: Verification) -> Iterator[Finding]:
        """Findings about the next batches."""
        log = event.log
        if log.location.base_offset != self.segment:
            self.segment = log.location.base_offset
            self.chain.start_segment(self.segment, None)
        own = replace(terms, driver=_OneRange(event, terms.walk), coverage=Coverage())

        def across(sound: SoundBatches) -> Iterator[Finding]:
            if self.producers is not None:
                events = self.producers.feed(sound.table, sound.markers)
                yield from check_producer_events(events, log.location, self.chain, self.causes)

        for each in verify_log_file(log, self.chain, own, SegmentOutcome(), across=across):
            self.causes.note(each)
            yield each
        terms.coverage.batches += own.coverage.batches
        terms.coverage.records += own.coverage.records
        terms.coverage.bytes += event.size_bytes


class _OneRange(msgspec.Struct, frozen=True):
    """A driver for one appended range."""

    event: Grown
    walk: LogWalk

    def parts(self, log: LogUnit) -> LogParts[WalkedChunk]:
        """The parts of the range."""
        return self.event.parts(self.walk)

    def close(self) -> None:
        """Nothing is open."""


def _producers_before(partition: FollowedPartition, limits: Limits) -> ProducerState:
    """The producers' state at a partition's next offset, from its newest sound snapshot and the headers after it."""
    state, since = ProducerState(), 0
    found = newest_sound_snapshot(partition.listed, limits, partition.next_offset)
    if found is not None:
        since, state = found[0], ProducerState.of_snapshot(found[1])
    scan = HeaderScan(limits)
    for log in logs_before(partition):
        following = partition.listed.next_base_offset(log.segment) if log.segment is not None else None
        if following is not None and following <= since:
            continue
        for item in results_of(scan, log, SerialDriver(scan)):
            if not isinstance(item, Finding):
                new = item.since(since)
                state.feed(new.table, new.markers)
    return state
