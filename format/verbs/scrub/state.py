"""The state of scrub: an SQLite file with what was verified when, with which result, and the findings of all passes.

Its tables are documented in docs/scrub.md. One process writes it at a time; others may read it meanwhile. It is written
after each segment, so a process that is killed loses at most one segment.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from format.columns import SCRUBBED_FINDING
from format.errors import InputError, OutputError, Refused
from format.findings import Certainty, Finding, Severity
from format.io.session import is_remote
from format.location import Location
from format.rows.record_rows import Row

#: "kscr", and the version of the tables.
_APPLICATION_ID, _VERSION = 0x6B736372, 3
_TABLES = """
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    node_id INTEGER,
    cluster_id TEXT,
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    topic_id TEXT,
    directory_inode INTEGER NOT NULL,
    is_compacted INTEGER NOT NULL,
    listing BLOB NOT NULL,
    segment_count INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    oldest_ms INTEGER
);
CREATE TABLE segments (
    partition_id INTEGER NOT NULL REFERENCES partitions ON DELETE CASCADE,
    base_offset INTEGER NOT NULL,
    end_offset INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    verified_bytes INTEGER NOT NULL,
    last_epoch INTEGER NOT NULL,
    verified_ms INTEGER NOT NULL,
    is_damaged INTEGER NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (partition_id, base_offset)
) WITHOUT ROWID;
CREATE INDEX segments_by_age ON segments (partition_id, verified_ms);
CREATE TABLE findings (
    id INTEGER PRIMARY KEY,
    partition_id INTEGER NOT NULL REFERENCES partitions ON DELETE CASCADE,
    base_offset INTEGER NOT NULL,
    code TEXT NOT NULL,
    severity INTEGER NOT NULL,
    certainty TEXT NOT NULL,
    path TEXT NOT NULL,
    position INTEGER,
    "offset" INTEGER,
    message TEXT NOT NULL,
    next_step TEXT NOT NULL,
    found_ms INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL,
    gone_ms INTEGER
);
CREATE INDEX findings_by_segment ON findings (partition_id, base_offset);
CREATE TABLE passes (
    id INTEGER PRIMARY KEY,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    segment_count INTEGER NOT NULL DEFAULT 0,
    size_bytes INTEGER NOT NULL DEFAULT 0,
    bytes_per_s INTEGER NOT NULL,
    unread_count INTEGER NOT NULL,
    is_complete INTEGER NOT NULL DEFAULT 0
);
"""


class VerifiedSegment(msgspec.Struct, frozen=True):
    """A row of ``segments``: the file as it was when it was verified, and what was in it.

    ``verified_bytes`` is the end of the last whole batch, ``last_epoch`` the highest leader epoch (-1 for none), and
    ``digest`` the packed Digest of the batches, empty for a damaged segment.
    """

    base_offset: int
    end_offset: int
    inode: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    verified_bytes: int
    last_epoch: int
    verified_ms: int
    is_damaged: bool
    digest: bytes

    def is_still(self, path: Path) -> bool:
        """Whether the log at a path is the file that was verified, and nothing has written it since.

        The time of the last change of the inode tells: inodes are used again, and the cleaner gives a segment the
        time of modification of those that it replaces.
        """
        try:
            status = path.stat()
        except OSError:
            return False
        now = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return now == (self.inode, self.size_bytes, self.mtime_ns, self.ctime_ns)


class KnownPartition(msgspec.Struct, frozen=True):
    """A row of ``partitions``: a replica as it was listed. ``oldest_ms``: when its longest unverified segment was
    verified; None if none was yet."""

    id: int
    path: str
    node_id: int | None
    cluster_id: str | None
    topic: str
    partition: int
    topic_id: str | None
    directory_inode: int
    is_compacted: bool
    listing: bytes
    segment_count: int
    size_bytes: int
    oldest_ms: int | None


class KnownFinding(msgspec.Struct, frozen=True):
    """A row of ``findings`` without its ids. ``gone_ms``: when it was first not found again; None while it is open."""

    topic: str
    partition: int
    base_offset: int
    code: str
    severity: int
    certainty: str
    path: str
    position: int | None
    offset: int | None
    message: str
    next_step: str
    found_ms: int
    seen_ms: int
    gone_ms: int | None

    def row(self) -> Row:
        times = {"found_at": self.found_ms, "seen_at": self.seen_ms, "gone_at": self.gone_ms}
        return SCRUBBED_FINDING.row_of(self, severity=Severity(self.severity).label, **times)

    @property
    def finding(self) -> Finding:
        """The finding as it was reported."""
        location = Location(
            self.path, self.topic, self.partition, self.base_offset, position=self.position, offset=self.offset
        )
        severity, certainty = Severity(self.severity), Certainty(self.certainty)
        return Finding(self.code, severity, location, self.message, certainty, next_step=self.next_step)


class Pass(msgspec.Struct, frozen=True):
    """A row of ``passes``; ``ended_ms`` is None for one that runs or was killed. Rates are in bytes per second.

    ``unread_count``: links, and directories that could not be listed.
    """

    started_ms: int
    ended_ms: int | None
    segment_count: int
    size_bytes: int
    bytes_per_s: int
    unread_count: int
    is_complete: bool


def _fields(row_type: type[msgspec.Struct]) -> str:
    names = {"path": "partitions.path", "offset": '"offset"'}
    if row_type is KnownFinding:
        names["path"] = "findings.path"
    return ", ".join(names.get(name, name) for name in row_type.__struct_fields__)


_SEGMENT_FIELDS = _fields(VerifiedSegment)
RowT = TypeVar("RowT", bound=msgspec.Struct)


class State:
    """An open state file. Its methods raise OutputError where the file cannot be written, InputError where not read."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self.path = path

    # -- what is known -------------------------------------------------------------------------------------------

    def partitions(self) -> list[KnownPartition]:
        """All replicas, by path."""
        return self._rows_of(KnownPartition, "FROM partitions ORDER BY path")

    def segments(self, partition_id: int) -> list[VerifiedSegment]:
        """The verified segments of a replica, by base offset."""
        return self._rows_of(VerifiedSegment, "FROM segments WHERE partition_id = ? ORDER BY base_offset", partition_id)

    def segment(self, partition_id: int, base_offset: int) -> VerifiedSegment | None:
        query = "FROM segments WHERE partition_id = ? AND base_offset = ?"
        return next(iter(self._rows_of(VerifiedSegment, query, partition_id, base_offset)), None)

    def verified_since(self, partition_id: int, cutoff_ms: int) -> tuple[int, int]:
        """How many segments of a replica were verified at or after a time, and their bytes."""
        query = "SELECT COUNT(*), COALESCE(SUM(size_bytes), 0) FROM segments"
        ((count, size_bytes),) = self._rows(
            f"{query} WHERE partition_id = ? AND verified_ms >= ?", partition_id, cutoff_ms
        )
        return count, size_bytes

    def verified_files(self) -> Callable[[Path], bool]:
        """Whether a log was verified and found sound as it is now, by its path, size, time and inode."""
        partitions = {each.path: each.id for each in self.partitions()}

        def is_verified(path: Path) -> bool:
            name = str(path.absolute())
            directory, _, stem = name.rpartition("/")
            known = None
            if directory in partitions and stem[:-4].isdecimal():
                known = self.segment(partitions[directory], int(stem[:-4]))
            return known is not None and not known.is_damaged and known.is_still(path)

        return is_verified

    def findings(self, *, with_gone: bool = False) -> list[KnownFinding]:
        """The open findings, with ``with_gone`` all; the newest last."""
        query = "FROM findings JOIN partitions ON partitions.id = partition_id"
        query += "" if with_gone else " WHERE gone_ms IS NULL"
        return self._rows_of(KnownFinding, f"{query} ORDER BY found_ms, findings.id")

    def last_pass(self) -> Pass | None:
        """The newest pass."""
        return next(iter(self._rows_of(Pass, "FROM passes ORDER BY id DESC LIMIT 1")), None)

    def totals(self) -> tuple[int, int]:
        """The segments and the bytes that all passes verified."""
        ((count, size_bytes),) = self._rows(
            "SELECT COALESCE(SUM(segment_count), 0), COALESCE(SUM(size_bytes), 0) FROM passes"
        )
        return count, size_bytes

    # -- what is written -----------------------------------------------------------------------------------------

    def keep_partition(self, known: KnownPartition | None, **values: Any) -> int:
        """Write a replica as it is now; returns its id. With ``known`` None, what is known of the path goes."""
        with self._writing() as connection:
            if known is not None:
                changes = ", ".join(f"{name} = ?" for name in values)
                connection.execute(f"UPDATE partitions SET {changes} WHERE id = ?", (*values.values(), known.id))
                return known.id
            connection.execute("DELETE FROM partitions WHERE path = ?", (values["path"],))
            names, places = ", ".join(values), ", ".join("?" * len(values))
            done = connection.execute(f"INSERT INTO partitions ({names}) VALUES ({places})", tuple(values.values()))
            return int(done.lastrowid or 0)

    def drop_partition(self, partition_id: int) -> None:
        """Forget a replica that is no longer there."""
        with self._writing() as connection:
            connection.execute("DELETE FROM partitions WHERE id = ?", (partition_id,))

    def drop_segments(self, partition_id: int, base_offsets: list[int], now_ms: int) -> None:
        """Forget segments that are no longer there. Their findings are gone."""
        with self._writing() as connection:
            for base_offset in base_offsets:
                place = (partition_id, base_offset)
                connection.execute("DELETE FROM segments WHERE partition_id = ? AND base_offset = ?", place)
                connection.execute(
                    "UPDATE findings SET gone_ms = ? WHERE partition_id = ? AND base_offset = ? AND gone_ms IS NULL",
                    (now_ms, *place),
                )
            self._note_oldest(connection, partition_id)

    def keep_segment(self, partition_id: int, segment: VerifiedSegment, found: list[Finding], pass_id: int) -> None:
        """Write that a segment was verified, and what was found in it. Findings that are not among these are gone."""
        with self._writing() as connection:
            values = (partition_id, *msgspec.structs.astuple(segment))
            places = ", ".join("?" * len(values))
            connection.execute(
                f"INSERT OR REPLACE INTO segments (partition_id, {_SEGMENT_FIELDS}) VALUES ({places})", values
            )
            now_ms, base_offset = segment.verified_ms, segment.base_offset
            open_ids: dict[tuple[str, int | None, int | None], int] = {
                (code, position, offset): number
                for number, code, position, offset in connection.execute(
                    'SELECT id, code, position, "offset" FROM findings'
                    " WHERE partition_id = ? AND base_offset = ? AND gone_ms IS NULL",
                    (partition_id, base_offset),
                )
            }
            for each in found:
                where = each.location
                known = open_ids.pop((each.code, where.position, where.offset), None)
                if known is not None:
                    connection.execute("UPDATE findings SET seen_ms = ? WHERE id = ?", (now_ms, known))
                    continue
                connection.execute(
                    "INSERT INTO findings (partition_id, base_offset, code, severity, certainty, path, position,"
                    ' "offset", message, next_step, found_ms, seen_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
                    (
                        partition_id, base_offset, each.code, int(each.severity), each.certainty.value,
                        os.path.abspath(where.path),
                        where.position, where.offset, each.message, each.next_step, now_ms, now_ms,
                    ),
                )  # fmt: skip
            for number in open_ids.values():
                connection.execute("UPDATE findings SET gone_ms = ? WHERE id = ?", (now_ms, number))
            self._note_oldest(connection, partition_id)
            connection.execute(
                "UPDATE passes SET segment_count = segment_count + 1, size_bytes = size_bytes + ? WHERE id = ?",
                (segment.verified_bytes, pass_id),
            )

    @staticmethod
    def _note_oldest(connection: sqlite3.Connection, partition_id: int) -> None:
        connection.execute(
            "UPDATE partitions SET oldest_ms = (SELECT MIN(verified_ms) FROM segments WHERE partition_id = ?1)"
            " WHERE id = ?1",
            (partition_id,),
        )

    def begin_pass(self, now_ms: int, bytes_per_s: int, unread_count: int) -> int:
        """Note that a pass begins, its rate, and how many paths it leaves unread; returns its id."""
        query = "INSERT INTO passes (started_ms, bytes_per_s, unread_count) VALUES (?, ?, ?)"
        with self._writing() as connection:
            return int(connection.execute(query, (now_ms, bytes_per_s, unread_count)).lastrowid or 0)

    def end_pass(self, pass_id: int, now_ms: int, *, is_complete: bool) -> None:
        """Note that a pass ended, and whether it verified all that was due."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE passes SET ended_ms = ?, is_complete = ? WHERE id = ?", (now_ms, is_complete, pass_id)
            )

    # -- SQLite ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._connection:
                yield self._connection
        except sqlite3.Error as error:
            raise OutputError(f"cannot write the state: {error}", Location(self.path)) from error
        except UnicodeEncodeError as error:
            raise InputError("the state takes no name that is not UTF-8", Location(error.object)) from error

    def _rows_of(self, row_type: type[RowT], query: str, *values: int) -> list[RowT]:
        """The rows of a query, which begins with FROM, as values of a type."""
        names = row_type.__struct_fields__
        rows = self._rows(f"SELECT {_fields(row_type)} {query}", *values)
        return [msgspec.convert(dict(zip(names, row, strict=True)), row_type, strict=False) for row in rows]

    def _rows(self, query: str, *values: int) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise InputError(f"cannot read the state: {error}", Location(self.path)) from error


@contextmanager
def reading_state(path: str) -> Iterator[State]:
    """The state at a path, to read. Raises InputError for an address, and for a file that is none."""
    if is_remote(path):
        raise InputError("is an address; a state is read on a file system of this host: copy it first", Location(path))
    if not os.path.isfile(path):
        raise InputError("there is no state file", Location(path))
    with _connected(path, is_read_only=True) as connection:
        yield State(connection, path)


@contextmanager
def writing_state(path: str) -> Iterator[State]:
    """The state at a path, to write; it is made if there is none.

    Raises InputError for a file that is no state, OutputError for one that cannot be made, and Refused while another
    process writes it.
    """
    if not os.path.basename(path) or os.path.isdir(path):  # .lock in a log directory is the broker's
        raise InputError("this is no file for a state", Location(path or "''"))
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise OutputError(f"cannot create: {error.strerror}", Location(f"{path}.lock")) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused("another kafkalog scrub writes this state", Location(path)) from None
        with _connected(path, is_read_only=False) as connection:
            yield State(connection, path)
    finally:
        os.close(lock)


@contextmanager
def _connected(path: str, *, is_read_only: bool) -> Iterator[sqlite3.Connection]:
    mode = "ro" if is_read_only else "rwc"
    try:
        connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode={mode}", uri=True, timeout=30)
    except sqlite3.Error as error:
        raise OutputError(f"cannot open: {error}", Location(path)) from error
    with closing(connection):
        try:
            _prepare(connection, path, is_read_only=is_read_only)
        except sqlite3.OperationalError as error:  # a full disk, a lock
            kind = InputError if is_read_only else OutputError
            raise kind(f"cannot use the state: {error}", Location(path)) from error
        except sqlite3.Error as error:
            raise InputError(f"this is no state of kafkalog scrub: {error}", Location(path)) from error
        yield connection
        if not is_read_only:
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _prepare(connection: sqlite3.Connection, path: str, *, is_read_only: bool) -> None:
    ((application_id,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    ((table_count,),) = connection.execute("SELECT COUNT(*) FROM sqlite_schema")
    is_new = not application_id and not version and not table_count
    if not is_new and (application_id, version) != (_APPLICATION_ID, _VERSION):
        words = f"version {version} of the state" if application_id == _APPLICATION_ID else "another program's database"
        raise InputError(f"this is {words}: give another file", Location(path))
    if is_read_only:
        if is_new:
            raise InputError("the state file is empty", Location(path))
        return
    # A commit survives the end of the process; the loss of power may take the last ones, and never breaks the file.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    if is_new:
        connection.executescript(
            f"BEGIN; {_TABLES} PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {_VERSION}; COMMIT;"
        )
