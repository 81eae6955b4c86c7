"""Findings as JSON values and back, for manifests and for runs that are taken up again."""

from __future__ import annotations

from typing import Any

from format.findings import Cause, Certainty, Finding, Severity
from format.location import Location


def finding_as_json(found: Finding) -> dict[str, Any]:
    """The finding as a dict with the column names of its row; None values are left out."""
    where = found.location
    values = {
        "code": found.code,
        "severity": found.severity.label,
        "certainty": found.certainty.value,
        "path": where.path,
        "topic": where.topic,
        "partition": where.partition,
        "segment_base_offset": where.base_offset,
        "position": where.position,
        "length": where.length,
        "offset": where.offset,
        "message": found.message,
        "expected": found.expected,
        "actual": found.actual,
        "next_step": found.next_step,
        "lost_offsets": None if found.lost_offsets is None else list(found.lost_offsets),
        "caused_by": None if found.caused_by is None else found.caused_by.as_json(),
    }
    return {name: value for name, value in values.items() if value is not None}


def finding_from_json(values: dict[str, Any]) -> Finding:
    """The finding that ``finding_as_json`` made these values from."""
    lost, cause = values.get("lost_offsets"), values.get("caused_by")
    return Finding(
        code=values["code"],
        severity=Severity[values["severity"].upper()],
        location=Location(
            values["path"],
            values.get("topic"),
            values.get("partition"),
            values.get("segment_base_offset"),
            values.get("position"),
            values.get("length"),
            values.get("offset"),
        ),
        message=values["message"],
        certainty=Certainty(values["certainty"]),
        expected=values.get("expected"),
        actual=values.get("actual"),
        next_step=values.get("next_step", ""),
        lost_offsets=None if lost is None else (lost[0], lost[1]),
        caused_by=None if cause is None else Cause(**cause),
    )
