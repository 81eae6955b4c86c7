"""Whether a screen says what is true of an incident, and nothing that is false."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.incidents.terminal import Shown


def number(value: int) -> str:
    """An expression for a number, with or without separators of thousands, that is not a part of another number."""
    return rf"(?<![\d.,]){f'{value:,}'.replace(',', ',?')}(?![\d]|,\d)"


def word(text: str) -> str:
    """An expression for a name that is not a part of another name."""
    return rf"(?<![\w]){re.escape(text)}(?![\w])"


def span(first: int, last: int) -> str:
    """An expression for a range of offsets, however it is written, or its two ends."""
    return rf"{number(first)}\D{{1,24}}{number(last)}"


@dataclass(frozen=True)
class Fact:
    """Something that must stand in an answer, with the expressions of which one must be found."""

    words: str
    patterns: tuple[str, ...]

    def stands_in(self, text: str) -> bool:
        return any(re.search(each, text, re.IGNORECASE) for each in self.patterns)


def fact(words: str, *patterns: str) -> Fact:
    """What must stand in an answer. Without expressions, the words themselves."""
    return Fact(words, patterns or (word(words),))


@dataclass(frozen=True)
class Judgement:
    """What is wrong with an answer; each list is empty for one that is right."""

    missing: list[str] = field(default_factory=list)  # facts that it does not give
    scrolled: list[str] = field(default_factory=list)  # facts that left the screen before it ended
    false: list[str] = field(default_factory=list)  # sentences that are not true
    unfit: list[str] = field(default_factory=list)  # a crash, a usage error

    @property
    def is_right(self) -> bool:
        return not (self.missing or self.scrolled or self.false or self.unfit)

    def __str__(self) -> str:
        named = {"false": self.false, "missing": self.missing, "scrolled off": self.scrolled, "": self.unfit}
        return "; ".join(f"{name}: {', '.join(found)}".removeprefix(": ") for name, found in named.items() if found)


def judged(answer: Shown, facts: Iterable[Fact], false: Iterable[str] = (), statuses: Iterable[int] = ()) -> Judgement:
    """Compare an answer with the truth."""
    everything, visible = answer.flat(), answer.flat(only_visible=True)
    facts = list(facts)
    missing = [each.words for each in facts if not each.stands_in(everything)]
    scrolled = [each.words for each in facts if each.words not in missing and not each.stands_in(visible)]
    wrong = [found[0] for each in false if (found := re.search(each, everything, re.IGNORECASE))]
    unfit = [f"exit {answer.exit_status}"] if answer.exit_status in (2, 70) or answer.exit_status < 0 else []
    if statuses and answer.exit_status not in statuses and not unfit:
        unfit = [f"exit {answer.exit_status}"]
    return Judgement(missing, scrolled, wrong, unfit)


@dataclass(frozen=True)
class Cause:
    """What the first diagnosis must name: a code, a subject, and facts in its sentence."""

    codes: str
    subjects: str
    facts: tuple[Fact, ...] = ()
    false: tuple[str, ...] = ()  # what no diagnosis may say

    def faults(self, rows: Iterable[Mapping[str, Any]]) -> str | None:
        """Why the diagnoses do not name it first; None where they do."""
        diagnoses = [row for row in rows if row.get("type") == "diagnosis"]
        said = " ".join(row["sentence"] for row in diagnoses)
        wrong = [found[0] for each in self.false if (found := re.search(each, said, re.IGNORECASE))]
        if wrong:
            return f"false: {', '.join(wrong)}"
        if not diagnoses:
            return "no diagnosis"
        first = min(diagnoses, key=lambda row: row["rank"])
        what = f"{first['code']} {first['subject']}"
        if not self._is_named_by(first):
            later = [row["rank"] for row in diagnoses if self._is_named_by(row)]
            return f"first is {what}" + (f", the cause has rank {later[0]}" if later else ", the cause is not named")
        missing = [each.words for each in self.facts if not each.stands_in(_text(first))]
        return f"{what}, without {', '.join(missing)}" if missing else None

    def _is_named_by(self, row: Mapping[str, Any]) -> bool:
        return bool(re.search(self.codes, str(row["code"])) and re.search(self.subjects, _text(row)))


def _text(row: Mapping[str, Any]) -> str:
    """What stands on the screen of a diagnosis."""
    parts = [
        row[name] for name in ("subject", "sentence", "evidence_path", "evidence_offset") if row.get(name) is not None
    ]
    return " ".join(map(str, parts))
