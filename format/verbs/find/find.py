"""find: looks up an offset, a time or the largest timestamp as a broker does.

Offset: the segment with the greatest base offset at or below it, the greatest index entry at or below it, a scan
(LocalLog.read, LogSegment.translateOffset). Time: the first segment whose largest timestamp reaches it, both index
floors, a scan (UnifiedLog.searchOffsetInLocalLog). Largest timestamp: the first segment that has it, then the first
batch, then the first record (UnifiedLog.fetchOffsetByTimestamp for MAX_TIMESTAMP). A look-up by time returns no record
at or past the high watermark (ReplicaManager.fetchOffset).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from format import layout
from format.errors import InputError, KafkaLogError
from format.findings import Finding, finding
from format.io.live_broker import is_broker_running, settled
from format.io.session import is_on_disk, session_of
from format.layout import NO_TIMESTAMP
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind
from format.node.offsets import MARKS_OF_REPLICAS
from format.node.partition import NOT_A_SEGMENT_NAME, Partition, is_offset, read_partition
from format.node.partition_surroundings import completed_swaps
from format.node.target import Target
from format.timestamps import iso_time
from format.verbs.boot.one_log.batches import CorruptRecords
from format.verbs.find.broker_search import BrokerSearch
from format.verbs.find.lookup import FoundRecord, LookupResult, Visibility
from format.verbs.find.segment_lookup import BatchByHeader, LookupScan, LookupSegment, SearchedBatch
from format.verbs.find.time_index_lookup import LargestTimestamp, first_record_at, largest_timestamp
from format.verbs.find.visibility import Bounds, diagnosed, read_bounds
from format.wording import listed, shell_word

#: The most bytes of a remote log that are read by default to find out who can see a record.
REMOTE_VISIBILITY_BYTES = 256 * 1024
#: How often a log is listed again whose segments a broker deletes or renames before they are read.
_MOST_LISTINGS = 4


def find_offset(
    partition: Partition, offset: int, *, visibility_limit: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> LookupResult:
    """The record with this offset, and who can see it.

    The visibility stays unknown where more than ``visibility_limit`` bytes must be read for it.
    """
    return _looked_up(partition, limits, visibility_limit, lambda log: log.search_offset(offset))


def find_timestamp(
    partition: Partition,
    timestamp: int,
    *,
    past_high_watermark: bool = False,
    visibility_limit: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> LookupResult:
    """The first record with a timestamp (ms) at or past this one, as ListOffsets answers it, and who can see it.

    ``past_high_watermark`` also returns records that a broker hides from consumers because they are not replicated;
    ``visibility_limit`` as in ``find_offset``.
    """
    return _looked_up(
        partition, limits, visibility_limit, lambda log: log.search_timestamp(timestamp, past_high_watermark)
    )


def find_max_timestamp(
    partition: Partition,
    *,
    past_high_watermark: bool = False,
    visibility_limit: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> LookupResult:
    """The first record with the log's largest timestamp (KIP-734); the parameters are those of ``find_timestamp``."""
    return _looked_up(partition, limits, visibility_limit, lambda log: log.search_max_timestamp(past_high_watermark))


def partition_to_search(path: Path) -> Partition:
    """The partition of a partition directory, or of one ``.log`` file and its siblings.

    A file that a broker marked ``.deleted``, ``.cleaned`` or ``.swap`` is searched by itself. Raises InputError for
    anything else.
    """
    target = Target(path)
    kind = target.kind
    if kind is Kind.PARTITION:
        return target.partition
    location = Location(str(path))
    if kind is Kind.LOG_DIR:
        raise InputError(_many_partitions(target), location)
    if kind is not Kind.LOG:
        raise InputError("this is not a segment: give a partition directory or a .log file", location)
    partition = read_partition(path.parent)
    if any(segment.log is not None and segment.log.name == path.name for segment in partition.segments):
        return partition
    for leftover in partition.leftovers:
        if leftover.log is not None and leftover.log.name == path.name:
            # Its siblings and the checkpoints belong to the live log.
            return dataclasses.replace(
                partition.with_segments([leftover]), orphans=[], unexpected=[], mark=leftover.leftover
            )
    raise InputError(NOT_A_SEGMENT_NAME, location)


