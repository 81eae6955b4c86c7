"""Limits that guard against hostile or oversized data: sizes of a batch, a record and a zstd window."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace

from format.limits import DEFAULT_LIMITS, MIB, Limits
from kafkalog_cli.options.parsers import parse_size


def _mebibytes(size_bytes: int) -> str:
    return f"{size_bytes // MIB}MiB"


class DecompressionGuard(msgspec.Struct, frozen=True):
    """The largest size of one batch when decompressed."""

    max_decompressed_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-decompressed-bytes",
            metavar="SIZE",
            parser=parse_size,
            help="Largest size of one batch when decompressed, such as 512MiB.",
            show_default=_mebibytes(DEFAULT_LIMITS.max_decompressed_bytes),
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        return _limits(max_decompressed_bytes=self.max_decompressed_bytes)


class Guards(msgspec.Struct, frozen=True):
    """The largest sizes of one batch, one record and one zstd window."""

    decompression: DecompressionGuard = msgspec.field(default_factory=DecompressionGuard)
    max_record_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-record-bytes",
            metavar="SIZE",
            parser=parse_size,
            help="Largest size of one record.",
            show_default=_mebibytes(DEFAULT_LIMITS.max_record_bytes),
        ),
    ] = None
    max_zstd_window: Annotated[
        int | None,
        typer.Option(
            "--max-zstd-window",
            metavar="SIZE",
            parser=parse_size,
            help="Largest window that a zstd frame may request.",
            show_default=_mebibytes(DEFAULT_LIMITS.max_zstd_window_bytes),
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        return _limits(
            max_decompressed_bytes=self.decompression.max_decompressed_bytes,
            max_record_bytes=self.max_record_bytes,
            max_zstd_window_bytes=self.max_zstd_window,
        )


def _limits(**given: int | None) -> Limits:
    """The default limits, replaced where values were given."""
    return replace(DEFAULT_LIMITS, **{name: value for name, value in given.items() if value is not None})
