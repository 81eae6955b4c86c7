"""The program ``kafkalog``: its own options, its errors, and its exit code.

Nothing here imports numpy, rich, a codec or pyspark; a command's module is imported when that command runs.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.main import get_command

from format.kernel.compiled import COMPILED_MODULES, plain_modules
from format.version import VERSION
from kafkalog_cli.command_table import COMMANDS, CONTEXT_SETTINGS, LazyGroup
from kafkalog_cli.exit_codes import SILENT, ExitCode

__all__ = ["VERSION", "kernel_kind", "version_text"]


def kernel_kind() -> str:
    """Which kernel runs: ``compiled``, ``plain Python``, or which of its modules are not compiled."""
    plain = plain_modules()
    if not plain:
        return "compiled"
    if len(plain) == len(COMPILED_MODULES):
        return "plain Python"
    return f"compiled, but plain Python for {', '.join(plain)}"


def version_text() -> str:
    """The lines of ``--version``."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"kafkalog {VERSION}\nkernel: {kernel_kind()}\npython: {python}"


PROGRAM = "kafkalog"
_COMPLETION = "_KAFKALOG_COMPLETE"  # the variable by which the shell asks for completions


class KafkalogGroup(LazyGroup):
    """All commands of the program."""

    entries = COMMANDS


app = typer.Typer(
    name=PROGRAM,
    cls=KafkalogGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT_SETTINGS,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version_text())
        raise typer.Exit()


def _debug(wanted: bool) -> None:
    if wanted:
        os.environ["KAFKALOG_DEBUG"] = "1"


@app.callback(epilog="Every command has its own --help, with examples and its exit status.")
def kafkalog(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", callback=_debug, help="Show tracebacks of errors (like KAFKALOG_DEBUG=1).")
    ] = False,
) -> None:
    """Read, verify, search and repair Apache Kafka log directories, straight from the disk and without a broker."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these arguments, by default those of the process, and return its exit code. Never raises."""
    try:
        code = _run(arguments)
    except SystemExit as error:  # from shell completion, and from typer when the reader of a help page has gone
        is_pipe = isinstance(error.__context__, BrokenPipeError)
        code = ExitCode.READER_GONE if is_pipe else error.code if isinstance(error.code, int) else ExitCode.CLEAN
    except BaseException as error:
        code = _code_of(error)
    return _closed(code)


def _run(arguments: Sequence[str] | None) -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads for linear algebra are not used
    _listen_for_termination()
    command: Any = get_command(app)
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not words and not os.environ.get(_COMPLETION):
        from kafkalog_cli.failures import say

        say(command.get_help(command.make_context(PROGRAM, [], resilient_parsing=True)))
        return ExitCode.USAGE
    if words[0:1] in (["--show-completion"], ["--install-completion"]) and words[1:]:
        _set_up_completion(*words)
        return ExitCode.CLEAN
    with _completion_without_rich():
        result = command.main(args=words, prog_name=PROGRAM, standalone_mode=False)
    return result if isinstance(result, int) else ExitCode.CLEAN


def _set_up_completion(option: str, shell: str, *others: str) -> None:
    """Show or install completion for a shell that is named after the option, and not for the one that runs."""
    from typer._completion_shared import Shells, get_completion_script, install

    if others or shell not in list(Shells):
        raise typer.BadParameter(f"after {option}, give {', '.join(Shells)}, or nothing for the shell that runs")
    if option == "--show-completion":
        typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=_COMPLETION, shell=shell))
        return
    _, path = install(shell=shell, prog_name=PROGRAM, complete_var=_COMPLETION)
    typer.echo(f"{shell} completion installed in {path}\nCompletion will take effect once you restart the terminal")


def _code_of(error: BaseException) -> int:
    """The exit code for an exception that no command has handled; prints a message."""
    from kafkalog_cli.failures import UsageError, condition_of, report
    from kafkalog_cli.output import output_failure

    if isinstance(error, typer.Abort):
        error = KeyboardInterrupt()
    if isinstance(error, UsageError):
        return _usage_error(error)
    if isinstance(error, OSError) and error.filename is None:  # no command has run: a help page could not be written
        error = output_failure(error)
    report(error)
    return condition_of(error).exit_code


def _usage_error(error: Any) -> int:
    from kafkalog_cli.failures import say, say_traceback, words_and_hint

    words, hint = words_and_hint(error)
    say(f"kafkalog: {words or _usage_words(error)}")
    if hint is not None:
        say(f"  {hint}")
    if error.ctx is not None:
        say(f"  See '{error.ctx.command_path} --help'.")
    say_traceback(error)
    return ExitCode.USAGE


def _usage_words(error: Any) -> str:
    """The message of a usage error, in the style of the program's other errors."""
    if isinstance(error, typer.BadParameter) and error.message:
        parameter, hint = getattr(error, "param", None), error.param_hint
        if hint is None and parameter is not None and parameter.param_type_name == "option":
            hint = parameter.opts[0]
        return f"{hint}: {error.message}" if isinstance(hint, str) else str(error.message)
    words = str(error.format_message()).removesuffix(".")
    return f"{words[:1].lower()}{words[1:]}"


def _closed(code: int) -> int:
    """The exit code after standard output is flushed, so that nothing can fail unnoticed when the interpreter exits."""
    from kafkalog_cli.output import close_standard_output

    failure = close_standard_output()
    is_reported = code in {each.exit_code for each in SILENT}
    return code if failure is None or is_reported else _code_of(failure)


def _listen_for_termination() -> None:
    """Turn SIGTERM and SIGHUP into exceptions, so that unfinished work is cleaned up. What is ignored stays ignored."""

    def terminate(number: int, frame: object) -> None:
        from kafkalog_cli.failures import HungUp, Terminated

        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the kernel and the shell both send it; cleaning up goes on
        raise HungUp if number == signal.SIGHUP else Terminated

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:  # as nohup leaves it
            continue
        try:
            signal.signal(number, terminate)
        except ValueError:
            return  # not the main thread: its caller handles signals


@contextmanager
def _completion_without_rich() -> Iterator[None]:
    """Hide rich while the shell asks for completions: typer would lay out the help texts with it, which breaks lines.

    TYPER_USE_RICH does not concern completions.
    """
    if not os.environ.get(_COMPLETION):
        yield
        return
    imported = sys.modules.get("rich")
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["rich"]
        if imported is not None:
            sys.modules["rich"] = imported
