"""A log directory, a partition or a file, opened for reading."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, TypeVar, Unpack

from format.columns import BATCH, DIAGNOSIS, DIVERGENCE, GROUP, GROUP_OFFSET, REPLICA, TRANSACTION
from format.decoding.decoder import Decoding
from format.decoding.plain import KINDS
from format.decoding.schemas import check_files, find_schemas, schema_of_topic, schemas_at
from format.errors import CorruptDataError, InputError
from format.findings import Finding as _Finding
from format.findings import Severity
from format.io.session import is_remote, path_of
from format.location import Location
from format.node.log_dir import Kind
from format.node.partition import location_of_directory, location_of_file
from format.node.target import Target
from format.rows.finding_rows import finding_row
from format.rows.record_rows import Row, RowBlock, in_lists
from format.scan.selected_logs import LOG_KINDS
from format.scan.selection import Selection
from format.timestamps import EPOCH, iso_time
from format.verbs.dump import DumpTerms, dumped_rows
from format.verbs.find import find as find_verb
from format.verbs.find.lookup import FoundRecord
from format.verbs.verify.verify import Level, VerifyTerms
from format.verbs.verify.verify import verify as verified
from format.wording import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from format.columns import RowSchema

#: So many findings are kept of one pass; all of them are counted.
MOST_FINDINGS = 1000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check saw. The attributes are the columns that ``kafkalog help schema finding`` lists."""

    code: str
    severity: str
    certainty: str
    path: str
    topic: str | None
    partition: int | None
    segment_base_offset: int | None
    position: int | None
    length: int | None
    offset: int | None
    message: str
    expected: Any
    actual: Any
    next_step: str
    lost_offsets: list[int] | None
    caused_by: dict[str, Any] | None

    def __str__(self) -> str:
        return f"{self.severity} {self.code}: {self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Match:
    """The record that a look-up found. The attributes are the columns that ``kafkalog help schema match`` lists."""

    topic: str | None
    partition: int | None
    offset: int
    timestamp: int | None
    segment_base_offset: int | None
    position: int | None
    leader_epoch: int | None
    visibility: str | None
    is_control: bool | None
    is_transactional: bool | None
    transaction_state: str | None
    producer_id: int | None
    producer_epoch: int | None
    batch_base_offset: int | None
    crc_valid: bool | None
    is_leader: bool | None
    node_id: int | None
    leader: int | None
    isr: list[int] | None
    eligible_leader_replicas: list[int] | None
    path: str


@dataclass(frozen=True, slots=True)
class Lookup:
    """The outcome of a look-up.

    ``match`` is the record, None where there is none; ``reason`` then says why. ``answer`` says of an offset that was
    not found what is known all the same, such as its visibility. ``findings`` are what was wrong on the way,
    ``bytes_read`` is how much was read, and ``not_checked`` is what could not be decided.
    """

    match: Match | None
    reason: str
    answer: Match | None
    findings: tuple[Finding, ...]
    bytes_read: int
    not_checked: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.match is not None


