"""verify for the output of a writing verb, before it is published.

What the run has reported about the sources is not reported again: damage may have been kept, and lost records are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from format import layout
from format.findings import Certainty, Finding, Severity
from format.io.source import FileSource
from format.limits import Limits
from format.location import Location
from format.log.batch_header import header_tables
from format.node.log_dir import Checkpoints, Kind
from format.node.target import Surroundings, Target
from format.offset_ranges import Range, is_covered, merged
from format.rewriting.index_builder import LOOK_ELSEWHERE, IndexedOffsets
from format.rewriting.publication import Publication
from format.rewriting.rewriter import WriteTerms
from format.rewriting.sources import WriteSources
from format.scan.drivers import open_driver
from format.scan.progress import SpanProgress
from format.verbs.verify.verify import PartitionDirectory, VerifyScan, VerifyTerms, logs_to_verify, verify
from format.wording import offsets_are

#: Reported of the source already where that has no segment.
_NOTHING = "nothing-to-read"
#: Findings about missing offsets, reported whatever their severity: the new indexes do not show the gaps.
_GAPS = frozenset({"offset-gap", "segment-missing", "file-name-mismatch"})
#: Findings that damage of the same partition explains, if it was reported.
_EXPLAINED = _GAPS | {"log-head-missing"}


def verify_output(
    publication: Publication, sources: WriteSources, terms: WriteTerms, reported: Iterable[Finding]
) -> Iterator[Finding]:
    """New findings of at least severity warning, and gaps, with the paths that the published files will have."""
    known = _Known(reported)
    source_indexes = _SourceIndexes(sources, terms.limits)
    progress = SpanProgress(terms.advance, sources.size_bytes)
    verify_terms = VerifyTerms(limits=terms.limits, jobs=terms.jobs, advance=progress.advance)
    for found in _findings(publication, sources, verify_terms):
        if (found.severity >= Severity.WARNING or found.code in _GAPS) and not known.holds(found):
            if found.code == "offset-gap" and found.severity < Severity.ERROR:
                found = source_indexes.judged(found)
            yield _published(found, publication)
    progress.finish()


def _findings(publication: Publication, sources: WriteSources, terms: VerifyTerms) -> Iterator[Finding]:
    if sources.log_dir is not None:
        yield from verify(Target(publication.path, Kind.LOG_DIR), terms)
        return
    places = {name: publication.place_of(name) for name in sources.partitions}
    written = {name: path for name, path in places.items() if path.is_dir()}
    surroundings = Surroundings()  # a log directory is listed once, and not for each of its partitions
    logs = [log for path in written.values() for log in logs_to_verify(Target(path, Kind.PARTITION, surroundings))]
    with open_driver(terms.walk, logs, terms.jobs, terms.advance) as driver:
        for name, path in written.items():
            checkpoints = _of_cleaner(surroundings.checkpoints(sources.partitions[name].path, terms.limits))
            items = VerifyScan(terms.walk).results(PartitionDirectory(path, checkpoints), driver)
            yield from (item for item in items if isinstance(item, Finding))


class _SourceIndexes:
    """What the indexes of the sources prove about gaps of the output, whose new indexes do not show them.

    Gaps come in log order, so that the headers of a log are read once, and so are the indexes of a segment.
    """

    def __init__(self, sources: WriteSources, limits: Limits) -> None:
        self._partitions = sources.partitions
        self._limits = limits
        self._walked = ("", 0, 0)  # path of a log, position up to which it was read, offset after the last batch there
        self._segment: tuple[Location, IndexedOffsets] | None = None

    def judged(self, found: Finding) -> Finding:
        """The finding for a gap: an error where an index of the source names an offset in it, else as it is."""
        place = found.location
        partition = self._partitions.get(Path(place.path).parent.name)
        if partition is None or place.position is None or place.offset is None:
            return found
        first = self._end_before(place.path, place.position)
        for segment, next_segment in pairwise((*partition.segments, None)):
            if segment is None or segment.log is None or segment.base_offset >= place.offset:
                continue
            if next_segment is not None and next_segment.base_offset <= first:
                continue
            named = self._indexed(partition.location(segment.log, segment.base_offset)).within(first, place.offset)
            if named is not None:
                return replace(
                    found,
                    severity=Severity.ERROR,
                    certainty=Certainty.PROVEN,
                    message=f"{offsets_are(first, place.offset - 1)} in no batch, and an index of the source names "
                    f"offset {named}: batches are gone from the source, and the new indexes do not show it",
                    next_step=LOOK_ELSEWHERE,
                    lost_offsets=(first, place.offset - 1),
                )
        return found

    def _end_before(self, path: str, position: int) -> int:
        """The offset after the batches of a log before a position; 0 if there are none."""
        walked, start, end = self._walked
        if walked != path or start > position:
            start = end = 0
        with FileSource(Path(path)) as log:
            for table in header_tables(log, start, position):
                end = max(end, int(table.last_offset[-1]) + 1)
        self._walked = (path, position, end)
        return end

    def _indexed(self, location: Location) -> IndexedOffsets:
        if self._segment is None or self._segment[0] != location:
            self._segment = (location, IndexedOffsets(location, self._limits))
        return self._segment[1]


def _of_cleaner(checkpoints: Checkpoints) -> Checkpoints:
    """The cleaner's checkpoint alone: where compaction may have removed offsets holds for the output too."""
    name = layout.CLEANER_OFFSET_CHECKPOINT
    return Checkpoints({name: checkpoints.by_name.get(name, {})})


