"""The summary that every run ends with: its paragraph, its counts in words, its row."""

from __future__ import annotations

import pytest

from format.location import Location
from kafkalog_cli.exit_codes import Condition, Summary, counted


def test_summary_paragraph():
    summary = Summary(
        "verify",
        counts={"batch": 1234, "finding": 3, "offset_index_entry": 1},
        findings={"fatal": 2, "info": 1, "warning": 0},  # in the order in which they were met
    )
    summary.conditions |= {Condition.INCOMPLETE, Condition.DAMAGE}
    summary.damaged_at(Location("/n/meta.properties"))
    summary.not_checked.append("records")
    summary.unchecked_codes["live-tail"] = 2
    assert summary.complete is False
    assert summary.exit_code == 1
    assert summary.paragraph() == (
        "verify: 1,234 batches, 1 offset index entry.\n"
        "Not checked: records; live-tail: 2 findings.\n"
        "Findings: 2 fatal, 1 info. Damage proven; incomplete, not proven clean. Exit status 1."
    )
    assert summary.as_row()["conditions"] == ["damage", "incomplete"]


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([Location("/n/a-0/x.log", "a", 0), Location("/n/a-0", "a", 0)], " in 1 partition (a-0)"),
        ([Location(f"/{node}/a-0/x.log", "a", 0) for node in "nm"], " in 1 partition (a-0)"),
        ([Location(f"/n/a-{at}/x", "a", at) for at in range(5)], " in 5 partitions (a-0, a-1, a-2, …)"),
        ([Location("/n/a-0/x", "a", 0), Location("/n/y")], " in 1 partition (a-0) and outside of partitions"),
        ([Location("/n/meta.properties")], ""),
    ],
)
def test_damage_is_said_with_its_partitions(places, words):
    summary = Summary("verify", conditions={Condition.DAMAGE})
    for each in places:
        summary.damaged_at(each)
    assert summary.paragraph().splitlines()[-1] == f"Damage proven{words}. Exit status 1."


def test_a_result_that_is_no_damage_at_a_place_is_not_called_so():
    refused = Summary("boot", counts={"boot_step": 1}, conditions={Condition.DAMAGE})
    assert refused.paragraph() == "boot: 1 boot step.\nExit status 1."
    refused.conditions.add(Condition.INCOMPLETE)
    assert refused.paragraph() == "boot: 1 boot step.\nIncomplete, not proven clean. Exit status 1."


@pytest.mark.parametrize(
    ("count", "name", "words"),
    [
        (1, "partitions", "1 partition"),
        (1, "side_files", "1 side file"),
        (1, "batches", "1 batch"),
        (1, "bytes", "1 byte"),
        (1, "losses", "1 loss"),
        (1, "bytes_read", "1 byte read"),
        (2, "bytes_read", "2 bytes read"),
        (0, "partition", "0 partitions"),
        (2, "batch", "2 batches"),
        (2, "file_match", "2 file matches"),
        (2, "loss", "2 losses"),
        (2, "losses", "2 losses"),
        (1234, "offset_index_entry", "1,234 offset index entries"),
        (2, "leader_epoch", "2 leader epochs"),
        (2, "property", "2 properties"),
        (2, "info finding", "2 info findings"),
    ],
)
def test_a_count_has_its_noun_in_the_right_number(count, name, words):
    assert counted(count, name) == words


def test_rows_are_counted_by_what_they_are_about():
    counts = {"cleaner": 9, "segment_retention": 1, "retention_total": 2}
    assert Summary("compaction", counts=counts).paragraph() == "compaction: 9 logs, 1 segment, 2 topics."


@pytest.mark.parametrize("condition", Condition)
def test_every_condition_has_words(condition):
    summary = Summary("verify", conditions={condition}, damaged={"/n/meta.properties": ""})
    assert summary.paragraph().endswith(f". Exit status {int(condition.exit_code)}.")


def test_summary_of_a_clean_run():
    summary = Summary(
        "verify", counts={"segments": 2}, findings=dict.fromkeys(("info", "warning", "error", "fatal"), 0)
    )
    assert summary.paragraph() == "verify: 2 segments.\nComplete and clean."
    assert not summary.is_remarkable


def test_only_a_command_that_checks_says_that_there_is_no_damage():
    assert (
        Summary("ls", counts={"partition": 2}, findings={"warning": 1}).paragraph().endswith("\nFindings: 1 warning.")
    )
    checked = {"info": 0, "warning": 1, "error": 0, "fatal": 0}
    assert (
        Summary("verify", findings=checked)
        .paragraph()
        .endswith("\nFindings: 1 warning. Complete; no damage is proven.")
    )
    checked["warning"] = 0
    checked["info"] = 2
    assert Summary("verify", findings=checked).paragraph().endswith("\nFindings: 2 info. Complete; no damage.")


@pytest.mark.parametrize(
    ("warnings", "words"), [(0, "Clean in what was checked."), (1, "No damage is proven in what was checked.")]
)
def test_what_was_not_checked_is_not_called_clean(warnings: int, words: str) -> None:
    found = {"info": 0, "warning": warnings, "error": 0, "fatal": 0}
    lines = Summary("verify", findings=found, not_checked=["CRCs"]).paragraph().splitlines()
    assert lines[1] == "Not checked: CRCs."
    assert lines[2].endswith(words)
