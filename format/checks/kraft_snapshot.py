"""A KRaft snapshot: it begins with a SNAPSHOT_HEADER control record and ends with a SNAPSHOT_FOOTER (KIP-630)."""

from __future__ import annotations

from collections.abc import Iterator

from format.findings import Finding, finding
from format.location import Location
from format.log.control_records import ControlRecord


class KraftSnapshotCheck:
    """Checks the first and the last control record of a snapshot, which are fed in order."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._types: list[str] = []

    def feed(self, markers: dict[int, ControlRecord]) -> None:
        for row in sorted(markers):
            self._types = [*self._types[:1], markers[row].type_name]

    def findings(self, *, is_bootstrap: bool) -> Iterator[Finding]:
        """Findings after the last record; ``bootstrap.checkpoint`` has the format of a snapshot."""
        what = "bootstrap.checkpoint" if is_bootstrap else "snapshot"
        if not self._types or self._types[0] != "SNAPSHOT_HEADER":
            yield finding(
                "data-corrupt", self._location, f"the {what} does not begin with a SNAPSHOT_HEADER record",
                expected="SNAPSHOT_HEADER", actual=self._types[0] if self._types else None,
            )  # fmt: skip
        if not self._types or self._types[-1] != "SNAPSHOT_FOOTER":
            yield finding(
                "data-truncated", self._location,
                f"the {what} does not end with a SNAPSHOT_FOOTER record: it was not finished",
                expected="SNAPSHOT_FOOTER", actual=self._types[-1] if self._types else None,
            )  # fmt: skip
