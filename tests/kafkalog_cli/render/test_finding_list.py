"""Findings as a person at a terminal reads them."""

from __future__ import annotations

from msgspec.structs import replace

from format.findings import Cause, Judgement, Severity, finding
from format.location import Location
from format.rows.finding_rows import finding_row
from kafkalog_cli.render.finding_list import FindingList

PLACE = Location("/data/orders-0/00000000000000000000.log", "orders", 0, 0)


def test_a_finding_says_where_what_and_what_to_do() -> None:
    listed = FindingList(100, is_coloured=False)
    lost = finding("batch-crc-mismatch", PLACE.at(10, 20, 30), "it is broken", lost_offsets=(30, 39))
    assert listed.paragraph(finding_row(lost)).splitlines() == [
        "fatal    batch-crc-mismatch  offset 30; position 10, 20 bytes; lost offsets 30 to 39",
        f"         {PLACE.path}",
        "         it is broken",
        "         A broker: Serves it, and consumers fail on it. After an unclean stop, recovery truncates",
        "         the log here if the segment is past the recovery point, with the intact batches after it.",
        "         Next: Compare with another replica; run salvage to keep the batches after it.",
    ]
    assert "Next:" not in listed.paragraph(finding_row(lost)), "once for a code"
    assert listed.closing() == ""


def test_informational_ones_are_counted_in_one_line() -> None:
    listed = FindingList(None, is_coloured=False)
    for code in ("offset-gap", "unflushed-segment", "unflushed-segment"):
        assert listed.paragraph(finding_row(finding(code, PLACE, "x"))) == ""
    assert listed.closing() == "3 info (2 unflushed-segment, 1 offset-gap); --format logfmt lists all\n"


def test_what_decides_the_exit_status_is_shown() -> None:
    gap = finding_row(finding("offset-gap", PLACE, "x"))
    assert FindingList(None, is_coloured=False, least=Severity.INFO).paragraph(gap).startswith("info     offset-gap")
    tail = finding_row(replace(finding("live-tail", PLACE, "it grows"), severity=Severity.INFO))
    assert "it grows" in FindingList(None, is_coloured=False).paragraph(tail), "it makes the run incomplete"


def test_many_of_a_kind_are_gathered_by_file() -> None:
    listed = FindingList(None, is_coloured=False)
    places = [PLACE.at(offset=offset) for offset in range(400)]
    places += [replace(PLACE, path=f"/data/t-{number}/x.log", offset=7) for number in range(4)]
    shown = [listed.paragraph(finding_row(finding("sequence-duplicate", each, "again"))) for each in places]
    lost = finding("batch-crc-mismatch", PLACE.at(offset=9), "bad", lost_offsets=(9, 18))
    shown += [listed.paragraph(finding_row(lost)) for _ in range(5)]
    assert len([text for text in shown if text]) == 6, "three of each code"
    assert listed.closing().splitlines() == [
        "warning  sequence-duplicate  401 more; --format logfmt lists all",
        f"         {PLACE.path}: 397, offsets 3 to 399",
        "         /data/t-0/x.log: 1, offset 7",
        "         /data/t-1/x.log: 1, offset 7",
        "         2 in 2 other places",
        "",
        "fatal    batch-crc-mismatch  2 more; --format logfmt lists all",
        f"         {PLACE.path}: 2, offset 9, 20 lost",
    ]


def test_an_effect_names_its_cause_and_has_no_next_step() -> None:
    listed = FindingList(None, is_coloured=False)
    cause = Cause.of(finding("batch-crc-mismatch", PLACE.at(10, 20, 30), "bad"))
    effect = finding("sequence-gap", PLACE.at(offset=40), "sequence 7 follows 3", judgement=Judgement(caused_by=cause))
    assert "         Follows from batch-crc-mismatch at offset 30.\n" in listed.paragraph(finding_row(effect))
    nowhere = finding(
        "sequence-gap", PLACE, "x", judgement=Judgement(caused_by=Cause("log-framing-broken", "/x", position=8))
    )
    assert "Follows from log-framing-broken at position 8." in listed.paragraph(finding_row(nowhere))
    assert "Next:" not in listed.paragraph(finding_row(effect))
    listed = FindingList(None, is_coloured=False)
    assert "Next:" in listed.paragraph(finding_row(finding("sequence-gap", PLACE, "x"))), "another one has no cause"


def test_long_words_fold_and_control_characters_do_not_pass() -> None:
    listed = FindingList(60, is_coloured=False)
    reported = listed.paragraph(
        finding_row(finding("data-corrupt", Location("/d/\x1b[31m\n"), "word " * 60 + "\u202e"))
    )
    assert max(map(len, reported.splitlines())) <= 60
    assert not {"\x1b", "\u202e"} & set(reported)


def test_colour_is_only_there_where_asked_for() -> None:
    row = finding_row(finding("data-corrupt", PLACE, "x"))
    assert "\x1b[31merror" in FindingList(80, is_coloured=True).paragraph(row)
    assert "\x1b" not in FindingList(80, is_coloured=False).paragraph(row)


def test_the_next_step_is_the_finding_s_own_and_written_once() -> None:
    listed = FindingList(100, is_coloured=False)
    steps = []
    for next_step in ("Ask a replica.", None, "Ask a replica."):
        row = finding_row(finding("batch-crc-mismatch", PLACE, "bad", judgement=Judgement(next_step=next_step)))
        steps += [line.strip() for line in listed.paragraph(row).splitlines() if "Next:" in line]
    assert steps == [
        "Next: Ask a replica.",
        "Next: Compare with another replica; run salvage to keep the batches after it.",
    ]
