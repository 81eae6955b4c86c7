"""Findings as a person at a terminal reads them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from format.findings import Cause, Finding, Judgement, Severity, finding
from format.location import Location
from format.rows.decoded_rows import undecodable_finding
from format.rows.finding_rows import finding_row
from kafkalog_cli.render.finding_list import FindingList

PLACE = Location("/data/orders-0/00000000000000000000.log", "orders", 0, 0)


def test_a_finding_says_where_what_and_what_to_do() -> None:
    listed = FindingList(100, is_coloured=False)
    lost = finding("batch-crc-mismatch", PLACE.at(10, 20, 30), "it is broken", lost_offsets=(30, 39))
    assert listed.paragraph(finding_row(lost)).splitlines() == [
        "fatal    batch-crc-mismatch  offset 30; position 10, 20 bytes; not readable here: offsets 30 to 39",
        f"         {PLACE.path}",
        "         it is broken",
        "         A broker: Serves it, and consumers fail on it. After an unclean stop, recovery truncates",
        "         the log here if the segment is past the recovery point, with the intact batches after it.",
        "         Next: Compare with another replica; run salvage to keep the batches after it.",
    ]
    assert "Next:" not in listed.paragraph(finding_row(lost)), "once for a code"
    assert listed.closing() == ""


def test_one_byte_is_in_the_singular() -> None:
    shown = FindingList(None, is_coloured=False).paragraph(
        finding_row(finding("tail-torn", PLACE.at(10, 1, 3), "torn"))
    )
    assert shown.startswith("warning  tail-torn  offset 3; position 10, 1 byte\n")


def test_informational_ones_are_counted_in_one_line() -> None:
    listed = FindingList(None, is_coloured=False)
    for code in ("offset-gap", "unflushed-segment", "unflushed-segment"):
        assert listed.paragraph(finding_row(finding(code, PLACE, "x"))) == ""
    assert listed.closing() == "3 info (2 unflushed-segment, 1 offset-gap); --format logfmt lists all\n"


def test_what_decides_the_exit_status_is_shown() -> None:
    gap = finding_row(finding("offset-gap", PLACE, "x"))
    assert FindingList(None, is_coloured=False, fail_on=Severity.INFO).paragraph(gap).startswith("info     offset-gap")
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
        f"         {PLACE.path}: 2, offset 9, 20 not readable here",
    ]


def test_what_does_not_decode_is_counted_after_the_records() -> None:
    """The records say it themselves, and must stay on the screen."""
    listed = FindingList(100, is_coloured=False, among_records=True)
    for number in range(60):
        schema_id = (7, 7, 7, None, 90 + number % 40)[number % 5]
        place = PLACE.at(offset=5 + number)
        found = undecodable_finding(place, "the values of 3 records of a batch", schema_id, "no reason", 3)
        assert listed.paragraph(finding_row(found)) == ""
    assert listed.closing().splitlines() == [
        "warning  value-undecodable  180 keys and values do not decode",
        "         108 of schema 7, 36 without a known schema, 6 of schema 94, 7 more schemas; --format logfmt",
        "         lists all",
        "         The first: the values of 3 records of a batch do not decode (schema 7): no reason",
        f"         {PLACE.path}",
        "         Next: See who wrote such values, and since when: kafkalog verify --values /data/orders-0",
    ]
    one = FindingList(100, is_coloured=False, among_records=True)
    one.paragraph(finding_row(undecodable_finding(PLACE.at(0, offset=4), "the key", 8, "no reason")))
    assert one.closing().splitlines()[:2] == [
        "warning  value-undecodable  offset 4; position 0",
        "         the key does not decode (schema 8): no reason",
    ]
    elsewhere = FindingList(100, is_coloured=False)
    assert elsewhere.paragraph(finding_row(undecodable_finding(PLACE, "the key", 8, "no reason")))


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


def effect_of(cause: Finding, severity: Severity | None = None, code: str = "sequence-gap") -> tuple[Any, ...]:
    judgement = Judgement(severity=severity, caused_by=Cause.of(cause))
    return finding_row(finding(code, PLACE.at(offset=40), "it differs", judgement=judgement))


def test_what_follows_from_a_finding_is_counted_under_it() -> None:
    listed = FindingList(80, is_coloured=False)
    cause = finding("batch-crc-mismatch", PLACE.at(10, 20, 30), "bad")
    listed.paragraph(finding_row(cause))
    assert listed.following(is_apart=False) == ""
    assert listed.paragraph(effect_of(cause)) == ""
    assert listed.following(is_apart=False) == "         1 finding follows from it (sequence-gap)\n"
    assert listed.following(is_apart=False) == "", "once"
    assert [listed.paragraph(effect_of(cause, code=code)) for code in ("sequence-gap", "snapshot-mismatch")] == ["", ""]
    assert listed.paragraph(finding_row(finding("tail-torn", PLACE.at(90), "torn"))), "the next one ends the count"
    words = "         2 findings follow from it (1 sequence-gap, 1 snapshot-mismatch)\n"
    assert listed.following(is_apart=False) == words
    assert listed.paragraph(effect_of(cause)) == ""
    assert listed.following(is_apart=True) == ""
    assert listed.closing() == "1 finding follows from others above (sequence-gap); --format logfmt lists all\n"


def test_what_follows_but_fails_the_run_is_shown_for_itself() -> None:
    cause = finding("batch-crc-mismatch", PLACE.at(10, 20, 30), "bad")
    for fail_on, severity in ((Severity.WARNING, None), (Severity.ERROR, Severity.ERROR)):
        listed = FindingList(80, is_coloured=False, fail_on=fail_on)
        listed.paragraph(finding_row(cause))
        assert "Follows from batch-crc-mismatch at offset 30." in listed.paragraph(effect_of(cause, severity))


def test_a_command_in_a_next_step_stands_whole_on_its_own_line() -> None:
    commands = [
        """echo '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[2,1,3]}]}' > reassignment.json""",
        "kafka-leader-election.sh --bootstrap-server broker:9092 --election-type preferred --topic a; b --partition 0",
        "mv '/data/node 1/orders-0' '/data/node 1.orders-0.damaged'",
    ]
    step = f"orders-0: its replicas are intact. Run: {commands[0]}; {commands[1]}. When node 2 leads, stop the broker "
    step += f"of node 1, run: {commands[2]}, and start it again."
    row = finding_row(finding("batch-crc-mismatch", PLACE.at(offset=9), "bad", judgement=Judgement(next_step=step)))
    lines = FindingList(80, is_coloured=False).paragraph(row).splitlines()
    assert [each.strip() for each in lines if each.strip().startswith(("echo", "kafka-", "mv"))] == commands
    assert "         and start it again." in lines
    assert all(len(each) <= 80 or each in commands for each in lines)
    prose = "Run kafkalog boot on all log directories of the node; repair the files that it names."
    row = finding_row(finding("boot-refused", PLACE, "bad", judgement=Judgement(next_step=prose)))
    assert f"         Next: {prose}\n" in FindingList(110, is_coloured=False).paragraph(row)


def test_a_long_paragraph_ends_with_its_place() -> None:
    cause = finding("batch-crc-mismatch", PLACE.at(10, 20, 30), "word " * 240, lost_offsets=(30, 39))
    last = FindingList(110, is_coloured=False).paragraph(finding_row(cause)).splitlines()[-2:]
    assert " ".join(each.strip() for each in last) == (
        f"This was {PLACE.path}; offset 30; position 10, 20 bytes; not readable here: offsets 30 to 39"
    )
    short = finding("batch-crc-mismatch", PLACE.at(10, 20, 30), "bad")
    assert "This was" not in FindingList(110, is_coloured=False).paragraph(finding_row(short))
