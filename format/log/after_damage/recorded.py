"""The damage of a log of which a bundle has only the headers: as it was found when the bundle was made."""

from __future__ import annotations

from format.errors import NotInBundle
from format.io.source import HeadersOnly
from format.location import Location
from format.log.batch_chunk import BatchChunk, Damage


def check_whole(bundled: HeadersOnly | None, chunk: BatchChunk, path: str) -> None:
    """Raise NotInBundle for a batch of which the bundle has only the header."""
    places = zip(chunk.table.position.tolist(), chunk.table.size_bytes.tolist(), strict=True)
    for position, size_bytes in places:
        if bundled is not None and bundled.stored_bytes(position) < size_bytes:
            message = "the bundle has only the headers of this log, not its records"
            raise NotInBundle(message, Location(path, position=position, length=size_bytes))


def recorded_damage(bundled: HeadersOnly, position: int) -> Damage | None:
    """The damage that was found at a position, None for none."""
    found = bundled.damage.get(position)
    if found is None:
        return None
    return Damage(
        found.code,
        position,
        found.length,
        found.reason,
        found.after_offset,
        found.next_base_offset,
        found.reaches_end,
        found.lost_offsets,
        found.lost_from,
        found.readable,
    )
