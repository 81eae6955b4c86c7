"""kafkalog dump: any file of a log directory, decoded."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from format.columns import BATCH, RECORD
from kafkalog_cli.options import (
    AsKind,
    FailOn,
    Format,
    FromOffset,
    FromTime,
    Limit,
    MaxDecompressedBytes,
    MaxRecordBytes,
    MaxZstdWindow,
    OutputFile,
    Paths,
    Quiet,
    ToOffset,
    ToTime,
    limits_of,
)
from kafkalog_cli.runner import Run

EXAMPLES = (
    ("kafkalog dump /var/kafka/orders-0", "every batch of a partition"),
    ("kafkalog dump --records --from-offset 170418 --limit 5 /var/kafka/orders-0", "five records from an offset on"),
    ("kafkalog dump --records --from-time -2h --format jsonl /var/kafka/orders-0", "the last two hours as JSON lines"),
    ("kafkalog dump 00000000000000000000.timeindex", "a side file's entries"),
)

#: What a table shows; a narrow terminal has no room for the last of them.
_TABLE_COLUMNS = {
    BATCH.type: (
        "topic", "partition", "base_offset", "last_offset", "position", "size_bytes", "record_count", "codec",
        "max_timestamp", "crc_valid", "leader_epoch", "producer_id", "base_sequence", "producer_epoch", "magic",
    ),
    RECORD.type: ("topic", "partition", "offset", "timestamp", "codec", "key", "value", "headers"),
}  # fmt: skip


def dump(
    paths: Paths,
    records: Annotated[bool, typer.Option("--records", help="Down to the records of each batch.")] = False,
    from_offset: FromOffset = None,
    to_offset: ToOffset = None,
    from_time: FromTime = None,
    to_time: ToTime = None,
    limit: Limit = None,
    as_kind: AsKind = None,
    format_name: Format = None,
    output: OutputFile = None,
    fail_on: FailOn = None,
    max_decompressed_bytes: MaxDecompressedBytes = None,
    max_record_bytes: MaxRecordBytes = None,
    max_zstd_window: MaxZstdWindow = None,
    quiet: Quiet = False,
) -> None:
    """Decode any kind of file: a log's batches or records, an index's entries, a snapshot, a checkpoint.

    A directory gives its logs in order. Ranges start reading where the indexes say, and check that they may.
    """
    from pathlib import Path

    from format.findings import Finding, Severity
    from format.log_dir import Kind
    from format.operations.dump import dump as dump_path
    from format.operations.selection import Selection

    selection = Selection(
        from_offset, None if to_offset is None else to_offset + 1, from_time, None if to_time is None else to_time + 1
    )
    limits = limits_of(max_decompressed_bytes, max_record_bytes, max_zstd_window)
    kind = None if as_kind is None else Kind(as_kind)
    with Run(
        "dump",
        format_name=format_name,
        output=output,
        quiet=quiet,
        paths=paths,
        main_schema=RECORD if records else None,
        table_columns=_TABLE_COLUMNS,
        fail_on=fail_on or Severity.ERROR,
    ) as run:
        left = limit
        for path in paths:
            for item in dump_path(Path(path), kind=kind, records=records, selection=selection, limits=limits):
                if isinstance(item, Finding):
                    run.finding(item)
                    continue
                rows = item.rows
                if left is not None:
                    rows = list(islice(rows, left))
                    left -= len(rows)
                run.write(item.schema, rows)
                if left == 0:
                    return
