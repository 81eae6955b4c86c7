"""The summary that every stream ends with: what was counted, how it ended, and what was not checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kafkalog_cli.exit_codes import MEANINGS, Condition, ExitCode, combined


@dataclass
class Summary:
    """Filled while a command runs, rendered at its end.

    ``counts`` has the rows of each type and whatever else the command counts; ``findings`` the findings by severity,
    the mildest first; ``not_checked`` says in words what the result does not speak about.
    """

    command: str
    counts: dict[str, int] = field(default_factory=dict)
    findings: dict[str, int] = field(default_factory=dict)
    conditions: set[Condition] = field(default_factory=set)
    not_checked: list[str] = field(default_factory=list)
    unchecked_codes: dict[str, int] = field(default_factory=dict)  # findings that say "not checked", by code

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        self.counts[name] = self.counts.get(name, 0) + number

    @property
    def exit_code(self) -> ExitCode:
        return combined(self.conditions)

    @property
    def complete(self) -> bool:
        """Whether the work was done to its end, whatever it showed."""
        return all(condition.is_complete for condition in self.conditions)

    @property
    def all_not_checked(self) -> list[str]:
        """What was not checked, with one entry for each code of findings that say so."""
        return [
            *self.not_checked,
            *(f"{code}: {_number(count, 'finding')}" for code, count in sorted(self.unchecked_codes.items())),
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
        """Whether it says more than "all done, all clean"."""
        return bool(self.conditions or self.all_not_checked)

    def paragraph(self) -> str:
        """A few lines for people."""
        counted = _joined(_number(count, name) for name, count in self.counts.items() if name != "finding")
        lines = [f"{self.command}: {counted or 'nothing'}."]
        found = _joined(f"{count:,} {name}" for name, count in reversed(self.findings.items()) if count)
        if found:
            lines.append(f"Findings: {found}.")
        if self.all_not_checked:
            lines.append(f"Not checked: {'; '.join(self.all_not_checked)}.")
        code = self.exit_code
        if self.conditions:
            lines.append(f"Ended with: {', '.join(self.condition_names)}. Exit status {int(code)}: {MEANINGS[code]}.")
        elif self.findings:
            lines.append("Complete and clean." if not found else "Complete; no damage.")
        return "\n".join(lines)


def _number(count: int, name: str) -> str:
    words = name.replace("_", " ")
    if count != 1 and not words.endswith(("s", "bytes read")):
        words = words[:-1] + "ies" if words.endswith("y") else words + ("es" if words.endswith(("ch", "x")) else "s")
    return f"{count:,} {words}"


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)
