"""kafkalog extract: records to Parquet, JSON lines or CSV, for other programs."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import asdict, replace

from format.columns import EXTRACTED_FILE, RowSchema, record_schema
from format.layout import DATA_SET_MANIFEST
from format.node.target import targets_at
from format.wording import shell_word
from kafkalog_cli.failures import needing, say
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import Judging, RowOutput
from kafkalog_cli.options.parsers import POSITIVE, SIZE, one_of
from kafkalog_cli.options.reading import Paths, Tiering
from kafkalog_cli.options.selection import ExtraColumns, Isolation, RangeOptions
from kafkalog_cli.options.values import ValueOptions
from kafkalog_cli.options.work import Guards, Pacing
from kafkalog_cli.options.writing import OutputDirectory, Resumption
from kafkalog_cli.render.formats import open_renderer
from kafkalog_cli.render.lines import LINE_STYLES
from kafkalog_cli.runner import Run, say_published, show_resumed

if TYPE_CHECKING:
    from format.verbs.extract import FileFormat

EXAMPLES = (
    ("kafkalog extract /var/kafka/orders-0 --output orders", "Parquet, for pandas, DuckDB or Spark"),
    ("kafkalog extract /var/kafka --output records --to jsonl --from-time -2h", "the last two hours as JSON lines"),
    ("kafkalog extract /var/kafka --output records --records-per-file 1000000", "files of a million records"),
)


class Extracted(msgspec.Struct, frozen=True):
    """Which records are extracted, and into which files."""

    paths: Paths
    output: OutputDirectory
    to: Annotated[
        str | None,
        option(
            "The format of the files.",
            show_default="parquet, or jsonl where pyarrow is not installed",
            **one_of("parquet", "jsonl", "csv"),
        ),
    ] = None
    range: RangeOptions = msgspec.field(default_factory=RangeOptions)
    isolation: Isolation = msgspec.field(default_factory=Isolation)
    extra: ExtraColumns = msgspec.field(default_factory=ExtraColumns)
    values: ValueOptions = msgspec.field(default_factory=ValueOptions)
    tiering: Tiering = msgspec.field(default_factory=Tiering)
    records_per_file: Annotated[
        int | None,
        option("Start a new file after this many records.", show_default="one file per partition", **POSITIVE),
    ] = None
    bytes_per_file: Annotated[
        int | None,
        option(
            "Start a new file when one has grown to about this size.", show_default="one file per partition", **SIZE
        ),
    ] = None


def extract(
    extracted: Extracted, resumption: Resumption, judging: Judging, output: RowOutput, guards: Guards, pacing: Pacing
) -> None:
    """Write records into a new directory as Parquet, JSON lines or CSV: topic=TOPIC/partition=N/part-00000.parquet.

    The columns are those of `kafkalog dump --records --raw`. Records that cannot be read are left out, with a finding.
    With --value-as and --key-as keys and values are also decoded, in columns of their own, as JSON text in Parquet.
    Parquet needs pyarrow: pip install 'kafkalog[arrow]'.
    """
    from format.verbs.dump import empty_range_words
    from format.verbs.extract import Extraction, extract_job, extract_sources
    from format.verbs.extract import extract as extract_records

    to = extracted.to or "jsonl"
    if extracted.to is None:
        with suppress(ImportError):
            import pyarrow.parquet  # noqa: F401

            to = "parquet"
    terms = Extraction(
        _file_format(to, extracted.bytes_per_file, record_schema(extracted.extra.names | extracted.values.columns)),
        extracted.isolation.of(extracted.range),
        guards.limits,
        extracted.records_per_file,
        extracted.bytes_per_file,
        extracted.extra.names,
    )
    sources = [pacing.session.path(each) for each in extracted.paths]
    targets = targets_at(sources)
    with (
        Run("extract", output, judging, main_schema=EXTRACTED_FILE, shows_summary=True) as run,
        extracted.tiering.joined(run, targets, guards.limits),
    ):
        if extracted.to is None and to != "parquet":
            run.say_now("pyarrow is not installed: writing JSON lines; for Parquet: pip install 'kafkalog[arrow]'")
        terms.decoding = extracted.values.decoding(run, targets, guards.limits) if extracted.values.is_asked else None
        found = extract_sources(sources, terms)
        job = extract_job(
            sources,
            found,
            to=to,
            **asdict(extracted.range),
            **({"read_committed": True} if extracted.isolation.read_committed else {}),
            **({"from_log_start": True} if extracted.isolation.from_log_start else {}),
            **({} if extracted.tiering.remote is None else {"remote": extracted.tiering.remote}),
            **({"with": sorted(extracted.extra.names)} if extracted.extra.names else {}),
            **extracted.values.job,
            records_per_file=extracted.records_per_file,
            bytes_per_file=extracted.bytes_per_file,
        )
        with resumption.publication(extracted.output, sources, job, manifest=DATA_SET_MANIFEST) as publication:
            show_resumed(run, publication, resumption.resume)
            progress = run.progress(lambda: sum(each.bytes_to_read(terms) for each in found))
            terms.advance = progress.advance
            run.count("records", 0)
            for file in run.results(extract_records(found, publication, terms)):
                run.write(EXTRACTED_FILE, (file.row(),), only=run.few(EXTRACTED_FILE, lambda row: False))
                run.count("records", file.record_count)
                run.count("written_bytes", file.size_bytes)
        if not run.summary.counts["records"]:
            run.say_at_end(empty_range_words(targets, terms.selection, guards.limits))
        run.not_checked(*terms.left_out)
        say_published(run, publication.target)
        if to == "parquet" and run.summary.counts["records"]:
            run.say_at_end(f"to query it: {_duckdb_command(publication.target)}")


def _duckdb_command(directory: Path) -> str:
    """The command that counts the records of each topic in Parquet files, quoted for a shell."""
    files = f"{directory}/**/*.parquet".replace("'", "''")
    query = f"SELECT topic, count(*) FROM read_parquet('{files}', hive_partitioning = true) GROUP BY topic"
    return f"duckdb -c {shell_word(query)}"


def _file_format(to: str, bytes_per_file: int | None, schema: RowSchema) -> FileFormat:
    """The format of the files. Raises a usage error if it needs a library that is not installed."""
    from format.rows.record_rows import PART_BYTES
    from format.verbs.extract import ParquetFormat, TextFormat

    if to != "parquet":
        part_bytes = min(bytes_per_file or PART_BYTES, PART_BYTES)
        return TextFormat(to, partial(open_renderer, to, main_schema=schema, aside=say), LINE_STYLES[to], part_bytes)
    with needing("Parquet needs pyarrow", "arrow", option="--to", instead=", or give --to jsonl or --to csv"):
        import pyarrow.parquet  # noqa: F401
    usual = ParquetFormat(schema=schema)
    if bytes_per_file is None:
        return usual
    return replace(usual, row_group_bytes=min(bytes_per_file, usual.row_group_bytes))
