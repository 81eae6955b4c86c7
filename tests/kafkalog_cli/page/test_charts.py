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
    made = charts.topics(rows)
    assert made is not None
    drawn = str(made.spec)
    places = [drawn.find(name) for name in ("most-bytes", "t-39", "t-38", "t-30")]
    assert places == sorted(places)
    assert min(places) > 0
    assert "large-directory" not in drawn
    assert made.sentence == (
        "Bytes of batches by topic and codec, of the first 20 of 42 topics: most-bytes 1000 B, t-39 139 B, t-38 138 B, "
        "17 more with 2.1 KiB. By codec: lz4 2.4 KiB, zstd 900 B, none 100 B."
    )
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
    (drawn,) = charts.bytes_by_offset(rows, [_place(10**12, 10**12 + 9)])
    assert '"domain":[100,300]' in drawn.data.replace(" ", "")
    assert drawn.sentence == (
        "t-0: bytes of batches by offset, 18 B from offset 100 on, in ranges of 50 offsets. "
        "The most in one: 9 B from offset 100 on. "
        "1 place of damage is marked: tail-torn: offsets 1,000,000,000,000 to 1,000,000,000,009 are lost."
    )
    (sound,) = charts.bytes_by_offset(rows, [])
    assert "damage" not in sound.sentence


def test_an_offset_past_the_log_end_takes_nothing_from_the_lag() -> None:
    rows = [{"group": "g", "topic": "t", "lag": lag} for lag in (70, -50, 0, None)]
    drawn = charts.lag(rows)
    assert drawn is not None
    assert "70 records behind" in str(drawn.spec)
    assert "-50" not in str(drawn.spec)
    assert drawn.sentence == "Records behind by group and topic, of 1 group: g 70. By topic: t 70."
    assert charts.lag(rows[1:]) is None


def _bytes(topic: str, timestamp: int, size_bytes: int) -> dict[str, object]:
    return {"topic": topic, "timestamp": timestamp, "duration_ms": 1000, "size_bytes": size_bytes, "record_count": 1}


def test_the_sentence_about_time_counts_what_is_drawn() -> None:
    rows = [_bytes("a", 1000 * n, 1000) for n in range(100)] + [_bytes("b", 5000, 24), _bytes("b", 10**12, 7)]
    place = {"path": "a-0", "topic": "a", "partition": 0, "code": "batch-crc-mismatch", "severity": "fatal",
             "first_offset": 4, "last_offset": 4}  # fmt: skip
    drawn = charts.bytes_by_time(rows, [{**place, "timestamp": 7000}, {**place, "timestamp": None}])
    assert drawn is not None
    assert drawn.sentence == (
        "Bytes of batches by the time of their newest record: 97.7 KiB from 1970-01-01T00:00:00.000Z to "
        "1970-01-01T00:01:40.000Z. By topic: a 97.7 KiB, b 24 B. The most in 1.0 s: 1.0 KiB from "
        "1970-01-01T00:00:05.000Z on. 1 place of damage is marked: batch-crc-mismatch in a-0 at offset 4, "
        "1970-01-01T00:00:07.000Z. 7 B with timestamps outside this range are left out."
    )
    whole = charts.bytes_by_time(rows[:-1], [])
    assert whole is not None
    assert "left out" not in whole.sentence
    assert "damage" not in whole.sentence


def test_the_sentence_about_events_counts_those_outside_its_range() -> None:
    event = {"kind": "segment", "topic": "a", "partition": 0, "detail": "a new segment"}
    rows = [_bytes("a", 0, 1), _bytes("a", 9000, 1)]
    drawn = charts.timeline([{**event, "timestamp": each} for each in (0, 5000, 10**12)], rows)
    assert drawn is not None
    assert drawn.sentence == (
        "Events by kind and time, from 1970-01-01T00:00:00.000Z to 1970-01-01T00:00:10.000Z: segment 2. "
        "1 event outside this range is left out."
    )
    assert charts.timeline([{**event, "timestamp": 10**12}], rows) is None


def test_the_sentences_about_sizes_and_skew() -> None:
    sizes = [
        {"codec": "none", "least_bytes": 64, "batch_count": 3, "size_bytes": 300, "record_count": 3},
        {"codec": "zstd", "least_bytes": 1024, "batch_count": 1, "size_bytes": 2000, "record_count": 9},
    ]
    drawn = charts.batch_sizes(sizes)
    assert drawn is not None
    assert drawn.sentence == (
        "Bytes by the size of a batch and by codec: 2.2 KiB in 4 batches. By codec: zstd 2.0 KiB, none 300 B. "
        "Batches of 1.0 KiB to 2.0 KiB have the most: 2.0 KiB."
    )
    partitions = [{"topic": "a", "partition": n, "mark": None, "record_count": count} for n, count in enumerate((9, 3))]
    uneven = charts.skew(partitions, [{"topic": "a", "skew": 1.5}, {"topic": "b", "skew": None}])
    assert uneven is not None
    assert uneven.sentence == (
        "Records of each partition, divided by the mean of its topic (1 is even), of 1 topic. "
        "The fullest partitions: a-0: 9 records, 1.50 times the mean."
    )
