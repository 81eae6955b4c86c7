"""Limits: the guards against hostile or outsized data, each a flag of the command line."""

from __future__ import annotations

from format.value_class import value_class

MIB = 1024 * 1024


@value_class
class Limits:
    """Upper bounds on what one batch or one side file may cost; passing one raises LimitExceeded, never "corrupt"."""

    max_decompressed_bytes: int = 256 * MIB  # of one batch, or one v0/v1 wrapper
    max_record_bytes: int = 64 * MIB  # of one record or message
    max_zstd_window_bytes: int = 8 * MIB  # what a zstd frame may ask for
    max_side_file_bytes: int = 64 * MIB  # of a checkpoint, properties file or snapshot read whole
    max_line_bytes: int = 64 * 1024  # of one line of a text file
    max_lines: int = 1_000_000  # of one text file


DEFAULT_LIMITS = Limits()
