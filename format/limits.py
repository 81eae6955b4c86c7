"""Limits for hostile or outsized data; each is an option of the command line."""

from __future__ import annotations

import msgspec

MIB = 1024 * 1024
#: The largest control batch that is taken whole where only batch headers are kept.
MOST_CONTROL_BYTES = 1024


class Limits(msgspec.Struct, frozen=True):
    """Upper bounds for one batch or one side file. Data over a bound raises LimitExceeded, not CorruptDataError."""

    max_decompressed_bytes: int = 256 * MIB  # of one batch, or one v0/v1 wrapper
    max_record_bytes: int = 64 * MIB  # of one record or message
    max_zstd_window_bytes: int = 8 * MIB  # of one zstd frame
    max_side_file_bytes: int = 64 * MIB  # of a checkpoint, properties file or snapshot read whole
    max_line_bytes: int = 64 * 1024  # of one line of a text file
    max_lines: int = 1_000_000  # of one text file


DEFAULT_LIMITS = Limits()
