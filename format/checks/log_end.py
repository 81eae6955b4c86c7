"""The end of a log, where files disagree after a crash, and in a copy of the files of a running broker."""

from __future__ import annotations

from dataclasses import replace

from format.findings import Certainty, Finding, Severity
from format.node.offsets import PartitionOffsets

#: What a broker does at its start after an unclean stop, by the code of the finding (storage LogLoader, LogSegment).
_AT_START = {
    "offset-index-mismatch": "rebuilds the indexes of the last segment",
    "time-index-mismatch": "rebuilds the indexes of the last segment",
    "transaction-index-mismatch": "rebuilds the indexes of the last segment",
    "snapshot-mismatch": "deletes the snapshot",
    "leader-epoch-checkpoint-mismatch": "removes the entry",
    "checkpoint-mismatch": "takes the end of the log instead",
}
_NEXT_STEP = (
    "Nothing, if this is a copy of a running broker's files, or another replica leads; else look for the missing "
    "offsets in another replica."
)


def judged_at_end(found: Finding, offsets: PartitionOffsets) -> Finding:
    """A finding about a file that ends elsewhere than the log, as a warning unless the broker runs or stopped cleanly.

    A broker appends to the log first, so that no other file is ahead of it. But a crash of the host may lose what was
    not flushed, and in a copy of a running broker's files the one that was copied later is the newer one.
    """
    if offsets.is_clean_shutdown or offsets.is_broker_running:
        return found
    message = (
        f"{found.message}; a crash leaves this, and so does copying the files of a running broker: without a "
        f"clean-shutdown mark, a broker {_AT_START[found.code]} when it starts"
    )
    return replace(
        found,
        severity=min(found.severity, Severity.WARNING),
        certainty=Certainty.LIKELY,
        message=message,
        next_step=_NEXT_STEP,
    )