class DamageFound(CorruptDataError):
    """Damage was met by a reader that was asked to raise it; ``finding`` is what it is."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding), code=finding.code)
        self.finding = finding


def public_finding(found: _Finding) -> Finding:
    """A finding as the API gives it."""
    return Finding(*finding_row(found))


def public_match(found: FoundRecord | None) -> Match | None:
    """A match as the API gives it."""
    return None if found is None else Match(*found.row())


#: What a pass over rows gives: a block of batches or records, or some rows of another type.
Piece = RowBlock | list[Row]


class Rows:
    """Rows of one type as Arrow. Nothing is read before it is asked for; each pass reads the files anew.

    Iterating gives ``pyarrow.RecordBatch`` objects of at most about 16 MiB of keys and values. The object has
    ``__arrow_c_stream__``, so that libraries that know Arrow's C stream take it as it is.

    ``findings`` are those of the last pass, at most 1,000 of ``finding_count``, and ``not_checked`` what it could not
    decide. ``is_complete`` says whether the last pass came to the end and missed nothing.
    """

    def __init__(
        self,
        schema: RowSchema,
        pieces: Callable[[Rows], Iterator[Piece]],
        covers: str,
        columns: Sequence[str] | None = None,
        raises: bool = False,
    ) -> None:
        if isinstance(columns, str):
            raise TypeError(f"columns are a list of names, such as [{columns!r}]")
        _optional("pyarrow", "rows as Arrow need", "'kafkalog[arrow]'")
        from format.rows.arrow_columns import schema_with_times

        try:
            self.schema: pa.Schema = schema_with_times(schema, columns)
        except KeyError as error:
            raise ValueError(f"{error} is not a column of {schema.type}; there are {', '.join(schema.names)}") from None
        self._begin(raises)
        self._row_schema = schema
        self._pieces = pieces
        self._covers = covers

    def _begin(self, raises: bool) -> None:
        self.findings: list[Finding] = []
        self.finding_count = 0
        self.not_checked: list[str] = []
        self.is_complete = False
        self._raises = raises
        self._is_whole = True

    def __reduce__(self) -> NoReturn:
        raise TypeError("rows are read where they are asked for, and cannot be pickled: send the path, or table()")

    def __repr__(self) -> str:
        return f"<kafkalog.Rows of {self._row_schema.type}, {self._covers}; columns {', '.join(self.schema.names)}>"

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """One pass over the rows. Raises DamageFound where that was asked for."""
        from format.rows.arrow_columns import batch_with_times, block_batches, rows_batch

        self._begin(self._raises)
        for piece in self._pieces(self):
            if isinstance(piece, list):
                yield batch_with_times(rows_batch(self._row_schema, piece).select(self.schema.names), self.schema)
            elif piece.location is not None and (piece.records is not None or piece.batches is not None):
                for batch in block_batches(piece, self.schema.names):
                    yield batch_with_times(batch, self.schema)
        self.is_complete = self._is_whole

    def reader(self) -> pa.RecordBatchReader:
        """One pass as a ``pyarrow.RecordBatchReader``, for DuckDB and others."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def table(self) -> pa.Table:
        """All rows as one ``pyarrow.Table``, in memory."""
        return self.reader().read_all()

    def to_pandas(self) -> Any:
        """All rows as a ``pandas.DataFrame``; integers and booleans that may be null have pandas' nullable types."""
        pandas = _optional("pandas", "to_pandas needs", "pandas")
        import pyarrow as pa

        nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
        return self.table().to_pandas(types_mapper=nullable.get)

    def to_polars(self) -> Any:
        """All rows as a ``polars.DataFrame``."""
        return _optional("polars", "to_polars needs", "polars").from_arrow(self.table())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """One pass as a stream of Arrow's C data interface."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def _take(self, items: Iterable[T | _Finding]) -> Iterator[T]:
        """The items without findings, which are noted."""
        for item in items:
            if isinstance(item, _Finding):
                self._note(item)
            else:
                yield item

    def _note(self, found: _Finding) -> None:
        finding = public_finding(found)
        self._is_whole &= found.severity < Severity.ERROR and not found.is_incomplete
        self.finding_count += 1
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)
        if self._raises and found.severity >= Severity.ERROR:
            raise DamageFound(finding)


class Answer(Rows):
    """The rows of a question in SQL. ``frame`` is the question as a DataFusion ``DataFrame``, to go on from.

    Findings are in ``findings``, too, where the frame is read and not these rows.
    """

    def __init__(self, logs: Sequence[Log], question: str, memory_bytes: int | None, decoding: Decoding | None) -> None:
        try:
            from format.verbs.sql.query import DEFAULT_MEMORY_BYTES, Database, Notes, TableSources
            from format.verbs.sql.statements import statements_of
        except ImportError as error:
            raise ImportError(f"sql needs DataFusion ({error}): pip install 'kafkalog[sql]'", name=error.name) from None
        statements = statements_of(question)
        if len(statements) != 1:
            raise InputError(f"give one statement: there are {len(statements)}")
        self._logs, self._statement = logs, statements[0]
        self._begin(raises=False)
        targets = tuple(each._target() for each in logs)
        how = cache(lambda: decoding or Decoding(schemas=find_schemas(targets)))
        sources = TableSources(targets, time.time_ns() // 1_000_000, how)
        self._notes = Notes(lambda found, is_row: self._note(found), lambda words: self.not_checked.append(words))
        if memory_bytes is not None and memory_bytes <= 0:
            raise InputError(f"memory_bytes must be more than 0, and is {memory_bytes}")
        self._answer = Database(sources, self._notes, memory_bytes or DEFAULT_MEMORY_BYTES).query(self._statement)
        self.schema = self._answer.schema
        self.frame: Any = self._answer.frame

    def __repr__(self) -> str:
        paths = ", ".join(str(each.path) for each in self._logs)
        return f"<kafkalog.Answer to {self._statement.text!r}, {paths}; columns {', '.join(self.schema.names)}>"

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """One pass over the rows. Raises InputError for what only the values show, such as a division by 0."""
        self._begin(raises=False)
        self._notes.begin()
        yield from self._answer.batches()
        self.is_complete = self._is_whole


def _optional(library: str, who_needs: str, package: str) -> Any:
    try:
        return import_module(library)
    except ImportError as error:
        raise ImportError(f"{who_needs} {library} ({error}): pip install {package}", name=library) from error


#: A time: epoch milliseconds, or a datetime with a time zone.
Time = int | datetime


class Ranges(TypedDict, total=False):
    """Ranges of offsets and times, both ends included."""

    from_offset: int | None
    to_offset: int | None
    from_time: Time | None
    to_time: Time | None


def open(path: str | os.PathLike[str], *, kind: str | None = None) -> Log:
    """Open a log directory, a partition directory or a file; a directory above log directories opens all of them.

    ``path`` may be an address, such as ``s3://bucket/node-1``; each pass asks the store anew.

    ``kind`` says what the path is where its name does not, as ``--as`` does. Nothing but names is read. Raises
    InputError where nothing is there or ``kind`` is unknown, NotALogDir where nothing there is of Kafka.
    """
    return Log(path, kind=kind)


class Log:
    """What lies at a path; ``open`` makes it.

    ``kind`` is a kind of ``--as``, such as "log-dir", "partition" or "log". ``topic``, ``partition`` and
    ``base_offset`` come from names; None where they say nothing. Files are open during a pass only, and never written.
    """

    def __init__(self, path: str | os.PathLike[str], *, kind: str | None = None) -> None:
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
            raise TypeError(f"a path is text or a Path, not {path!r}")
        if not os.fspath(path):
            raise ValueError("the path is empty; the current directory is '.'")
        self.path = path_of(path)
        self._is_remote = is_remote(self.path)
        try:
            self._kind = None if kind is None else Kind(kind)
        except ValueError:
            raise InputError(f"there is no kind {kind!r}", Location(str(self.path))) from None
        found = self._target().kind
        self.kind: str = found.value
        location = Location(str(self.path))
        if found is Kind.PARTITION:
            location = location_of_directory(self.path)
        elif found is not Kind.LOG_DIR:
            location = location_of_file(self.path)
        self.topic = location.topic
        self.partition = location.partition
        self.base_offset = location.base_offset

    def __repr__(self) -> str:
        return f"kafkalog.open({str(self.path)!r})"

    def __getitem__(self, name: str) -> Log:
        """The partition whose directory has this name, such as ``orders-0``. KeyError for none or several."""
        if not isinstance(name, str):
            raise TypeError(f"give the name of a partition, such as 'orders-0', not {name!r}")
        found = [each.path for each in self._target().partitions()]
        paths, names = [path for path in found if path.name == name], sorted({path.name for path in found})
        if len(paths) > 1:
            raise KeyError(f"{len(paths)} log directories have {name}: {', '.join(map(str, paths))}")
        if not paths:
            raise KeyError(f"no partition {name} is at {self.path}.{did_you_mean(name, names)}")
        return Log(paths[0], kind=Kind.PARTITION.value)

    def __contains__(self, name: object) -> bool:
        return any(each.path.name == name for each in self._target().partitions())

    def __iter__(self) -> Iterator[Log]:
        return iter(self.partitions())

    def partitions(self) -> list[Log]:
        """The partitions here, by topic and number; those that a broker marked for deletion are among them."""
        return [Log(each.path, kind=Kind.PARTITION.value) for each in self._target().partitions()]

    def segments(self) -> list[Log]:
        """The ``.log`` files here, in order."""
        target = self._target()
        if target.kind is Kind.LOG:
            return [self]
        logs = (segment.log for each in target.partitions() for segment in each.segments)
        return [Log(log) for log in logs if log is not None]

    def records(
        self,
        *,
        columns: Sequence[str] | None = None,
        read_committed: bool = False,
        on_damage: str = "collect",
        decoding: Decoding | None = None,
        **ranges: Unpack[Ranges],
    ) -> Rows:
        """The records, as ``kafkalog dump --records --raw`` shows them; keys, values and headers are bytes.

        ``columns`` are some of the row ``record``; what is not asked for is not built. Damaged batches are left out
        with a finding in ``Rows.findings``; ``on_damage="raise"`` raises DamageFound instead. With ``decoding``, which
        ``Log.decoding`` makes, there are also the columns ``value_decoded`` (JSON text), ``value_schema_id`` and
        ``value_format``, and the same of keys.
        """
        terms = DumpTerms(True, _selection(read_committed, **ranges), decoding=decoding)
        return self._logged(terms, columns, on_damage, ranges)

    def decoding(
        self,
        *,
        value_as: str = "auto",
        key_as: str = "auto",
        schemas: str | os.PathLike[str] | None = None,
        schema_of: Mapping[str, str] | None = None,
    ) -> Decoding:
        """How records are decoded: a kind of ``--value-as`` and ``--key-as``, and the schemas for it.

        Schemas come from the path ``schemas`` (a registry's topic, a log directory that has it, or a directory of
        files), else from the topic here or beside this partition. ``schema_of`` names, by topic, a file of the
        directory and perhaps a message in it, as ``FILE:MESSAGE``. Raises InputError where these cannot be read.
        """
        for name, kind in (("value_as", value_as), ("key_as", key_as)):
            if kind not in KINDS:
                raise ValueError(f"{name} is one of {', '.join(KINDS)}, not {kind!r}")
        if schema_of is not None and not isinstance(schema_of, Mapping):
            raise TypeError(f"schema_of is a dict, such as {{'orders': 'order.proto:Order'}}, not {schema_of!r}")
        by_topic = dict(schema_of_topic(f"{topic}={file}") for topic, file in (schema_of or {}).items())
        if schema_of and schemas is None:
            raise ValueError("the files of schema_of are in the directory of schemas: give that too")
        found = find_schemas([self._target()]) if schemas is None else schemas_at([Target(path_of(schemas))])
        check_files(found, by_topic)
        return Decoding(key_as=key_as, value_as=value_as, schemas=found, schema_of=by_topic)

    def batches(
        self, *, columns: Sequence[str] | None = None, on_damage: str = "collect", **ranges: Unpack[Ranges]
    ) -> Rows:
        """The batches, as ``kafkalog dump`` shows them; the parameters are those of ``records``."""
        return self._logged(DumpTerms(False, _selection(False, **ranges)), columns, on_damage, ranges)

    def find(self, *, offset: int | None = None, timestamp: Time | None = None, max_timestamp: bool = False) -> Lookup:
        """Look up an offset, the first record at or after a time, or the first with the largest timestamp.

        A broker looks up the same way, and answers the same. Raises InputError for what is no partition or segment.
        """
        if (offset is not None) + (timestamp is not None) + max_timestamp != 1:
            raise ValueError("give exactly one of offset, timestamp and max_timestamp")
        partition = find_verb.partition_to_search(self.path)
        limit = find_verb.REMOTE_VISIBILITY_BYTES if self._is_remote else None
        if offset is not None:
            _check_offset("offset", offset)
            found = find_verb.find_offset(partition, offset, visibility_limit=limit)
        elif timestamp is not None:
            found = find_verb.find_timestamp(partition, _milliseconds(timestamp), visibility_limit=limit)
        else:
            found = find_verb.find_max_timestamp(partition, visibility_limit=limit)
        if found.error is not None:
            raise found.error
        match, findings = found.match, tuple(map(public_finding, found.findings))
        if match is not None:
            unknown = tuple(found.not_checked)
            return Lookup(public_match(match), match.note, None, findings, found.bytes_read, unknown)
        answer = public_match(found.answer or found.nearest)
        return Lookup(None, found.reason, answer, findings, found.bytes_read)

    def verify(self, level: str = "full", *, jobs: int = 1) -> Iterator[Finding]:
        """The findings of ``kafkalog verify``, in its order, as they come; none means that all is sound.

        ``level`` is headers, crc, records or full. More than one of ``jobs`` forks processes, except at
        an address.
        """
        levels = {each.name.lower(): each for each in Level}
        if level not in levels:
            raise ValueError(f"{level!r} is not one of {', '.join(levels)}")
        terms = VerifyTerms(levels[level], jobs=1 if self._is_remote else jobs)
        return map(public_finding, verified(self._target(), terms))

    def txns(self, *, only_open: bool = False, at: Time | None = None) -> Rows:
        """The transactions, as ``kafkalog txns`` shows them, the open ones first; ``at`` for the state at a time."""
        from format.verbs.txns import txns as verb

        at_ms = None if at is None else _milliseconds(at)

        def pieces(rows: Rows) -> Iterator[Piece]:
            terms = verb.TransactionTerms(now_ms=time.time_ns() // 1_000_000, at_ms=at_ms, only_open=only_open)
            result = verb.Transactions((self._target(),))
            yield from rows._take(result.read(terms))
            opened = verb.open_transactions(result, terms)
            yield from rows._take(verb.hanging_findings(opened, terms))
            rows.not_checked += result.not_checked(opened)
            yield from in_lists(verb.transaction_rows(result, opened, terms))

        return Rows(TRANSACTION, pieces, self._as_of(at_ms))

    def groups(self, *, rows: str = "group", at: Time | None = None) -> Rows:
        """The groups, as ``kafkalog groups`` shows them, or with ``rows="group_offset"`` their committed offsets.

        ``at`` gives the state at that time.
        """
        from format.verbs.groups.group_list import GroupTerms
        from format.verbs.groups.groups import GroupsReading

        schema = _row_type(rows, GROUP, GROUP_OFFSET)
        at_ms = None if at is None else _milliseconds(at)

        def pieces(taking: Rows) -> Iterator[Piece]:
            reading = GroupsReading([self._target()], GroupTerms(until=at_ms))
            for _ in taking._take(reading.read()):
                pass
            found = reading.groups()
            for each in reading.replicas.unread_ends:
                taking._note(each)
            taking.not_checked += reading.not_checked(found)
            yield from in_lists(found.group_rows() if schema is GROUP else found.offset_rows())

        return Rows(schema, pieces, self._as_of(at_ms))

    def diff(self, *others: Log | str | os.PathLike[str], rows: str = "divergence") -> Rows:
        """Compare the replicas here and at other paths, as ``kafkalog diff`` does: a row for each partition.

        With ``rows="replica"`` there is a row for each replica.
        """
        from format.verbs.diff.diff import LeftOut, PartitionResult, diff
        from format.verbs.diff.replica_log import Matching

        schema = _row_type(rows, DIVERGENCE, REPLICA)
        logs = [self, *(each if isinstance(each, Log) else Log(each) for each in others)]

        def pieces(taking: Rows) -> Iterator[Piece]:
            left_out = LeftOut()
            items: Iterator[PartitionResult | Matching] = taking._take(diff([each._target() for each in logs]))
            for item in items:
                if isinstance(item, Matching):
                    taking.not_checked += item.not_checked()
                    taking._is_whole &= bool(item.groups)
                    continue
                left_out.take(item)
                for _ in taking._take(item.findings):
                    pass
                taking.not_checked += item.not_checked
                taking._is_whole &= item.is_complete
                yield [item.row()] if schema is DIVERGENCE else list(item.replica_rows())
            taking.not_checked += left_out.not_checked()

        return Rows(schema, pieces, f"comparing {', '.join(str(each.path) for each in logs)}")

    def sql(
        self,
        question: str,
        *others: Log | str | os.PathLike[str],
        memory_bytes: int | None = None,
        decoding: Decoding | None = None,
    ) -> Answer:
        """The answer to a question in SQL over the tables of ``kafkalog sql``, here and at other paths.

        Only what the question needs is read, and only when the rows are. Of ``memory_bytes`` (192 MiB) the engine takes
        more only in temporary files. ``decoding`` is for the columns ``value_decoded`` and ``key_decoded``: without it
        they have what the bytes and the schemas here prove. Raises InputError for what is no question or no size.
        """
        logs = [self, *(each if isinstance(each, Log) else Log(each) for each in others)]
        return Answer(logs, question, memory_bytes, decoding)

    def doctor(self, *others: Log | str | os.PathLike[str]) -> Rows:
        """What is wrong here, the most urgent first, as ``kafkalog doctor`` says it; several paths are one cluster.

        The findings behind the diagnoses are in ``Rows.findings``, and what is not known in ``Rows.not_checked``.
        """
        logs = [self, *(each if isinstance(each, Log) else Log(each) for each in others)]

        def pieces(rows: Rows) -> Iterator[Piece]:
            from format.verbs.doctor.doctor import DoctorRun
            from format.verbs.report.terms import ReportTerms

            run = DoctorRun([each._target() for each in logs], ReportTerms(time.time_ns() // 1_000_000))
            for _ in rows._take(run.findings()):
                pass
            made = run.finish()
            for _ in rows._take(made.later_findings):
                pass
            rows.not_checked += made.not_known
            rows._is_whole &= not made.is_incomplete
            yield [each.row() for each in made.diagnoses]

        return Rows(DIAGNOSIS, pieces, f"{', '.join(str(each.path) for each in logs)}, now")

    def _as_of(self, at_ms: int | None) -> str:
        return f"{self.path}, {'to the log end' if at_ms is None else f'as of {iso_time(at_ms)}'}"

    def _logged(self, terms: DumpTerms, columns: Sequence[str] | None, on_damage: str, ranges: Ranges) -> Rows:
        if on_damage not in ("collect", "raise"):
            raise ValueError(f"on_damage is 'collect' or 'raise', not {on_damage!r}")
        if Kind(self.kind) not in LOG_KINDS:
            raise InputError(f"a file of the kind {self.kind} holds no batches", Location(str(self.path)))

        def pieces(rows: Rows) -> Iterator[Piece]:
            yield from rows._take(dumped_rows(self._target(), terms))

        given = [f"{name}={value}" for name, value in ranges.items() if value is not None]
        covers = f"{self.path}, {' '.join(given) or 'all offsets'}"
        return Rows(terms.record_schema if terms.records else BATCH, pieces, covers, columns, on_damage == "raise")

    def _target(self) -> Target:
        """What lies there now: each pass lists the directory anew."""
        return Target(self.path, self._kind)


def _selection(
    read_committed: bool,
    from_offset: int | None = None,
    to_offset: int | None = None,
    from_time: Time | None = None,
    to_time: Time | None = None,
) -> Selection:
    """The ranges, half-open. Raises ValueError for an offset below 0."""
    for name, offset in (("from_offset", from_offset), ("to_offset", to_offset)):
        _check_offset(name, offset)
    first = None if from_time is None else _milliseconds(from_time)
    last = None if to_time is None else _milliseconds(to_time) + 1
    return Selection(from_offset, None if to_offset is None else to_offset + 1, first, last, read_committed)


def _check_offset(name: str, offset: int | None) -> None:
    if offset is not None and operator.index(offset) < 0:
        raise ValueError(f"{name} is {offset}: offsets begin at 0")


def _row_type(name: str, *schemas: RowSchema) -> RowSchema:
    for schema in schemas:
        if schema.type == name:
            return schema
    raise ValueError(f"rows is one of {', '.join(each.type for each in schemas)}, not {name!r}")


def _milliseconds(time: Time) -> int:
    if not isinstance(time, datetime):
        try:
            return operator.index(time)
        except TypeError:
            raise TypeError(f"a time is epoch milliseconds or a datetime with a time zone, not {time!r}") from None
    if time.tzinfo is None:
        raise ValueError("a datetime without a time zone: give one, such as datetime(2026, 11, 1, tzinfo=UTC)")
    difference = time - EPOCH
    return (difference.days * 86_400 + difference.seconds) * 1000 + difference.microseconds // 1000
