"""The condition, the message and the advice for an exception, and hints on options and commands of other tools."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from format import errors
from format.findings import FINDING_CODES, STEP_OUTSIDE_BUNDLE, next_step_of
from format.wording import installing, shell_word
from kafkalog_cli.command_table import COMMANDS
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.output import ReaderGone
from kafkalog_cli.render.folding import folded_line
from kafkalog_cli.render.text import printable

#: Lines are cut for no terminal that is narrower than this.
_LEAST_WIDTH = 30


def say(text: str) -> None:
    """Write lines to standard error; each is made screen-safe, and an error in writing them is ignored."""
    lines = "".join(f"{printable(line)}\n" for line in text.split("\n"))
    try:
        if sys.stderr is not None:
            if sys.stderr.isatty():
                width = max(os.get_terminal_size(sys.stderr.fileno()).columns, _LEAST_WIDTH)
                lines = "".join(f"{each}\n" for line in lines.splitlines() for each in folded_line(line, width))
            encoding = sys.stderr.encoding or "utf-8"
            sys.stderr.write(lines.encode(encoding, "backslashreplace").decode(encoding))
            sys.stderr.flush()
    except (OSError, ValueError):
        pass


def is_debugging() -> bool:
    return os.environ.get("KAFKALOG_DEBUG", "") not in ("", "0")


def say_traceback(error: BaseException) -> None:
    """Print the traceback of an error if KAFKALOG_DEBUG asks for it."""
    if is_debugging():
        say("".join(traceback.format_exception(error)).rstrip("\n"))


#: The class of all usage errors, in click and in typer's own copy of it.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


@contextmanager
def needing(what: str, extra: str, *, option: str | None = None, instead: str = "") -> Iterator[None]:
    """The context of the import of what an extra installs. Raises a usage error with the command where it is missing.

    ``what`` says who needs which library; ``instead`` is what can be done without it.
    """
    try:
        yield
    except ImportError as error:
        raise typer.BadParameter(f"{what} ({error}): {installing(extra)}{instead}", param_hint=option) from None


class Terminated(BaseException):
    """SIGTERM arrived."""


class HungUp(BaseException):
    """SIGHUP arrived: the terminal was closed."""


_ADVICE: dict[type[errors.KafkaLogError], str] = {
    errors.NotALogDir: "Give a log directory (with TOPIC-PARTITION directories), a partition directory, or a file of "
    "one.",
    errors.OutputInsideSource: "Give a path outside the sources and outside every log directory.",
    errors.OutputExists: "Give a new name, or remove it first.",
    errors.OutputError: "Check the free space and the permissions there.",
    errors.UnsupportedError: "Use a newer kafkalog.",
    errors.LimitExceeded: "Raise the limit with its option if you trust the data; see --help.",
}

_LEAST_CLOSE = 0.75

_BEFORE_COMMAND = {"-v": "Use --version.", "-V": "Use --version."}

#: How to get what options of other tools ask for, by their names.
_HINTS = {
    "--topic --topics": "For one topic, give its partition directories: DIR/TOPIC-*",
    "--partition --partitions": "For one partition, give its directory: DIR/TOPIC-N",
    "--key": "To look in keys: kafkalog grep --in key TEXT PATH…",
    "--value": "To look in values: kafkalog grep --in value TEXT PATH…",
    "--offset --offsets": "A range of offsets is --from-offset N --to-offset N; one record is 'kafkalog find PARTITION "
    "--offset N'.",
    "--position --positions": "'kafkalog dump' shows the position of each batch, and 'kafkalog explore' goes to one "
    "(key p).",
    "--headers": "Without --records, 'kafkalog dump' shows the headers of batches.",
    "--timestamp --time --since --until": "A range of time is --from-time T --to-time T; the first record from a time "
    "on is 'kafkalog find --timestamp T'.",
    "--json --jsonl": "Use --format jsonl.",
    "--csv": "Use --format csv.",
    "-o": "Use --output.",
    "-n": "Use --limit.",
    "--verbose": "A table shows more with --columns all.",
    "--path --dir --log-dir --log-dirs": "Paths are arguments, without an option.",
    "--files --print-data-log --deep-iteration": "The flags of kafka-dump-log are those of 'kafkalog dump-log'.",
    "--bootstrap-server --command-config": "kafkalog reads the files of a broker and connects to none.",
}
OPTION_HINTS = {name: hint for names, hint in _HINTS.items() for name in names.split()}

#: Hints for commands that other tools have.
_OF_COMMAND = {
    "completion": "Use 'kafkalog --install-completion'.",
    "completions": "Use 'kafkalog --install-completion'.",
    "version": "Use 'kafkalog --version'.",
    "cat": "Use 'kafkalog dump --records'.",
    "read": "Use 'kafkalog dump --records'.",
    "tail": "Use 'kafkalog dump --records --follow'.",
    "search": "Use 'kafkalog grep'.",
    "check": "Use 'kafkalog verify'.",
    "fsck": "Use 'kafkalog verify'.",
    "repair": "Use 'kafkalog salvage' for logs, and 'kafkalog rebuild-index' for indexes.",
    "topics": "Use 'kafkalog ls --by topic', or 'kafkalog metadata'.",
    "offsets": "Use 'kafkalog groups' for committed offsets, and 'kafkalog ls' for those of logs.",
    "consumers": "Use 'kafkalog groups'.",
    "lag": "Use 'kafkalog groups'.",
    "transactions": "Use 'kafkalog txns'.",
}


#: The conditions of runs that ended with exceptions: the first line with the exception's class says it.
_CONDITIONS: tuple[tuple[Condition, tuple[type[BaseException], ...]], ...] = (
    (Condition.INTERRUPTED, (KeyboardInterrupt,)),
    (Condition.TERMINATED, (Terminated,)),
    (Condition.HUNG_UP, (HungUp,)),
    (Condition.READER_GONE, (ReaderGone,)),
    (Condition.REFUSED, (errors.OutputExists, errors.OutputInsideSource, errors.Refused)),
    (Condition.OUTPUT_FAILED, (errors.OutputError,)),
    (Condition.DAMAGE, (errors.CorruptDataError,)),
    (Condition.INCOMPLETE, (errors.UnreadableFile, errors.UnsupportedError, errors.LimitExceeded)),
    (Condition.INCOMPLETE, (errors.ClusterFailed, OSError)),
    (Condition.USAGE, (errors.InputError, UsageError)),
    (Condition.BUG, (BaseException,)),
)


def condition_of(error: BaseException) -> Condition:
    """The condition of a run that ended with an exception."""
    return next(condition for condition, kinds in _CONDITIONS if isinstance(error, kinds))


def report(error: BaseException) -> None:
    """Print the message and the advice on standard error; nothing if the reader closed the pipe."""
    condition = condition_of(error)
    if condition is Condition.READER_GONE:
        return
    if condition in (Condition.INTERRUPTED, Condition.TERMINATED, Condition.HUNG_UP):
        say("kafkalog: interrupted")
    elif isinstance(error, errors.KafkaLogError):
        say(f"kafkalog: {_one_line(error)}")
        advice = advice_for(error)
        if advice:
            say(f"  {advice}")
    elif isinstance(error, OSError):
        name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        reason = os.strerror(error.errno) if error.errno else _one_line(error)
        say(f"kafkalog: {name}{reason}")
    else:
        words = _one_line(error)
        say(f"kafkalog: internal error: {type(error).__name__}{': ' if words else ''}{words}")
        if not is_debugging():
            say("  This is a bug. Set KAFKALOG_DEBUG=1 to see where it happened, and report that.")
    say_traceback(error)


def advice_for(error: errors.KafkaLogError) -> str:
    """The advice for an error: by its code in the table of findings, else by its class."""
    if isinstance(error, errors.NotInBundle):
        return STEP_OUTSIDE_BUNDLE
    if isinstance(error, errors.BadQuery):
        return error.excerpt.replace("\n", "\n  ")
    if error.code in FINDING_CODES:
        return next_step_of(error.code, error.location)
    parent = os.path.dirname(error.location.path) if error.location is not None else ""
    if type(error) is errors.OutputError and parent and not os.path.lexists(parent):
        return f"Make the directory first: mkdir -p {shell_word(parent)}"
    return next((words for kind, words in _ADVICE.items() if isinstance(error, kind)), "")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def words_and_hint(error: Any) -> tuple[str | None, str | None]:
    """The message that replaces the error's own, and a hint; each None where there is none."""
    kind = type(error).__name__  # typer raises errors of its own copy of click
    if kind == "NoSuchOption":
        return _for_option(error, error.option_name)
    words = str(getattr(error, "message", "")).split("'")
    if words[0] != "No such command " or len(words) < 2:
        return None, None
    name = words[1]
    is_scan = error.ctx is not None and error.ctx.parent is not None
    hint = _without_scan(name) if is_scan else _OF_COMMAND.get(name)
    return (None if hint is None else f"no such command '{name}'"), hint


def _without_scan(name: str) -> str | None:
    """The hint for a command that is not offered under scan."""
    if name == "report":
        return "Use 'kafkalog report DIR', with the DIR that 'kafkalog scan verify --output DIR' wrote."
    if any(each.name == name and name != "scan" for each in COMMANDS):
        return f"Use 'kafkalog {name}': it does not run as a Spark job."
    return _OF_COMMAND.get(name)


def _for_option(error: Any, name: str) -> tuple[str, str | None]:
    from difflib import SequenceMatcher

    is_before_command = error.ctx is not None and error.ctx.parent is None and hasattr(error.ctx.command, "entries")
    close = [each for each in error.possibilities or () if SequenceMatcher(None, name, each).ratio() >= _LEAST_CLOSE]
    hint = (_BEFORE_COMMAND if is_before_command else OPTION_HINTS).get(name)
    if hint is None and close:
        return f"no such option: {name}. Did you mean {' or '.join(close)}?", None
    if hint is None and is_before_command and name.startswith("--"):
        hint = f"Options follow the command: kafkalog COMMAND {name} …"
    return f"no such option: {name}", hint
