"""Findings take from the table of codes what is not said of them."""

from __future__ import annotations

import pytest

from format.errors import CorruptDataError, KafkaLogError
from format.findings import FINDING_CODES, Cause, Certainty, Judgement, Severity, finding, finding_of
from format.location import Location

PLACE = Location("/kafka/t-0/0.log", "t", 0, 0, position=61, length=9)


@pytest.mark.parametrize("code", FINDING_CODES)
def test_what_the_table_says(code: str) -> None:
    found, entry = finding(code, PLACE, "x"), FINDING_CODES[code]
    assert (found.severity, found.next_step) == (entry.severity, entry.next_step)
    assert (found.certainty, found.caused_by, found.lost_offsets) == (Certainty.PROVEN, None, None)
    assert found.is_incomplete == entry.incomplete
    assert entry.meaning.endswith(".")
    assert entry.next_step.endswith(".")
    assert entry.level in ("headers", "crc", "records", "full", "any")


def test_what_is_said_of_one_finding() -> None:
    cause = Cause.of(finding("batch-crc-mismatch", PLACE, "bad"))
    found = finding(
        "sequence-gap", PLACE, "x", judgement=Judgement(Severity.INFO, Certainty.POSSIBLE, "Nothing.", caused_by=cause)
    )
    assert (found.severity, found.certainty, found.next_step) == (Severity.INFO, Certainty.POSSIBLE, "Nothing.")
    assert found.caused_by == Cause("batch-crc-mismatch", "/kafka/t-0/0.log", position=61)


def test_unknown_codes_are_a_mistake() -> None:
    with pytest.raises(KeyError):
        finding("no-such-code", PLACE, "x")


def test_a_remote_file_is_not_looked_for_on_the_disk() -> None:
    local = finding("file-unreadable", PLACE, "x").next_step
    remote = finding("file-unreadable", Location("s3://bucket/t-0/0.log"), "x").next_step
    assert ("disk" in local, "disk" in remote, "network" in remote) == (True, False, True)


def test_of_an_error() -> None:
    error: KafkaLogError = CorruptDataError("bad", Location(PLACE.path, position=7))
    assert finding_of(error, PLACE).location == PLACE.at(7)
    assert finding_of(CorruptDataError("bad"), PLACE).location == PLACE
    assert finding_of(error).location == Location(PLACE.path, position=7)
