"""The exit codes, their meanings, the conditions that lead to them, and their precedence.

The EXIT STATUS section of every help page, the ``conditions`` of the summary and the exit code come from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from format.findings import Finding, Severity


class ExitCode(IntEnum):
    """The exit status of the process; see MEANINGS."""

    CLEAN = 0
    DAMAGE = 1
    USAGE = 2
    INCOMPLETE = 3
    OUTPUT_FAILED = 4
    REFUSED = 5
    BUG = 70
    HUNG_UP = 129
    INTERRUPTED = 130
    READER_GONE = 141
    TERMINATED = 143


MEANINGS: dict[ExitCode, str] = {
    ExitCode.CLEAN: "complete and clean; for find and grep: found",
    ExitCode.DAMAGE: "damage proven, a difference found by diff, or nothing found (--fail-on moves the threshold)",
    ExitCode.USAGE: "usage error: a wrong option, or a path that does not exist or holds no files of Kafka",
    ExitCode.INCOMPLETE: "incomplete: unreadable, unsupported, a limit reached, a tail being written; not proven clean",
    ExitCode.OUTPUT_FAILED: "output failed (disk full, I/O error): nothing was published",
    ExitCode.REFUSED: "refused for safety",
    ExitCode.BUG: "a bug in this program",
    ExitCode.HUNG_UP: "interrupted, as the terminal was closed",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.READER_GONE: "the reader of the output closed it, as head does",
    ExitCode.TERMINATED: "interrupted by a termination signal",
}

#: The codes by precedence, the strongest first, for runs with several conditions. Usage comes before incomplete and
#: after proven damage: a mistyped path among several must not hide the damage in the others.
PRECEDENCE = (
    ExitCode.TERMINATED,
    ExitCode.HUNG_UP,
    ExitCode.INTERRUPTED,
    ExitCode.READER_GONE,
    ExitCode.BUG,
    ExitCode.REFUSED,
    ExitCode.OUTPUT_FAILED,
    ExitCode.DAMAGE,
    ExitCode.USAGE,
    ExitCode.INCOMPLETE,
    ExitCode.CLEAN,
)


class Condition(Enum):
    """A condition that a run ended with; the value is its name in the summary."""

    DAMAGE = "damage"
    DIFFERENCE_FOUND = "difference-found"
    NOTHING_FOUND = "nothing-found"
    USAGE = "usage"
    INCOMPLETE = "incomplete"
    OUTPUT_FAILED = "output-failed"
    REFUSED = "refused"
    BUG = "bug"
    INTERRUPTED = "interrupted"
    READER_GONE = "reader-gone"
    TERMINATED = "terminated"
    HUNG_UP = "hung-up"

    @property
    def exit_code(self) -> ExitCode:
        return _CODES[self]

    @property
    def words(self) -> str:
        """Its meaning in words, for the end of the summary."""
        return _WORDS[self]

    @property
    def is_complete(self) -> bool:
        """Whether the work was finished, whatever was found."""
        return self in (Condition.DAMAGE, Condition.DIFFERENCE_FOUND, Condition.NOTHING_FOUND)


_CODES = {
    Condition.DAMAGE: ExitCode.DAMAGE,
    Condition.DIFFERENCE_FOUND: ExitCode.DAMAGE,
    Condition.NOTHING_FOUND: ExitCode.DAMAGE,
    Condition.USAGE: ExitCode.USAGE,
    Condition.INCOMPLETE: ExitCode.INCOMPLETE,
    Condition.OUTPUT_FAILED: ExitCode.OUTPUT_FAILED,
    Condition.REFUSED: ExitCode.REFUSED,
    Condition.BUG: ExitCode.BUG,
    Condition.INTERRUPTED: ExitCode.INTERRUPTED,
    Condition.READER_GONE: ExitCode.READER_GONE,
    Condition.TERMINATED: ExitCode.TERMINATED,
    Condition.HUNG_UP: ExitCode.HUNG_UP,
}

_WORDS = {
    Condition.DAMAGE: "damage proven",
    Condition.DIFFERENCE_FOUND: "a difference found",
    Condition.NOTHING_FOUND: "nothing found",
    Condition.USAGE: "usage error",
    Condition.INCOMPLETE: "incomplete, not proven clean",
    Condition.OUTPUT_FAILED: "output failed",
    Condition.REFUSED: "refused for safety",
    Condition.BUG: "a bug in this program",
    Condition.INTERRUPTED: "interrupted",
    Condition.READER_GONE: "the reader of the output went away",
    Condition.TERMINATED: "interrupted by a signal",
    Condition.HUNG_UP: "interrupted, as the terminal was closed",
}


def combined(conditions: Iterable[Condition]) -> ExitCode:
    """The exit code of a run that ended with these conditions; CLEAN for none."""
    codes = {condition.exit_code for condition in conditions}
    return next((code for code in PRECEDENCE if code in codes), ExitCode.CLEAN)


def conditions_of(finding: Finding, fail_on: Severity) -> frozenset[Condition]:
    """The conditions that a finding adds to a run.

    A finding that says "not checked" makes the run incomplete, whatever its severity. Any other finding is damage if
    its severity is at least ``fail_on``.
    """
    if finding.is_incomplete:
        return frozenset((Condition.INCOMPLETE,))
    return frozenset((Condition.DAMAGE,)) if finding.severity >= fail_on else frozenset()


def exit_status_rows() -> list[tuple[str, str]]:
    """The rows of the EXIT STATUS section of the help pages, in ascending order."""
    return [(str(int(code)), MEANINGS[code]) for code in sorted(MEANINGS)]
