"""verify of a bundle: the findings in it, and new findings from its batch headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from format.findings import Finding
from format.io.bundles.bundle import Bundle
from format.node.log_dir import Kind
from format.node.target import Target
from format.verbs.verify.verify import Level, VerifyTerms, Watch, verify

#: What is not checked in a bundle.
NOT_CHECKED = "CRCs, records and side files: the findings about them are of the time when the bundle was made"
_COUNTS = ("partitions", "segments", "side_files", "batches", "records", "bytes")


def verify_bundle(bundle: Bundle, targets: Sequence[Target], terms: VerifyTerms) -> Iterator[Finding]:
    """The findings at or below some targets in a bundle."""
    seen: list[Finding] = []
    for found in findings_then(bundle, targets):
        seen.append(found)
        yield found
    yield from findings_now(targets, seen, terms)


def findings_then(bundle: Bundle, targets: Sequence[Target]) -> Iterator[Finding]:
    """The findings from when the bundle was made, as ``verify_bundle`` yields them.

    Those about a file of the log directory around a partition are among them, not those about another partition there.
    """
    own = {str(target.path) for target in targets}
    below = tuple(f"{each}/" for each in own)
    around = {str(target.path).rpartition("/")[0] for target in targets if target.kind is not Kind.LOG_DIR}
    for found in bundle.findings():
        where = found.location
        is_around = where.partition is None and where.path.rpartition("/")[0] in around
        if where.path in own or where.path.startswith(below) or is_around:
            yield found


def findings_now(
    targets: Sequence[Target], then: Sequence[Finding], terms: VerifyTerms, watch: Watch | None = None
) -> Iterator[Finding]:
    """New findings from the batch headers: none, unless this program finds more than the one that made the bundle."""
    seen = {_key(found) for found in then}
    again = VerifyTerms(Level.HEADERS, terms.limits, advance=terms.advance, compacted_topics=terms.compacted_topics)
    for target in targets:
        for found in verify(target, again, watch=watch):
            if _key(found) not in seen:
                yield found


def verified_counts(bundle: Bundle, targets: Sequence[Target]) -> Iterator[tuple[str, int]]:
    """The counts of what was checked when the bundle was made; of a part of it, its partitions and segments."""
    own = {str(target.path) for target in targets}
    below = tuple(f"{each}/" for each in own)
    sources = [f"{bundle.path}/{each}" for each in bundle.sources]
    if all(each in own or each.startswith(below) for each in sources):
        for name in _COUNTS:
            yield name, bundle.manifest.verified.get(name, 0)
        return
    partitions = [each for target in targets for each in target.partitions()]
    yield "partitions", len(partitions)
    yield "segments", sum(len(each.segments) for each in partitions)


def _key(found: Finding) -> tuple[Any, ...]:
    """What two findings about the same thing share; headers alone may show no offset of a place."""
    where = found.location
    return found.code, where.path, where.position, where.offset if where.position is None else None
