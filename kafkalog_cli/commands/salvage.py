"""kafkalog salvage: every intact batch into a new directory, and what is lost."""

from __future__ import annotations

from format.findings import Severity
from kafkalog_cli.options import (
    CacheFriendly,
    FailOn,
    Format,
    MaxDecompressedBytes,
    MaxRate,
    MaxRecordBytes,
    MaxZstdWindow,
    Quiet,
    limits_of,
    reading,
)
from kafkalog_cli.runner import Run
from kafkalog_cli.writing import (
    SEGMENT_TABLE_COLUMNS,
    IndexInterval,
    KeepPartial,
    OutputDirectory,
    Resume,
    Sources,
    say_published,
    tell_resumed,
    tell_written,
)

EXAMPLES = (
    ("kafkalog salvage /mnt/broken --output /mnt/saved", "a whole log directory; a broker can start on the result"),
    ("kafkalog salvage /mnt/broken/orders-0 --output saved", "one partition, into saved/orders-0"),
    ("kafkalog salvage 00000000000000170210.log --output saved", "one file by itself"),
    ("kafkalog salvage /mnt/broken --output saved --format jsonl > lost.jsonl", "the list of losses, for a script"),
)


def salvage(
    sources: Sources,
    output: OutputDirectory,
    resume: Resume = False,
    keep_partial: KeepPartial = False,
    index_interval: IndexInterval = None,
    fail_on: FailOn = Severity.ERROR,
    format_name: Format = None,
    max_decompressed_bytes: MaxDecompressedBytes = None,
    max_record_bytes: MaxRecordBytes = None,
    max_zstd_window: MaxZstdWindow = None,
    max_rate: MaxRate = None,
    cache_friendly: CacheFriendly = False,
    quiet: Quiet = False,
) -> None:
    """Copy every intact batch, byte for byte, into a new directory, with new indexes, and list what is lost.

    Each lost byte range is a finding with the offsets that it held; all of them are in DIR/manifest.json too. The exit
    status is 1 when something is lost. A broker that starts on the result checks it all and builds producer state anew.
    """
    from pathlib import Path

    from format.columns import WRITTEN_SEGMENT
    from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES
    from format.rewriting.publish import Publication
    from format.rewriting.sources import read_write_sources
    from format.verbs.salvage.salvage import Salvage
    from format.verbs.salvage.salvage import salvage as salvage_sources
    from kafkalog_cli.exit_codes import Condition

    with (
        reading(max_rate, cache_friendly),
        Run(
            "salvage",
            format_name=format_name,
            quiet=quiet,
            main_schema=WRITTEN_SEGMENT,
            table_columns={WRITTEN_SEGMENT.type: SEGMENT_TABLE_COLUMNS},
            fail_on=fail_on,
            shows_summary=True,
        ) as run,
    ):
        paths = [Path(each) for each in sources]
        found = read_write_sources(paths, takes_files=True)
        interval_bytes = index_interval or DEFAULT_INTERVAL_BYTES
        job = found.job("salvage", index_interval_bytes=interval_bytes)
        terms = Salvage(limits_of(max_decompressed_bytes, max_record_bytes, max_zstd_window), interval_bytes)
        with Publication(output, paths, job=job, resume=resume, keep_partial=keep_partial) as publication:
            tell_resumed(run, publication, resume)
            terms.advance = run.progress(2 * found.size_bytes).advance
            tell_written(run, salvage_sources(found, publication, terms))
            run.count("losses", len(terms.losses))
        if terms.losses:
            run.condition(Condition.DAMAGE)
        say_published(run, publication.target)
