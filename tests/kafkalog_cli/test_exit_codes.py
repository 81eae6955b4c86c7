"""The table of exit codes: which one wins, and what a finding adds."""

from __future__ import annotations

from itertools import combinations

import pytest

from format.findings import Judgement, Severity, finding
from format.location import Location
from kafkalog_cli.exit_codes import Condition, ExitCode, Summary, combined, conditions_of, exit_status_rows

WHERE = Location("/data/orders-0/00000000000000000000.log")


def test_numbers_are_those_of_the_contract():
    numbers = [0, 1, 2, 3, 4, 5, 70, 129, 130, 141, 143]
    assert sorted(ExitCode) == numbers
    assert [number for number, _meaning in exit_status_rows()] == list(map(str, numbers))
    assert all(meaning for _number, meaning in exit_status_rows())


def test_the_contract_order_decides_every_pair():
    order = [70, 5, 4, 1, 3]
    by_code = {condition.exit_code: condition for condition in Condition}
    for stronger, weaker in combinations(order, 2):
        assert combined([by_code[weaker], by_code[stronger]]) == stronger
    assert combined([]) == 0
    assert combined(Condition) == 143


def test_a_mistyped_path_neither_hides_damage_nor_is_hidden_by_what_is_missing():
    assert combined([Condition.USAGE, Condition.DAMAGE]) == 1
    assert combined([Condition.USAGE, Condition.INCOMPLETE]) == 2


@pytest.mark.parametrize("fail_on", list(Severity))
@pytest.mark.parametrize("severity", list(Severity))
def test_damage_from_the_threshold_upwards(severity, fail_on):
    found = finding("batch-invalid", WHERE, "bad", judgement=Judgement(severity=severity))
    assert conditions_of(found, fail_on) == ({Condition.DAMAGE} if severity >= fail_on else set())


@pytest.mark.parametrize("fail_on", list(Severity))
def test_what_was_not_checked_is_never_damage(fail_on):
    for code in ("file-unreadable", "live-tail", "codec-unknown"):
        assert conditions_of(finding(code, WHERE, "not checked"), fail_on) == {Condition.INCOMPLETE}


def test_only_what_was_found_leaves_a_run_complete():
    assert {each for each in Condition if Summary("verify", conditions={each}).complete} == {
        Condition.DAMAGE,
        Condition.DIFFERENCE_FOUND,
        Condition.NOTHING_FOUND,
        Condition.FAIL_ON_MET,
    }


def test_rows_are_not_counted_as_what_has_several_of_them() -> None:
    """A producer has a row for each partition, and a node one for each of its roles."""
    assert Summary("producers", {"producer": 43}).paragraph() == "producers: 43 rows."
    assert Summary("metadata", {"image": 1, "broker": 2}).paragraph() == "metadata: 1 image, 2 node roles."
