"""A segment's .txnindex against the aborted transactions whose markers the segment holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from format import layout
from format.errors import KafkaLogError
from format.files import transaction_index
from format.files.side_file import problem_findings
from format.findings import Finding, Severity, finding, finding_of
from format.limits import Limits
from format.location import Location
from format.node.segment import Segment
from format.state.producer_events import TransactionEnded


def check_transaction_index(
    segment: Segment,
    ended: Iterable[TransactionEnded],
    location: Location,
    *,
    first_offset: int | None,
    is_compacted: bool,
    log_is_whole: bool,
    limits: Limits,
) -> Iterator[Finding]:
    """Findings for one segment; ``ended`` are the transactions whose marker lies in it.

    A transaction that began before the log's ``first_offset`` is in the index alone. Compaction removes aborted
    records and their markers. Where the log has damage (``log_is_whole`` False), what is missing proves nothing.
    """
    aborted = {(each.producer_id, each.last_offset): each for each in ended if each.is_aborted}
    path = segment.transaction_index
    if path is None:
        if aborted:
            first = min(aborted.values(), key=lambda each: each.last_offset)
            yield finding(
                "transaction-index-mismatch",
                location.at(offset=first.first_offset),
                f"{len(aborted)} aborted transactions lie in the segment, which has no .txnindex",
                expected=len(aborted),
                actual=0,
            )
        return
    where = Location(str(path), location.topic, location.partition, segment.base_offset)
    try:
        index = transaction_index.read(path, segment.base_offset, limits)
    except KafkaLogError as error:
        yield finding_of(error, where)
        return
    yield from problem_findings(index.problems, where)
    entry_bytes = layout.ABORTED_TXN.size_bytes
    for number, (producer_id, first, last, stable) in enumerate(
        zip(
            index.producer_ids.tolist(),
            index.first_offsets.tolist(),
            index.last_offsets.tolist(),
            index.last_stable_offsets.tolist(),
            strict=True,
        )
    ):
        place = where.at(number * entry_bytes, entry_bytes, first)
        known = aborted.pop((producer_id, last), None)
        if known is None:
            began_before = first_offset is not None and first < first_offset
            if began_before or is_compacted or not log_is_whole:
                continue
            yield finding(
                "transaction-index-mismatch", place,
                f"entry {number}: no ABORT marker of producer {producer_id} lies at offset {last}",
            )  # fmt: skip
        elif known.first_offset != first and not is_compacted:
            yield finding(
                "transaction-index-mismatch", place,
                f"entry {number}: the transaction of producer {producer_id} begins at offset {known.first_offset}, "
                f"not {first}",
                expected=known.first_offset, actual=first,
            )  # fmt: skip
        elif known.last_stable_offset != stable and not is_compacted:
            yield finding(
                "transaction-index-mismatch", place,
                f"entry {number}: the last stable offset was {known.last_stable_offset}, not {stable}",
                severity=Severity.WARNING, expected=known.last_stable_offset, actual=stable,
            )  # fmt: skip
    for missing in aborted.values():
        yield finding(
            "transaction-index-mismatch",
            where.at(offset=missing.first_offset),
            f"the aborted transaction of producer {missing.producer_id}, offsets {missing.first_offset} to "
            f"{missing.last_offset}, is not in the index",
        )
