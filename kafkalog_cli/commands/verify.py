"""kafkalog verify: findings, and what was covered."""

from __future__ import annotations

from typing import Annotated

import typer

from format.columns import FINDING
from kafkalog_cli.options import (
    LEVELS,
    AsKind,
    CacheFriendly,
    FailOn,
    Format,
    Jobs,
    MaxDecompressedBytes,
    MaxRate,
    MaxRecordBytes,
    MaxZstdWindow,
    OutputFile,
    Paths,
    Quiet,
    jobs_of,
    limits_of,
    one_of,
    reading,
)
from kafkalog_cli.runner import Run

EXAMPLES = (
    ("kafkalog verify /var/kafka", "a whole log directory, everything across files too"),
    ("kafkalog verify --level crc /var/kafka/orders-0", "only headers and CRCs of one partition"),
    ("kafkalog verify --partitioner murmur2 --partitions 12 /var/kafka/orders-0", "are all keys where they belong?"),
    ("kafkalog verify --format jsonl --fail-on warning /mnt/copy > findings.jsonl", "for a script: one finding a line"),
)


def verify(
    paths: Paths,
    level: Annotated[
        str,
        typer.Option(
            "--level",
            help="How deep: batch headers, and CRCs, and records, and everything across files.",
            **one_of(*LEVELS),
        ),
    ] = "full",
    partitioner: Annotated[
        str | None,
        typer.Option(
            "--partitioner",
            help="Hold the keys of records against this partitioner, that of the Java clients; needs --partitions.",
            show_default=False,
            **one_of("murmur2"),
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            metavar="N",
            min=1,
            help="How many partitions the topic has, for --partitioner.",
            show_default=False,
        ),
    ] = None,
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
    """Check logs and what lies beside them; every finding says what it means and what to do next.

    Goes on past damage: after it, reading starts again at the next intact batch.
    """
    from pathlib import Path

    from format.findings import Severity
    from format.node.log_dir import Kind, kind_of
    from format.verbs.verify.terms import NOT_CHECKED, Coverage, Verification
    from format.verbs.verify.verify import bytes_to_walk
    from format.verbs.verify.verify import verify as verify_path
    from format.verbs.verify.walk import Level

    if (partitioner is None) != (partitions is None):
        raise typer.BadParameter("--partitioner and --partitions go together", param_hint="--partitioner")
    if partitions is not None and level in ("headers", "crc"):
        raise typer.BadParameter(f"no key is read at the level {level}", param_hint="--partitioner")
    limits = limits_of(max_decompressed_bytes, max_record_bytes, max_zstd_window)
    terms = Verification(
        Level[level.upper()], limits, Coverage(), jobs=jobs_of(jobs, max_rate), partition_count=partitions
    )
    kind = None if as_kind is None else Kind(as_kind)
    with (
        reading(max_rate, cache_friendly),
        Run(
            "verify",
            format_name=format_name,
            output=output,
            quiet=quiet,
            paths=paths,
            main_schema=FINDING,
            fail_on=fail_on or Severity.ERROR,
            shows_summary=True,
        ) as run,
    ):
        terms.advance = run.progress(lambda: sum(bytes_to_walk(Path(each), terms, kind=kind) for each in paths)).advance
        for path in paths:
            run.findings(verify_path(Path(path), terms, kind=kind))
        for name in ("partitions", "segments", "side_files", "batches", "records", "bytes"):
            run.count(name, getattr(terms.coverage, name))
        for words in NOT_CHECKED[terms.level]:
            run.not_checked(words)
        kinds = {kind or kind_of(Path(each)) for each in paths}
        if terms.level is Level.FULL and kinds - {Kind.LOG_DIR, Kind.PARTITION}:
            run.not_checked("what lies beside a file that is given by itself")
