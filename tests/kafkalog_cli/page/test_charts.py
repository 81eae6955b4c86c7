"""Charts of a page, as the specifications that are drawn."""

from __future__ import annotations

from kafkalog_cli.page import charts


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
