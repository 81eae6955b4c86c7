"""Findings for the events of producers and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from format.checks.batches import OffsetChain
from format.checks.losses import CauseAccount
from format.findings import Cause, Certainty, Finding, Judgement, finding
from format.location import Location
from format.state import producers
from format.timestamps import iso_time

_SEE_THE_CAUSE = "Nothing for this finding: see the damage that caused it."
_PAST_THE_END = 2**63


def check_producer_events(
    events: Iterable[producers.ProducerEvent], location: Location, chain: OffsetChain, causes: CauseAccount
) -> Iterator[Finding]:
    """Findings for the events of one log file; the chain of offsets must have been fed the same batches before.

    Compaction removes batches, so that sequences of a compacted log may have gaps. If the offsets have a gap too, only
    that is reported. The cause of a gap in sequences is damage that lost offsets since the producer's last batch, if
    any; that of a marker without a transaction is damage since the producer's previous marker.
    """
    for event in events:
        if isinstance(event, producers.ProducerEpochFell):
            yield finding(
                "producer-epoch-decreasing",
                event.place.location(location),
                f"producer {event.producer_id} writes with epoch {event.producer_epoch} after epoch "
                f"{event.highest_epoch}",
                expected=event.highest_epoch,
                actual=event.producer_epoch,
            )
        elif isinstance(event, producers.SequenceBroke):
            offset = event.place.offset
            if event.is_gap and (chain.may_be_compacted(offset) or chain.has_gap(event.previous_offset, offset)):
                continue
            cause = causes.between(event.previous_offset, offset) if event.is_gap else None
            yield finding(
                "sequence-gap" if event.is_gap else "sequence-duplicate",
                event.place.location(location),
                f"producer {event.producer_id} epoch {event.producer_epoch}: sequence {event.base_sequence} "
                + (
                    f"follows {event.previous_sequence}"
                    if event.previous_sequence >= 0
                    else "is the first of this epoch, but a broker accepts only 0"
                ),
                expected=event.expected_sequence,
                actual=event.base_sequence,
                judgement=_follows_from(cause, Certainty.LIKELY),
            )
        elif isinstance(event, producers.TransactionLeft):
            offset = event.place.offset
            yield finding(
                "batch-invalid",
                event.place.location(location),
                f"producer {event.producer_id} wrote this batch outside of its transaction, which is open from offset "
                f"{event.first_offset} on: a broker that replays the batch at its start refuses to start",
                judgement=_follows_from(causes.between(event.first_offset, offset)),
            )
        elif isinstance(event, producers.NoEndMarker):
            yield finding(
                "control-record-invalid",
                event.place.location(location),
                f"a control record of producer {event.producer_id} has the type {event.control.type_number} "
                f"({event.control.type_name}), which is not an end marker: a broker that replays it at its start "
                "refuses to start",
            )
        elif isinstance(event, producers.TransactionEnded):
            causes.marked(event.producer_id, event.place.offset)
        elif isinstance(event, producers.MarkerOrphaned):
            offset = event.place.offset
            cause = causes.between(causes.marked(event.producer_id, offset), offset)
            yield finding(
                "transaction-marker-orphan",
                event.place.location(location),
                f"a {'ABORT' if event.is_aborted else 'COMMIT'} marker of producer {event.producer_id}, which has no "
                "open transaction in this log",
                judgement=_follows_from(cause),
            )


def _follows_from(cause: Cause | None, certainty: Certainty = Certainty.PROVEN) -> Judgement:
    """The judgement of a finding with a cause, which has no next step of its own."""
    return Judgement(certainty=certainty, next_step=None if cause is None else _SEE_THE_CAUSE, caused_by=cause)


def check_open_transactions(
    state: producers.ProducerState, location: Location, causes: CauseAccount
) -> Iterator[Finding]:
    """One finding for each transaction without an end marker at the log's end, the oldest first.

    If damage lost offsets after the producer's last batch, the marker may have been among them: it is the cause.
    """
    for producer_id, first_offset in sorted(state.open_transactions.items(), key=lambda each: each[1]):
        entry = state.entries.get(producer_id)
        cause = causes.between(max(first_offset, entry.last_offset if entry is not None else -1), _PAST_THE_END)
        since = f", last written at {iso_time(entry.timestamp)}" if entry is not None else ""
        yield finding(
            "transaction-open",
            location.at(offset=first_offset),
            f"producer {producer_id} has an open transaction from offset {first_offset} on{since}: "
            "the last stable offset cannot pass it",
            actual=producer_id,
            judgement=_follows_from(cause),
        )
