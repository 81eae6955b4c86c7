"""Repairs of single header fields that no CRC covers: length, base offset, leader epoch and magic.

A field is repaired only if the bytes prove its right value. Then the records are those that were written, since their
CRC is right. A CRC covers the magic of v0 and v1, so that only that of v2 can be repaired.
"""

from __future__ import annotations

import msgspec
import numpy as np

from format.io.source import PatchedSource
from format.layout import LOG_ENTRY, RECORD_BATCH
from format.limits import Limits
from format.log.after_damage.candidates import CandidateSearch
from format.log.after_damage.proofs import wrong_field
from format.log.batch_table import BatchTable
from format.rewriting.intact_batches import BadBytes, SegmentScan

_V2 = 2
_AT = {name: RECORD_BATCH.offset_of(name) for name in ("base_offset", "length", "leader_epoch", "magic")}
_WIDTHS = {"base_offset": 8, "length": 4, "leader_epoch": 4, "magic": 1}
_WORDS = {name: name.replace("_", " ") for name in _AT}


class Repair(msgspec.Struct, frozen=True):
    """A field of the batch at ``position`` with its wrong and its right value, and the proof.

    ``size_bytes`` and the offsets are those of the batch with the right field. For a compressed v0 or v1 message the
    first offset is not known, and is the last one.
    """

    position: int
    size_bytes: int
    field: str
    wrong: int
    right: int
    proof: str
    first_offset: int
    last_offset: int

    @property
    def end_position(self) -> int:
        return self.position + self.size_bytes

    @property
    def words(self) -> str:
        """What is wrong with the batch, for a message."""
        return f"its {_WORDS[self.field]} is {self.wrong}, and must be {self.right}: {self.proof}"

    def apply(self, source: PatchedSource) -> None:
        """Let a source show the right field."""
        width = _WIDTHS[self.field]
        source.patch(self.position + _AT[self.field], self.right.to_bytes(width, "big", signed=True))


def proven_repairs(source: PatchedSource, scan: SegmentScan, limits: Limits) -> list[Repair]:
    """The repairs that the bytes of a segment prove, by position; at most one for each batch.

    A repair may make another one possible: the segment must be scanned again with them.
    """
    search = CandidateSearch(source, source.size_bytes, limits)
    found = [
        repair
        for bad in scan.bad
        if bad.length <= search.most_bytes and not bad.is_repeat
        and (repair := _of_damage(source, search, bad)) is not None
    ]  # fmt: skip
    found += _of_base_offsets(scan)
    found += _of_leader_epochs(scan.table, scan)
    return sorted(found, key=lambda each: each.position)


def _of_damage(source: PatchedSource, search: CandidateSearch, bad: BadBytes) -> Repair | None:
    """The repair of the length or the magic of a damaged batch."""
    end = bad.position + bad.length
    wrong = wrong_field(source, search, bad.position, end)
    if wrong is None:  # more than one damaged batch
        _, length = LOG_ENTRY.struct.unpack(
            source.read_at(bad.position, LOG_ENTRY.size_bytes).ljust(LOG_ENTRY.size_bytes)
        )
        own_end = bad.position + LOG_ENTRY.size_bytes + length
        if bad.position < own_end < end:
            end, wrong = own_end, wrong_field(source, search, bad.position, own_end)
    if wrong is None:
        return None
    proof = "with it the CRC is right"
    if wrong.field == "length":
        proof += ", and the batch ends " + (
            "with the file" if end >= source.size_bytes else "where the next one starts"
        )
    size_bytes = end - bad.position
    return Repair(
        bad.position, size_bytes, wrong.field, wrong.wrong, wrong.right, proof, wrong.first_offset, wrong.last_offset
    )


def _of_base_offsets(scan: SegmentScan) -> list[Repair]:
    table, found = scan.table, []
    for row in np.flatnonzero(scan.placement.right_offset >= 0).tolist():
        # The offset of a compressed message is that of its last inner one.
        right = int(scan.placement.right_offset[row])
        last = right + int(table.last_offset_delta[row])
        is_wrapper = bool(table.is_wrapper[row])
        if is_wrapper and table.magic[row] == 0:
            continue  # its inner messages have offsets of their own, which a CRC covers
        delta = int(table.last_offset_delta[row]) if is_wrapper else 0
        wrong = int(table.base_offset[row]) + delta
        position, size_bytes = int(table.position[row]), int(table.size_bytes[row])
        proof = scan.placement.proofs[row]
        found.append(Repair(position, size_bytes, "base_offset", wrong, right + delta, proof, right, last))
    return found


def _of_leader_epochs(table: BatchTable, scan: SegmentScan) -> list[Repair]:
    """Epochs never fall, so that one between two equal epochs is the same."""
    rows = np.flatnonzero(scan.is_kept)
    epoch = table.leader_epoch[rows]
    is_v2 = table.magic[rows] == _V2
    is_wrong = (epoch[:-2] == epoch[2:]) & (epoch[1:-1] != epoch[2:]) & (epoch[2:] >= 0)
    is_wrong &= is_v2[:-2] & is_v2[1:-1] & is_v2[2:]
    return [
        Repair(
            int(table.position[row]),
            int(table.size_bytes[row]),
            "leader_epoch",
            int(table.leader_epoch[row]),
            int(table.leader_epoch[before]),
            "the batches before and after it have this one, and epochs never fall",
            int(table.base_offset[row]),
            table.last_offset_of(row),
        )
        for before, row in zip(rows[:-2][is_wrong].tolist(), rows[1:-1][is_wrong].tolist(), strict=True)
    ]
