"""What follows a first damage: groups of intact batches, and which of them belong to the log."""

from __future__ import annotations

import pytest

from format.limits import DEFAULT_LIMITS
from format.log import after_damage as survey_module
from format.log.after_damage import Survey
from format.log.batch_chunk import OffsetRange, possible_offsets
from format.log.damaged_batches import CandidateSearch
from tests.building import batch, batches, wrapper
from tests.sources import BytesSource

PARTS = batches(40)
SIZE = len(PARTS[0])


@pytest.fixture(autouse=True, params=[0, 16 * 2**20], ids=["in steps", "at once"])
def enough_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(survey_module, "_ENOUGH_BYTES", request.param)
    return int(request.param)


def survey_of(log: bytes, offsets: OffsetRange | None = None) -> Survey:
    source = BytesSource(log)
    search = CandidateSearch(source, len(log), DEFAULT_LIMITS)
    return Survey(source, len(log), DEFAULT_LIMITS, search, offsets or OffsetRange())


def starts_after(log: bytes, damaged_from: int, after_offset: int | None) -> list[int]:
    """Where the survey says that the log goes on, again and again."""
    survey, found = survey_of(log), []
    while True:
        each = survey.next_after(damaged_from, after_offset)
        if each is None:
            return found
        found.append(each.position)
        damaged_from = each.position + log[each.position :].find(b"??") if b"??" in log[each.position :] else len(log)


def test_groups_come_in_order() -> None:
    log = b"".join([PARTS[0], b"??" * 9, *PARTS[2:5], b"??" * 9, *PARTS[6:9], b"??"])
    assert starts_after(log, SIZE, 2) == [SIZE + 18, 4 * SIZE + 36]


def test_a_group_at_odds_with_more_batches_is_passed_over() -> None:
    """Between two damages lies a batch with an offset of those behind."""
    log = b"".join([*PARTS[:9], b"??", PARTS[20], b"??", *PARTS[11:30]])
    assert starts_after(log, 9 * SIZE, 26) == [10 * SIZE + 4]


def test_a_group_at_odds_with_fewer_batches_is_kept() -> None:
    log = b"".join([PARTS[0], b"??", *PARTS[2:30], b"??", PARTS[10], PARTS[11]])
    assert starts_after(log, SIZE, 2) == [SIZE + 2, 29 * SIZE + 4]


def test_a_group_before_the_beginning_of_a_compressed_message_is_kept() -> None:
    """Two pages changed places: the group is at odds with the rest, but the log goes on after it, and no value does."""
    messages = [wrapper(1, 3 * number) for number in range(40)]
    begun = messages[23][: len(messages[23]) // 2]
    log = b"".join([*messages[:9], b"??", *messages[20:23], begun, b"??" * 9, *messages[11:30]])
    start = log.index(b"??")
    assert starts_after(log, start, 26) == [start + 2, log.index(messages[11])]


def test_what_comes_before_the_damage_counts() -> None:
    """The group fits what follows, but not the many batches before."""
    log = b"".join([*PARTS[:30], b"??", *PARTS[3:6], b"??", *PARTS[31:33]])
    assert starts_after(log, 30 * SIZE, 89) == [33 * SIZE + 4]


def test_offsets_that_cannot_be_do_not_count() -> None:
    """A foreign run would win against the batch before it and the one behind."""
    foreign = [batch(10**7 + 3 * number) for number in range(4)]
    log = b"".join([*PARTS[:2], b"??", *foreign, b"??", *PARTS[4:6], b"??", PARTS[7]])
    survey = survey_of(log, OffsetRange(0, 200))
    position = 2 * SIZE
    found = []
    for _ in range(2):
        each = survey.next_after(position, 5)
        assert each is not None
        found.append(each.position)
        position = each.position + 2 * SIZE
    assert found[0] == log.index(PARTS[4])


def test_the_chain_around_a_place() -> None:
    log = b"".join([*PARTS[:5], b"??", PARTS[30], b"??", *PARTS[7:10]])
    survey = survey_of(log)
    survey.next_after(5 * SIZE, 14)
    assert survey.chain_around(5 * SIZE) == (14, 6 * SIZE + 4)


def test_more_damage_than_is_judged_at_once(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(survey_module, "_MOST_BLOCKS", 3)
    log = b"".join(each + b"??" for each in PARTS[:12])
    assert starts_after(log, 0, None) == [number * (SIZE + 2) for number in range(1, 12)]


def test_more_batches_than_are_weighed_one_by_one(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(survey_module, "_MOST_WEIGHED", 3)
    log = b"".join([PARTS[0], b"??", *PARTS[2:30], b"??", PARTS[10], PARTS[11]])
    assert starts_after(log, SIZE, 2) == [SIZE + 2, 29 * SIZE + 4]


def test_possible_offsets_come_from_the_name() -> None:
    assert possible_offsets("/kafka/t-0/00000000000000000170.log") == OffsetRange(170, 170 + 2**31 - 1)
    assert possible_offsets("<bytes>") == OffsetRange()
    assert possible_offsets(f"{2**63 - 5:020d}.log") == OffsetRange(2**63 - 5, 2**63 - 2)
    assert possible_offsets("99999999999999999999.log") == OffsetRange()


def test_the_rest_is_left_after_a_group_that_is_certain(enough_bytes: int) -> None:
    """The group is certain, since the next offset follows it; the damage after it is looked at later."""
    log = b"".join([PARTS[0], b"??" * 9, *PARTS[2:5], PARTS[5][:8], b"??" * 40, *PARTS[6:40]])
    survey = survey_of(log)
    found = survey.next_after(SIZE, 2)
    assert found is not None
    assert found.position == SIZE + 18
    assert survey._looked_to == (4 * SIZE + 18 if enough_bytes == 0 else len(log))
    found = survey.next_after(4 * SIZE + 18, 14)
    assert found is not None
    assert found.position == 4 * SIZE + 18 + 88
