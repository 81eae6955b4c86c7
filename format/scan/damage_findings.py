"""The finding for damage between batches."""

from __future__ import annotations

from format.findings import Finding, finding
from format.location import Location
from format.log.batch_chunk import Damage


def damage_finding(damage: Damage, location: Location, *, is_last_segment: bool) -> Finding:
    """The finding for bytes that belong to no readable batch.

    A cut-off end is a torn tail only in the last segment; in one that others follow, records are lost.
    """
    lost, code = damage.lost_offsets, damage.code
    if damage.reaches_end and not is_last_segment and code == "tail-torn":
        code = "log-truncated"
    if damage.code == "limit-exceeded":
        where = location.at(position=damage.position, length=damage.length)
        return finding(code, where, f"{damage.reason}: {damage.length} bytes")
    message = f"{damage.reason}; {damage.length} bytes are not readable"
    if damage.next_base_offset is not None:
        message += f", the next intact batch starts at offset {damage.next_base_offset}"
    elif damage.reaches_end:
        message += " up to the end of the file"
    if lost is not None:
        message += f"; offsets {lost[0]} to {lost[1]} are lost" if lost[0] < lost[1] else f"; offset {lost[0]} is lost"
    next_offset = None if damage.after_offset is None else damage.after_offset + 1
    where = location.at(position=damage.position, length=damage.length, offset=next_offset)
    return finding(code, where, message, lost_offsets=lost)
