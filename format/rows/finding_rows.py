"""A finding as a row of the schema FINDING or as a JSON object with the same names, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from format.columns import FINDING
from format.findings import Finding, FindingValues


def finding_row(finding: Finding) -> tuple[Any, ...]:
    """The columns of FINDING, in their order."""
    where = finding.location
    return (
        finding.code,
        finding.severity.label,
        finding.certainty.value,
        where.path,
        where.topic,
        where.partition,
        where.base_offset,
        where.position,
        where.length,
        where.offset,
        finding.message,
        finding.expected,
        finding.actual,
        finding.next_step,
        None if finding.lost_offsets is None else list(finding.lost_offsets),
        None if finding.caused_by is None else finding.caused_by.as_json(),
    )


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """The columns of FINDING by name; None values are left out."""
    named = zip(FINDING.names, finding_row(finding), strict=True)
    return {name: value for name, value in named if value is not None}


def finding_of_row(row: tuple[Any, ...]) -> Finding:
    """The finding of a row of the schema FINDING. Raises ValueError as ``finding_from_json``."""
    return finding_from_json(dict(zip(FINDING.names, row, strict=True)))


def finding_from_json(values: Mapping[str, Any]) -> Finding:
    """The finding of these columns. Raises ValueError for what no finding has, or no code of this version."""
    try:
        return msgspec.convert(values, FindingValues).finding()
    except msgspec.ValidationError as error:
        raise ValueError(f"no finding that this version knows: {error}") from None
