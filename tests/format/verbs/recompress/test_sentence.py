"""What recompress --estimate and --explain say in a sentence."""

from __future__ import annotations

import pytest

from format.verbs.recompress.estimate import Decided, Estimate, Savings

pytestmark = pytest.mark.slow


def savings(*rows: tuple[str, str, int, int]) -> str:
    found = Savings()
    for topic, codec, log_bytes, estimated_bytes in rows:
        found.take(Estimate(topic, codec, None, log_bytes, log_bytes, estimated_bytes))
    return found.sentence()


def test_the_codec_that_saves_most_over_all_topics() -> None:
    rows = (("a", "none:1", 100, 100), ("a", "lz4", 100, 60), ("a", "zstd", 100, 50),
            ("b", "lz4:9", 900, 900), ("b", "lz4", 900, 900), ("b", "zstd", 900, 700))  # fmt: skip
    assert savings(*rows) == "zstd would save 250 of 1,000 bytes (25 %), the most in b: 200 bytes."
    assert savings(*rows[:3]) == "zstd would save 50 of 100 bytes (50 %)."
    assert savings(rows[3], rows[4]) == "lz4 would save nothing."
    assert savings(rows[3], rows[4], ("b", "none", 900, 2000)) == "No codec would save anything."
    assert savings(("c", "none:0", 0, 0), ("c", "zstd", 0, 0)) == savings() == ""


def test_decisions_are_counted_and_explained_once_for_each_reason() -> None:
    row = ("orders", 0, 0, 0, 0, 9, 100, 2, "none")
    decided = Decided(4)
    assert not list(decided.sentences())
    decided.take([(*row, "copied", "same-codec", ""), (*row, "recompressed", "codec-differs", "")] * 2)
    counts, differs, same = decided.sentences()
    assert counts == "With zstd, of 4 batches: 2 copied (2 same-codec) and 2 recompressed (2 codec-differs)."
    assert differs.startswith("codec-differs: a broker with compression.type=zstd decompresses it")
    assert same.startswith("same-codec: a broker with compression.type=zstd keeps the bytes")
