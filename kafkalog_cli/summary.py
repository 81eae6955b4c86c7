"""The summary at the end of every stream: counts, conditions, and what was not checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from format.findings import Severity
from format.wording import plural
from kafkalog_cli.exit_codes import Condition, ExitCode, combined

#: Words that follow the noun in a counter's name, as in ``bytes_read``.
_PARTICIPLES = ("read", "compared")
#: What the rows of a type are about, where the type does not say it.
_ROWS_ABOUT = {
    "cleaner": "log",
    "divergence": "partition_compared",
    "retention_total": "topic",
    "segment_retention": "segment",
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

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        self.counts[name] = self.counts.get(name, 0) + number

    @property
    def exit_code(self) -> ExitCode:
        return combined(self.conditions)

    @property
    def complete(self) -> bool:
        """Whether the work was finished, whatever was found."""
        return all(condition.is_complete for condition in self.conditions)

    @property
    def all_not_checked(self) -> list[str]:
        """What was not checked, with one entry for each code of findings that say so."""
        return [
            *self.not_checked,
            *(f"{code}: {counted(count, 'finding')}" for code, count in sorted(self.unchecked_codes.items())),
        ]

    @property
    def condition_names(self) -> list[str]:
        """The conditions, in the order in which they are declared."""
        return [condition.value for condition in Condition if condition in self.conditions]

    def as_row(self) -> dict[str, Any]:
        """The summary as JSON lines show it."""
        return {
            "type": "summary",
            "command": self.command,
            "counts": dict(self.counts),
            "findings": dict(self.findings),
            "complete": self.complete,
            "exit_code": int(self.exit_code),
            "conditions": self.condition_names,
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
        counts = _joined(
            counted(count, _ROWS_ABOUT.get(name, name)) for name, count in self.counts.items() if name not in unnamed
        )
        lines = [f"{self.command}: {counts or 'nothing'}."]
        labels = (severity.label for severity in sorted(Severity, reverse=True))
        found = _joined(f"{self.findings[label]:,} {label}" for label in labels if self.findings.get(label))
        if found:
            lines.append(f"Findings: {found}.")
        if self.all_not_checked:
            lines.append(f"Not checked: {'; '.join(self.all_not_checked)}.")
        code = self.exit_code
        if self.conditions:
            words = "; ".join(each.words for each in Condition if each in self.conditions)
            lines.append(f"{words[0].upper()}{words[1:]}. Exit status {int(code)}.")
        elif self.findings:
            lines.append("Complete and clean." if not found else "Complete; no damage.")
        return "\n".join(lines)


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
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") else noun


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)
