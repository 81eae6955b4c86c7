"""The exit codes of kafkalog, the conditions that lead to them, and the counts that a run ends with."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Any

import msgspec

from format.findings import Finding, Severity
from format.location import Location
from format.wording import plural
from kafkalog_cli.render.text import printable


class ExitCode(IntEnum):
    """The exit status of the process, and its meaning.

    The order is that of precedence, the strongest first, for runs with several conditions. Usage comes before
    incomplete and after proven damage: a mistyped path among several must not hide the damage in the others.
    """

    meaning: str

    def __new__(cls, number: int, meaning: str) -> ExitCode:
        code = int.__new__(cls, number)
        code._value_, code.meaning = number, meaning
        return code

    TERMINATED = 143, "interrupted by a termination signal"
    HUNG_UP = 129, "interrupted, as the terminal was closed"
    INTERRUPTED = 130, "interrupted by Ctrl-C"
    READER_GONE = 141, "the reader of the output closed it, as head does"
    BUG = 70, "a bug in this program"
    REFUSED = 5, "refused for safety"
    OUTPUT_FAILED = 4, "output failed (disk full, I/O error): nothing was published"
    DAMAGE = 1, "damage proven, a difference found by diff, nothing found, or a condition of --fail-on met"
    USAGE = 2, "usage error: a wrong option, or a path that does not exist or holds no files of Kafka"
    INCOMPLETE = 3, "incomplete: unreadable, unsupported, a limit reached, a tail being written; not proven clean"
    CLEAN = 0, "complete and clean; for find and grep: found"


class Condition(Enum):
    """A condition that a run ended with: its name in the summary, its exit code, and its meaning in words."""

    DAMAGE = "damage", ExitCode.DAMAGE, "damage proven"
    DIFFERENCE_FOUND = "difference-found", ExitCode.DAMAGE, "a difference found"
    NOTHING_FOUND = "nothing-found", ExitCode.DAMAGE, "nothing found"
    FAIL_ON_MET = "fail-on-met", ExitCode.DAMAGE, "a condition of --fail-on met"
    USAGE = "usage", ExitCode.USAGE, "usage error"
    INCOMPLETE = "incomplete", ExitCode.INCOMPLETE, "incomplete, not proven clean"
    OUTPUT_FAILED = "output-failed", ExitCode.OUTPUT_FAILED, "output failed"
    REFUSED = "refused", ExitCode.REFUSED, "refused for safety"
    BUG = "bug", ExitCode.BUG, "a bug in this program"
    INTERRUPTED = "interrupted", ExitCode.INTERRUPTED, "interrupted"
    READER_GONE = "reader-gone", ExitCode.READER_GONE, "the reader of the output went away"
    TERMINATED = "terminated", ExitCode.TERMINATED, "interrupted by a signal"
    HUNG_UP = "hung-up", ExitCode.HUNG_UP, "interrupted, as the terminal was closed"

    def __init__(self, label: str, exit_code: ExitCode, words: str) -> None:
        self.label, self.exit_code, self.words = label, exit_code, words


#: After these conditions nothing more is written: a stream without a summary is incomplete.
SILENT = frozenset(
    (Condition.INTERRUPTED, Condition.TERMINATED, Condition.HUNG_UP, Condition.READER_GONE, Condition.OUTPUT_FAILED)
)


def combined(conditions: Iterable[Condition]) -> ExitCode:
    """The exit code of a run that ended with these conditions; CLEAN for none."""
    codes = {condition.exit_code for condition in conditions}
    return next((code for code in ExitCode if code in codes), ExitCode.CLEAN)


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
    return [(str(int(code)), code.meaning) for code in sorted(ExitCode)]


#: Words that follow the noun in a counter's name, as in ``bytes_read``.
_PARTICIPLES = ("read", "compared")
#: What the rows of a type are about, where the type does not say it.
ROWS_ABOUT = {
    "broker": "node_role",
    "cleaner": "log",
    "divergence": "partition_compared",
    "producer": "row",
    "retention_total": "topic",
    "segment_retention": "segment",
    "transaction_total": "partition",
}
#: Counters of partitions by their kind, which is no noun.
_KINDS = {"identical": "identical", "behind": "behind", "diverged": "diverged", "different_bytes": "in other bytes"}


class Summary(msgspec.Struct):
    """The summary of a run: filled while a command runs, rendered at its end.

    ``counts`` has the number of rows of each type and the command's own counters; ``findings`` the number of findings
    by severity; ``not_checked`` lists in words what was not checked.
    """

    command: str
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    findings: dict[str, int] = msgspec.field(default_factory=dict)
    conditions: set[Condition] = msgspec.field(default_factory=set)
    not_checked: list[str] = msgspec.field(default_factory=list)
    unchecked_codes: dict[str, int] = msgspec.field(default_factory=dict)  # findings that say "not checked", by code
    damaged: dict[str, str] = msgspec.field(default_factory=dict)  # by directory the damaged partition; by file ""

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        self.counts[name] = self.counts.get(name, 0) + number

    def damaged_at(self, where: Location) -> None:
        """Add the partition of damage, or the file if it is of none."""
        if where.topic is None:
            self.damaged[where.path] = ""
            return
        name = f"{where.topic}-{where.partition}"
        directory, _, file = where.path.rpartition("/")
        self.damaged[where.path if file.startswith(name) else directory] = name

    @property
    def exit_code(self) -> ExitCode:
        return combined(self.conditions)

    @property
    def complete(self) -> bool:
        """Whether the work was finished, whatever was found."""
        return all(condition.exit_code is ExitCode.DAMAGE for condition in self.conditions)

    @property
    def all_not_checked(self) -> list[str]:
        """What was not checked, with one entry for each code of findings that say so."""
        return [
            *self.not_checked,
            *(f"{code}: {counted(count, 'finding')}" for code, count in sorted(self.unchecked_codes.items())),
        ]

    def as_row(self) -> dict[str, Any]:
        """The summary as JSON lines show it."""
        return {
            "type": "summary",
            "command": self.command,
            "counts": dict(self.counts),
            "findings": dict(self.findings),
            "complete": self.complete,
            "exit_code": int(self.exit_code),
            "conditions": [condition.label for condition in Condition if condition in self.conditions],
            "not_checked": self.all_not_checked,
        }

    @property
    def is_remarkable(self) -> bool:
        """Whether it says more than "complete and clean"."""
        return bool(self.conditions or self.all_not_checked)

    @property
    def is_usage_error(self) -> bool:
        """Whether the run ended with a usage error, and nothing was read."""
        return self.conditions == {Condition.USAGE} and not any(self.counts.values())

    def paragraph(self) -> str:
        """The summary in a few lines of text."""
        unnamed = {"finding", "match"} if Condition.NOTHING_FOUND in self.conditions else {"finding"}
        counts = ", ".join(
            counted(count, ROWS_ABOUT.get(name, name)) for name, count in self.counts.items() if name not in unnamed
        )
        lines = [f"{self.command}: {counts or 'nothing'}."]
        labels = (severity.label for severity in sorted(Severity, reverse=True))
        found = ", ".join(f"{self.findings[label]:,} {label}" for label in labels if self.findings.get(label))
        if self.all_not_checked:
            lines.append(f"Not checked: {'; '.join(self.all_not_checked)}.")
        last = [f"Findings: {found}."] if found else []
        if self.conditions:
            # Damage without a place is what the answer says: a refused start, losses, a diagnosis.
            said = [
                each for each in Condition if each in self.conditions and (each is not Condition.DAMAGE or self.damaged)
            ]
            words = "; ".join(self._damage_words() if each is Condition.DAMAGE else each.words for each in said)
            last += [f"{words[0].upper()}{words[1:]}."] if words else []
            last.append(f"Exit status {int(self.exit_code)}.")
        elif len(self.findings) == len(Severity):  # of a command that checks: it counts all severities from the start
            is_proven = " is proven" if self.findings[Severity.WARNING.label] else ""
            if self.all_not_checked:
                last.append(f"No damage{is_proven} in what was checked." if found else "Clean in what was checked.")
            else:
                last.append(f"Complete; no damage{is_proven}." if found else "Complete and clean.")
        return "\n".join([*lines, *([" ".join(last)] if last else ())])

    def _damage_words(self) -> str:
        """That damage is proven, and in which partitions."""
        places = [printable(name) for name in self.damaged.values() if name]
        if not places:
            return Condition.DAMAGE.words
        names = sorted(set(places))
        named = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
        others = " and outside of partitions" if len(places) < len(self.damaged) else ""
        return f"{Condition.DAMAGE.words} in {counted(len(names), 'partitions')} ({named}){others}"


_MOST_NAMED = 3


def counted(count: int, name: str) -> str:
    """A count with its noun, as ``1 segment``, ``2 batches``, ``0 bytes``.

    ``name`` is the name of a counter: words joined by underscores; its noun may be singular or plural.
    """
    if name in _KINDS:
        return f"{count:,} {_KINDS[name]}"
    words = name.split("_")
    noun = -2 if words[-1] in _PARTICIPLES else -1
    singular = _singular(words[noun])
    words[noun] = singular if count == 1 else plural(singular)
    return f"{count:,} {' '.join(words)}"


def _singular(noun: str) -> str:
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    if noun.endswith(("tches", "sses", "xes")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ss", "sis")) else noun
