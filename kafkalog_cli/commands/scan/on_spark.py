"""A command as a verb of scan: the same function and options, run on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from kafkalog_cli.lazy_group import CommandEntry, HelpfulCommand, made_command
from kafkalog_cli.options.cluster import BatchesTable, Cluster, Tables
from kafkalog_cli.options.groups import as_command, option_names
from kafkalog_cli.options.reading import read_elsewhere
from kafkalog_cli.tables import TableWriter, writing_tables

if TYPE_CHECKING:
    from format.columns import RowSchema
    from kafkalog_cli.summary import Summary

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
    function = getattr(module, entry.name.replace("-", "_"))
    verb = _on_spark(entry.name, function, has_tables=entry.name not in _WITHOUT_TABLES)
    command_class: Any = getattr(module, "COMMAND_CLASS", HelpfulCommand)
    examples = getattr(module, "SCAN_EXAMPLES", None) or _examples(entry.name, getattr(module, "EXAMPLES", ()))
    left_out = _LEFT_OUT & option_names(verb)
    command = made_command(entry.name, as_command(verb, left_out), command_class, examples)
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
    added: dict[str, Any] = {"cluster": Cluster}
    if has_tables:
        added["tables_output"] = Tables
    if name in _WITH_BATCHES:
        added["batches_table"] = BatchesTable

    def verb(**groups: Any) -> None:
        given = {each: groups.pop(each) for each in added}
        tables = given.get("tables_output", Tables())
        has_batches = given.get("batches_table", BatchesTable()).batches
        if has_batches and tables.tables is None:
            raise typer.BadParameter("--batches needs --output DIR")
        with _cluster(name, given["cluster"], tables, has_batches=has_batches):
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


@contextmanager
def _cluster(name: str, cluster: Cluster, tables: Tables, *, has_batches: bool) -> Iterator[None]:
    """The context in which a command runs on the cluster."""
    from spark_jobs.submit import Where, is_elsewhere, on_spark

    where = Where(name, cluster.master, cluster.settings, cluster.range_size, cluster.archive)
    with (
        read_elsewhere(is_elsewhere(cluster.master)),
        on_spark(where) as spark,
        writing_tables(None if tables.tables is None else _Tables(spark, tables, has_batches).open),
    ):
        yield


class _Tables:
    """The report set of a run, as the tables that ``Run`` fills."""

    def __init__(self, spark: Any, tables: Tables, has_batches: bool) -> None:
        self._spark = spark
        self._tables = tables
        self._has_batches = has_batches
        self._paths: Sequence[str] = ()
        self._report: Any = None

    def open(self, command: str, paths: Sequence[str]) -> TableWriter:
        """Begin the tables of a command about these paths."""
        from spark_jobs.submit import open_report

        self._paths = paths
        self._report = open_report(self._tables.tables or "", command, paths, self._tables.broker_id)
        return self

    def add(self, schema: RowSchema, row: tuple[Any, ...]) -> None:
        """Add a row to its table."""
        self._report.add(schema, row)

    def finish(self, summary: Summary) -> None:
        """Publish all tables."""
        if self._has_batches:
            from spark_jobs.submit import write_batches

            write_batches(self._spark, self._paths, self._tables.tables or "", self._tables.broker_id)
        self._report.finish(
            int(summary.exit_code),
            summary.complete,
            summary.condition_names,
            summary.all_not_checked,
            summary.counts,
            has_batches=self._has_batches,
        )

    def discard(self) -> None:
        """Remove tables that are not published."""
        self._report.discard()