def _published(found: Finding, publication: Publication) -> Finding:
    """A finding about the partial directory, with the paths that it will have once it is published."""
    location, cause = found.location, found.caused_by
    location = replace(location, path=_published_path(location.path, publication))
    if cause is not None:
        cause = replace(cause, path=_published_path(cause.path, publication))
    message = found.message.replace(str(publication.path), str(publication.target))
    return replace(found, location=location, caused_by=cause, message=message)


def _published_path(path: str, publication: Publication) -> str:
    if not Path(path).is_relative_to(publication.path):
        return path
    return str(publication.target / Path(path).relative_to(publication.path))


class _Known:
    """What the run has reported: codes by directory and file name, and lost offsets by partition."""

    def __init__(self, reported: Iterable[Finding]) -> None:
        self._codes: set[tuple[str, str, str]] = set()
        self._damaged: set[tuple[str | None, int | None]] = set()
        self._lost: dict[tuple[str | None, int | None], list[Range]] = {}
        self._false_ends: dict[tuple[str | None, int | None], tuple[str, ...]] = {}
        for each in reported:
            self._codes.add(_key(each))
            if each.severity >= Severity.ERROR or each.is_incomplete:
                self._damaged.add(_partition_of(each))
            if each.lost_offsets is not None:
                self._lost.setdefault(_partition_of(each), []).append(each.lost_offsets)
        for ranges in self._lost.values():
            ranges[:] = merged(ranges)

    def holds(self, found: Finding) -> bool:
        """Whether the same code was reported of a file of that name, or all offsets of the finding as lost."""
        if found.code == _NOTHING or _key(found) in self._codes:
            return True
        partition = _partition_of(found)
        if (
            found.code in _EXPLAINED or found.code in self._false_ends.get(partition, ())
        ) and partition in self._damaged:
            return True
        lost = self._lost.get(partition, [])
        right, wrong = (found.expected, found.actual) if found.code == "batch-invalid" else (None, None)
        if isinstance(right, int) and isinstance(wrong, int) and is_covered((right, wrong - 1), lost):
            # Without the lost batches the last one seems to have a false offset, and the log another end.
            self._false_ends[partition] = ("snapshot-mismatch",)
            return True
        return found.lost_offsets is not None and is_covered(found.lost_offsets, lost)


def _key(found: Finding) -> tuple[str, str, str]:
    path = Path(found.location.path)
    return path.parent.name if found.location.topic is not None else "", path.name, found.code


def _partition_of(found: Finding) -> tuple[str | None, int | None]:
    return found.location.topic, found.location.partition
