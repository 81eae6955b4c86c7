"""The table of commands: names, modules, one-line helps, and which of them are scans. Imports no command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from types import MappingProxyType
from typing import Any

import msgspec
import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kafkalog_cli.exit_codes import exit_status_rows
from kafkalog_cli.options.groups import as_command

#: -h as well as --help, and lines wide enough for the meanings of the exit codes.
CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

#: What ``kafkalog help`` calls the page of the options below. They are the same for every command that has them, and
#: its help only names them: limits on a line, and how hosts are spared on another, so that no name is broken.
COMMON_PAGE = "common"
#: ``kafkalog help schema`` prints the JSON Schema of all rows, which ``docs.generate`` writes; with row types after it,
#: the columns of these, for people.
SCHEMA_PAGE, SCHEMA_FILE = "schema", "rows.schema.json"
_PAGES = {
    COMMON_PAGE: "The options that many commands have.",
    SCHEMA_PAGE: "The JSON Schema of all rows; of a row type, its columns.",
}
_COMMON_LINES = (
    ("--max-decompressed-bytes", "--max-record-bytes", "--max-zstd-window"),
    ("--jobs", "--max-rate", "--cache-friendly"),
)
COMMON_OPTIONS = frozenset(name for line in _COMMON_LINES for name in line)


class CommandEntry(msgspec.Struct, frozen=True):
    """One row of a table of commands: the module holds a function of the command's name, and EXAMPLES.

    ``is_scan``: ``kafkalog scan`` offers the command, too. ``reads_bundles``: it takes a bundle, too.
    ``other_module``: it is not in the module of ``kafkalog_cli.commands`` that has its name.
    """

    name: str
    help: str
    panel: str
    is_scan: bool = False
    reads_bundles: bool = False
    other_module: str = ""

    @property
    def function_name(self) -> str:
        """The name of the command's function and of its module."""
        return self.name.replace("-", "_")

    @property
    def module(self) -> str:
        """The module of the command, which is imported when it runs."""
        return self.other_module or f"kafkalog_cli.commands.{self.function_name}"


class HelpfulCommand(TyperCommand):
    """A command whose help shows examples and the exit status; laid out in plain text."""

    examples: Sequence[tuple[str, str]] = ()
    #: Options that a user may expect here, and the messages that replace "no such option".
    refused: Mapping[str, str] = MappingProxyType({})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words; for an option in ``refused``, raise its message."""
        try:
            return list(super().parse_args(ctx, args))
        except Exception as error:  # NoSuchOption, of click or of typer's own copy of it
            reason = self.refused.get(getattr(error, "option_name", ""))
            if reason is None:
                raise
            raise typer.BadParameter(reason) from None

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """``[OPTIONS]`` and the arguments by the names that their help gives them."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(_argument_name(each) for each in arguments)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Usage, what it does, arguments, options, examples, exit status."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        _write_parameters(self.get_params(ctx), ctx, formatter)
        _write_examples(self.examples, formatter)


