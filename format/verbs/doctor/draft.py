"""A diagnosis before it is ranked, and the words that all of them share."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from format.findings import Severity
from format.offset_ranges import merged
from format.verbs.doctor.evidence import Evidence
from format.verbs.doctor.templates import TEMPLATES
from format.wording import counted


class Draft(msgspec.Struct, frozen=True, kw_only=False):
    """A diagnosis without its rank. ``severity`` None is that of the template.

    Of one kind, those with more ``weight`` come first. ``node`` names the node where there are several, and
    ``many_command`` is the next command for many of the kind on one node.
    """

    code: str
    subject: str
    sentence: str
    path: str | None
    offset: int | None
    command: str | None
    severity: Severity = Severity.INFO
    weight: int = 0
    node: str = ""
    many_command: str | None = None

    def __post_init__(self) -> None:
        if self.severity is Severity.INFO:
            msgspec.structs.force_setattr(self, "severity", TEMPLATES[self.code].severity)


def command(verb: str, *words: str) -> str:
    """A command of this program, quoted for a shell."""
    return shlex.join(("kafkalog", verb, *words))


def subject_of(evidence: Evidence, path: str, topic: str | None, partition: int | None) -> str:
    """A partition with its node, where there are several nodes; else the name of the file or directory."""
    name = path.rpartition("/")[2] if topic is None else f"{topic}-{partition}"
    node = evidence.node_of(path)
    return f"{name} on {node}" if node and name != node else name


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
