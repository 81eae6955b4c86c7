"""The findings of a run: counts of all, and the most severe ones themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from format.findings import FINDING_CODES, Finding, Severity
from format.node.partition import parse_partition_dir
from format.rows.record_rows import Row
from format.verbs.report.terms import MOST_ROWS
from format.wording import counted, listed

#: The most findings of one code that are kept; the table may have room for fewer.
_MOST_OF_CODE = 500
_MOST_DIRECTORIES = 100_000
#: The most codes in the sentence about damage, and the most places for each of them.
_MOST_CODES = 4
_MOST_NAMED = 3
_MOST_RANGES = 2


class KeptFindings(msgspec.Struct):
    """Counts by code and severity, and the findings that are shown, the most severe first.

    ``owners`` has the node, in words, of a directory or of those in it; it is empty for a single node.
    """

    counts: dict[tuple[Severity, str], int] = msgspec.field(default_factory=dict)
    kept: dict[tuple[Severity, str], list[Finding]] = msgspec.field(default_factory=dict)
    places: dict[tuple[Severity, str], set[str]] = msgspec.field(default_factory=dict)
    lost_offsets: int = 0
    owners: dict[str, str] = msgspec.field(default_factory=dict)

    def add(self, found: Finding) -> None:
        """Count a finding; keep it if there are not too many of its code yet."""
        key = found.severity, found.code
        self.counts[key] = self.counts.get(key, 0) + 1
        kept = self.kept.setdefault(key, [])
        if len(kept) < _MOST_OF_CODE:
            kept.append(found)
        places = self.places.setdefault(key, set())
        if len(places) < _MOST_DIRECTORIES:
            places.add(directory_of(found))
        if found.lost_offsets is not None:
            self.lost_offsets += found.lost_offsets[1] - found.lost_offsets[0] + 1

    def has(self, found: Finding) -> bool:
        """Whether there is a finding of this code about the directory of a finding."""
        return directory_of(found) in self.places.get((found.severity, found.code), ())

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def severities(self) -> dict[str, int]:
        """The number of findings of each severity, the most severe first."""
        found = {severity.label: 0 for severity in sorted(Severity, reverse=True)}
        for (severity, _), count in self.counts.items():
            found[severity.label] += count
        return found

    def shown(self) -> Iterator[Finding]:
        """The findings that a report lists, the most severe first, up to MOST_ROWS."""
        left = MOST_ROWS
        for key in self._order():
            yield from self.kept[key][:left]
            left -= min(left, len(self.kept[key]))

    def summary_rows(self) -> Iterator[Row]:
        """Rows of columns.FINDING_SUMMARY: each code once, the most severe first."""
        for severity, code in self._order():
            entry = FINDING_CODES[code]
            key = severity, code
            yield (
                severity.label, code, self.counts[key], len(self.places[key]), entry.meaning, entry.broker,
                entry.next_step, self._places(key),
            )  # fmt: skip

    def damaged_logs(self) -> frozenset[Path]:
        """The directories with findings that are errors, among them every one with a damaged log."""
        grave = [places for (severity, _), places in self.places.items() if severity >= Severity.ERROR]
        return frozenset(Path(place) for places in grave for place in places)

    def sentence(self) -> str | None:
        """The sentence about damage: the most severe codes, from warnings up, and their places; None without any."""
        grave = [key for key in self._order() if key[0] >= Severity.WARNING]
        if not grave:
            return None
        words = [
            f"{severity.label} {code} in {self._places((severity, code))}" for severity, code in grave[:_MOST_CODES]
        ]
        more = len(grave) - _MOST_CODES
        others = f"; and {counted(more, 'more kind')} of findings, below" if more > 0 else ""
        return f"Damage: {'; '.join(words)}{others}."

    def _places(self, key: tuple[Severity, str]) -> str:
        """The first places of a code in words, one for each partition or file, those with losses first."""
        kept = self.kept[key]
        found: dict[str, list[tuple[int, int]]] = {}
        for each in sorted(kept, key=lambda one: one.lost_offsets is None):
            where = each.location
            name = where.path.rpartition("/")[2] if where.topic is None else f"{where.topic}-{where.partition}"
            losses = found.setdefault(name + self._owner_words(each), [])
            if each.lost_offsets is not None:
                losses.append(each.lost_offsets)
        is_whole = self.counts[key] == len(kept)
        shown = [name + _loss_words(losses, is_whole=is_whole) for name, losses in islice(found.items(), _MOST_NAMED)]
        # Not all findings of a frequent code are kept, but all their places are counted.
        more = max(len(found), len(self.places[key])) - len(shown)
        return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")

    def _owner_words(self, found: Finding) -> str:
        directory = directory_of(found)
        owner = self.owners.get(directory) or self.owners.get(directory.rpartition("/")[0])
        return "" if owner is None else f" of {owner}"

    def _order(self) -> list[tuple[Severity, str]]:
        return sorted(self.counts, key=lambda key: (-key[0], key[1]))


def directory_of(found: Finding) -> str:
    """The directory that a finding is about: the partition's, or the one that its file is in."""
    path = found.location.path
    folder, _, name = path.rpartition("/")
    return folder if parse_partition_dir(name) is None else path


def _loss_words(losses: Sequence[tuple[int, int]], *, is_whole: bool) -> str:
    """The lost offsets of one place in brackets; ``is_whole`` says whether these are all of them."""
    if not losses:
        return ""
    ranges = [f"{first:,}" if first == last else f"{first:,} to {last:,}" for first, last in losses[:_MOST_RANGES]]
    if len(losses) > len(ranges):
        more = len(losses) - len(ranges)
        ranges.append(counted(more, "more range") if is_whole else "others")
    is_one = len(losses) == 1 and losses[0][0] == losses[0][1]
    return f" ({'offset' if is_one else 'offsets'} {listed(ranges)} lost)"
