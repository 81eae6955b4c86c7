"""The broker's retention rules on made-up segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.findings import Finding
from format.node.target import Target
from format.state.cluster_context import ContextTerms, read_context
from format.timestamps import FUTURE_MARGIN_MS
from format.verbs.retention import LogFacts, Retention, RetentionTerms, SegmentFacts, Verdict, judge, until_words
from tests.building import batch, forbid_reading, write_segment

NOW = 1_000_000


def segments(*counted: int, size: int = 100, last_size: int | None = None) -> list[SegmentFacts]:
    """Segments of ten offsets each with these times."""
    count = len(counted)
    return [
        SegmentFacts(
            number * 10,
            size if number + 1 < count or last_size is None else last_size,
            each,
            number * 10 + 10,
            number + 1 == count,
        )
        for number, each in enumerate(counted)
    ]


def log(**given: object) -> LogFacts:
    facts = {
        "policies": frozenset({"delete"}),
        "retention_ms": -1,
        "retention_bytes": -1,
        "log_start_offset": 0,
        "high_watermark": None,
    }
    return LogFacts(**{**facts, **given})  # type: ignore[arg-type]


def reasons(verdicts: list[Verdict]) -> list[str | None]:
    return [each.deleted_by or each.retained_by for each in verdicts]


def test_time_is_over_only_after_the_last_millisecond() -> None:
    verdicts = judge(segments(NOW - 101, NOW - 100, NOW), log(retention_ms=100), NOW)
    assert [(each.deleted_by, each.retained_by) for each in verdicts] == [
        ("time", None),
        (None, "time"),
        (None, "time"),
    ]
    assert [each.deletable_at for each in verdicts] == [NOW, NOW + 1, NOW + 101]


def test_a_future_timestamp_keeps_what_follows() -> None:
    """Not one that a running broker wrote after the look began, or that the clock of a client explains."""
    late = NOW + FUTURE_MARGIN_MS
    verdicts = judge(segments(NOW - 500, late + 900, NOW - 400), log(retention_ms=100), NOW)
    assert reasons(verdicts) == ["time", "future_timestamp", "preceding_segment"]
    assert verdicts[2].held_by == 10
    assert verdicts[1].deletable_at == verdicts[2].deletable_at == late + 1001
    assert reasons(judge(segments(NOW - 500, late, NOW - 400), log(retention_ms=100), NOW))[1] == "time"


def test_size_counts_whole_segments() -> None:
    verdicts = judge(segments(1, 2, 3, 4), log(retention_bytes=250), NOW)
    assert [each.retained_by for each in verdicts] == [None, "size", "size", "size"]
    assert [each.deleted_by for each in verdicts] == ["size", None, None, None]
    assert [each.bytes_until_deletable for each in verdicts] == [None, 50, 150, 250]


def test_nothing_goes_past_the_high_watermark() -> None:
    verdicts = judge(segments(1, 2, 3), log(retention_ms=1, high_watermark=19), NOW)
    assert reasons(verdicts) == ["time", "high_watermark", "high_watermark"]


def test_the_high_watermark_keeps_only_what_would_be_deleted() -> None:
    verdicts = judge(segments(1, NOW, NOW), log(retention_ms=1, high_watermark=9), NOW)
    assert reasons(verdicts) == ["high_watermark", "time", "time"]
    verdicts = judge(segments(1, 1, 1, 1), log(retention_bytes=150, high_watermark=19), NOW)
    assert reasons(verdicts) == ["size", "high_watermark", "size", "size"]
    assert reasons(judge(segments(1), log(policies=frozenset({"compact"}), high_watermark=5), NOW)) == ["compact"]


def test_an_empty_active_segment_stays() -> None:
    assert reasons(judge(segments(1, 2, last_size=0), log(retention_ms=1), NOW)) == ["time", "active"]
    assert reasons(judge(segments(1, 2), log(retention_ms=1), NOW)) == ["time", "time"]


def test_below_the_log_start_offset_all_policies_delete() -> None:
    for policy in ("delete", "compact"):
        verdicts = judge(segments(1, 2, 3), log(policies=frozenset({policy}), log_start_offset=20), NOW)
        assert [each.deleted_by for each in verdicts] == ["log_start_offset", "log_start_offset", None]
    verdicts = judge(segments(1, 2), log(policies=frozenset({"compact"})), NOW)
    assert reasons(verdicts) == ["compact", "compact"]
    assert reasons(judge(segments(1), log(policies=frozenset()), NOW)) == ["no_policy"]
    assert reasons(judge(segments(1), log(), NOW)) == ["unlimited"]


def test_what_size_deletes_uncovers_what_time_deletes() -> None:
    facts = log(retention_ms=100, retention_bytes=250)
    verdicts = judge(segments(NOW + 50, NOW - 500, NOW, NOW), facts, NOW)
    assert [each.deleted_by for each in verdicts] == ["size", "time", None, None]


def test_a_time_that_no_clock_reaches_is_never() -> None:
    """As a broker, which subtracts the times and finds the difference negative."""
    verdicts = judge(segments(2**63 - 1, 5), log(retention_ms=10), 100)
    assert reasons(verdicts) == ["future_timestamp", "preceding_segment"]
    assert [each.deletable_at for each in verdicts] == [None, None]
    assert reasons(judge(segments(50), log(retention_ms=2**63 - 1), 100)) == ["time"]


def test_a_time_past_the_calendar_in_words() -> None:
    assert until_words(253_502_304_400_000, "retention.ms=topic") == "until after the year 9999"
    assert until_words(253_402_300_799_999, "retention.ms=topic") == "until 9999-12-31T23:59:59.999Z"


def test_what_is_said_of_a_torn_end_is_what_the_checkpoints_know(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "orders-0", 0, [batch(0, timestamp=NOW), batch(3, timestamp=NOW)[:-1]])
    for end, words in ((3, "no checkpoint or snapshot shows a record from offset 3 on"), (4, "offset 3 is missing")):
        (tmp_path / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {end}\n")
        judged = Retention(read_context([Target(tmp_path)], ContextTerms()), RetentionTerms(NOW))
        (torn,) = [each for each in judged.of_target(Target(tmp_path)) if isinstance(each, Finding)]
        assert (torn.code, torn.location.path) == ("tail-torn", str(log))
        assert words in torn.message


def test_a_log_that_cannot_be_opened_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its times are not known: a broker need not delete it."""
    for number in (0, 1):
        write_segment(tmp_path / f"orders-{number}", 0, [batch(0, timestamp=NOW)])
    forbid_reading(tmp_path / "orders-1" / f"{0:020d}.log", monkeypatch)
    judged = Retention(read_context([Target(tmp_path)], ContextTerms()), RetentionTerms(NOW))
    rows = list(judged.of_target(Target(tmp_path)))
    assert [getattr(each, "code", "row") for each in rows] == ["row", "file-unreadable"]
    assert "the next check deletes nothing; 1 segment stays" in judged.sentence()
