"""kafkalog scan: commands as Spark jobs, over whole directories or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from inspect import Parameter, signature
from typing import Annotated, Any, get_type_hints

import typer

from format.io.session import Session
from kafkalog_cli.command_table import SCANS, CommandEntry, HelpfulCommand, LazyGroup, made_command
from kafkalog_cli.options.groups import as_command, option, option_names
from kafkalog_cli.options.work import BatchesTable, ClusterOptions, Tables

#: Options that do not apply to a cluster: processes, the rate and the cache of a host, one document, following.
_LEFT_OUT = frozenset({"follow", "jobs", "max_rate", "cache_friendly", "output_file"})
#: The messages for those that a user may give all the same.
_REFUSED = {
    "--follow": "--follow does not go with scan: leave scan out",
    "-f": "--follow does not go with scan: leave scan out",
    "--jobs": "--jobs does not go with scan: Spark decides how many tasks run at a time",
    "--max-rate": "--max-rate does not go with scan: it is a limit for one host",
    "--cache-friendly": "--cache-friendly does not go with scan: it is about the memory of one host",
}
#: Commands that write a directory of their own, or no rows.
_WITHOUT_TABLES = frozenset({"extract", "dump-log"})
_WITH_BATCHES = frozenset({"ls"})


def load_scan(entry: CommandEntry) -> Any:
    """The verb of scan for a command, with the command's options and those of the cluster."""
    module = import_module(entry.module)
    function = getattr(module, entry.function_name)
    verb = _on_spark(entry.name, function, has_tables=entry.name not in _WITHOUT_TABLES)
    command_class: Any = getattr(module, "COMMAND_CLASS", HelpfulCommand)
    examples = getattr(module, "SCAN_EXAMPLES", None) or _examples(entry.name, getattr(module, "EXAMPLES", ()))
    left_out = _LEFT_OUT & option_names(verb)
    command = made_command(entry, as_command(verb, left_out), command_class, examples)
    names = {f"--{each.replace('_', '-')}" for each in left_out} | ({"-f"} if "follow" in left_out else set())
    command.refused = {name: words for name, words in _REFUSED.items() if name in names}
    return command


def _examples(name: str, examples: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The examples of the verb: those of the command, except examples with options that the verb does not have."""
    left_out = [f"--{each.replace('_', '-')}" for each in _LEFT_OUT]
    return [
        (line.replace(f"kafkalog {name}", f"kafkalog scan {name}", 1), meaning)
        for line, meaning in examples
        if not any(option in line.split() for option in (*left_out, ">"))
    ]


def _on_spark(name: str, function: Callable[..., None], *, has_tables: bool) -> Callable[..., None]:
    """The function of a command with the options of the cluster, on which it runs."""
    added: dict[str, Any] = {"session": Session, "cluster": ClusterOptions}
    if has_tables:
        added["tables_output"] = Tables
    if name in _WITH_BATCHES:
        added["batches_table"] = BatchesTable

    def verb(**groups: Any) -> None:
        given = {each: groups.pop(each) for each in added if each != "session"}
        tables = given.get("tables_output", Tables())
        has_batches = given.get("batches_table", BatchesTable()).batches
        if has_batches and tables.tables is None:
            raise typer.BadParameter("--batches needs --output DIR")
        from spark_jobs.submit import Where, on_spark, open_report

        cluster, session = given["cluster"], groups.pop("session")
        where = Where(name, cluster.master, cluster.settings, cluster.range_size, cluster.archive)
        with on_spark(where, session) as spark:
            if tables.tables is not None:
                session.open_tables = partial(
                    open_report, spark, session, tables.tables, tables.broker_id, has_batches=has_batches
                )
            function(**groups)

    own = signature(function)
    verb.__name__, verb.__doc__, verb.__module__ = function.__name__, function.__doc__, function.__module__
    verb.__annotations__ = get_type_hints(function, include_extras=True) | added
    verb.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[
            *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in own.parameters.values()),
            *(Parameter(each, Parameter.KEYWORD_ONLY, annotation=kind) for each, kind in added.items()),
        ]
    )
    return verb


EXAMPLES = (
    ("kafkalog scan verify /var/kafka", "the findings of kafkalog verify, on all cores"),
    ("kafkalog scan ls /var/kafka --output report", "every partition and segment, as Parquet tables too"),
    ("kafkalog scan grep order-4711 /var/kafka", "the records that kafkalog grep finds"),
    ("kafkalog scan extract /var/kafka --output out", "every record to Parquet, written by the workers"),
    ("kafkalog scan recompress --estimate /var/kafka --codec zstd", "what zstd would save, measured on all cores"),
    ("kafkalog scan verify s3://bucket/node-1", "a copy in an object store, read by ranges"),
    ("kafkalog scan verify /mnt/store --master spark://head:7077", "on a cluster that sees the same files"),
    ("kafkalog scan --pack env.tar.gz", "the environment of its executors, for --archive env.tar.gz"),
)


class ScanGroup(LazyGroup):
    """The verbs of scan."""

    entries = SCANS

    def load(self, entry: CommandEntry) -> Any:
        return load_scan(entry)


COMMAND_CLASS = ScanGroup


def _pack(context: typer.Context, target: str | None) -> None:
    if target is None or context.resilient_parsing:  # while a shell completes the line, nothing is made
        return
    from spark_jobs.submit import pack_environment

    size_bytes = pack_environment(target)
    typer.echo(f"{target}: {size_bytes / 1e6:.0f} MB")
    raise typer.Exit


def scan(
    pack: Annotated[
        str | None,
        option(
            "Make the environment of a cluster's executors, for --archive FILE: this version, its kernel, and what "
            "they need. Runs pip.",
            metavar="FILE",
            is_eager=True,
            callback=_pack,
        ),
    ] = None,
) -> None:
    """Run a command as a Spark job, with the same results.

    Paths may be addresses, such as s3://bucket/node-1. Needs Java 17 and pip install 'kafkalog[spark]'. A start takes
    a few seconds: for one partition, use the command itself.
    """
