"""What filters can select: never less than they do, and little more."""

from __future__ import annotations

from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.compute as pc  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from format.verbs.sql.narrowing import EVERY_VALUE, Narrowing, ValueRange  # noqa: E402

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int64()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("value", pa.binary()),
    ]
)
TOPIC, PARTITION, OFFSET, TIME = (pc.field(name) for name in ("topic", "partition", "offset", "timestamp"))


def _time(ms: int) -> Any:
    return pa.scalar(ms, pa.timestamp("ms", "UTC"))


def _ranges(condition: Any, column: str) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in Narrowing(SCHEMA, condition).ranges(column)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ((OFFSET >= 100) & (OFFSET <= 5000), [(100, 5000)]),
        ((OFFSET > 100) & (OFFSET < 5000), [(101, 4999)]),
        (OFFSET == 7, [(7, 7)]),
        (OFFSET.isin([5, 9, 70_000, 2**40]), [(5, 9), (70_000, 70_000), (2**40, 2**40)]),
        ((OFFSET == 5) | (OFFSET == 1_000_000), [(5, 5), (1_000_000, 1_000_000)]),
        ((OFFSET >= 10) & (OFFSET < 10), []),
        (~(OFFSET > 5), [(EVERY_VALUE.first, 5)]),
        ((TOPIC == "a") & (OFFSET >= 5) & (OFFSET <= 6), [(5, 6)]),
        ((TOPIC == 'offset >= 7 and "offset" == 9') & (OFFSET <= 6), [(EVERY_VALUE.first, 6)]),
        ((TOPIC == "a") | (OFFSET <= 6), [(EVERY_VALUE.first, EVERY_VALUE.last)]),
        (OFFSET.is_null() | (OFFSET == 3), [(EVERY_VALUE.first, EVERY_VALUE.last)]),
        (PARTITION == 3, [(EVERY_VALUE.first, EVERY_VALUE.last)]),
    ],
    ids=str,
)
def test_ranges_of_offsets(condition: Any, expected: list[tuple[int, int]]) -> None:
    assert _ranges(condition, "offset") == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ((_time(5_000) <= TIME) & (_time(9_000) > TIME), [(5_000, 8_999)]),
        (_time(-5) <= TIME, [(-5, EVERY_VALUE.last)]),
        (_time(10**17) == TIME, [(10**17, 10**17)]),  # in no calendar
        (TIME.is_null(), [(EVERY_VALUE.first, EVERY_VALUE.last)]),
    ],
    ids=str,
)
def test_ranges_of_times(condition: Any, expected: list[tuple[int, int]]) -> None:
    assert _ranges(condition, "timestamp") == expected


def test_of_a_long_list_the_ends_are_known_and_of_a_very_long_one_nothing() -> None:
    ranges = Narrowing(SCHEMA, OFFSET.isin([each * 5000 for each in range(1, 45)])).ranges("offset")
    assert (ranges[0], ranges[-1].last) == (ValueRange(5000, 5000), 44 * 5000)
    assert Narrowing(SCHEMA, OFFSET.isin(list(range(0, 5000, 5)))).ranges("offset") == [EVERY_VALUE]


def test_partitions_that_can_match() -> None:
    places = [{"topic": topic, "partition": number} for topic in ("a", "b", None) for number in (0, 1, None)]
    assert Narrowing(SCHEMA, None).allowed(places) == list(range(9))
    assert Narrowing(SCHEMA, (TOPIC == "a") & (PARTITION == 1)).allowed(places) == [1]
    assert Narrowing(SCHEMA, TOPIC.isin(["b", "c"]) & (OFFSET > 5)).allowed(places) == [3, 4, 5]
    assert Narrowing(SCHEMA, TOPIC.is_null()).allowed(places) == [6, 7, 8]
    assert Narrowing(SCHEMA, OFFSET == 3).allowed(places) == list(range(9))


def test_the_columns_of_a_filter() -> None:
    assert Narrowing(SCHEMA, None).columns == frozenset()
    assert Narrowing(SCHEMA, (TOPIC == "x") & (OFFSET.isin([1, 2, 3, 4]))).columns == {"topic", "offset"}


def test_null_is_neither_in_a_list_nor_not_in_it() -> None:
    numbers = [None, 1, 7, None]
    rows = pa.record_batch(
        {"topic": [None, "a", "b", "c"], "partition": numbers, "offset": [0, 1, 2, 3], "timestamp": [None] * 4,
         "value": [None] * 4}, schema=SCHEMA)  # fmt: skip
    in_list = PARTITION.isin([1, 2, 3, 4])

    def selected(condition: Any) -> list[int]:
        return Narrowing(SCHEMA, condition).select(rows)["offset"].to_pylist()

    assert selected(in_list) == [1]
    assert selected(~in_list) == [2]
    assert selected(~in_list & ~TOPIC.isin(["x", "y", "z", "c"])) == [2]
    assert selected(~in_list | (OFFSET == 3)) == [2, 3]
    assert selected(~(in_list & (OFFSET < 3))) == [2, 3]


_leaves = st.one_of(
    st.builds(
        lambda op, n: {"<": n > OFFSET, ">=": n <= OFFSET, "==": n == OFFSET, "!=": n != OFFSET}[op],
        st.sampled_from(["<", ">=", "==", "!="]),
        st.integers(-3, 5000),
    ),
    st.builds(OFFSET.isin, st.lists(st.integers(0, 5000), min_size=1, max_size=40)),
    st.builds(lambda n: n == PARTITION, st.integers(0, 3)),
    st.just(OFFSET.is_valid()),
)
_conditions = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
    ),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(_conditions)
def test_no_row_that_a_filter_selects_is_outside(condition: Any) -> None:
    rows = pa.table({"topic": pa.nulls(5003, pa.string()), "partition": [each % 4 for each in range(5003)],
                     "offset": list(range(-3, 5000)), "timestamp": pa.nulls(5003, pa.timestamp("ms", "UTC")),
                     "value": pa.nulls(5003, pa.binary())}, schema=SCHEMA)  # fmt: skip
    selected = set(rows.filter(condition)["offset"].to_pylist())
    inside = Narrowing(SCHEMA, condition).ranges("offset")
    assert all(any(each.first <= offset <= each.last for each in inside) for offset in selected)
