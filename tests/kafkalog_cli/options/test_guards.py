"""Guards: what is given takes the place of a default, and each has a default that its help shows."""

from __future__ import annotations

from format.limits import DEFAULT_LIMITS
from kafkalog_cli.options.work import DecompressionGuard, Guards


def test_limits():
    assert Guards().limits == DecompressionGuard().limits == DEFAULT_LIMITS
    limits = Guards(DecompressionGuard(7), max_record_bytes=6, max_zstd_window=5).limits
    assert (limits.max_decompressed_bytes, limits.max_record_bytes, limits.max_zstd_window_bytes) == (7, 6, 5)
    assert limits.max_lines == DEFAULT_LIMITS.max_lines
    assert DecompressionGuard(7).limits.max_decompressed_bytes == 7