def _many_partitions(target: Target) -> str:
    """The message about a directory of many partitions, with a partition of a user's topic as an example."""
    log_dirs = target.log_dirs
    paths = [path for log_dir in log_dirs for path in log_dir.partitions]
    example = next((path for path in paths if not path.name.startswith("__")), paths[0] if paths else None)
    names = [str(log_dir.path).removeprefix(f"{target.path}/") for log_dir in log_dirs]
    what = "this is a log directory" if len(names) == 1 else f"{len(names)} log directories lie here, {listed(names)}"
    return f"{what}: give one partition directory{f', such as {shell_word(str(example))}' if example else ''}"


# -- the run of a look-up --------------------------------------------------------------------------------------


def _looked_up(
    partition: Partition, limits: Limits, visibility_limit: int | None, search: Callable[[_SearchedLog], None]
) -> LookupResult:
    """The outcome of a search. Beside a running broker, the log is listed and searched again where it seems wrong.

    Without one, interrupted swaps count as completed, as its start does that.
    """
    if partition.leftovers and partition.mark in MARKS_OF_REPLICAS and not is_broker_running(partition.path):
        partition, _ = completed_swaps(partition, limits)
    found = _searched(partition, limits, visibility_limit, search)
    seems_right = found.error is None and not found.findings
    if seems_right or partition.mark not in MARKS_OF_REPLICAS or not is_broker_running(partition.path):
        return found

    def again() -> tuple[list[Finding], LookupResult]:
        for _ in range(_MOST_LISTINGS):
            try:
                listed_again = Target(partition.path, Kind.PARTITION).partition
                other = _searched(listed_again, limits, visibility_limit, search)
            except KafkaLogError as error:
                other = LookupResult(error=error)
            if other.error is None:
                break
        return other.findings, other

    first = again() if found.error is not None else (found.findings, found)
    findings, found = settled(first, again, partition.location())
    found.findings = findings
    return found


def _searched(
    partition: Partition, limits: Limits, visibility_limit: int | None, search: Callable[[_SearchedLog], None]
) -> LookupResult:
    """The outcome of one search, whose last step is the match; its files are closed."""
    lookup = LookupResult(findings=list(_not_searched(partition)))
    bounds, findings = read_bounds(partition, limits)
    lookup.report(findings)
    segments = [LookupSegment(lookup, partition, segment, limits) for segment in partition.segments]
    try:
        search(_SearchedLog(partition, segments, bounds, lookup))
        if lookup.match is not None:
            lookup.match = diagnosed(partition, bounds, lookup.match, limits, visibility_limit)
    except KafkaLogError as error:
        lookup.error = error
        return lookup
    finally:
        for segment in segments:
            segment.close()
    lookup.bytes_read = sum(segment.bytes_read for segment in segments)
    match = lookup.match
    if match is None:
        where, words = partition.location(), f"not found: {lookup.reason}"
    else:
        where, words = match.location, f"offset {match.location.offset}{f', {match.note}' if match.note else ''}"
    lookup.step("match", where, f"{words}; {lookup.bytes_read} bytes were read")
    return lookup


def _not_searched(partition: Partition) -> Iterator[Finding]:
    """Findings for segments that cannot be searched: the log is missing, not a regular file, or its name impossible."""
    with_logs = {each.base_offset for each in partition.segments}
    for orphan in partition.orphans:
        if orphan.base_offset in with_logs:
            continue
        path = next(iter(orphan.files.values()))
        message = "an index without its log: the offsets of that segment are not searched"
        yield finding("index-orphan", partition.location(path, orphan.base_offset), message)
    for path in partition.unexpected:
        match = layout.SEGMENT_FILE.match(path.name)
        if match is not None and match["suffix"] == layout.LOG_SUFFIX and match["leftover"] is None:
            if not is_offset(int(match["base_offset"])):
                message = "the name's offset does not fit in 63 bits; not searched"
                yield finding("entry-unexpected", partition.location(path), message)
            else:
                where = partition.location(path, int(match["base_offset"]))
                yield finding("file-unreadable", where, "not a regular file, so not searched")


