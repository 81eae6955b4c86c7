"""Odd records of coordinators: what verify and the verbs say of them, against what a real broker did with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from format.findings import Finding
from format.node.target import Target
from format.verbs.groups.group_list import GroupTerms
from format.verbs.groups.groups import GroupsReading
from format.verbs.txns.txns import Transactions, TransactionTerms
from format.verbs.verify.terms import Verification
from format.verbs.verify.verify import verify
from tests.oracle.coordinator_trials import EXPECTED, VERDICTS, VERSION, Verdict, observed, said, write_logs
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.odd_coordinator_records import TIMESTAMP, TRANSACTIONS, Case, partitions

RECORDED = {name: Verdict(**words) for name, words in json.loads(VERDICTS.read_text()).items()}
CASES = list(partitions())
CODES = ("internal-record-invalid", "version-unknown")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coordinators")
    write_logs(folder)
    return folder


def test_every_case_was_tried() -> None:
    assert {str(case) for case, _ in CASES} == RECORDED.keys()
    assert EXPECTED.keys() < RECORDED.keys()


@pytest.mark.parametrize(("case", "number"), CASES, ids=lambda word: str(word))
def test_verify_says_what_a_broker_did(logs: Path, case: Case, number: int) -> None:
    words = said(logs / f"{case.topic}-{number}")
    assert words == EXPECTED.get(str(case), RECORDED[str(case)].words)
    if str(case) in EXPECTED:
        assert words != RECORDED[str(case)].words, "no longer a difference"


@pytest.mark.parametrize(("case", "number"), CASES, ids=lambda word: str(word))
def test_the_verbs_that_show_the_records_report_the_same(logs: Path, case: Case, number: int) -> None:
    """And what stands before and after the odd record is shown."""
    partition = logs / f"{case.topic}-{number}"
    if case.topic == TRANSACTIONS:
        reading = Transactions((Target(partition),))
        found = [*reading.read(TransactionTerms(now_ms=TIMESTAMP))]
        assert reading.ids.partitions == (
            set() if any(each.is_incomplete or each.code in CODES for each in found) else {number}
        )
    else:
        groups = GroupsReading([Target(partition)], GroupTerms())
        found = [each for each in groups.read() if isinstance(each, Finding)]
    judged = [each for each in verify(Target(partition), Verification()) if each.code in CODES]
    assert [_words(each) for each in found if each.code in CODES] == [_words(each) for each in judged]


def _words(found: Finding) -> tuple[object, ...]:
    return found.code, found.severity, found.location.offset, found.message


@pytest.mark.oracle
def test_a_broker_does_what_was_recorded(tmp_path: Path) -> None:
    lab = KafkaLab()
    missing = lab.missing(VERSION) or (None if lab.logging_jars() else "no logger for Kafka 4.3.1: fetch a 3.x release")
    if missing is not None:
        from tests.conftest import unavailable

        unavailable(missing)
    assert observed(lab, VERSION, tmp_path) == RECORDED
