"""The check of a transaction index when a broker loads its segment.

Source: storage TransactionIndex.sanityCheck.
"""

from __future__ import annotations

from pathlib import Path

from format.layout import ABORTED_TXN
from format.verbs.boot.followed import opened


def wrong_transaction_index(path: Path, base_offset: int) -> str | None:
    """What a broker does not accept in the transaction index of a segment; None where it accepts all of it."""
    with opened(path) as source:
        content = source.read_at(0, source.size_bytes - source.size_bytes % ABORTED_TXN.size_bytes)
    for _, producer_id, first, last, _ in ABORTED_TXN.struct.iter_unpack(content):
        if last < base_offset:
            return (
                f"Last offset of aborted transaction (producer id {producer_id}, first offset {first}) is "
                f"{last}, less than start offset {base_offset}"
            )
    return None
