"""Puts the log of a partition together from its replicas: every intact batch of the history that any of them has.

At each step every replica has a chunk, as in a comparison, and the batches up to the offset where the first chunk ends
are taken: those of the base, and those of others at offsets where the base has none. Where two versions of a batch have
other numbers of records, the cleaner was at work, and the version with more records is taken. So no value and no
tombstone that any replica has is lost, and a tombstone comes with all values that it deletes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.io.source import FileState
from format.layout import MAX_RELATIVE_OFFSET
from format.limits import Limits
from format.log.batch_table import BatchTable
from format.offset_ranges import Int64s, Range, clipped, intersection, merged
from format.rewriting.composed_logs import Piece
from format.scan.progress import Advance
from format.verbs.diff.comparison import compare_windows
from format.verbs.diff.replica_log import Replica, ReplicaLog, Replicas, Window
from format.verbs.merge.branch import History

_MAX_OFFSET = 2**63 - 1


class SegmentPieces(msgspec.Struct):
    """A segment of a log that is put together."""

    base_offset: int
    pieces: list[Piece] = msgspec.field(default_factory=list)


class Branch(msgspec.Struct):
    """What one replica has that is not of the history: its segments, epochs and numbers."""

    segments: list[SegmentPieces] = msgspec.field(default_factory=list)
    epochs: set[int] = msgspec.field(default_factory=set)

    @property
    def pieces(self) -> list[Piece]:
        return [piece for segment in self.segments for piece in segment.pieces]

    def add(self, file: tuple[Path, FileState], number: int, base_offset: int, table: BatchTable) -> None:
        """Add batches of one segment."""
        if not self.segments or self.segments[-1].base_offset != base_offset:
            self.segments.append(SegmentPieces(base_offset))
        pieces = self.segments[-1].pieces
        edges = np.flatnonzero(table.position[1:] != table.end_position[:-1]) + 1
        for rows in np.split(np.arange(len(table)), edges):
            append_piece(pieces, piece_of(file, number, table, int(rows[0]), int(rows[-1])))
        self.epochs.update(np.unique(table.leader_epoch).tolist())


def piece_of(file: tuple[Path, FileState], number: int, table: BatchTable, first: int, last: int) -> Piece:
    """The piece of adjoining batches, from one row to another."""
    return Piece(
        number,
        *file,
        int(table.position[first]),
        int(table.end_position[last]),
        int(table.base_offset[first]),
        table.last_offset_of(last),
        int(np.maximum(table.record_count[first : last + 1], 0).sum()),
    )


def append_piece(pieces: list[Piece], piece: Piece) -> None:
    """Append a piece, joined with the one before it where they adjoin in one file."""
    before = pieces[-1] if pieces else None
    if before is not None and before.path == piece.path and before.end == piece.start:
        count = before.record_count + piece.record_count
        pieces[-1] = Piece(
            piece.replica,
            piece.path,
            piece.state,
            before.start,
            piece.end,
            before.first_offset,
            piece.last_offset,
            count,
        )
    else:
        pieces.append(piece)


class _Chosen:
    """The batches that are taken in one step: the number of the replica and the row in its window, by offset."""

    def __init__(self) -> None:
        self.first: Int64s = np.empty(0, np.int64)
        self.last: Int64s = np.empty(0, np.int64)
        self.count: Int64s = np.empty(0, np.int64)
        self.crc: Int64s = np.empty(0, np.int64)
        self.size: Int64s = np.empty(0, np.int64)
        self.replica: Int64s = np.empty(0, np.int64)
        self.row: Int64s = np.empty(0, np.int64)

    _NAMES = ("first", "last", "count", "crc", "size", "replica", "row")

    def add(self, number: int, window: Window, rows: NDArray[np.intp]) -> None:
        """Add batches of a replica that overlap none of those here."""
        table = window.table.rows(rows)
        own = (
            table.base_offset,
            table.last_offset,
            table.record_count,
            table.crc,
            table.size_bytes,
            np.full(len(rows), number),
            rows,
        )
        first = np.concatenate((self.first, own[0]))
        order = np.argsort(first, kind="stable")
        for name, values in zip(self._NAMES, own, strict=True):
            setattr(self, name, np.concatenate((getattr(self, name), values))[order])

    def drop(self, which: NDArray[np.bool_]) -> None:
        """Drop batches."""
        for name in self._NAMES:
            setattr(self, name, getattr(self, name)[~which])

    def overlapped(self, table: BatchTable) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """For each batch of a table, the first of those here that overlap it, and the one after the last."""
        start = np.searchsorted(self.last, table.base_offset, "left")
        return start, np.maximum(np.searchsorted(self.first, table.last_offset, "right"), start)

    def has_same(self, table: BatchTable) -> NDArray[np.bool_]:
        """Which batches of a table are here with the same offsets, size and CRC."""
        if not len(self.first):
            return np.zeros(len(table), bool)
        at = np.minimum(np.searchsorted(self.first, table.base_offset), len(self.first) - 1)
        same: NDArray[np.bool_] = (self.first[at] == table.base_offset) & (self.last[at] == table.last_offset)
        same &= (self.crc[at] == table.crc) & (self.size[at] == table.size_bytes)
        return same


class Union:
    """Puts a log together: call ``run``, then read ``segments``, ``branches``, ``lost``, ``doubtful``.

    ``base`` is the number of the replica that comes first. ``lost`` are offsets that no replica has. ``doubtful`` are
    those where a tombstone may be lost that other replicas have removed with what it deletes.
    """

    def __init__(self, group: Replicas, base: int, history: History, limits: Limits, advance: Advance) -> None:
        self.logs = [ReplicaLog(each, limits, advance) for each in group.replicas]
        self.base = base
        self.history = history
        self.segments: list[SegmentPieces] = []
        self.branches = [Branch() for _ in self.logs]
        self.last_offset: int | None = None
        self.lost: list[Range] = []
        self.doubtful: list[Range] = []
        self.may_be_compacted = group.topic in layout.COORDINATOR_TOPICS or any(
            each.was_cleaned is True for each in group.replicas
        )
        self._clean_until = [clean_until(each)[1] for each in group.replicas]
        starts = [each.partition.segments[0].base_offset for each in group.replicas if each.partition.segments]
        self.start_offset = max(min(starts, default=0), *(log_start(each) for each in group.replicas))
        self._limits = limits
        self._order = [base, *(number for number in range(len(self.logs)) if number != base)]
        self._bases = [each.base_offset for each in group.replicas[base].partition.segments]
        self._gaps: list[Range] = []
        self._off = [list[Range]() for _ in self.logs]  # offsets that are of other branches, by replica
        self._holes = [list[Range]() for _ in self.logs]  # missing offsets that the cleaner has not reached, by replica
        self._ends = [-1 for _ in self.logs]  # the last offset so far, by replica
        self._stops: list[list[Range]] = [[] for _ in self.logs]  # where records contradict those of the base
        self._agreed = [-1 for _ in self.logs]  # the last offset of a batch that is the same as in the base
        self._more: dict[int, int] = {}  # the first offset at which a replica had more than another, by replica
        self._before = [(-1, -1, -1) for _ in self.logs]  # segment, end position and last offset before a window

    def run(self) -> None:
        """Read all logs to their ends."""
        try:
            while True:
                for log in self.logs:
                    if not log.has_batches:
                        log.load(self.logs)
                reading = [log for log in self.logs if not log.is_at_end]
                if not reading:
                    break
                last = min(log.last_offset for log in reading)
                self._step(last)
                for log in reading:
                    log.consume(last)
        finally:
            for log in self.logs:
                log.close()
        self._keep_end()
        self._judge()

    # -- one step ----------------------------------------------------------------------------------------------

    def _step(self, last: int) -> None:
        windows = [self._window(log, last) for log in self.logs]
        for number, window in enumerate(windows):
            if window is not None:
                self._note_holes(number, window)
        base = windows[self.base]
        if base is not None and _are_shared(windows):
            self._take_all(base)
            return
        fits = self._in_place(windows)
        chosen = _Chosen()
        left: list[tuple[int, Window, NDArray[np.intp]]] = []  # batches that are not of the history
        for number in self._order:
            window = windows[number]
            if window is None:
                continue
            table = window.table
            self.may_be_compacted |= bool(table.is_sparse.any())
            is_here = fits[number] & self.history.has(table)
            for first, last_of_stop in self._stops[number]:
                is_here &= (table.last_offset < first) | (table.base_offset > last_of_stop)
            if number == self.base:
                chosen.add(number, window, np.flatnonzero(is_here))
            else:
                is_here &= self._without_contradictions(number, window, is_here, windows[self.base])
                self._take_from(number, window, np.flatnonzero(is_here), chosen)
            left.append((number, window, np.flatnonzero(fits[number] & ~is_here)))
        for number, window, rows in left:
            self._leave(number, window, rows, chosen)
        self._note_more(windows, chosen)
        self._put(windows, chosen)

    def _note_holes(self, number: int, window: Window) -> None:
        """Note the offsets that a replica lacks past where the cleaner was: no compaction explains them."""
        lasts = np.concatenate(([self._ends[number]], window.last_offset[:-1]))
        is_hole = (window.base_offset > lasts + 1) & (window.base_offset > self._clean_until[number])
        for row in np.flatnonzero(is_hole).tolist():
            first = max(int(lasts[row]) + 1, self._clean_until[number])
            self._holes[number].append((first, int(window.base_offset[row]) - 1))
        self._ends[number] = int(window.last_offset[-1])

    @staticmethod
    def _window(log: ReplicaLog, last: int) -> Window | None:
        """The batches of a replica that end up to an offset."""
        window = None if log.is_at_end else log.window(last)
        if window is None or int(window.last_offset[-1]) <= last:
            return window
        ends_here = window.last_offset <= last
        return window.picked(ends_here) if ends_here.any() else None

    def _in_place(self, windows: Sequence[Window | None]) -> list[NDArray[np.bool_]]:
        """Which batches of each window can have their base offsets, which no CRC covers.

        What the cleaner has not reached has no gaps: there a batch follows the one that it adjoins, and the first one
        of a segment has the offset in the file's name. One that does not, and that no other replica has, is false.
        """
        found = []
        for number, window in enumerate(windows):
            if window is None:
                found.append(np.empty(0, bool))
                continue
            table = window.table
            fits = table.last_offset <= self.logs[number].replica_segment_base + MAX_RELATIVE_OFFSET
            fits &= table.last_offset >= self.start_offset
            is_odd = self._is_odd(number, table)
            for other, its in enumerate(windows) if is_odd.any() else ():
                if other != number and its is not None:
                    is_odd &= ~_is_among(table, its.table)
            found.append(fits & ~is_odd)
        return found

    def _is_odd(self, number: int, table: BatchTable) -> NDArray[np.bool_]:
        """Which batches neither follow the batch that they adjoin nor are followed by the next one."""
        if len(self.logs) == 1:
            return np.zeros(len(table), bool)
        segment_base = self.logs[number].replica_segment_base
        segment, end, last = self._before[number]
        if segment != segment_base:
            end, last = 0, segment_base - 1
        ends, lasts = table.end_position, table.last_offset
        ends_before, lasts_before = np.concatenate(([end], ends[:-1])), np.concatenate(([last], lasts[:-1]))
        adjoins = table.position == ends_before
        follows = table.base_offset == lasts_before + 1
        is_followed = np.zeros(len(table), bool)
        is_followed[:-1] = adjoins[1:] & follows[1:]
        is_odd: NDArray[np.bool_] = adjoins & ~follows & ~is_followed & (lasts_before + 1 >= self._clean_until[number])
        is_odd[1:] &= ~is_odd[:-1]
        self._before[number] = (segment_base, -1 if is_odd[-1] else int(ends[-1]), int(lasts[-1]))
        return is_odd

    def _without_contradictions(
        self, number: int, window: Window, is_here: NDArray[np.bool_], base: Window | None
    ) -> NDArray[np.bool_]:
        """Which batches come before the first record that the base has otherwise at the same offset.

        Batches of one epoch are the same, but where the cleaner made other versions of them. Without epochs only a
        comparison shows that two replicas have the same history.
        """
        clear = np.ones(len(window), bool)
        if base is None or not is_here.any():
            return clear
        table, own = window.table, base.table
        at = np.minimum(np.searchsorted(own.base_offset, table.base_offset), len(own) - 1)
        same_place = (own.base_offset[at] == table.base_offset) & (own.last_offset[at] == table.last_offset)
        same = same_place & (own.crc[at] == table.crc) & (own.size_bytes[at] == table.size_bytes)
        has_none = (table.magic < 2) | (table.leader_epoch < 0)
        overlaps = np.searchsorted(own.last_offset, table.base_offset, "left") < np.searchsorted(
            own.base_offset, table.last_offset, "right"
        )
        to_compare = is_here & ~same & overlaps & (has_none | (own.record_count[at] == table.record_count))
        contradicted = _MAX_OFFSET
        if to_compare.any() and window.has_records and base.has_records:
            bounds = (int(table.base_offset[0]), int(table.last_offset[-1]))
            found = compare_windows(base, window.picked(to_compare), bounds, self._limits, lambda side, lone: None)
            if found.other_content:
                contradicted = found.other_content[0][0]
        agreed = same & (table.last_offset < contradicted)
        if agreed.any():
            self._agreed[number] = int(table.last_offset[agreed][-1])
        if contradicted == _MAX_OFFSET:
            return clear
        until = self.history.end_of_epoch(contradicted)
        self._stops[number].append((self._agreed[number] + 1, until - 1))
        self._withdraw(number)
        return (table.last_offset <= self._agreed[number]) | (table.base_offset >= until)

    def _withdraw(self, number: int) -> None:
        """Take back what came from a replica after the last batch in which it agreed with the base."""
        while self.segments:
            pieces = self.segments[-1].pieces
            late = [each for each in pieces if each.replica == number and each.first_offset > self._agreed[number]]
            self._gaps += [(each.first_offset, each.last_offset) for each in late]
            self.segments[-1].pieces = [each for each in pieces if each not in late]
            if len(late) < len(pieces):
                break
            self.segments.pop()

    def _take_from(self, number: int, window: Window, rows: NDArray[np.intp], chosen: _Chosen) -> None:
        """Take the batches at offsets where none is taken, and versions of batches that have more records."""
        table = window.table.rows(rows)
        start, end = chosen.overlapped(table)
        is_new = start == end
        differs = ~is_new & ~chosen.has_same(table)
        dropped = np.zeros(len(chosen.first), bool)
        for row in np.flatnonzero(differs).tolist():
            some = slice(int(start[row]), int(end[row]))
            covers = table.base_offset[row] <= chosen.first[some][0] and table.last_offset[row] >= chosen.last[some][-1]
            is_larger = int(table.record_count[row]) > int(np.maximum(chosen.count[some], 0).sum())
            if covers and is_larger and not dropped[some].any():
                dropped[some] = True
                is_new[row] = True
        chosen.drop(dropped)
        chosen.add(number, window, rows[is_new])

    def _leave(self, number: int, window: Window, rows: NDArray[np.intp], chosen: _Chosen) -> None:
        """Batches that are not of the history: those of others are a branch.

        Those of the base, which have a false epoch, stay where there is no other and they are in line with the next.
        """
        if not len(rows):
            return
        table = window.table.rows(rows)
        if number == self.base:
            start, end = chosen.overlapped(table)
            in_line = np.zeros(len(window) + 1, bool)  # a false epoch, and not a false offset
            in_line[1:-1] = window.base_offset[1:] == window.last_offset[:-1] + 1
            is_own = (start == end) & (in_line[rows] | in_line[rows + 1])
            chosen.add(number, window, rows[is_own])
            rest = table.rows((start == end) & ~is_own)
            self._holes[number] += zip(rest.base_offset.tolist(), rest.last_offset.tolist(), strict=True)
            rows = rows[:0]
        else:
            is_branch = ~chosen.has_same(table) & ~self.history.has(table)
            for first, last in self._stops[number]:
                is_branch |= (table.last_offset >= first) & (table.base_offset <= last)
            rows = rows[is_branch & (table.last_offset >= self.start_offset)]
        if len(rows):
            table = window.table.rows(rows)
            log = self.logs[number]
            self.branches[number].add(log.file, number, log.replica_segment_base, table)
            self._off[number].append((int(table.base_offset[0]), int(table.last_offset[-1])))

    def _note_more(self, windows: Sequence[Window | None], chosen: _Chosen) -> None:
        """Note which replicas have given what another lacks."""
        for number in np.unique(chosen.replica).tolist():
            if number not in self._more:
                self._more[number] = int(chosen.first[chosen.replica == number][0])

    # -- what is written ---------------------------------------------------------------------------------------

    def _take_all(self, base: Window) -> None:
        """Take a whole window of the base, which is the same in all replicas."""
        chosen = _Chosen()
        chosen.add(self.base, base, np.arange(len(base)))
        for number in range(len(self.logs)):
            self._agreed[number] = int(base.last_offset[-1])
        windows: list[Window | None] = [None for _ in self.logs]
        windows[self.base] = base
        self._put(windows, chosen)

    def _put(self, windows: Sequence[Window | None], chosen: _Chosen) -> None:
        """Append the chosen batches to the segments."""
        if self.last_offset is not None and len(chosen.first) and chosen.first[0] <= self.last_offset:
            chosen.drop(chosen.first <= self.last_offset)
        if not len(chosen.first):
            return
        before = self.start_offset - 1 if self.last_offset is None else self.last_offset
        lasts = np.concatenate(([before], chosen.last[:-1]))
        for row in np.flatnonzero(chosen.first > lasts + 1).tolist():
            self._gaps.append((int(lasts[row]) + 1, int(chosen.first[row]) - 1))
        number_of_base = np.searchsorted(self._bases, chosen.first, "right")
        row_before = np.concatenate(([-2], chosen.row[:-1]))
        edges = (chosen.replica[1:] != chosen.replica[:-1]) | (number_of_base[1:] != number_of_base[:-1])
        edges |= chosen.row[1:] != row_before[1:] + 1
        for rows in np.split(np.arange(len(chosen.first)), np.flatnonzero(edges) + 1):
            self._put_run(windows, chosen, rows)
        self.last_offset = int(chosen.last[-1])

    def _put_run(self, windows: Sequence[Window | None], chosen: _Chosen, rows: NDArray[np.intp]) -> None:
        number, first = int(chosen.replica[rows[0]]), int(chosen.first[rows[0]])
        window, log = windows[number], self.logs[number]
        if window is None:
            raise ValueError("batches were taken from a replica without a window")
        at = bisect_right(self._bases, first) - 1
        start = self._bases[at] if at >= 0 else -1
        own = log.replica_segment_base
        if own > start and self._is_past(own):
            start = own
        after = int(chosen.last[rows[0] - 1]) if rows[0] else self.last_offset
        if not self.segments or start > self.segments[-1].base_offset:
            start = first if start < 0 else start
            self.segments.append(SegmentPieces(start if after is None else max(start, after + 1)))
        table = window.table.rows(chosen.row[rows])
        edges = np.flatnonzero(table.position[1:] != table.end_position[:-1]) + 1
        for part in np.split(np.arange(len(table)), edges):
            append_piece(self.segments[-1].pieces, piece_of(log.file, number, table, int(part[0]), int(part[-1])))

    def _is_past(self, offset: int) -> bool:
        """Whether the base is being read past the segment that has this offset, or has not come to its first one."""
        log = self.logs[self.base]
        return log.is_at_end or not self._bases or log.replica_segment_base > offset

    def _keep_end(self) -> None:
        """Begin an empty segment where the last one of a replica would begin, so that no offset is given twice."""
        ends = [
            each.replica.partition.segments[-1].base_offset
            for number, each in enumerate(self.logs)
            if each.replica.partition.segments and not self._off[number]
        ]
        end = max(ends, default=None)
        reached = -1 if self.last_offset is None else self.last_offset
        if end is not None and (end > reached + 1 or not self.segments):
            self.segments.append(SegmentPieces(max(end, self.start_offset)))

    # -- what is lost ------------------------------------------------------------------------------------------

    def unsound(self, number: int) -> list[Range]:
        """The offsets of which a replica says nothing: damaged, of another branch, before its start or past its end."""
        log = self.logs[number]
        segments = log.replica.partition.segments
        start = segments[0].base_offset if segments else _MAX_OFFSET
        known = [*log.damaged, *log.misplaced, *self._holes[number], *self._off[number], *self._stops[number]]
        return merged([*known, (0, start - 1), (log.log_end_offset, _MAX_OFFSET)])

    def _judge(self) -> None:
        gaps = merged(self._gaps)
        nowhere = intersection([self.unsound(number) for number in range(len(self.logs))])
        self.lost = intersection([gaps, nowhere]) if self.may_be_compacted else gaps
        if self.may_be_compacted and self.last_offset is not None:
            self.doubtful = merged(each for number in range(len(self.logs)) for each in self._doubtful(number))

    def _doubtful(self, number: int) -> list[Range]:
        """The damaged offsets of a replica whose tombstones no other has: it lost them, or removed them with the rest.

        What they delete may have come from this replica: only where it has given more than others before.
        """
        if number not in self._more or self.last_offset is None:
            return []
        start = max(clean_until(self.logs[number].replica)[0], self._more[number] + 1)
        log = self.logs[number]
        ranges = clipped(merged([*log.damaged, *log.misplaced, *self._holes[number]]), start, self.last_offset)
        for other, its in enumerate(self.logs):
            if other != number:
                cleaned = (0, clean_until(its.replica)[1] - 1)
                ranges = intersection([ranges, merged([*self.unsound(other), cleaned])])
        return ranges


def _are_shared(windows: Sequence[Window | None]) -> bool:
    """Whether all replicas share one chunk, whose bytes were compared when it was read."""
    first = windows[0]
    return first is not None and all(
        each is not None and each.chunk is first.chunk and len(each) == len(first) and each.rows[0] == first.rows[0]
        for each in windows
    )


def _is_among(table: BatchTable, others: BatchTable) -> NDArray[np.bool_]:
    """Which batches another table has at the same offset, with the same size and CRC."""
    at = np.minimum(np.searchsorted(others.base_offset, table.base_offset), len(others) - 1)
    is_among: NDArray[np.bool_] = (others.base_offset[at] == table.base_offset) & (others.crc[at] == table.crc)
    is_among &= others.size_bytes[at] == table.size_bytes
    return is_among


def log_start(replica: Replica) -> int:
    """The log start offset that a checkpoint has, which all replicas share; 0 for none."""
    return replica.offsets.log_start_checkpoint or 0


def clean_until(replica: Replica) -> Range:
    """The offset up to which the cleaner has cleaned a replica: at least and at most."""
    known = replica.offsets.cleaner_offset
    if known is not None:
        return known, known
    if replica.was_cleaned is False:
        return 0, 0
    segments = replica.partition.segments
    return 0, segments[-1].base_offset if segments else 0
