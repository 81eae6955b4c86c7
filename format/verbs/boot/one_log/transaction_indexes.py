"""The check of a transaction index when a broker loads its segment.

Source: storage TransactionIndex (sanityCheck, iterable) and AbortedTxn.
"""

from __future__ import annotations

from pathlib import Path

from format.layout import ABORTED_TXN
from format.verbs.boot.followed import opened
from format.verbs.boot.steps import StopsStart

_OTHER_VERSION = "an entry has a version that no release writes"
#: Releases before take the first of the two bytes of an entry's version for the version.
_TWO_BYTES_SINCE = (4, 4)


def wrong_transaction_index(path: Path, base_offset: int, release: tuple[int, int]) -> str | None:
    """What a broker does not accept in the transaction index of a segment; None where it accepts all of it.

    Raises StopsStart for an entry of another version, which ends the start.
    """
    with opened(path) as source:
        content = source.read_at(0, source.size_bytes - source.size_bytes % ABORTED_TXN.size_bytes)
    for number, (version, producer_id, first, last, _) in enumerate(ABORTED_TXN.struct.iter_unpack(content)):
        refusal = _refusal_of(version, path, release)
        if refusal is not None:
            position = number * ABORTED_TXN.size_bytes
            raise StopsStart(refusal, "TransactionIndex", path=path, reason=_OTHER_VERSION, position=position)
        if last < base_offset:
            return (
                f"Last offset of aborted transaction (producer id {producer_id}, first offset {first}) is "
                f"{last}, less than start offset {base_offset}"
            )
    return None


def _refusal_of(version: int, path: Path, release: tuple[int, int]) -> str | None:
    """The message about the version of an entry, None where the release accepts it."""
    unexpected = "Unexpected aborted transaction version"
    if release >= _TWO_BYTES_SINCE:
        known = "supported version range is 0 to 0"
        return f"{unexpected} {version} in transaction index {path}, {known}" if version else None
    first_byte = version >> 8
    return f"{unexpected} {first_byte} in transaction index {path}, current version is 0" if first_byte > 0 else None
