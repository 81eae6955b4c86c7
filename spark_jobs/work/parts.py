"""Logs that many tasks read in parts, for jobs about records, with the results of one reader.

Where a part is not plainly sound, or does not end where the next one begins, what its segment gave is put aside and
the segment is read once more as a whole: findings about damage depend on all that stands before it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from format.errors import KafkaLogError
from format.findings import Finding, finding
from format.io.remote_path import is_there, path_of
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.walker import batch_chunks
from format.scan.read_log import LogChunk, first_position, opened_chunks
from format.scan.selection import Selection
from format.verbs.verify.walk import Level
from spark_jobs.watching import watched
from spark_jobs.work.file_states import state_of_file, state_of_files, state_of_partition, words_for_change
from spark_jobs.work.part_bounds import bounds_of, opened
from spark_jobs.work.planning import Item, Part, Plan, PlannedSegment, Unit, UnitKind, segment_of_file
from spark_jobs.work.replay import CHUNKS, STATUS, PartStatus, parts_fit, walk_part
from spark_jobs.work.tasks import ORDER, Result, results_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Makes results of a segment's chunks; a Finding among them makes the part one that is not plain.
Search = Callable[[PlannedSegment, Iterable[LogChunk | Finding]], Iterator[Any]]
#: Makes the results of a whole segment.
SearchWhole = Callable[[PlannedSegment], Iterator[Any]]


def results_of_part(
    item: Part, search: Search, selection: Selection, limits: Limits, chunk_bytes: int | None = None
) -> Iterator[Result]:
    """The results of a part, chunk by chunk, and then its status."""
    segment = item.segment
    is_plain = True
    start = position = size_bytes = 0

    def sound(chunks: Iterator[BatchChunk]) -> Iterator[BatchChunk]:
        nonlocal is_plain, position
        for chunk in chunks:
            is_damaged = chunk.damage is not None or not chunk.table.crc_valid.all()
            if is_damaged or not chunk.table.rises_from(None):
                is_plain = False
                return
            position = int(chunk.table.end_position[-1]) if len(chunk.table) else position
            yield chunk

    try:
        source, change = opened(segment)
        is_plain = change is None
        with source:
            start, end = bounds_of(segment, source, item.part, limits)
            size_bytes = source.size_bytes
            first = start
            if not selection.is_everything:
                first = max(start, first_position(segment_of_file(path_of(segment.path)), source, selection))
            position = start
            if end is not None and first >= end:
                position = end  # nothing of it is wanted
            elif is_plain:
                chunks = batch_chunks(source, first, end, limits=limits, chunk_bytes=chunk_bytes)
                items = opened_chunks(
                    source,
                    sound(chunks),
                    segment.location,
                    selection,
                    is_last_segment=segment.is_last,
                    limits=limits,
                )
                for step, value in enumerate(search(segment, items)):
                    if isinstance(value, Finding):
                        is_plain = False
                        break
                    yield Result(segment.unit, CHUNKS, segment.number, item.part, step, value)
            is_plain = is_plain and position == (size_bytes if end is None else end)
    except KafkaLogError:
        is_plain = False  # the second reading reports why
    status = PartStatus(start, position, size_bytes, is_plain)
    yield Result(segment.unit, STATUS, segment.number, item.part, 0, status)


def together(unit: Unit, rows: Iterable[Result], search_whole: SearchWhole) -> Iterator[Result]:
    """The results of a unit's segments, in order, from the results of its parts in order."""
    statuses: dict[int, list[PartStatus]] = {}
    remaining = iter(rows)
    ahead = None
    for each in remaining:
        if each.phase != STATUS:
            ahead = each
            break
        statuses.setdefault(each.segment, []).append(each.value)
    for segment in unit.segments:
        fits = parts_fit(segment, statuses.get(segment.number, []))
        while ahead is not None and ahead.segment <= segment.number:
            if fits and ahead.segment == segment.number:
                yield ahead
            ahead = next(remaining, None)
        if not fits:
            for step, value in enumerate(search_whole(segment)):
                yield Result(unit.number, CHUNKS, segment.number, 0, step, value)


def tasks_that_fit(session: SparkSession, plan: Plan[Item], limits: Limits) -> list[list[Item]]:
    """The plan's tasks, with each segment whose parts are not sound, or do not fit together, as one part.

    For jobs whose rows are written by the tasks that make them, and cannot be put aside: headers and CRCs of all
    segments that are cut into parts are read once more than needed, before.
    """
    cut = {
        (unit.number, segment.number): segment
        for unit in plan.units
        for segment in unit.segments
        if segment.part_count > 1
    }
    if not cut:
        return plan.tasks

    def work(item: Item) -> Iterator[Result]:
        if isinstance(item, Part) and item.segment.part_count > 1:
            yield from (each for each in walk_part(item, Level.CRC, limits) if each.phase == STATUS)

    statuses: dict[tuple[int, int], list[PartStatus]] = {}
    frame = results_frame(session, plan, work).orderBy(*ORDER)
    for row in watched(session, "kafkalog: do the parts fit", lambda: list(frame.toLocalIterator())):
        statuses.setdefault((row.unit, row.segment), []).append(pickle.loads(row.payload))
    unfit = {
        key
        for key, segment in cut.items()
        if not parts_fit(segment, statuses.get(key, [])) or any(each.change for each in statuses[key])
    }
    return [list(_without_parts_of(task, unfit)) for task in plan.tasks]


def _without_parts_of(items: Iterable[Item], unfit: set[tuple[int, int]]) -> Iterator[Item]:
    for item in items:
        if not isinstance(item, Part) or (item.segment.unit, item.segment.number) not in unfit:
            yield item
        elif item.part == 0:
            yield Part(replace(item.segment, part_count=1), 0)


def changes_of(item: Item) -> list[Finding]:
    """A finding where the files of an item differ from the plan."""
    if isinstance(item, Part):
        return changes_of_segment(item.segment)
    if item.kind is UnitKind.LOG_DIR_FILES:
        return []
    now = state_of_partition(item.path) if item.kind is UnitKind.PARTITION else state_of_files([item.path])
    words = words_for_change(item.path, item.state, now)
    if words is None or not is_there(item.path):
        return []
    return [finding("file-changed", Location(item.path), words)]


def changes_of_segment(segment: PlannedSegment) -> list[Finding]:
    """A finding where the log of a segment differs from the plan; one that is gone is reported when it is opened."""
    words = words_for_change(segment.path, segment.state, state_of_file(segment.path))
    return [] if words is None or not is_there(segment.path) else [finding("file-changed", segment.location, words)]
