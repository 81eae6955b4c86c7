"""kafkalog dump: any file of a log directory, decoded."""

from __future__ import annotations

from typing import Annotated

import typer

from format.columns import BATCH, RECORD
from kafkalog_cli.options import (
    AsKind,
    CacheFriendly,
    FailOn,
    Format,
    FromOffset,
    FromTime,
    Jobs,
    Limit,
    MaxDecompressedBytes,
    MaxRate,
    MaxRecordBytes,
    MaxZstdWindow,
    OutputFile,
    Paths,
    Quiet,
    ToOffset,
    ToTime,
    jobs_of,
    limits_of,
    reading,
)
from kafkalog_cli.render.shown_columns import RECORD_COLUMNS
from kafkalog_cli.runner import Run

EXAMPLES = (
    ("kafkalog dump /var/kafka/orders-0", "every batch of a partition"),
    ("kafkalog dump --records --from-offset 170418 --limit 5 /var/kafka/orders-0", "five records from an offset on"),
    ("kafkalog dump --records --from-time -2h --format jsonl /var/kafka/orders-0", "the last two hours as JSON lines"),
    ("kafkalog dump --records /var/kafka/__consumer_offsets-7", "an internal topic, decoded"),
    ("kafkalog dump 00000000000000000000.timeindex", "a side file's entries"),
)

#: What a table shows; a narrow terminal has no room for the last of them.
_TABLE_COLUMNS = {
    BATCH.type: (
        "topic", "partition", "base_offset", "last_offset", "position", "size_bytes", "record_count", "codec",
        "max_timestamp", "crc_valid", "leader_epoch", "producer_id", "base_sequence", "producer_epoch", "magic",
    ),
    RECORD.type: RECORD_COLUMNS,
}  # fmt: skip


def dump(
    paths: Paths,
    records: Annotated[bool, typer.Option("--records", help="Down to the records of each batch.")] = False,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="With --records: internal topics and control records as bytes, not decoded."),
    ] = False,
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
    jobs: Jobs = None,
    max_rate: MaxRate = None,
    cache_friendly: CacheFriendly = False,
    quiet: Quiet = False,
) -> None:
    """Decode any kind of file: a log's batches or records, an index's entries, a snapshot, a checkpoint.

    A directory gives its logs in order. Ranges start reading where the indexes say, and check that they may.
    Records of Kafka's internal topics and control records are decoded: key and value are then JSON objects.
    """
    from pathlib import Path

    from format.findings import Finding, Severity
    from format.node.log_dir import Kind
    from format.rows.line_blocks import LineBlock
    from format.scan.selection import Selection
    from format.verbs.dump.dump import DumpTerms
    from format.verbs.dump.dump_lines import dump_lines
    from kafkalog_cli.line_style import style_of

    selection = Selection(
        from_offset, None if to_offset is None else to_offset + 1, from_time, None if to_time is None else to_time + 1
    )
    limits = limits_of(max_decompressed_bytes, max_record_bytes, max_zstd_window)
    terms = DumpTerms(records, selection, limits, decodes_internal=not raw)
    kind = None if as_kind is None else Kind(as_kind)
    with (
        reading(max_rate, cache_friendly),
        Run(
            "dump",
            format_name=format_name,
            output=output,
            quiet=quiet,
            paths=paths,
            main_schema=RECORD if records else None,
            table_columns=_TABLE_COLUMNS,
            fail_on=fail_on or Severity.ERROR,
        ) as run,
    ):
        for item in dump_lines(
            map(Path, paths), terms, style_of(run.raw_format), kind=kind, limit=limit, jobs=jobs_of(jobs, max_rate)
        ):
            if isinstance(item, Finding):
                run.finding(item)
            elif isinstance(item, LineBlock):
                run.write_raw(item.schema, item.lines, item.row_count)
            else:
                run.write(item.schema, item.rows)
