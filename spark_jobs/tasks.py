"""Tasks on executors: the parts of logs that they read, and their results as rows."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.files import offset_index
from format.findings import Finding, finding
from format.io.source import FileSource, FileState, Source
from format.io.store import ItemT, map_in_threads
from format.limits import MIB, Limits
from format.log.batch_chunk import BatchRange, HeaderChunk
from format.log.batch_header import has_right_crc, header_tables, read_header
from format.log.read_records import known_batches
from format.scan.drivers import SerialDriver
from format.scan.protocol import LogParts, LogUnit, OpenedRange, Walk, own_room
from spark_jobs.planning import (
    FileStamp,
    Item,
    LogPart,
    PackedList,
    PlannedLog,
    PlanningState,
    TaskPlan,
    Unit,
    begin_task,
    packed,
    unpacked,
    words_for_change,
)
from spark_jobs.session import is_remote_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: ``phase``, ``segment``, ``part`` and ``step`` order the results of a unit.
RESULT_DDL = "unit INT, phase INT, segment INT, part INT, step INT, payload BINARY"
_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.int32()) for name in ("unit", "phase", "segment", "part", "step")),
        pa.field("payload", pa.binary()),
    ]
)
#: The unit number of the result of a task that has more results than it may return at once.
LEFT_OUT = -1
#: The phase of these further results, after all others.
LATE = 3
#: Results are put together until they have this many bytes.
_BATCH_BYTES = 4 * MIB
#: Finished results of units that follow each other are put into one row, until it has this many bytes.
_ROW_BYTES = 32 * 1024
ORDER = ("unit", "phase", "segment", "part", "step")


class Result(msgspec.Struct, frozen=True):
    """One result of a task, about one unit. Results are sorted by their numbers."""

    unit: int
    phase: int
    segment: int
    part: int
    step: int
    value: Any


class Pickled(msgspec.Struct, frozen=True):
    """Finished results that a task passes on as they came."""

    payload: bytes


class _InClosure(msgspec.Struct, frozen=True):
    """A value that travels with the function of a task, where there is no broadcast."""

    value: Any


def shared_with_tasks(session: SparkSession, value: Any) -> Any:
    """The value for all tasks, as ``value`` of the result: a broadcast; on a Connect server, which has none, a copy."""
    return _InClosure(value) if is_remote_session(session) else session.sparkContext.broadcast(value)


def _known_to_tasks(session: SparkSession, surroundings: PlanningState) -> Any:
    """The same for what is small, unless there are remote segments."""
    return _InClosure(surroundings) if surroundings.tier is None else shared_with_tasks(session, surroundings)


class Bound(msgspec.Struct, frozen=True):
    """The bytes of results that a task returns at once.

    The result LEFT_OUT follows them, and then, with ``is_rest_kept``, the others in the phase LATE.
    """

    most_bytes: int
    is_rest_kept: bool


#: Folds the results of a unit whose parts other tasks read.
Merge = Callable[[int, Iterator[Result]], Iterator[Result]]


def rows_frame(
    session: SparkSession, made: TaskPlan, rows_of: Callable[[Item], Iterator[pa.RecordBatch]], ddl: str
) -> DataFrame:
    """A frame of the rows of all items of a plan: one Spark task for each of its tasks."""

    def rows_of_task(items: list[Item]) -> Iterator[pa.RecordBatch]:
        return (rows for item in items for rows in rows_of(item))

    return _items_frame(session, made.tasks, made.surroundings, rows_of_task, ddl)


def results_frame(
    session: SparkSession, made: TaskPlan, work: Callable[[Item], Iterator[Result]], bound: Bound | None = None
) -> DataFrame:
    """A frame of the results of all items of a plan: one Spark task for each of its tasks."""

    def rows_of(items: list[Item]) -> Iterator[pa.RecordBatch]:
        return _bounded((result for item in items for result in work(item)), bound)

    return _items_frame(session, made.tasks, made.surroundings, rows_of, RESULT_DDL)


class Argument(msgspec.Struct, frozen=True):
    """What a call is made for, and its number."""

    number: int
    value: Any

    @property
    def name(self) -> str:
        """What is read, for messages."""
        return str(self.value)[:200]


def mapped_frame(session: SparkSession, tasks: PackedList[list[Argument]], call: Callable[[Any], Any]) -> DataFrame:
    """A frame of the packed results of a call for each argument. A task makes several calls at once."""

    def rows_of(arguments: list[Any]) -> Iterator[pa.RecordBatch]:
        values = map_in_threads(lambda each: call(each.value), arguments)
        numbered = zip(arguments, values, strict=True)
        return as_batches(Result(each.number, 0, 0, 0, 0, packed(value)) for each, value in numbered)

    return _items_frame(session, tasks, PlanningState(), rows_of, RESULT_DDL)


def _items_frame(
    session: SparkSession,
    tasks: PackedList[list[ItemT]],
    surroundings: PlanningState,
    rows_of: Callable[[list[ItemT]], Iterator[pa.RecordBatch]],
    ddl: str,
) -> DataFrame:
    """The tasks reach the executors as a broadcast. A worker unpacks only its own, as a plan of many units is large."""
    known = _known_to_tasks(session, surroundings)
    shared = shared_with_tasks(session, list(tasks.contents))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task(known.value)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                items = unpacked(shared.value[number])
                _log_items(items)
                yield from rows_of(items)

    count = len(tasks)
    return session.range(0, count, 1, max(count, 1)).mapInArrow(run, ddl)


def _log_items(items: list[Any]) -> None:
    """Write a line with the files that the task reads to the executor's log."""
    names = [each.name for each in items]
    more = f" to {names[-1]}: {len(names)} pieces" if len(names) > 1 else ""
    sys.stderr.write(f"kafkalog: this task reads {names[0] if names else 'nothing'}{more}\n")