class LazyGroup(TyperGroup):
    """A group whose commands come from ``entries``; subclass it with a table."""

    entries: Sequence[CommandEntry] = ()
    examples: Sequence[tuple[str, str]] = ()

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.commands: dict[str, Any] = dict.fromkeys(entry.name for entry in self.entries)  # made when asked for
        self._is_listing = False
        self._is_after_help = False  # a shell completes the word after ``help``

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of a run. Where a shell asks for completions, options such as --version print nothing before it
        is closed: some shells execute whatever comes in place of an answer.
        """
        if not extra.get("resilient_parsing"):
            return super().make_context(info_name, args, parent, **extra)
        with redirect_stdout(StringIO()):
            context = super().make_context(info_name, args, parent, **extra)
        context.with_resource(redirect_stdout(StringIO()))
        return context

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the table's order; where a shell completes what follows ``help``, also those of the pages."""
        return [*(entry.name for entry in self.entries), *(_PAGES if self._is_after_help else ())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported now; while names are only listed, an empty one with its one-line help."""
        if self._is_after_help and cmd_name in _PAGES:
            return TyperCommand(name=cmd_name, short_help=_PAGES[cmd_name])
        entry = next((entry for entry in self.entries if entry.name == cmd_name), None)
        if entry is None:
            return None
        if self._is_listing:
            return TyperCommand(name=entry.name, help=entry.help, short_help=entry.help)
        if self.commands[cmd_name] is None:
            self.commands[cmd_name] = self.load(entry)
        return self.commands[cmd_name]

    def load(self, entry: CommandEntry) -> Any:
        """The command of a row."""
        return load_command(entry)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command for some words; ``help COMMAND`` is ``COMMAND --help``."""
        if args[0] == "help":
            args = [*args[1:], "--help"]
            if len(args) == 1:
                if ctx.resilient_parsing:
                    self._is_after_help = True
                    return None, None, []
                typer.echo(ctx.get_help())
                ctx.exit()
            if args[0] == COMMON_PAGE and not ctx.resilient_parsing:
                formatter = ctx.make_formatter()
                write_common_options(formatter)
                typer.echo(formatter.getvalue().rstrip("\n"))
                ctx.exit()
            if args[0] == SCHEMA_PAGE and not ctx.resilient_parsing:
                typer.echo(_schema_page(ctx, args[1:-1]), nl=False)
                ctx.exit()
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, list(rest)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Names and options that begin with what is typed; imports no command."""
        self._is_listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._is_listing = self._is_after_help = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Usage, what it is, the commands by panel, options."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        for panel in dict.fromkeys(entry.panel for entry in self.entries):
            with formatter.section(panel):
                formatter.write_dl([(entry.name, entry.help) for entry in self.entries if entry.panel == panel])
        _write_parameters(self.get_params(ctx), ctx, formatter)
        if self.examples:
            _write_examples(self.examples, formatter)
        self.format_epilog(ctx, formatter)


def load_command(entry: CommandEntry) -> Any:
    """The command that typer makes of the function in the entry's module."""
    module = import_module(entry.module)
    function = getattr(module, entry.function_name)
    kind: Any = getattr(module, "COMMAND_CLASS", HelpfulCommand)
    return made_command(entry, as_command(function), kind, getattr(module, "EXAMPLES", ()))


def made_command(
    entry: CommandEntry, function: Callable[..., Any], kind: Any, examples: Sequence[tuple[str, str]]
) -> Any:
    """The command that typer makes of a function with one parameter for each option.

    The helps of some options that many commands share are completed: they say what this command takes.
    """
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    if issubclass(kind, LazyGroup):
        app.callback(cls=kind, context_settings=CONTEXT_SETTINGS)(function)
        app.info.name = entry.name
    else:
        app.command(name=entry.name, cls=kind, context_settings=CONTEXT_SETTINGS)(function)
    command: Any = get_command(app)
    for each in command.params:
        if each.name == "paths" and not each.help:
            each.help = _paths_help(entry)
        elif each.name == "sources":
            more = _MORE_SOURCES.get(entry.name, "")
            each.help = f"A log directory, or partition directories (TOPIC-PARTITION){more}. Never written to."
        elif each.name == "as_kind":
            every = (kind.value for kind in import_module("format.node.log_dir").Kind)
            each.help = f"{each.help}: {_KINDS.get(entry.name) or ', '.join(every)}."
        elif each.name == "value_as":
            each.show_default = _VALUES_AS.get(entry.name, "raw; auto on a terminal where schemas are found")
        elif each.name == "fail_on_words":
            each.help = import_module("kafkalog_cli.options.output").fail_on_help(entry.name)
    command.examples = tuple(examples)
    return command


def _paths_help(entry: CommandEntry) -> str:
    kinds = ["A log directory", "a partition directory (TOPIC-PARTITION)"]
    kinds += [_OTHER_PATHS[entry.name]] if entry.name in _OTHER_PATHS else []
    kinds += ["a bundle"] if entry.reads_bundles else []
    return f"{', '.join(kinds[:-1])} or {kinds[-1]}; also an address, such as s3://bucket/node-1."


def _write_examples(examples: Sequence[tuple[str, str]], formatter: Any) -> None:
    if examples:
        with formatter.section("Examples"):
            for number, (line, meaning) in enumerate(examples):
                if number:
                    formatter.write("\n")
                formatter.write(f"  # {meaning}\n  {line}\n")
    with formatter.section("EXIT STATUS"):
        formatter.write_dl(exit_status_rows())


def _argument_name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _write_parameters(parameters: Sequence[Any], ctx: Any, formatter: Any) -> None:
    shown = [each for each in parameters if not getattr(each, "hidden", False)]
    arguments = [(_argument_name(each), each.help or "") for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    own = [_option_row(each) for each in options if each.opts[0] not in COMMON_OPTIONS]
    for title, rows in (("Arguments", arguments), ("Options", own)):
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows, col_max=36)
    taken = {each.opts[0] for each in options}
    lines = [", ".join(name for name in line if name in taken) for line in _COMMON_LINES]
    if any(lines):
        with formatter.section(f"Common options (kafkalog help {COMMON_PAGE})"):
            for line in filter(None, lines):
                formatter.write_text(line)


def _schema_page(context: Any, row_types: Sequence[str]) -> str:
    """The JSON Schema of all rows; for row types, a list of their columns with types and meanings."""
    if not row_types:
        from importlib.resources import files

        return files(__package__).joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    from format.columns import DECODED_COLUMNS, EXTRA_RECORD_COLUMNS, IS_MATCH, RECORD, SCHEMAS

    on_request = [
        *((each, f"with --with {each.name}") for each in EXTRA_RECORD_COLUMNS),
        *((each, f"with --{each.name.partition('_')[0]}-as") for each in DECODED_COLUMNS),
        (IS_MATCH, "with -A, -B and -C of grep"),
    ]
    formatter = context.make_formatter()
    known = {each.type: each for each in SCHEMAS}
    for name in row_types:
        if name not in known:
            raise typer.BadParameter(f"there is no row type {name!r}; the row types are {', '.join(known)}")
        with formatter.section(name):
            columns = [(f"{each.name} ({each.type})", each.meaning) for each in known[name].columns]
            for each, option in on_request if name == RECORD.type else ():
                columns.append((f"{each.name} ({each.type})", f"{each.meaning}; {option}"))
            formatter.write_dl(columns)
    return str(formatter.getvalue())


def write_common_options(formatter: Any) -> None:
    """The page of the options that many commands share, as ``verify``, which has them all, describes them."""
    command = load_command(next(entry for entry in COMMANDS if entry.name == "verify"))
    formatter.write_text("Options that many commands have. The help of a command names those that it takes.")
    with formatter.section("Options"):
        rows = [_option_row(each) for each in command.params if each.opts[0] in COMMON_OPTIONS]
        formatter.write_dl(rows, col_max=36)


def _option_row(option: Any) -> tuple[str, str]:
    # The short form first; both forms of a pair such as --x/--no-x.
    names = ", ".join(sorted((*option.opts, *option.secondary_opts), key=lambda name: name.startswith("--")))
    if not option.is_flag and not option.count:
        names += f" {option.metavar or 'TEXT'}"
    default = option.show_default if isinstance(option.show_default, str) else ""
    if (
        option.show_default is True
        and option.default is not None
        and not option.is_flag
        and not callable(option.default)
    ):
        default = str(option.default)
    return names, f"{option.help or ''}{f'  [default: {default}]' if default else ''}"


_RECOMPRESS = "kafkalog_cli.commands.scan.recompress"

#: The commands by the panels of the help, each with its one-line help.
_PANELS = {
    "Read": {
        "ls": "List partitions and segments: ranges, sizes, checkpoints, strays.",
        "dump": "Decode any kind of file; with --records, down to the records.",
        "find": "Find an offset or a timestamp, and show each step of the search.",
        "grep": "Find records by key, value, header or producer.",
        "sql": "Questions in SQL over records, batches, findings, groups and the rest.",
        "explore": "Browse a log directory on the screen, down to the field that each byte belongs to.",
    },
    "Diagnose": {
        "doctor": "What is wrong, the most urgent first, each with its evidence and the next command.",
        "txns": "Open transactions, the records that wait behind them, and the transactions that ended.",
        "producers": "The producers of each partition: epochs, sequences, gaps, duplicates, batches, codecs.",
        "metadata": "Topics, replicas, brokers, configs and ACLs from the metadata log, at any time.",
        "quorum": "Who can lead the controllers, what is committed, and which changes are lost.",
        "groups": "Committed offsets, lag and members of consumer, share and streams groups.",
        "compaction": "What the log cleaner would keep and free, how far it has cleaned, and what stops it.",
        "retention": "Why each segment is still there, and when it is deleted; what other configs would delete.",
    },
    "Check": {
        "verify": "Check logs and side files: what is damaged, suspicious or unreadable.",
        "scrub": "Verify every segment of a node once in a period, beside its broker, and keep what was found.",
        "boot": "Whether a broker starts on these log directories, and what it does to each file.",
        "diff": "Where replicas of a partition differ, which one is right, and what each election would lose.",
        "report": "One page with the results of all checks and diagnoses, to read and to share.",
        "bundle": "One archive for support: headers, side files and findings, without keys and values.",
    },
    "Write": {
        "recompress": "Write the same records with another codec, in a new directory; or estimate the saving.",
        "salvage": "Copy every intact batch, byte for byte, into a new directory, and list what is lost.",
        "rebuild-quorum": "Write metadata for controllers whose majority is lost, from a copy that is left.",
        "rebuild-index": "Build new indexes from the log, in a new directory.",
        "extract": "Write records to Parquet, JSON lines or CSV, for other programs.",
        "redact": "Copy logs with keys and values replaced and the structure kept, to share the copy.",
    },
    "Scale": {"scan": "Run a command as a Spark job, on all cores or on a cluster."},
    "Compatibility": {"dump-log": "Print what kafka-dump-log prints for the same flags, for scripts that parse it."},
}
#: The commands that ``kafkalog scan`` offers, too, and those that take a bundle, too.
_ON_SPARK = {
    "ls", "dump", "grep", "txns", "producers", "metadata", "groups", "compaction", "retention", "verify", "diff",
    "recompress", "extract", "dump-log",
}  # fmt: skip
_READ_BUNDLES = {
    "ls", "find", "doctor", "txns", "producers", "metadata", "quorum", "groups", "compaction", "retention", "verify",
    "boot", "diff", "report",
}  # fmt: skip
#: The files that commands take besides directories.
_OTHER_PATHS = {
    "ls": "a file of a segment", "txns": "a .log file", "producers": "a .log file", "extract": "a .log file",
    "verify": "one file of any kind", "groups": "a log of __consumer_offsets",
    "metadata": "a log or a snapshot of __cluster_metadata-0", "quorum": "a log or a snapshot of __cluster_metadata-0",
}  # fmt: skip
#: The kinds that a path can be read as, where they are not all.
_KINDS = {
    "ls": "log-dir, partition, log", "grep": "log-dir, partition, log", "compaction": "log-dir, partition",
    "retention": "log-dir, partition", "metadata": "log-dir, partition, log, checkpoint",
    "quorum": "log-dir, partition, log, checkpoint",
}  # fmt: skip
#: What writing commands take besides.
_MORE_SOURCES = {
    "salvage": " or .log files; with --merge, several log directories",
    "redact": " or .log files",
    "recompress": "; with --estimate, several log directories",
}
#: What values are decoded as, where it does not depend on the terminal.
_VALUES_AS = {"extract": "raw", "sql": "auto", "verify": "auto", "redact": "auto"}
COMMANDS = tuple(
    CommandEntry(name, words, panel, is_scan=name in _ON_SPARK, reads_bundles=name in _READ_BUNDLES)
    for panel, commands in _PANELS.items()
    for name, words in commands.items()
)

#: The verbs of ``kafkalog scan``: every command that is a scan, under its own name. recompress only estimates there.
SCANS = tuple(
    CommandEntry(each.name, each.help, "Verbs", other_module=_RECOMPRESS if each.name == "recompress" else "")
    for each in COMMANDS
    if each.is_scan
)
