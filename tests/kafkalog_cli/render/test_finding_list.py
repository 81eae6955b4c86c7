"""Findings as a person at a terminal reads them."""

from __future__ import annotations

from msgspec.structs import replace

from format.findings import Cause, Judgement, finding
from format.location import Location
from format.rows.finding_rows import finding_row
from kafkalog_cli.render.finding_list import FindingList

PLACE = Location("/data/orders-0/00000000000000000000.log", "orders", 0, 0)


def test_a_finding_says_where_what_and_at_the_end_what_to_do() -> None:
    listed = FindingList(100, is_coloured=False)
    lost = finding("batch-crc-mismatch", PLACE.at(10, 20, 30), "it is broken", lost_offsets=(30, 39))
    reported = listed.paragraphs(finding_row(lost))
    assert (
        reported.splitlines()[0]
        == "fatal    batch-crc-mismatch  offset 30; position 10, 20 bytes; lost offsets 30 to 39"
    )
    assert PLACE.path in reported
    assert "it is broken" in reported
    closing = listed.closing()
    assert "A broker: Serves it, and consumers fail on it" in closing
    assert "Next: Compare with another replica" in closing


def test_informational_ones_are_gathered_at_the_end() -> None:
    listed = FindingList(None, is_coloured=False)
    for number in range(3):
        assert listed.paragraphs(finding_row(finding("unflushed-segment", PLACE, f"number {number}"))) == ""
    lines = listed.closing().splitlines()
    assert lines[:5] == [
        "info     unflushed-segment",
        f"         {PLACE.path}",
        "         number 0",
        "",
        "info     unflushed-segment  2 more; --format text and jsonl list all",
    ]
    assert "number 1" not in lines
    assert "    Next: Nothing." in lines, "informational ones have next steps too"


def test_many_of_a_kind_are_gathered_by_file() -> None:
    listed = FindingList(None, is_coloured=False)
    places = [PLACE.at(offset=offset) for offset in range(400)]
    places += [replace(PLACE, path=f"/data/t-{number}/x.log", offset=7) for number in range(4)]
    shown = [listed.paragraphs(finding_row(finding("sequence-duplicate", each, "again"))) for each in places]
    lost = finding("batch-crc-mismatch", PLACE.at(offset=9), "bad", lost_offsets=(9, 18))
    shown += [listed.paragraphs(finding_row(lost)) for _ in range(5)]
    assert len([text for text in shown if text]) == 6, "three of each code"
    assert listed.closing().split("What a broker")[0].splitlines() == [
        "warning  sequence-duplicate  401 more; --format text and jsonl list all",
        f"         {PLACE.path}: 397, offsets 3 to 399",
        "         /data/t-0/x.log: 1, offset 7",
        "         /data/t-1/x.log: 1, offset 7",
        "         2 in 2 other places",
        "",
        "fatal    batch-crc-mismatch  2 more; --format text and jsonl list all",
        f"         {PLACE.path}: 2, offset 9, 20 lost",
        "",
    ]


def test_an_effect_names_its_cause_and_has_no_next_step() -> None:
    listed = FindingList(None, is_coloured=False)
    cause = Cause.of(finding("batch-crc-mismatch", PLACE.at(10, 20, 30), "bad"))
    effect = finding("sequence-gap", PLACE.at(offset=40), "sequence 7 follows 3", judgement=Judgement(caused_by=cause))
    assert "         Follows from batch-crc-mismatch at offset 30.\n" in listed.paragraphs(finding_row(effect))
    nowhere = finding(
        "sequence-gap", PLACE, "x", judgement=Judgement(caused_by=Cause("log-framing-broken", "/x", position=8))
    )
    assert "Follows from log-framing-broken at position 8." in listed.paragraphs(finding_row(nowhere))
    assert listed.closing() == ""
    listed.paragraphs(finding_row(finding("sequence-gap", PLACE, "x")))
    assert "sequence-gap" in listed.closing(), "another one has no cause"


def test_long_words_fold_and_control_characters_do_not_pass() -> None:
    listed = FindingList(60, is_coloured=False)
    reported = listed.paragraphs(
        finding_row(finding("data-corrupt", Location("/d/\x1b[31m\n"), "word " * 60 + "\u202e"))
    )
    assert max(map(len, reported.splitlines())) <= 60
    assert not {"\x1b", "\u202e"} & set(reported)


def test_colour_is_only_there_where_asked_for() -> None:
    row = finding_row(finding("data-corrupt", PLACE, "x"))
    assert "\x1b[31merror" in FindingList(80, is_coloured=True).paragraphs(row)
    assert "\x1b" not in FindingList(80, is_coloured=False).paragraphs(row)


def test_the_next_step_is_the_finding_s_own_and_written_once():
    listed = FindingList(100, is_coloured=False)
    for next_step in ("Ask a replica.", None, "Ask a replica."):
        listed.paragraphs(
            finding_row(finding("batch-crc-mismatch", PLACE, "bad", judgement=Judgement(next_step=next_step)))
        )
    lines = listed.closing().splitlines()
    assert [line.strip() for line in lines if "Next:" in line] == [
        "Next: Ask a replica.",
        "Next: Compare with another replica; run salvage to keep the batches after it.",
    ]
