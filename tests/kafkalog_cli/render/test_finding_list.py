"""Findings as a person at a terminal reads them."""

from __future__ import annotations

from format.findings import finding
from format.location import Location
from format.rows.finding_rows import finding_row
from kafkalog_cli.render.finding_list import FindingList

PLACE = Location("/data/orders-0/00000000000000000000.log", "orders", 0, 0)


def test_a_finding_says_where_what_and_at_the_end_what_to_do() -> None:
    listed = FindingList(100, is_coloured=False)
    lost = finding("batch-crc-mismatch", PLACE.at(10, 20, 30), "it is broken", lost_offsets=(30, 39))
    told = listed.paragraphs(finding_row(lost))
    assert (
        told.splitlines()[0] == "fatal    batch-crc-mismatch  offset 30; position 10, 20 bytes; lost offsets 30 to 39"
    )
    assert PLACE.path in told
    assert "it is broken" in told
    closing = listed.closing()
    assert "A broker: Consumers fail on it" in closing
    assert "Next: Compare with another replica" in closing


def test_informational_ones_are_grouped_and_counted() -> None:
    listed = FindingList(None, is_coloured=False)
    for number in range(3):
        assert listed.paragraphs(finding_row(finding("unflushed-segment", PLACE, f"number {number}"))) == ""
    closing = listed.closing()
    assert "unflushed-segment  3 times, the first:" in closing
    assert "number 0" in closing
    assert "number 1" not in closing
    assert "What a broker does" not in closing


def test_long_words_fold_and_control_characters_do_not_pass() -> None:
    listed = FindingList(60, is_coloured=False)
    told = listed.paragraphs(finding_row(finding("data-corrupt", Location("/d/\x1b[31m\n"), "word " * 60 + "\u202e")))
    assert max(map(len, told.splitlines())) <= 60
    assert not {"\x1b", "\u202e"} & set(told)


def test_colour_is_only_there_where_asked_for() -> None:
    row = finding_row(finding("data-corrupt", PLACE, "x"))
    assert "\x1b[31merror" in FindingList(80, is_coloured=True).paragraphs(row)
    assert "\x1b" not in FindingList(80, is_coloured=False).paragraphs(row)


def test_the_next_step_is_the_finding_s_own_and_told_once():
    listed = FindingList(80, is_coloured=False)
    for next_step in ("Ask a replica.", None, "Ask a replica."):
        listed.paragraphs(finding_row(finding("batch-crc-mismatch", PLACE, "bad", next_step=next_step)))
    lines = listed.closing().splitlines()
    assert [line.strip() for line in lines if "Next:" in line] == [
        "Next: Ask a replica.",
        "Next: Compare with another replica; run salvage to keep what follows.",
    ]
