"""The survey of a report: events of transactions, and findings that are known before their batches or after them."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.columns import TRANSACTION
from format.findings import finding
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.verbs.report.survey import ReportSurvey, Timeline
from tests.building import batch
from tests.sources import BytesSource, read_batch_table


@pytest.mark.parametrize(
    ("state", "is_hanging", "words", "severity"),
    [
        ("open", True, "producer 7 begins a transaction that hangs", "error"),
        ("open", None, "producer 7 begins a transaction that is open", "warning"),
        ("aborted", False, "a transaction of producer 7 is aborted", "info"),
    ],
)
def test_the_event_of_a_transaction(state: str, is_hanging: bool | None, words: str, severity: str) -> None:
    timeline = Timeline()
    row = dict.fromkeys(TRANSACTION.names) | {"path": "orders-0", "producer_id": 7, "state": state}
    timeline.transaction(row | {"is_hanging": is_hanging, "start_timestamp": 10, "last_timestamp": 20})
    ((timestamp, kind, *_, detail, label, path),) = timeline.rows()
    assert (timestamp, kind) == (20 if state == "aborted" else 10, "transaction")
    assert (detail, label, path) == (words, severity, "orders-0")


def test_a_finding_that_is_known_before_its_batch_gets_its_time_and_offset() -> None:
    survey, log = ReportSurvey(DEFAULT_LIMITS), Location("data/orders-0/00000000000000000000.log", "orders", 0)
    table = read_batch_table(BytesSource(batch(0) + batch(3)))
    survey.find(finding("record-invalid", log.at(int(table.position[1]) + 5), "a record is damaged"))
    survey.add(log, table)
    survey.finish()
    (place,) = survey.partitions[Path("data/orders-0")].places
    assert (place.offset, place.timestamp) == (3, int(table.max_timestamp[1]))
    assert [row[:2] for row in survey.timeline.events["damage"]] == [(place.timestamp, "damage")]
