"""verify of a bundle: the findings in it, and new findings from its batch headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from format.errors import InputError
from format.findings import Finding
from format.io.bundles.bundle import Bundle
from format.location import Location
from format.node.target import Target
from format.rows.finding_rows import finding_from_json
from format.verbs.verify.terms import Coverage, Verification
from format.verbs.verify.verify import verify
from format.verbs.verify.walk import Level

_COUNTS = ("partitions", "segments", "side_files", "batches", "records", "bytes")


def verify_bundle(bundle: Bundle, targets: Sequence[Target], terms: Verification) -> Iterator[Finding]:
    """The findings at or below some targets in a bundle. Raises InputError for invalid lines of findings."""
    seen: list[Finding] = []
    for found in findings_then(bundle, targets):
        seen.append(found)
        yield found
    yield from findings_now(targets, seen, terms)


def findings_then(bundle: Bundle, targets: Sequence[Target]) -> Iterator[Finding]:
    """The findings from when the bundle was made, as ``verify_bundle`` yields them."""
    below = tuple(str(target.path) for target in targets)
    for values in bundle.finding_values():
        found = _finding(bundle, values)
        if found.location.path.startswith(below) or _is_around(found.location.path, below):
            yield found


def findings_now(targets: Sequence[Target], then: Sequence[Finding], terms: Verification) -> Iterator[Finding]:
    """New findings from the batch headers: none, unless this program finds more than the one that made the bundle."""
    seen = {_key(found) for found in then}
    again = Verification(
        Level.HEADERS,
        terms.limits,
        Coverage(),
        advance=terms.advance,
        watch=terms.watch,
        compacted_topics=terms.compacted_topics,
    )
    for target in targets:
        for found in verify(target, again):
            if _key(found) not in seen:
                yield found


def verified_counts(bundle: Bundle) -> Iterator[tuple[str, int]]:
    """The counts of what was checked when the bundle was made."""
    verified = bundle.manifest.get("verified")
    for name in _COUNTS:
        count = verified.get(name) if isinstance(verified, dict) else None
        yield name, count if isinstance(count, int) else 0


def _is_around(path: str, below: tuple[str, ...]) -> bool:
    """Whether a finding is about a file of the log directory around a partition."""
    return any(path.rpartition("/")[0] == each.rpartition("/")[0] for each in below)


def _key(found: Finding) -> tuple[Any, ...]:
    """What two findings about the same thing share; headers alone may show no offset of a place."""
    where = found.location
    return found.code, where.path, where.position, where.offset if where.position is None else None


def _finding(bundle: Bundle, values: dict[str, Any]) -> Finding:
    try:
        found = finding_from_json(values)
        if not isinstance(found.location.path, str) or not isinstance(found.message, str):
            raise TypeError
        cause = found.caused_by
        if cause is not None:
            cause = replace(cause, path=f"{bundle.path}/{cause.path}")
        return replace(found, location=_placed(bundle, found.location), caused_by=cause)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        message = "not a sound bundle: a line of its findings is not a finding"
        raise InputError(message, Location(bundle.path)) from error


def _placed(bundle: Bundle, where: Location) -> Location:
    return replace(where, path=f"{bundle.path}/{where.path}")
