"""Limits: the guards against hostile or outsized data, each a flag of the command line."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds, in bytes, on what one batch may cost; passing one raises LimitExceeded, never "corrupt"."""

    max_decompressed_bytes: int = 256 * MIB  # of one batch, or one v0/v1 wrapper
    max_record_bytes: int = 64 * MIB  # of one record or message
    max_zstd_window_bytes: int = 8 * MIB  # what a zstd frame may ask for
    max_side_file_bytes: int = 64 * MIB  # of a checkpoint, properties file or snapshot read whole
    max_line_bytes: int = 64 * 1024  # of one line of a text file


DEFAULT_LIMITS = Limits()