def merged_frame(
    session: SparkSession,
    results: DataFrame,
    made: TaskPlan,
    merge: Merge,
    merger_count: int,
    bound: Bound | None = None,
) -> DataFrame:
    """The results, with those of each unit that is split brought together, in order, and merged, by so many tasks."""
    known = _known_to_tasks(session, made.surroundings)
    split = frozenset(made.split)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task(known.value)
        yield from _bounded(merged(batches), bound)

    def merged(batches: Iterator[pa.RecordBatch]) -> Iterator[Result]:
        for number, of_unit in groupby(results_in(batches), key=lambda each: each.unit):
            yield from merge(number, of_unit) if number in split else of_unit  # noqa: B031

    return results.repartition(merger_count, "unit").sortWithinPartitions(*ORDER).mapInArrow(run, RESULT_DDL)


def as_batches(results: Iterable[Result], batch_bytes: int = _BATCH_BYTES) -> Iterator[pa.RecordBatch]:
    """Results as rows, in batches of about so many bytes, or of one row where its payload is larger.

    A batch costs the worker and the JVM some 3 ms of processor time, a row some 0.1 ms. So a batch has the results of
    many units, and a row those of several: its numbers are those of the first, its payload is theirs, one by one.
    """
    held: list[Result] = []  # the first of each row
    payloads: list[list[bytes]] = []
    held_bytes = row_bytes = 0
    before: Result | None = None
    for each in results:
        payload = each.value.payload if isinstance(each.value, Pickled) else pickle.dumps(each.value, protocol=5)
        if before is not None and row_bytes < _ROW_BYTES and _goes_on(before, each):
            payloads[-1].append(payload)
        else:
            held.append(each)
            payloads.append([payload])
            row_bytes = 0
        row_bytes += len(payload)
        held_bytes += len(payload)
        before = each
        if held_bytes >= batch_bytes:
            yield _batch(held, [b"".join(row) for row in payloads])
            held, payloads, held_bytes, before = [], [], 0, None
    if held:
        yield _batch(held, [b"".join(row) for row in payloads])


