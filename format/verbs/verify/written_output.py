"""verify for the output of a writing verb, before it is published.

What the run has reported about the sources is not reported again: damage may have been kept, and lost records are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from format import layout
from format.findings import Certainty, Finding, Severity
from format.io.source import FileSource
from format.log.batch_header import header_tables
from format.node.checkpoints import Checkpoints
from format.node.log_dir import Kind
from format.node.partition import read_partition
from format.node.target import Target
from format.offset_ranges import Range, merged
from format.rewriting.index_builder import indexed_offset
from format.rewriting.publishing.publication import Publication
from format.rewriting.rewriter import WriteTerms
from format.rewriting.sources import WriteSources
from format.scan.drivers import open_driver
from format.scan.progress import SpanProgress
from format.verbs.verify.places import verify_partition_dir
from format.verbs.verify.terms import Verification
from format.verbs.verify.verify import logs_to_verify, verify
from format.verbs.verify.walk import Level
from format.wording import offsets_are

#: Reported of the source already where that has no segment.
_NOTHING = "nothing-to-read"
#: Findings about missing offsets. Any damage of the same partition that was reported explains them. They are reported
#: whatever their severity, since the new indexes do not show the gaps.
_GAPS = frozenset({"offset-gap", "segment-missing", "file-name-mismatch"})


def verify_output(
    publication: Publication, sources: WriteSources, terms: WriteTerms, reported: Iterable[Finding]
) -> Iterator[Finding]:
    """New findings of at least severity warning, and gaps, with the paths that the published files will have."""
    known = _Known(reported)
    progress = SpanProgress(terms.advance, sources.size_bytes)
    verification = Verification(Level.FULL, terms.limits, jobs=terms.jobs, advance=progress.advance)
    for found in _findings(publication, sources, verification):
        if (found.severity >= Severity.WARNING or found.code in _GAPS) and not known.holds(found):
            if found.code == "offset-gap" and found.severity < Severity.ERROR:
                found = _proven_by_the_source(found, sources, terms)
            yield _published(found, publication)
    progress.finish()


def _findings(publication: Publication, sources: WriteSources, terms: Verification) -> Iterator[Finding]:
    if sources.log_dir is not None:
        yield from verify(publication.path, terms, kind=Kind.LOG_DIR)
        return
    for name, partition in sources.partitions.items():
        path = publication.place_of(name)
        if not path.is_dir():
            continue
        checkpoints = _of_cleaner(Target(partition.path).checkpoints_around(terms.limits))
        logs = list(logs_to_verify(Target(path, Kind.PARTITION)))
        with open_driver(terms.walk, logs, terms.jobs, terms.advance) as driver:
            yield from verify_partition_dir(
                path, partial(read_partition, path), checkpoints, replace(terms, driver=driver)
            )


def _proven_by_the_source(found: Finding, sources: WriteSources, terms: WriteTerms) -> Finding:
    """A gap of the output: an error where an index of the source names an offset in it, since no new index does.

    Compaction leaves no such entry. A finding whose gap is not proven is returned as it is.
    """
    place = found.location
    partition = sources.partitions.get(Path(place.path).parent.name)
    if partition is None or place.position is None or place.offset is None:
        return found
    with FileSource(Path(place.path)) as log:
        first = max((int(table.last_offset[-1]) + 1 for table in header_tables(log, 0, place.position)), default=0)
    for segment in partition.segments:
        if segment.log is None or segment.base_offset >= place.offset:
            continue
        where = partition.location(segment.log, segment.base_offset)
        named = indexed_offset(where, first, place.offset, terms.limits)
        if named is not None:
            return replace(
                found,
                severity=Severity.ERROR,
                certainty=Certainty.PROVEN,
                message=f"{offsets_are(first, place.offset - 1)} in no batch, and an index of the source names offset "
                f"{named}: batches are gone from the source, and the new indexes do not show it",
                next_step="Look for these offsets in another replica, a backup, or where the records came from.",
                lost_offsets=(first, place.offset - 1),
            )
    return found


def _of_cleaner(checkpoints: Checkpoints) -> Checkpoints:
    """The cleaner's checkpoint alone: where compaction may have removed offsets holds for the output too."""
    name = layout.CLEANER_OFFSET_CHECKPOINT
    return Checkpoints({name: checkpoints.by_name.get(name, {})})


def _published(found: Finding, publication: Publication) -> Finding:
    """A finding about the partial directory, with the path that it will have once it is published."""
    path = Path(found.location.path)
    location = found.location
    if path.is_relative_to(publication.path):
        location = replace(location, path=str(publication.target / path.relative_to(publication.path)))
    return replace(
        found, location=location, message=found.message.replace(str(publication.path), str(publication.target))
    )


class _Known:
    """What the run has reported: codes by directory and file name, and lost offsets by partition."""

    def __init__(self, reported: Iterable[Finding]) -> None:
        self._codes: set[tuple[str, str, str]] = set()
        self._damaged: set[tuple[str | None, int | None]] = set()
        self._lost: dict[tuple[str | None, int | None], list[Range]] = {}
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
        if found.code in _GAPS and _partition_of(found) in self._damaged:
            return True
        if found.lost_offsets is None:
            return False
        first, last = found.lost_offsets
        return any(start <= first and last <= end for start, end in self._lost.get(_partition_of(found), ()))


def _key(found: Finding) -> tuple[str, str, str]:
    path = Path(found.location.path)
    return path.parent.name if found.location.topic is not None else "", path.name, found.code


def _partition_of(found: Finding) -> tuple[str | None, int | None]:
    return found.location.topic, found.location.partition
