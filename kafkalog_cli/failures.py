"""What an exception means for the run: a condition, a message, and advice."""

from __future__ import annotations

import os

import typer

from format.errors import (
    ClusterFailed,
    CorruptDataError,
    InputError,
    KafkaLogError,
    LimitExceeded,
    NotALogDir,
    NotInBundle,
    OutputError,
    OutputExists,
    OutputInsideSource,
    Refused,
    UnreadableFile,
    UnsupportedError,
)
from format.findings import FINDING_CODES, next_step_of
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.messages import is_debugging, say, say_traceback
from kafkalog_cli.output import ReaderGone

#: The class of all usage errors, in click and in typer's own copy of it.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class Terminated(BaseException):
    """SIGTERM arrived."""


_ADVICE: dict[type[KafkaLogError], str] = {
    NotALogDir: "Give a log directory (with TOPIC-PARTITION directories), a partition directory, or a file of one.",
    OutputInsideSource: "Give a place outside the source.",
    OutputExists: "Give a new name, or remove it first.",
    OutputError: "Check the free space and the permissions of the place.",
    UnsupportedError: "Use a newer kafkalog.",
    LimitExceeded: "Raise the limit with its flag if you trust the data; see --help.",
}


def condition_of(error: BaseException) -> Condition:
    """The condition of a run that ended with an exception."""
    if isinstance(error, KeyboardInterrupt):
        return Condition.INTERRUPTED
    if isinstance(error, Terminated):
        return Condition.TERMINATED
    if isinstance(error, ReaderGone):
        return Condition.READER_GONE
    if isinstance(error, (OutputExists, OutputInsideSource, Refused)):
        return Condition.REFUSED
    if isinstance(error, OutputError):
        return Condition.OUTPUT_FAILED
    if isinstance(error, CorruptDataError):
        return Condition.DAMAGE
    if isinstance(error, (UnreadableFile, UnsupportedError, LimitExceeded, ClusterFailed, OSError)):
        return Condition.INCOMPLETE
    if isinstance(error, (InputError, UsageError)):
        return Condition.USAGE
    return Condition.BUG


def report(error: BaseException) -> None:
    """Print on standard error what happened and what to try; nothing if the reader closed the pipe."""
    condition = condition_of(error)
    if condition is Condition.READER_GONE:
        return
    if condition in (Condition.INTERRUPTED, Condition.TERMINATED):
        say("kafkalog: interrupted")
    elif isinstance(error, KafkaLogError):
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


def advice_for(error: KafkaLogError) -> str:
    """What to try: the advice for the error's code in the table of findings, else for its class."""
    if isinstance(error, NotInBundle):
        return "The logs themselves tell."
    if error.code in FINDING_CODES:
        return next_step_of(error.code, error.location)
    return next((words for kind, words in _ADVICE.items() if isinstance(error, kind)), "")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
