"""Puts the log of a partition together from its replicas: every intact batch of the history that any of them has.

At each step every replica has a chunk, as in a comparison, and the batches up to the offset where the first chunk ends
are taken: those of the base, and those of others at offsets where the base has none. Where two versions of a batch have
other numbers of records, the cleaner was at work, and the version with more records is taken. So no value and no
tombstone that any replica has is lost, and a tombstone comes with all values that it deletes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.io.source import FileSource, FileState
from format.layout import MAX_RELATIVE_OFFSET
from format.limits import Limits
from format.log.batch_chunk import BatchRange
from format.log.batch_table import BatchTable
from format.log.walker import batch_chunks
from format.offset_ranges import Range, clipped, intersection, merged, without
from format.rewriting.composed_logs import Piece
from format.scan.progress import Advance
from format.verbs.diff.comparison import are_shared, compare_windows
from format.verbs.diff.replica_log import Replica, ReplicaLog, Replicas, Window, steps_of
from format.verbs.merge.branch import History, has_no_epoch
from format.verbs.merge.false_offsets import HeldBatch, HeldBatches, Neighbours, Standing, same_batches

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
        for piece in pieces_of(file, number, table):
            self.put(base_offset, piece)
        self.epochs.update(np.unique(table.leader_epoch).tolist())

    def put(self, base_offset: int, piece: Piece) -> None:
        """Add a piece of one segment."""
        if not self.segments or self.segments[-1].base_offset != base_offset:
            self.segments.append(SegmentPieces(base_offset))
        append_piece(self.segments[-1].pieces, piece)


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


def pieces_of(file: tuple[Path, FileState], number: int, table: BatchTable) -> Iterator[Piece]:
    """The pieces of some batches of one file, each of batches that adjoin."""
    edges = np.flatnonzero(table.position[1:] != table.end_position[:-1]) + 1
    for rows in np.split(np.arange(len(table)), edges):
        yield piece_of(file, number, table, int(rows[0]), int(rows[-1]))


def append_piece(pieces: list[Piece], piece: Piece) -> None:
    """Append a piece, joined with the one before it where they adjoin in one file."""
    before = pieces[-1] if pieces else None
    if before is not None and before.path == piece.path and before.end == piece.start:
        count = before.record_count + piece.record_count
        pieces[-1] = replace(before, end=piece.end, last_offset=piece.last_offset, record_count=count)
    else:
        pieces.append(piece)


def split_piece(piece: Piece, other: Piece, limits: Limits) -> tuple[Piece, Piece] | None:
    """The parts of a piece before and after the offsets of another one; None if it has a batch with such offsets."""
    before: Piece | None = None
    with FileSource(piece.path, piece.state) as source:
        for chunk in batch_chunks(source, BatchRange(piece.start, piece.end), check_crc=False, limits=limits):
            table = chunk.table
            number = int(np.searchsorted(table.last_offset, other.first_offset, "left"))
            if number:
                pieces = [] if before is None else [before]
                append_piece(pieces, piece_of((piece.path, piece.state), piece.replica, table, 0, number - 1))
                [before] = pieces
            if number < len(table):
                first = int(table.base_offset[number])
                if before is None or first <= other.last_offset:
                    return None
                count = piece.record_count - before.record_count
                return before, replace(piece, start=before.end, first_offset=first, record_count=count)
    return None


class _Chosen:
    """The batches that are taken in one step: the number of the replica and the row in its window, by offset."""

    def __init__(self) -> None:
        self._set(np.empty((7, 0), np.int64))

    def _set(self, columns: NDArray[np.int64]) -> None:
        self._columns = columns
        self.first, self.last, self.count, self.crc, self.size, self.replica, self.row = columns

    def add(self, number: int, window: Window, rows: NDArray[np.intp]) -> None:
        """Add batches of a replica that overlap none of those here."""
        table = window.table.rows(rows)
        replica = np.full(len(rows), number)
        own = (table.base_offset, table.last_offset, table.record_count, table.crc, table.size_bytes, replica, rows)
        columns = np.concatenate((self._columns, np.stack(own)), axis=1)
        self._set(columns[:, np.argsort(columns[0], kind="stable")])

    def drop(self, which: NDArray[np.bool_]) -> None:
        self._set(self._columns[:, ~which])

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
        self._neighbours = [Neighbours(log, end) for log, end in zip(self.logs, self._clean_until, strict=True)]
        self._held = HeldBatches()
        self._is_held = [np.empty(0, bool) for _ in self.logs]  # by the rows of the chunk

    def run(self) -> None:
        """Read all logs to their ends."""
        with closing(steps_of(self.logs)) as steps:
            for last in steps:
                loaded = [number for number, each in enumerate(self._neighbours) if each.look()]
                for number in loaded:
                    self._hold_back(number)
                for number, log in enumerate(self.logs) if self._held.batches else ():
                    if log.chunk is not None:
                        self._held.compare(number, self._neighbours[number])
                self._step(last)
        self._place_held()
        self._keep_end()
        self._judge()

    # -- one step ----------------------------------------------------------------------------------------------

    def _step(self, last: int) -> None:
        windows = [self._window(log, last) for log in self.logs]
        for number, window in enumerate(windows):
            if window is not None:
                self._note_holes(number, window)
        base = windows[self.base]
        if base is not None and are_shared(windows):
            self._take_all(base)
            return
        standings = [
            None if window is None else each.standing.rows(window.rows)
            for each, window in zip(self._neighbours, windows, strict=True)
        ]
        fits = self._in_place(windows, standings)
        self._held.see(windows, standings)
        chosen = _Chosen()
        left: list[tuple[int, Window, NDArray[np.intp]]] = []  # batches that are not of the history
        base_here: Window | None = None
        for number in self._order:
            window = windows[number]
            if window is None:
                continue
            table = window.table
            self.may_be_compacted |= bool(table.is_sparse.any())
            is_here = fits[number] & self.history.has(table)
            for first, last_of_stop in self._stops[number]:
                is_here &= (table.last_offset < first) | (table.base_offset > last_of_stop)
            is_held = self._is_held[number][window.rows]
            is_here &= ~is_held
            if number == self.base:
                chosen.add(number, window, np.flatnonzero(is_here))
                base_here = window.picked(fits[number] & ~is_held)
            else:
                is_here &= self._without_contradictions(number, window, is_here, base_here)
                self._take_from(number, window, np.flatnonzero(is_here), chosen)
            left.append((number, window, np.flatnonzero(fits[number] & ~is_here & ~is_held)))
        for number, window, rows in left:
            standing = standings[number]
            if standing is not None:
                self._leave(number, window, rows, standing.is_epoch_false, chosen)
        self._note_more(chosen)
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

    def _in_place(
        self, windows: Sequence[Window | None], standings: Sequence[Standing | None]
    ) -> list[NDArray[np.bool_]]:
        """Which batches of each window can have their offsets: those that are not false, or that another replica has.

        The offsets of a segment end with the file's largest one, and those of the partition begin with its log start.
        """
        found = []
        for number, (window, standing) in enumerate(zip(windows, standings, strict=True)):
            if window is None or standing is None:
                found.append(np.empty(0, bool))
                continue
            table = window.table
            fits = table.last_offset <= self.logs[number].replica_segment_base + MAX_RELATIVE_OFFSET
            fits &= table.last_offset >= self.start_offset
            is_false = standing.is_false if len(self.logs) > 1 else np.zeros(len(table), bool)
            for other, its in enumerate(windows) if is_false.any() else ():
                if other != number and its is not None:
                    is_false &= ~same_batches(table, its.table)
            self._holes[number] += _ranges(table.rows(is_false))
            found.append(fits & ~is_false)
        return found

    # -- batches that stand alone --------------------------------------------------------------------------------

    def _hold_back(self, number: int) -> None:
        """Hold back the batches of a chunk that stand alone, unless another replica shares the chunk."""
        log = self.logs[number]
        chunk = log.chunk
        if chunk is None:
            return
        is_held = self._is_held[number] = np.zeros(len(chunk.table), bool)
        run = np.zeros(len(chunk.table), np.int64)
        if all(each.chunk is not chunk for each in self.logs if each is not log) and len(self.logs) > 1:
            run = self._neighbours[number].standing.run
            is_held |= (run > 0) & self.history.has(chunk.table)
        for row in np.flatnonzero(is_held).tolist():
            if self._held.is_full:
                is_held[row:] = False
                break
            batch = chunk.table.rows(np.array([row]))
            self._held.add(HeldBatch(piece_of(log.file, number, batch, 0, 0), int(batch.crc[0]), int(run[row])))

    def _hold(self, number: int, window: Window, rows: NDArray[np.intp], chosen: _Chosen) -> None:
        """Hold back batches with false leader epochs, which are kept where no replica has others."""
        table = window.table.rows(rows)
        for row in range(len(rows)):
            if self._held.is_full:
                chosen.add(number, window, rows[row:])
                return
            piece = piece_of(self.logs[number].file, number, table, row, row)
            self._held.add(HeldBatch(piece, int(table.crc[row]), is_epoch_false=True))

    def _place_held(self) -> None:
        """Put the batches that stood alone into the gaps where they belong, if nothing shows that they do not."""
        for piece in self._held.true_ones(self.base):
            own = piece.first_offset, piece.last_offset
            is_left_out = piece.last_offset < self.start_offset or clipped(self._stops[piece.replica], *own)
            if is_left_out or not self._place(piece):
                self._holes[piece.replica].append(own)
                continue
            end = self.start_offset - 1 if self.last_offset is None else self.last_offset
            if piece.first_offset > end + 1:
                self._gaps.append((end + 1, piece.first_offset - 1))
            self._gaps = without(merged(self._gaps), [own])
            self.last_offset = max(end, piece.last_offset)
            first = self._more.get(piece.replica, piece.first_offset)
            self._more[piece.replica] = min(first, piece.first_offset)

    def _place(self, piece: Piece) -> bool:
        """Insert a piece where no other has its offsets; False if one has."""
        at = bisect_right([each.base_offset for each in self.segments], piece.first_offset) - 1
        if at < 0:
            at = 0
            self.segments.insert(0, SegmentPieces(piece.first_offset))
        pieces = self.segments[at].pieces
        place = bisect_right([each.first_offset for each in pieces], piece.first_offset)
        parts = [piece]
        if place and pieces[place - 1].last_offset >= piece.first_offset:
            place -= 1
            around = split_piece(pieces[place], piece, self._limits)
            if around is None:
                return False
            parts = [around[0], piece, around[1]]
        elif place < len(pieces) or at + 1 < len(self.segments):
            following = pieces[place].first_offset if place < len(pieces) else self.segments[at + 1].base_offset
            if following <= piece.last_offset:
                return False
        pieces[place : place + len(parts) // 2] = parts
        return True

    def _without_contradictions(
        self, number: int, window: Window, is_here: NDArray[np.bool_], base: Window | None
    ) -> NDArray[np.bool_]:
        """Which batches come before the first record that the base has otherwise at the same offset.

        Batches of one epoch are the same, but where the cleaner made other versions of them. Without epochs only a
        comparison shows that two replicas have the same history.
        """
        clear = np.ones(len(window), bool)
        if base is None or not len(base) or not is_here.any():
            return clear
        table, own = window.table, base.table
        at = np.minimum(np.searchsorted(own.base_offset, table.base_offset), len(own) - 1)
        same_place = (own.base_offset[at] == table.base_offset) & (own.last_offset[at] == table.last_offset)
        same = same_place & (own.crc[at] == table.crc) & (own.size_bytes[at] == table.size_bytes)
        has_none = has_no_epoch(table)
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
        """Take back what came from a replica after the last batch in which it agreed with the base: it is a branch."""
        taken: list[Piece] = []
        while self.segments:
            pieces = self.segments[-1].pieces
            late = [each for each in pieces if each.replica == number and each.first_offset > self._agreed[number]]
            taken[:0] = late
            self.segments[-1].pieces = [each for each in pieces if each not in late]
            if len(late) < len(pieces):
                break
            self.segments.pop()
        bases = {each.log: each.base_offset for each in self.logs[number].replica.partition.segments}
        for each in taken:
            self._gaps.append((each.first_offset, each.last_offset))
            self.branches[number].put(bases[each.path], each)
            self._off[number].append((each.first_offset, each.last_offset))

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

    def _leave(
        self, number: int, window: Window, rows: NDArray[np.intp], is_epoch_false: NDArray[np.bool_], chosen: _Chosen
    ) -> None:
        """Batches that are not of the history: those of others are a branch, but for those with a false epoch.

        All of the base have a false epoch, if they are in line with the next batch or with the one before.
        """
        if not len(rows):
            return
        table = window.table.rows(rows)
        start, end = chosen.overlapped(table)
        if number == self.base:
            in_line = np.zeros(len(window) + 1, bool)  # a false epoch, and not a false offset
            in_line[1:-1] = window.base_offset[1:] == window.last_offset[:-1] + 1
            is_own = (start == end) & (in_line[rows] | in_line[rows + 1])
            self._holes[number] += _ranges(table.rows((start == end) & ~is_own))
            is_branch = np.zeros(len(rows), bool)
        else:
            is_branch = ~chosen.has_same(table) & ~self.history.has(table)
            for first, last in self._stops[number]:
                is_branch |= (table.last_offset >= first) & (table.base_offset <= last)
            is_branch &= table.last_offset >= self.start_offset
            is_own = is_branch & is_epoch_false[rows] & (start == end)
            is_branch &= ~is_epoch_false[rows]
        self._hold(number, window, rows[is_own], chosen)
        rows = rows[is_branch]
        if len(rows):
            table = window.table.rows(rows)
            log = self.logs[number]
            self.branches[number].add(log.file, number, log.replica_segment_base, table)
            self._off[number].append((int(table.base_offset[0]), int(table.last_offset[-1])))

    def _note_more(self, chosen: _Chosen) -> None:
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
        for piece in pieces_of(log.file, number, window.table.rows(chosen.row[rows])):
            append_piece(self.segments[-1].pieces, piece)

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
        reached = self.start_offset - 1 if self.last_offset is None else self.last_offset
        if end is not None and (end > reached + 1 or not self.segments):
            self.segments.append(SegmentPieces(max(end, self.start_offset)))
            if end > reached + 1:
                self._gaps.append((reached + 1, end - 1))

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
            doubtful = [each for number in range(len(self.logs)) for each in self._doubtful(number)]
            first = next((each.first_offset for segment in self.segments for each in segment.pieces), _MAX_OFFSET)
            self.doubtful = merged([*doubtful, *clipped(self.lost, first, _MAX_OFFSET)])

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


def _ranges(table: BatchTable) -> list[Range]:
    return list(zip(table.base_offset.tolist(), table.last_offset.tolist(), strict=True))


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
