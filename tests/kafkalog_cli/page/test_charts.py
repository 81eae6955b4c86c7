"""Charts of a page, as the specifications that are drawn."""

from __future__ import annotations

import pytest

from kafkalog_cli.page import charts

pytestmark = pytest.mark.slow


def test_topics_are_in_the_order_of_their_bars() -> None:
    rows = [
        {"topic": "large-directory", "codecs": "none:5"},
        {"topic": "most-bytes", "codecs": "none:100,zstd:900"},
        {"topic": "empty", "codecs": None},
        *({"topic": f"t-{number}", "codecs": f"lz4:{100 + number}"} for number in range(40)),
    ]
    drawn = str(charts.topics(rows))
    places = [drawn.find(name) for name in ("most-bytes", "t-39", "t-38", "t-30")]
    assert places == sorted(places)
    assert min(places) > 0
    assert "large-directory" not in drawn
    assert charts.topics(rows[2:3]) is None


@pytest.mark.parametrize(
    ("most", "ticks", "unit", "name"),
    [
        (0, 2, 1, "B"),
        (7, 4, 1, "B"),
        (1023, 3, 1, "B"),
        (1024, 3, 1, "B"),
        (5 * 1024, 6, 1024, "KiB"),
        (1_308_331, 3, 1024, "KiB"),
        (3 * 1024**3 + 1, 4, 1024**3, "GiB"),
        (2**63, 5, 1024**6, "EiB"),
        (2**80, 2, 1024**6, "EiB"),
    ],
)
def test_an_axis_of_bytes(most: int, ticks: int, unit: int, name: str) -> None:
    axis = charts._byte_axis("bytes", [{"high": 1}, {"high": most}])["axis"]
    assert axis["labelExpr"] == f"format(datum.value / {unit}, ',~g') + ' {name}'"
    assert len(axis["values"]) == ticks
    assert axis["values"][-1] <= max(most, 1) < axis["values"][-1] + max(axis["values"][1:2], default=2)


def _place(first: int, last: int) -> dict[str, object]:
    return {"path": "t-0", "code": "tail-torn", "severity": "error", "first_offset": first, "last_offset": last}


def test_damage_past_the_ends_of_a_log_is_drawn() -> None:
    rows = [{"path": "t-0", "first_offset": 50 * n, "last_offset": 50 * n + 49, "size_bytes": 9} for n in (2, 3)]
    assert charts._offset_range(rows, []) == (100, 200)
    assert charts._offset_range(rows, [_place(200, 239), _place(90, 90)]) == (90, 240)
    assert charts._offset_range(rows, [_place(0, 10**15)]) == (0, 300)
    ((_, drawn),) = charts.bytes_by_offset(rows, [_place(10**12, 10**12 + 9)])
    assert '"domain":[100,300]' in drawn.replace(" ", "")
    assert "offsets 1,000,000,000,000 to 1,000,000,000,009 are lost" in drawn


def test_an_offset_past_the_log_end_takes_nothing_from_the_lag() -> None:
    rows = [{"group": "g", "topic": "t", "lag": lag} for lag in (70, -50, 0, None)]
    drawn = str(charts.lag(rows))
    assert "70 records behind" in drawn
    assert "-50" not in drawn
    assert charts.lag(rows[1:]) is None
