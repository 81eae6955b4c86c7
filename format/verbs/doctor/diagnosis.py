"""Diagnoses: a sentence about what is wrong, with its rank, its evidence and the next command; and their words."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from format.columns import DIAGNOSIS
from format.findings import Severity
from format.offset_ranges import merged
from format.rows.record_rows import Row
from format.verbs.doctor.templates import TEMPLATES
from format.wording import counted


class Diagnosis(msgspec.Struct, frozen=True):
    """One thing that is wrong. The rank counts from 1, the most urgent.

    ``question`` is the verb that answers more about it, ``subject`` the partition, node, group or file, and ``code``
    the template of the sentence. ``command`` runs as it is printed; None where there is nothing to run.
    """

    rank: int
    severity: Severity
    question: str
    subject: str
    sentence: str
    evidence_path: str | None
    evidence_offset: int | None
    command: str | None
    code: str

    def row(self) -> Row:
        """The fields in the order of columns.DIAGNOSIS."""
        values = msgspec.structs.asdict(self)
        values["severity"] = self.severity.label
        return tuple(values[name] for name in DIAGNOSIS.names)


class Draft(msgspec.Struct, frozen=True):
    """A diagnosis before it is ranked. ``graded`` is its severity where that is not the template's.

    Of one kind, those with more ``weight`` come first. ``node`` names the node where there are several, and
    ``many_command`` is the next command for many of the kind on one node.
    """

    code: str
    subject: str
    sentence: str
    path: str | None
    offset: int | None
    command: str | None
    graded: Severity | None = None
    weight: int = 0
    node: str = ""
    many_command: str | None = None

    @property
    def severity(self) -> Severity:
        return TEMPLATES[self.code].severity if self.graded is None else self.graded


def command(verb: str, *words: str) -> str:
    """A command of this program, quoted for a shell."""
    return shlex.join(("kafkalog", verb, *words))


def ranges(offsets: Sequence[tuple[int, int]], most: int) -> str:
    """Ranges of offsets in words, those that touch joined, such as ``offsets 5-9 and 2 more ranges``."""
    found = merged(list(offsets))
    shown = [f"{first:,}" if first == last else f"{first:,}-{last:,}" for first, last in found[:most]]
    noun = "offset" if len(found) == 1 and found[0][0] == found[0][1] else "offsets"
    more = f" and {counted(len(found) - most, 'more range')}" if len(found) > most else ""
    return f"{noun} {', '.join(shown)}{more}"


def capital(words: str) -> str:
    """Words with a capital letter; a path stays as it is."""
    return words if "/" in words.split(" ")[0] else words[:1].upper() + words[1:]
