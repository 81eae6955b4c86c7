"""Producers and transactions: findings for the events of their state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from format.checks.losses import CauseAccount
from format.checks.offset_chain import OffsetChain
from format.findings import Certainty, Finding, Judgement, finding
from format.location import Location
from format.state.producer_events import MarkerOrphaned, ProducerEpochFell, ProducerEvent, SequenceBroke
from format.state.producers import ProducerState
from format.timestamps import iso_time


def check_producer_events(
    events: Iterable[ProducerEvent], location: Location, chain: OffsetChain, causes: CauseAccount
) -> Iterator[Finding]:
    """Findings for the events of one log file, whose batches the chain of offsets has just been fed.

    Compaction removes batches, so a compacted log's sequences may have gaps. Where offsets have one too, that one is
    reported. A gap of sequences where damage lost offsets since the producer's last batch names that damage.
    """
    for event in events:
        if isinstance(event, ProducerEpochFell):
            yield finding(
                "producer-epoch-decreasing",
                event.place.location(location),
                f"producer {event.producer_id} writes with epoch {event.producer_epoch} after epoch "
                f"{event.highest_epoch}",
                expected=event.highest_epoch,
                actual=event.producer_epoch,
            )
        elif isinstance(event, SequenceBroke):
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
                    else "is the first of this epoch, which a broker takes from 0 on only"
                ),
                expected=event.expected_sequence,
                actual=event.base_sequence,
                judgement=Judgement(
                    certainty=Certainty.LIKELY,
                    next_step=None if cause is None else "None of its own: see the damage that it follows from.",
                    caused_by=cause,
                ),
            )
        elif isinstance(event, MarkerOrphaned):
            yield finding(
                "transaction-marker-orphan",
                event.place.location(location),
                f"a {'ABORT' if event.is_aborted else 'COMMIT'} marker of producer {event.producer_id}, which has no "
                "open transaction in this log",
            )


def check_open_transactions(state: ProducerState, location: Location) -> Iterator[Finding]:
    """One finding for each transaction without an end marker at the log's end, the oldest first."""
    for producer_id, first_offset in sorted(state.open_transactions.items(), key=lambda each: each[1]):
        entry = state.entries.get(producer_id)
        since = f", last written at {iso_time(entry.timestamp)}" if entry is not None else ""
        yield finding(
            "transaction-open",
            location.at(offset=first_offset),
            f"producer {producer_id} has an open transaction since offset {first_offset}{since}: "
            "the last stable offset cannot pass it",
            actual=producer_id,
        )
