"""A group of commands that are imported when they run, and the layout of the help pages.

Names and one-line helps come from a table, so that the help of the group and shell completion import no command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
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


class CommandEntry(msgspec.Struct, frozen=True):
    """One row of a table of commands: the module holds a function of the command's name, and EXAMPLES.

    ``is_scan``: ``kafkalog scan`` offers the command, too. ``reads_bundles``: it takes a bundle, too.
    """

    name: str
    module: str
    help: str
    panel: str
    is_scan: bool = False
    reads_bundles: bool = False


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


class LazyCommands(MutableMapping[str, Any]):
    """The commands by name, in the table's order; a look-up imports the command's module."""

    def __init__(self, entries: Sequence[CommandEntry], load: Callable[[CommandEntry], Any] | None = None) -> None:
        self._load = load or load_command
        self._entries = {entry.name: entry for entry in entries}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._load(self._entries[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._loaded

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        self._entries.pop(name, None)
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._entries, *self._loaded)))

    def __len__(self) -> int:
        return len(set(self._entries) | set(self._loaded))


class LazyGroup(TyperGroup):
    """A group whose commands come from ``entries``; subclass it with a table."""

    entries: Sequence[CommandEntry] = ()
    examples: Sequence[tuple[str, str]] = ()

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.commands = LazyCommands(self.entries)
        self._is_listing = False

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
        """The names, in the table's order."""
        return [entry.name for entry in self.entries]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported now; while names are only listed, an empty one with its one-line help."""
        if cmd_name not in self.commands:
            return None
        if self._is_listing:
            entry = next(entry for entry in self.entries if entry.name == cmd_name)
            return TyperCommand(name=entry.name, help=entry.help, short_help=entry.help)
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command for some words; ``help COMMAND`` is ``COMMAND --help``."""
        if args[0] == "help":
            args = [*args[1:], "--help"]
            if len(args) == 1:
                if ctx.resilient_parsing:  # a shell completes the word after ``help``
                    return None, None, []
                typer.echo(ctx.get_help())
                ctx.exit()
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, list(rest)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Names and options that begin with what is typed; imports no command."""
        self._is_listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._is_listing = False

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
    function = getattr(module, entry.name.replace("-", "_"))
    kind: Any = getattr(module, "COMMAND_CLASS", HelpfulCommand)
    return made_command(entry.name, as_command(function), kind, getattr(module, "EXAMPLES", ()))


def made_command(
    name: str,
    function: Callable[..., Any],
    kind: Any,
    examples: Sequence[tuple[str, str]],
) -> Any:
    """The command that typer makes of a function with one parameter for each option."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    if issubclass(kind, LazyGroup):
        app.callback(cls=kind, context_settings=CONTEXT_SETTINGS)(function)
        app.info.name = name
    else:
        app.command(name=name, cls=kind, context_settings=CONTEXT_SETTINGS)(function)
    command: Any = get_command(app)
    command.examples = tuple(examples)
    return command


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
    options = [_option_row(each) for each in shown if each.param_type_name == "option"]
    for title, rows in (("Arguments", arguments), ("Options", options)):
        if rows:
            with formatter.section(title):
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
