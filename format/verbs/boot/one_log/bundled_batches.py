"""The broker's reader on a log whose headers alone are in a bundle: where it ends, and which CRCs are wrong."""

from __future__ import annotations

import numpy as np

from format.errors import NotInBundle
from format.io.source import FileSource, HeadersOnly, Source
from format.layout import MESSAGE_V0, RECORD_BATCH
from format.location import Location
from format.log.after_damage.recorded import recorded_damage


def headers_in_bundle(source: Source) -> HeadersOnly | None:
    """The file in the bundle if the bundle has only its batch headers, else None."""
    return source.headers_only if isinstance(source, FileSource) else None


def ends_at(bundled: HeadersOnly, source: Source, position: int) -> bool:
    """Whether the reader ends at a position because a batch is cut off there.

    Raises NotInBundle for bytes that are no batch, since the reader's error depends on them. Zeros are an exception: a
    bundle returns them as they were.
    """
    if bundled.stored_bytes(position):
        return False
    damage = recorded_damage(bundled, position)
    if damage is None or damage.code not in ("tail-torn", "tail-zeros"):
        message = "the bundle does not hold what lies here, which is no batch"
        raise NotInBundle(message, Location(source.path, position=position))
    return damage.code == "tail-torn"


def invalid_crc(bundled: HeadersOnly, source: Source, position: int, magic: int) -> str | None:
    """The reader's message about a batch with a wrong CRC, without the computed CRC; None where the CRC is right.

    Raises NotInBundle where the bundle has no such information.
    """
    (valid,) = bundled.crc_valid(np.array([position])).tolist()
    if valid < 0:
        message = "the bundle does not say whether the CRC of the batch here is right"
        raise NotInBundle(message, Location(source.path, position=position))
    stored_at = (RECORD_BATCH if magic >= 2 else MESSAGE_V0).offset_of("crc")
    stored = int.from_bytes(source.read_at(position + stored_at, 4), "big")
    return None if valid else f"Record is corrupt (stored crc = {stored},"
