"""A finding as a row, as JSON values, and back."""

from __future__ import annotations

import json

import pytest

from format.findings import Cause, Certainty, Finding, Judgement, Severity, finding
from format.location import Location
from format.rows.finding_rows import finding_as_json, finding_from_json, finding_of_row, finding_row

PLACE = Location("/kafka/t-0/0.log", "t", 0, 0, 61, 9, 40)
FULL = finding(
    "sequence-gap", PLACE, "x", expected=7, actual=9, lost_offsets=(41, 44),
    judgement=Judgement(Severity.INFO, Certainty.LIKELY, "Nothing.", Cause("batch-crc-mismatch", "/y", 8, 3)),
)  # fmt: skip


@pytest.mark.parametrize("found", [FULL, finding("file-changed", Location("/x"), "gone")])
def test_there_and_back(found: Finding) -> None:
    assert finding_from_json(json.loads(json.dumps(finding_as_json(found)))) == found
    assert finding_of_row(finding_row(found)) == found


def test_what_is_not_known_is_left_out() -> None:
    assert "topic" not in finding_as_json(finding("file-changed", Location("/x"), "gone"))
    assert finding_as_json(FULL)["position"] == 61


@pytest.mark.parametrize(
    ("name", "value"),
    [("code", None), ("severity", None), ("path", None), ("message", None), ("code", "odd"), ("severity", "odd")],
)
def test_what_is_no_finding_is_refused(name: str, value: str | None) -> None:
    with pytest.raises(ValueError):
        finding_from_json({**finding_as_json(FULL), name: value})
