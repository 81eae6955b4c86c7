"""Damage of a log of which a bundle holds the headers: as it was found when the bundle was made."""

from __future__ import annotations

from format.io.bundles.opened import BundledFile
from format.log.batch_chunk import Damage


def recorded_damage(bundled: BundledFile, position: int) -> Damage | None:
    """The damage at a position, None where none was found."""
    found = bundled.damage.get(position)
    if found is None:
        return None
    lost = found.get("lost_offsets")
    return Damage(
        found["code"],
        position,
        found["length"],
        found["reason"],
        found.get("after_offset"),
        found.get("next_base_offset"),
        bool(found.get("reaches_end")),
        None if lost is None else (lost[0], lost[1]),
    )
