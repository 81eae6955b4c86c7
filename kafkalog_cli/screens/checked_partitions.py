"""The findings of the partitions that explore has checked, and the steps from one to the next."""

from __future__ import annotations

from pathlib import Path

from format.findings import Finding, Severity
from format.node.target import Target
from format.scan.progress import Advance
from format.verbs.explore.look_ups import Spot, damage_in, order_of
from format.verbs.explore.places import Place, PlaceKind


class CheckedPartitions:
    """The findings of each partition that was checked, in the order of the tree."""

    def __init__(self) -> None:
        self._found: dict[Path, list[tuple[Spot, Finding]]] = {}
        self._shown: tuple[Path, int, Place] | None = None

    def __contains__(self, scope: Target) -> bool:
        return scope.path in self._found

    def check(self, scope: Target, advance: Advance) -> None:
        """Check a partition unless it was checked before. Raises KafkaLogError, and what ``advance`` raises."""
        if scope.path not in self._found:
            self._found[scope.path] = damage_in(scope, advance)

    def forget(self, path: Path) -> None:
        """Forget what was found at and below a path."""
        self._found = {each: found for each, found in self._found.items() if not each.is_relative_to(path)}

    def findings(self, scope: Target) -> list[tuple[Spot, Finding]]:
        """What was found in a partition that was checked."""
        return self._found[scope.path]

    def first_damage(self, scope: Target) -> int | None:
        """The number of the first finding that is more than a remark."""
        found = self._found[scope.path]
        return next((number for number, (_, each) in enumerate(found) if each.severity >= Severity.WARNING), None)

    def step(self, scope: Target, place: Place, direction: int) -> int | None:
        """The number of the next (1) or previous (-1) finding from a place; several may have the same place."""
        found = self._found[scope.path]
        if self._shown is not None and self._shown[0] == scope.path and self._shown[2] == place:
            number = self._shown[1] + direction
        elif place.kind is PlaceKind.PARTITION:
            number = 0 if direction > 0 else -1
        else:
            here = order_of(place.path, None if place.kind is PlaceKind.FILE else place.position, scope)
            before = sum(order_of(spot.path, spot.position, scope) < here for spot, _ in found)
            number = before if direction > 0 else before - 1
        return number if 0 <= number < len(found) else None

    def was_shown(self, scope: Target, number: int, place: Place) -> None:
        """Note the place at which a finding was shown."""
        self._shown = scope.path, number, place