def _goes_on(before: Result, result: Result) -> bool:
    """Whether no result of another task comes between two finished ones."""
    if before.phase != FINISHED or result.phase != FINISHED or isinstance(result.value, Pickled):
        return False
    return before.unit <= result.unit <= before.unit + 1


def values_in(payload: bytes) -> Iterator[Any]:
    """The values in the payload of a row."""
    content = io.BytesIO(payload)
    while content.tell() < len(payload):
        yield pickle.load(content)


def _bounded(results: Iterable[Result], bound: Bound | None) -> Iterator[pa.RecordBatch]:
    """Batches of the results up to the bound, and then what it says of the rest."""
    given_bytes = 0
    is_late = False
    for batch in as_batches(results, _BATCH_BYTES if bound is None else min(_BATCH_BYTES, bound.most_bytes // 4)):
        given_bytes += batch.nbytes
        if bound is not None and not is_late and given_bytes > bound.most_bytes:
            is_late = True
            yield from as_batches([Result(LEFT_OUT, 0, 0, 0, 0, None)])
            if not bound.is_rest_kept:
                return
        yield _late(batch) if is_late else batch


def _late(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The results of a batch in the phase LATE."""
    phases = pa.py_buffer(np.full(batch.num_rows, LATE, np.int32))
    columns = [batch.column(0), pa.Array.from_buffers(pa.int32(), batch.num_rows, [None, phases]), *batch.columns[2:]]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _batch(results: list[Result], payloads: list[bytes]) -> pa.RecordBatch:
    """One batch, made from buffers: ``pyarrow.array`` would import pandas, which takes half a second in each worker."""
    order = np.array([(each.unit, each.phase, each.segment, each.part, each.step) for each in results], np.int32)
    ends = np.cumsum([0, *map(len, payloads)], dtype=np.int32)
    columns = [
        pa.Array.from_buffers(pa.int32(), len(results), [None, pa.py_buffer(np.ascontiguousarray(column))])
        for column in order.T
    ]
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(payloads))]
    return pa.RecordBatch.from_arrays(
        [*columns, pa.Array.from_buffers(pa.binary(), len(results), buffers)], schema=_SCHEMA
    )


def results_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Result]:
    """The results in batches of rows, finished ones as Pickled."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns[:5]]
        for unit, phase, segment, part, step, payload in zip(*columns, batch.column(5), strict=True):
            content = payload.as_buffer()
            value = Pickled(content.to_pybytes()) if phase == FINISHED else pickle.loads(content)
            yield Result(unit, phase, segment, part, step, value)


_MOST_TRIES = 16  # positions at which a sound batch is looked for
_NO_POSITIONS = np.empty(0, np.int64)


def opened(planned: PlannedLog) -> tuple[FileSource, str | None]:
    """The log, opened, and the message if it differs from the plan (on another host, another broker's).

    Raises UnreadableFile where it cannot be opened.
    """
    source = FileSource(planned.log.path)
    return source, words_for_change(str(planned.log.path), planned.stamp, FileStamp(source.size_bytes, source.mtime_ns))


def bounds_of(planned: PlannedLog, source: Source, part: int, limits: Limits) -> tuple[int, int | None]:
    """The start and the end of a part of a log, both where batches begin; None for the end of the log.

    Every task finds the same bounds: a part ends at the first index entry, or without an index at the first batch, past
    its share, where the next part begins. A wrong index entry makes parts that do not fit, which is noticed when they
    are put together.
    """
    if planned.part_count == 1:
        return 0, None
    share = -(-planned.stamp.size_bytes // planned.part_count)
    positions = _starts_in_index(planned.log, limits)
    if not len(positions) or int(positions[-1]) <= share:
        positions = _starts_in_log(source)
    shares = np.arange(1, planned.part_count) * share
    starts = [positions[at : at + _MOST_TRIES].tolist() for at in np.searchsorted(positions, shares)]

    def bound(number: int) -> int | None:
        """The start of this part, or of the next one that begins with a sound batch, so that parts do not overlap."""
        return next(filter(None, (_first_sound(source, each) for each in starts[number - 1 :])), None)

    start = 0 if part == 0 else bound(part)
    return (source.size_bytes, None) if start is None else (start, bound(part + 1))


def _starts_in_index(log: LogUnit, limits: Limits) -> NDArray[np.int64]:
    """The positions in the index at which parts may begin; none where it cannot be read."""
    if log.segment is None or log.segment.offset_index is None:
        return _NO_POSITIONS
    try:
        index = offset_index.read(log.segment.offset_index, log.location.base_offset or 0, limits)
    except (KafkaLogError, OSError):
        return _NO_POSITIONS
    order = np.argsort(index.positions, kind="stable")
    offsets = index.offsets[order]
    return index.positions[order][_are_above(offsets, offsets, -1)]


def _starts_in_log(source: Source) -> NDArray[np.int64]:
    """The positions of batches at which parts may begin, by all headers up to the first damage."""
    found, highest = [_NO_POSITIONS], -1
    for headers in header_tables(source, 0, source.size_bytes):
        table = headers.unopened()
        found.append(table.position[_are_above(table.base_offset, table.last_offset, highest)])
        highest = max(highest, int(table.last_offset.max()))
    return np.concatenate(found)


def _are_above(first: NDArray[np.int64], last: NDArray[np.int64], highest: int) -> NDArray[np.bool_]:
    """Which batches begin above all before them: one that does not may repeat one that another part has."""
    before = np.maximum.accumulate(np.concatenate(([highest], last[:-1])))
    above: NDArray[np.bool_] = first > before
    return above


def _first_sound(source: Source, positions: list[int]) -> int | None:
    """The first of these positions at which there is a batch with a valid CRC."""
    for position in positions:
        header = read_header(source, position)
        if (
            header is not None
            and header.end_position <= source.size_bytes
            and has_right_crc(source, position, header.size_bytes, header.magic)
        ):
            return position
    return None


#: The phases of a unit's results, in their order: the states of its parts, the parts, the folded results.
STATUS, PARTS, FINISHED = 0, 1, 2


class PartStatus(msgspec.Struct, frozen=True):
    """The outcome of reading a part. ``is_plain`` False means that the log must be read as a whole.

    ``first_offset`` and ``last_offset`` are of its batches, None where it has none. ``change`` is the message about a
    file that is not the one of the plan.
    """

    start: int
    end: int
    size_bytes: int
    is_plain: bool
    first_offset: int | None = None
    last_offset: int | None = None
    change: str | None = None


class _SoundChunks:
    """The chunks of a range up to the first that is not plainly sound, and the position and offsets that they reach."""

    def __init__(self, chunks: Iterable[HeaderChunk], position: int) -> None:
        self._chunks = chunks
        self.position = position
        self.first_offset: int | None = None
        self.last_offset: int | None = None
        self.is_plain = True

    def __iter__(self) -> Iterator[HeaderChunk]:
        for chunk in self._chunks:
            batches = known_batches(chunk)
            table = batches.table
            if not batches.is_sound_after(self.last_offset):
                self.is_plain = False
                return
            if len(table):
                self.position = int(table.end_position[-1])
                if self.first_offset is None:
                    self.first_offset = int(table.base_offset[0])
                self.last_offset = table.last_offset_of(len(table) - 1)
            yield chunk


def results_of_part(item: LogPart, walk: Walk[Any]) -> Iterator[Result]:
    """The parts that a scan makes of one part of a log, and then the PartStatus."""
    planned, needs = item.of, walk.needs
    log = planned.log
    start = size_bytes = 0
    seen = _SoundChunks((), 0)
    is_plain = False  # stays so after an error, which the second reading reports
    change = None

    def result(phase: int, step: int, value: Any) -> Result:
        return Result(planned.unit, phase, planned.number, item.part, step, value)

    try:
        source, change = opened(planned)
        with source:
            size_bytes = source.size_bytes
            start, end = bounds_of(planned, source, item.part, needs.limits)
            first = max(start, log.whole_range(source, needs.selection).start)
            seen.position = start
            if end is not None and first >= end:
                seen.position = end  # nothing of it is selected
            elif change is None:
                batch_range = BatchRange(first, end)
                seen = _SoundChunks(needs.chunks(source, batch_range), start)
                read = OpenedRange(log, source, batch_range, seen, own_room())
                for step, part in enumerate(walk.parts(read)):
                    if isinstance(part, Finding):
                        seen.is_plain = False  # its place among the others depends on the chunks, which begin elsewhere
                        break
                    yield result(PARTS, step, settled(part))
            is_plain = change is None and seen.is_plain and seen.position == (size_bytes if end is None else end)
    except KafkaLogError:
        pass
    status = PartStatus(start, seen.position, size_bytes, is_plain, seen.first_offset, seen.last_offset, change)
    yield result(STATUS, 0, status)


def settled(value: Any) -> Any:
    """A result as a value that can be pickled: bytes in place of a memoryview, whose memory is reused."""
    return bytes(value) if isinstance(value, memoryview) else value


def parts_fit(planned: PlannedLog, parts: list[PartStatus]) -> bool:
    """Whether the parts of a log, in order, are complete and plain, cover the log, and have rising offsets."""
    if len(parts) != planned.part_count or not all(each.is_plain for each in parts):
        return False
    starts, ends = [each.start for each in parts], [each.end for each in parts]
    if starts != [0, *ends[:-1]] or ends[-1] != parts[-1].size_bytes:
        return False
    offsets = [each for part in parts for each in (part.first_offset, part.last_offset) if each is not None]
    return offsets == sorted(offsets) and all(
        first < second for first, second in zip(offsets[1::2], offsets[2::2], strict=False)
    )


class ReplayedParts:
    """The driver that replays parts made by other tasks. Logs must be requested in their order.

    ``results`` are the results of one unit in order: the states of its parts, then the parts.
    """

    def __init__(self, walk: Walk[Any], unit: Unit, results: Iterator[Result]) -> None:
        self._serial: SerialDriver[Any] = SerialDriver(walk)
        self._planned = {each.log.path: each for each in unit.logs}
        self._statuses: dict[int, list[PartStatus]] = {}
        self._results = results
        self._ahead: Result | None = None
        for each in results:
            if each.phase != STATUS:
                self._ahead = each
                break
            self._statuses.setdefault(each.segment, []).append(each.value)

    def changes(self) -> Iterator[Finding]:
        """Findings for logs that differ from the plan."""
        for planned in self._planned.values():
            words = {each.change for each in self._statuses.get(planned.number, ()) if each.change}
            for each in sorted(words):
                yield finding("file-changed", planned.log.location, each)

    def parts(self, log: LogUnit) -> LogParts[Any]:
        """The parts of a log, in order. A log without parts, or whose parts do not fit, is read here."""
        planned = self._planned.get(log.path)
        statuses = [] if planned is None else self._statuses.get(planned.number, [])
        if planned is None or planned.log.next_base_offset != log.next_base_offset or not parts_fit(planned, statuses):
            return self._serial.parts(log)
        number = planned.number

        def replayed(parts: LogParts[Any]) -> Iterator[Any]:
            parts.state = FileState(statuses[-1].size_bytes, 0, (0, 0))
            yield from self._of_segment(number)

        return LogParts(replayed)

    def _of_segment(self, number: int) -> Iterator[Any]:
        while True:
            result = self._ahead or next(self._results, None)
            self._ahead = None
            if result is None:
                return
            if result.segment > number:
                self._ahead = result
                return
            if result.segment == number:
                yield result.value
