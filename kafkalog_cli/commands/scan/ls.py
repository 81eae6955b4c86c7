"""kafkalog scan ls: every partition and segment."""

from __future__ import annotations

from msgspec.structs import replace

from kafkalog_cli.commands.ls import Listed
from kafkalog_cli.commands.ls import ls as list_here
from kafkalog_cli.options.output import DocumentOutput, Judging
from kafkalog_cli.options.reading import Reading
from kafkalog_cli.options.work import DecompressionGuard, Pacing

SCAN_EXAMPLES = (
    ("kafkalog scan ls /var/kafka", "every partition and segment"),
    ("kafkalog scan ls /var/kafka --output report --batches", "Parquet tables of them, and of all batches"),
)


def ls(
    listed: Listed,
    reading: Reading,
    judging: Judging,
    guard: DecompressionGuard,
    output: DocumentOutput,
    pacing: Pacing,
) -> None:
    """List partitions and segments, as kafkalog ls --segments does.

    Only batch headers are read: use verify to check CRCs and records.
    """
    segments = True if listed.segments is None else listed.segments
    list_here(replace(listed, segments=segments), reading, judging, guard, output, pacing)
