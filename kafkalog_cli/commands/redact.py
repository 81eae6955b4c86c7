"""kafkalog redact: a copy with keys, values and headers replaced, and its structure kept."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace

from format.node.target import targets_at
from format.verbs.redact.replacements import Mode, Redactor
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.parsers import one_of
from kafkalog_cli.options.selection import RangeOptions
from kafkalog_cli.options.values import ValueOptions
from kafkalog_cli.options.writing import KeyFile, OutputDirectory, Rewriting, SourceOptions, key_of
from kafkalog_cli.progress import Progress
from kafkalog_cli.runner import show_written

EXAMPLES = (
    ("kafkalog redact /mnt/kafka/orders-0 --output shared", "hashes under a random key, which is not kept"),
    ("kafkalog redact /mnt/kafka --output shared --key-file secret", "the same keys give the same hashes next time"),
    (
        "kafkalog redact /mnt/kafka/orders-0 --output shared --from-offset 4200 --to-offset 4300",
        "only the batches of some offsets",
    ),
    ("kafkalog redact /mnt/kafka/orders-0 --output shared --mode fill --header-names", "only lengths are left"),
    (
        "kafkalog redact /mnt/kafka/orders-0 --output shared --keep-fields status,state",
        "with two fields as they are, of JSON, Avro and Protobuf",
    ),
)


class Redacted(msgspec.Struct, frozen=True):
    """What is redacted, where the copy is written, and what replaces the bytes."""

    sources: SourceOptions
    output: OutputDirectory
    mode: Annotated[
        str,
        option("What replaces the bytes: keyed hashes, equal for equal bytes, or filler.", **one_of("hash", "fill")),
    ] = "hash"
    key_file: KeyFile = None
    header_names: Annotated[bool, option("Replace the names of headers too, not only their values.")] = False
    keep_fields: Annotated[
        str | None,
        option(
            "Keep these fields, such as id,customer.country, of keys and values in JSON, Avro and Protobuf. All else "
            "of them is replaced, and keys and values that do not decode are replaced whole.",
            metavar="FIELD,...",
        ),
    ] = None
    values: ValueOptions = msgspec.field(default_factory=ValueOptions)
    selected: RangeOptions = msgspec.field(default_factory=RangeOptions)

    @property
    def kept(self) -> tuple[str, ...]:
        """The fields to keep. Raises a usage error for an empty name."""
        names = () if self.keep_fields is None else tuple(self.keep_fields.split(","))
        if any("" in name.split(".") for name in names):
            raise typer.BadParameter("give names with commas, such as id,customer.country", param_hint="--keep-fields")
        return names


def redact(redacted: Redacted, rewriting: Rewriting) -> None:
    """Copy logs into a new directory, with every key, value and header value replaced by other bytes of equal length.

    Offsets, timestamps, sizes, nulls, producers, batch boundaries and topic names stay, so that the copy can be shared
    and still be examined. Bytes that cannot be read are left out, with a finding. With a range, every batch with a
    record in it is copied whole.
    """
    from format.rewriting.rewriter import PASSES, RewritingResult
    from format.rewriting.sources import read_write_sources
    from format.verbs.redact.redact import Redaction, selected_sources
    from format.verbs.redact.redact import redact as redact_sources

    mode, key_file = redacted.mode, redacted.key_file
    if key_file is not None and mode == "fill":
        raise typer.BadParameter("--mode fill uses no key", param_hint="--key-file")
    if rewriting.resumption.resume and mode == "hash" and key_file is None:
        raise typer.BadParameter("a run with a random key cannot be resumed: give --key-file", param_hint="--resume")
    if redacted.values.is_asked and not redacted.kept:
        raise typer.BadParameter("keys and values are decoded for the fields to keep: give --keep-fields too")
    redactor = Redactor(Mode(mode), b"" if mode == "fill" else key_of(key_file))
    asked = Redaction(
        redactor=redactor,
        with_header_names=redacted.header_names,
        selection=redacted.selected.selection,
        keep_fields=redacted.kept,
        **rewriting.terms(Progress()),
    )
    result = RewritingResult()
    with rewriting.run("redact") as run:
        paths = redacted.sources.paths
        found = selected_sources(read_write_sources(paths, takes_files=True), asked.selection)
        if redacted.kept:
            decoding = redacted.values.by_options(targets_at(paths), rewriting.guards.limits)
            run.findings(decoding.schemas.findings)
            asked = replace(asked, decoding=decoding)
        job = found.job("redact", **asked.options(), **redacted.values.job)
        with rewriting.publication(run, redacted.output, paths, job) as publication:
            terms = replace(asked, advance=run.progress(PASSES * found.size_bytes).advance)
            show_written(run, redact_sources(found, publication, terms, result))
        run.count("records", result.record_count)
        if redacted.kept:
            run.count("wholly_replaced_values", result.whole_count)
            absent = [name for name in redacted.kept if name not in result.found_fields]
            run.conclude(f"--keep-fields: no key or value has {', '.join(absent)}." if absent else "")
        run.not_checked(*result.left_out)
