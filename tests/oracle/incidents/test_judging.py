"""How the trial of incidents reads a screen, and what it takes for right."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.oracle.incidents.judging import Cause, fact, judged, number, span
from tests.oracle.incidents.terminal import Screen, Shown, shown


def answer(*lines: str, rows: int = 24, status: int = 0) -> Shown:
    return Shown("kafkalog verify", status, 0.1, list(lines), rows)


def test_a_screen_shows_what_is_left_of_a_progress_bar_and_where_lines_were_folded() -> None:
    screen = Screen(10)
    screen.feed("50 %\r\x1b[2K100 %\r\x1b[2K\x1b[1mpayments-1 hangs\x1b[0m\r\nnode\r\n\x1b[1A\x1b[2Kdone")
    assert screen.lines == ["payments-1", " hangs", "done"]
    assert screen.folded == {1}


def test_a_number_stands_alone_with_or_without_separators() -> None:
    found = fact("offset", number(1250))
    assert found.stands_in("from 1,250 on")
    assert found.stands_in("1250–1749")
    assert not found.stands_in("11250")
    assert not found.stands_in("1,250,000")
    assert not found.stands_in("12500")


def test_a_range_is_found_however_it_is_written() -> None:
    found = fact("lost", span(1000, 1249))
    assert found.stands_in("(1,000–1,249)")
    assert found.stands_in("offsets 1000 to 1249")
    assert not found.stands_in("1000 and 250")


def test_a_fact_that_scrolled_off_is_not_on_the_screen() -> None:
    lines = ["ledger-0 elect node 2", *["a detail"] * 30]
    judgement = judged(answer(*lines), [fact("ledger-0")])
    assert (judgement.scrolled, judgement.missing, judgement.is_right) == (["ledger-0"], [], False)
    assert judged(answer(*lines, rows=40), [fact("ledger-0")]).is_right


def test_a_false_sentence_is_found_across_folded_lines() -> None:
    judgement = judged(answer("none of them", "hangs"), [], ["none of them hangs"])
    assert judgement.false == ["none of them hangs"]


def test_a_crash_is_no_answer() -> None:
    assert not judged(answer("ledger-0", status=70), [fact("ledger-0")]).is_right


def test_the_first_diagnosis_must_name_the_cause() -> None:
    cause = Cause("hang", "payments-1", (fact("offset", number(125)),))
    hanging = {
        "type": "diagnosis",
        "rank": 1,
        "code": "transaction-hanging",
        "subject": "payments-1",
        "sentence": "from 125 on",
    }
    lag = {"type": "diagnosis", "rank": 1, "code": "lag", "subject": "billing", "sentence": "12 behind"}
    assert cause.faults([hanging]) is None
    assert cause.faults([{**hanging, "sentence": "it hangs"}]) == "transaction-hanging payments-1, without offset"
    assert cause.faults([lag, {**hanging, "rank": 2}]) == "first is lag billing, the cause has rank 2"
    assert cause.faults([]) == "no diagnosis"


def test_a_command_runs_on_a_terminal_of_the_size_that_is_asked_for() -> None:
    words = [sys.executable, "-c", "import os; print(*os.get_terminal_size(), os.isatty(0)); raise SystemExit(3)"]
    found = shown(words, Path.cwd(), columns=80)
    assert (found.lines, found.exit_status) == (["80 24 True"], 3)