# -- the searches ----------------------------------------------------------------------------------------------


class _Next(msgspec.Struct, frozen=True):
    """The first record at or past an offset, or the log end offset; ``lost`` is why the offset itself is skipped."""

    match: FoundRecord | None
    lost: str | None = None
    log_end_offset: int | None = None

    def why_absent(self, offset: int) -> tuple[str, Visibility]:
        """Why there is no record with the offset, and what that means for consumers."""
        match, end = self.match, self.log_end_offset
        if match is not None:
            reason = self.lost or f"offset {offset} is not in the log: compacted, or never written"
            visibility = Visibility.COMPACTED if self.lost is None else Visibility.DAMAGED
            return f"{reason}; the next record is at offset {match.location.offset}", visibility
        if self.lost is not None:
            return self.lost, Visibility.DAMAGED
        if end is not None and offset < end:
            reason = f"offset {offset} was removed: no record is left from there to the log end offset {end}"
            return reason, Visibility.COMPACTED
        return f"offset {offset} is at or past the log end offset {end}", Visibility.PAST_END


class _SearchedLog(msgspec.Struct, frozen=True):
    """A log that is searched: its segments, the bounds of an answer, and the look-up that gets the answer."""

    partition: Partition
    segments: list[LookupSegment]
    bounds: Bounds
    lookup: LookupResult

    def search_offset(self, offset: int) -> None:
        """Find the record with this offset; if there is none, the next record that a fetch would return."""
        segments, start = self.segments, self.bounds.log_start_offset
        is_below = offset < start
        below_start = f"offset {offset} is below the log start offset {start} ({self.bounds.log_start_source})"
        if not segments:
            visibility = Visibility.BELOW_LOG_START if is_below else Visibility.PAST_END
            self._is_absent(offset, "the partition has no segment", visibility)
            return
        if offset < segments[0].base_offset:
            reason = below_start if is_below else f"offset {offset} is in remote storage, which is not read"
            self._is_absent(offset, reason, Visibility.BELOW_LOG_START if is_below else None)
            return
        number = max(number for number, segment in enumerate(segments) if segment.base_offset <= offset)
        segments[number].step(f", {number + 1} of {len(segments)}: the greatest base offset at or below {offset}")
        found = self._next_record(segments[number:], offset)
        match = found.match
        if (match is None or match.location.offset != offset) and found.lost is None:
            # at an address, each look into a segment takes a while
            earlier = segments[:number] if is_on_disk(self.partition.path) else segments[max(number - 1, 0) : number]
            misplaced = (self._misplaced(each, offset) for each in reversed(earlier))
            found = replace(found, lost=next(filter(None, misplaced), None) or self._lost_with_its_segment(offset))
        if match is None or match.location.offset != offset:
            reason, absent_as = found.why_absent(offset)
            unread = [each.is_incomplete for each in self.lookup.findings]
            is_unread = absent_as is Visibility.DAMAGED and bool(unread) and all(unread)  # a later release may read it
            known = None if is_unread else absent_as
            self._is_absent(offset, reason, Visibility.BELOW_LOG_START if is_below else known, match)
        elif is_below:
            self.lookup.miss(f"{below_start}; its record is still in the file", match)
            self.lookup.answer = replace(match, visibility=Visibility.BELOW_LOG_START)
        else:
            self.lookup.match = match

    def _lost_with_its_segment(self, offset: int) -> str | None:
        """That the segment of an offset is missing, which its index or the metadata of remote storage shows."""
        known = {each.base_offset for each in self.segments} | set(self.partition.unread_logs)
        orphans = {each.base_offset for each in self.partition.orphans} - known
        base_offset = max(each for each in orphans | known if each <= offset)
        if base_offset in orphans:
            return f"offset {offset} would be in segment {base_offset}, which has an index, but no .log"
        session = session_of(self.partition.path)
        lost = () if session is None or session.tier is None else session.tier.lost.get(self.partition.key, ())
        if any(first <= offset <= last for first, last in lost):
            return f"offset {offset} is lost: the objects of its remote segment are missing"
        return None

    def _misplaced(self, segment: LookupSegment, offset: int) -> str | None:
        """That a batch at the end of a segment before has the offset, in words; None where none has it."""
        scan = segment.scan(segment.floor(offset).position)
        is_there = any(place.spans(offset) for place in scan.places_from(offset))
        segment.close()
        if not is_there:
            return None
        self.lookup.report(scan.findings)
        return f"offset {offset} is in a batch in segment {segment.base_offset}, where a broker does not look for it"

    def _is_absent(
        self, offset: int, reason: str, visibility: Visibility | None, nearest: FoundRecord | None = None
    ) -> None:
        self.lookup.miss(reason, nearest)
        self.lookup.answer = FoundRecord(self.partition.location().at(offset=offset), visibility=visibility)

    def _next_record(self, segments: list[LookupSegment], offset: int) -> _Next:
        """The first record at or past the offset, in the first segment or a later one, where a fetch would continue."""
        lost: str | None = None
        log_end_offset = segments[0].base_offset
        for number, segment in enumerate(segments):
            if number:
                segment.step(f": the one before has no record at or past offset {offset}")
            scan = segment.scan_from(offset)
            searched: SearchedBatch | None = None
            for place in scan.places_from(offset):
                searched = segment.first_record(place, lambda records: records.offset >= offset, by_time=False)
                if not (searched.is_complete and searched.is_intact) and place.spans(offset):
                    lost = f"{place.words} should hold offset {offset} and cannot be read"
                if searched.match is not None:
                    break
            self.lookup.report(scan.findings)
            for each in scan.findings:
                if each.lost_offsets is not None and each.lost_offsets[0] <= offset <= each.lost_offsets[1]:
                    lost = f"offset {offset} is lost: {each.message}"
            for (first, last), each in scan.repairable:
                if first <= offset <= last:
                    lost = f"offset {offset} is in a batch with a damaged header: {each.message}"
            match = None if searched is None else searched.match
            is_there = match is not None and match.location.offset == offset
            if lost is None and not is_there and scan.is_out_of_order(offset):
                lost = f"offset {offset} is in a batch out of order, where a broker does not look for it"
            if is_on_disk(self.partition.path) or self.lookup.findings:
                match, lost = self._as_a_broker(segment, scan, offset, match, lost)
            segment.scan_step(scan, f"at or past offset {offset}", searched)
            if match is not None:
                return _Next(match, lost)
            log_end_offset = max(log_end_offset, segment.base_offset, scan.end_offset or 0)
            segment.close()
        return _Next(None, lost, log_end_offset)

    def _as_a_broker(
        self, segment: LookupSegment, scan: LookupScan, offset: int, match: FoundRecord | None, lost: str | None
    ) -> tuple[FoundRecord | None, str | None]:
        """The match with why a broker does not get to it; for an absent offset, what it gets to, and why."""
        broker = BrokerSearch(segment, self.bounds.offsets)
        position = None if match is None else match.location.position or 0
        if match is not None and position is not None and match.location.offset == offset:
            hidden = self._why_past_end(offset) or broker.why_hidden(offset, position, scan)
            return replace(match, hidden=hidden), lost
        if lost is not None:
            return match, lost
        absent, reached = f"offset {offset} is not in the log", broker.reached(offset, scan.start)
        if reached.damaged_at is not None:
            return match, f"{absent}, and a broker's search for it ends at the damage at position {reached.damaged_at}"
        if match is not None and match.batch is not None and not match.batch.crc_valid:
            return match, f"{absent}, and the batch of the next record has a wrong CRC"
        if position is not None and (reached.batch is None or reached.batch.position > position):
            return match, f"{absent}, and the next record is {broker.why_hidden(offset, position, scan)}"
        if reached.batch is None:
            return match, None
        for batch in broker.batches_from(reached.batch.position):  # which a consumer gets, up to the first such record
            if batch.position == position:
                break
            searched = segment.first_record(batch, lambda records: records.offset >= offset, by_time=False)
            if not (searched.is_complete and searched.is_intact):
                return match, f"{absent}, and {batch.words}, which a broker returns, cannot be read"
            if searched.match is not None:
                return searched.match, f"{absent}, and {batch.words}, which a broker finds, is out of order"
        else:
            if position is not None and scan.damaged_from is not None:
                return match, f"{absent}, and the damage at position {scan.damaged_from} lies before the next record"
        return match, None

    def _why_past_end(self, offset: int) -> str:
        """Why an offset of the last segment lies past the log end of a broker; empty where it does not."""
        last = self.segments[-1]
        if offset < last.base_offset or not is_on_disk(self.partition.path):
            return ""
        end = BrokerSearch(last, self.bounds.offsets).log_end()
        if end is None or offset < end:
            return ""
        return f"past offset {end}, which a broker takes for the log end, misled by the last entry of the .index"

    def search_timestamp(self, timestamp: int, past_high_watermark: bool) -> None:
        """Find the first record at or after a time (ms), and say so where a broker answers otherwise."""
        self._search_timestamp(timestamp, past_high_watermark)
        if is_on_disk(self.partition.path) and not self.bounds.offsets.is_broker_running:
            self._compare(iso_time(timestamp), lambda: self._answer_of_broker(timestamp))

    def _compare(self, sought: str, answer_of_broker: Callable[[], tuple[LookupSegment, int | None] | None]) -> None:
        """Report a broker's answer that is not the match, unless damage or a wrong entry was found that explains it."""
        match = self.lookup.match
        if match is None or self.lookup.findings:
            return
        here = next(each for each in self.segments if each.base_offset == match.location.base_offset)
        try:
            answer = answer_of_broker()
        except CorruptRecords:
            answer = here, None
        except KafkaLogError:
            return
        if answer is None or answer[1] == match.location.offset:
            return
        first = min(here, answer[0], key=lambda each: each.base_offset)
        where = first.location if first.segment.time_index is None else first.at(first.segment.time_index)
        what = "no record" if answer[1] is None else f"offset {answer[1]}"
        message = f"a broker, which goes by the indexes, answers a look-up of {sought} with {what}"
        self.lookup.report([finding("time-index-mismatch", where, message)])

    def _broker_searches(self) -> Iterator[tuple[LookupSegment, BrokerSearch]]:
        """The segments that do not end below the log start offset; each is closed before the next one."""
        for segment in self.segments:
            if not self._ends_below_start(segment):
                yield segment, BrokerSearch(segment, self.bounds.offsets)
                segment.close()

    def _answer_of_broker(self, timestamp: int) -> tuple[LookupSegment, int | None] | None:
        """The segment in which a broker looks for a time, and its answer; None for indexes that a start builds."""
        for segment, broker in self._broker_searches():
            if broker.index is None:
                return None
            largest, _ = broker.time_floor()
            if (segment.modified_ms if largest == NO_TIMESTAMP else largest) >= timestamp:
                known = self.lookup.match
                known = known if known is not None and known.location.base_offset == segment.base_offset else None
                return segment, broker.first_at(timestamp, self.bounds.log_start_offset, 0, known)
        return (self.segments[-1], None) if self.segments else None

    def _largest_of_broker(self) -> tuple[LookupSegment, int | None] | None:
        """The segment whose time index has the largest timestamp, and a broker's answer for it; as for a time."""
        best: tuple[LookupSegment, BrokerSearch, tuple[int, int]] | None = None
        for segment, broker in self._broker_searches():
            if broker.index is None:
                return None
            largest = broker.time_floor()
            if best is None or largest[0] > best[2][0]:
                best = segment, broker, largest
        if best is None:
            return None
        segment, broker, largest = best
        return segment, broker.first_with(*largest, 0)

    def _search_timestamp(self, timestamp: int, past_high_watermark: bool) -> None:
        """Find the first record at or after a time (ms), as ListOffsets answers it.

        A broker searches only the first segment whose largest timestamp is at or past the time. For a segment without
        timestamps, in its time index too, such as one of format 0 messages, it takes the time when the file was changed
        (LogSegment).
        """
        start = self.bounds.log_start_offset
        largest_of_all = NO_TIMESTAMP
        stopped_at: tuple[LookupSegment, str] | None = None
        for number, segment in enumerate(self.segments):
            if self._is_below_start(segment):
                continue
            largest = largest_timestamp(segment, self.bounds.offsets, at_least=timestamp)
            largest_of_all = max(largest_of_all, largest.timestamp)
            has_none = largest.timestamp == NO_TIMESTAMP
            goes_by_file = has_none and largest.in_index == NO_TIMESTAMP
            reached = largest.in_index if has_none else largest.timestamp
            reached = segment.modified_ms if goes_by_file else reached
            is_reached = reached >= timestamp
            side = "at or after" if is_reached else "before"
            detail = (
                f"{largest.detail}, and the file was changed at {iso_time(reached)}" if goes_by_file else largest.detail
            )
            segment.step(f", {number + 1} of {len(self.segments)}: {detail}, {side} {iso_time(timestamp)}")
            if is_reached and has_none:
                stopped_at = stopped_at or (segment, "")
            elif is_reached:
                broker = BrokerSearch(segment, self.bounds.offsets)
                match, unreadable = first_record_at(segment, broker, timestamp, start)
                if match is not None and stopped_at is None and not unreadable:
                    return self._is_found(match, past_high_watermark)
                stopped_at = stopped_at or (segment, unreadable)
                if match is not None:
                    return self._stopped(*stopped_at, timestamp, match)
            segment.close()  # there may be thousands
        if stopped_at is not None and stopped_at[1]:
            return self._stopped(*stopped_at, timestamp)
        if largest_of_all >= timestamp:
            return self.lookup.miss(f"no record at or after {iso_time(timestamp)} from the log start offset {start} on")
        words = "the log has none" if largest_of_all == NO_TIMESTAMP else f"the largest is {iso_time(largest_of_all)}"
        return self.lookup.miss(f"no record has a timestamp at or after {iso_time(timestamp)}; {words}")

    def _stopped(
        self, segment: LookupSegment, unreadable: str, timestamp: int, match: FoundRecord | None = None
    ) -> None:
        """Say why a broker does not answer with the record that matches, if there is one."""
        here, at_or_after = f"segment {segment.base_offset}", f"record at or after {iso_time(timestamp)}"
        following = "there is none after it" if match is None else f"the next one is at offset {match.location.offset}"
        if unreadable:
            why = f"a broker looks no further than {here}, where {unreadable} cannot be read"
            return self.lookup.miss(f"{why}: the first {at_or_after} may be there; {following}", match)
        return self.lookup.miss(
            f"a broker answers that there is no such record: it looks no further than {here}, which has no "
            f"{at_or_after} from the log start offset {self.bounds.log_start_offset} on; {following}",
            match,
        )

    def search_max_timestamp(self, past_high_watermark: bool) -> None:
        """Find the first record with the largest timestamp, and say so where a broker answers otherwise."""
        self._search_max_timestamp(past_high_watermark)
        if is_on_disk(self.partition.path) and not self.bounds.offsets.is_broker_running:
            self._compare("the largest timestamp", self._largest_of_broker)

    def _search_max_timestamp(self, past_high_watermark: bool) -> None:
        """Find the first record with the largest timestamp: in the first segment that has it, in its first batch."""
        best: tuple[LookupSegment, LargestTimestamp] | None = None
        for number, segment in enumerate(self.segments):
            if self._is_below_start(segment):
                continue
            largest = largest_timestamp(segment, self.bounds.offsets)
            segment.step(f", {number + 1} of {len(self.segments)}: {largest.detail}")
            segment.close()
            if best is None or largest.timestamp > best[1].timestamp:
                best = segment, largest
        if best is None:
            return self.lookup.miss("the partition has no segment")
        segment, largest = best
        scan = segment.scan_from(largest.offset)
        place: BatchByHeader | None = None
        for batches in scan:
            rows = np.flatnonzero(batches.table.max_timestamp == largest.timestamp)
            if len(rows):
                place = batches.place(int(rows[0]))
                break
        self.lookup.report(scan.findings)
        if scan.damaged_from is not None and (place is None or scan.damaged_from < place.position):
            broker = BrokerSearch(segment, self.bounds.offsets)
            try:
                offset, damaged_at = broker.first_with(largest.timestamp, largest.offset, scan.start), scan.damaged_from
            except CorruptRecords as error:
                offset, damaged_at = None, error.position
            words = f"a broker looks for {iso_time(largest.timestamp)} in segment {segment.base_offset} only, and"
            if offset is None:
                return self.lookup.miss(f"{words} comes to the damage at position {damaged_at} first")
            if place is None or not place.spans(offset):
                return self.lookup.miss(f"{words} answers with offset {offset}, in a batch that consumers cannot read")
        if place is None:
            return self.lookup.miss("the log has no records")
        if place.magic == 0:
            return self.lookup.miss("the log has no timestamps: its messages are in format 0")
        max_timestamp = place.max_timestamp
        searched = segment.first_record(place, lambda records: records.timestamp == max_timestamp)
        match = searched.match
        if match is not None:
            segment.scan_step(scan, f"with timestamp {iso_time(max_timestamp)}", searched)
            if (match.location.offset or 0) < self.bounds.log_start_offset:
                note = f"below the log start offset {self.bounds.log_start_offset}"
                match = replace(match, visibility=Visibility.BELOW_LOG_START, note=note)
            return self._is_found(match, past_high_watermark)
        words = f"{place.words} has the largest timestamp {iso_time(max_timestamp)}"
        if not searched.is_complete:
            return self.lookup.miss(f"{words} and cannot be read")
        if not searched.has_records:
            return self.lookup.miss(
                f"{words}, and compaction has removed all of its records: a broker answers that there is no such record"
            )
        if max_timestamp != NO_TIMESTAMP:  # which a broker stores for records that are all older than 1970
            where = segment.location.at(place.position, place.size_bytes, place.base_offset)
            message = f"the header says {iso_time(max_timestamp)}, none of the records has that timestamp"
            self.lookup.report([finding("max-timestamp-mismatch", where, message)])
        return self.lookup.miss(f"{words}, none of its records has it: a broker answers that there is no such record")

    def _ends_below_start(self, segment: LookupSegment) -> bool:
        return segment.next_base_offset is not None and segment.next_base_offset <= self.bounds.log_start_offset

    def _is_below_start(self, segment: LookupSegment) -> bool:
        """Whether the whole segment lies below the log start offset: a broker is about to delete it."""
        if not self._ends_below_start(segment):
            return False
        segment.step(f": it ends below the log start offset {self.bounds.log_start_offset}")
        return True

    def _is_found(self, match: FoundRecord, past_high_watermark: bool) -> None:
        """Answer with a record that was found by time, unless a broker hides it."""
        offset, high_watermark = match.location.offset or 0, self.bounds.high_watermark
        past_end = self._why_past_end(offset)
        if past_end and not past_high_watermark:
            return self.lookup.miss(f"a broker does not return offset {offset}, which is {past_end}", match)
        if not past_high_watermark and high_watermark is not None and offset >= high_watermark:
            return self.lookup.miss(
                f"the record at offset {offset} is at or past the high watermark {high_watermark} of the checkpoint: a "
                "broker hides it until its own high watermark is past it, which after a start is at once if no other "
                "replica is in sync",
                match,
            )
        self.lookup.match = match
        unsure = self.bounds.unsure_words(offset)
        if unsure and self.bounds.replicated_end is not None and not past_high_watermark:
            self.lookup.not_checked.append(f"whether the record is replicated, so that a broker returns it: {unsure}")
        return None
