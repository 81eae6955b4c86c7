"""The node ids of the brokers whose files are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from format import layout
from format.errors import KafkaLogError
from format.files import meta_properties
from format.node.log_dir import Kind
from format.node.target import Target
from spark_jobs.work.workers import path_of


@dataclass(slots=True)
class Brokers:
    """Node ids by log directory, the longest path first; ``given`` is the id for all of them, None for none."""

    by_place: list[tuple[str, int | None]] = field(default_factory=list)
    given: int | None = None

    @classmethod
    def of(cls, paths: Iterable[str | Path], given: int | None) -> Brokers:
        """The brokers of some paths, by ``given`` or from ``meta.properties``."""
        found: dict[str, int | None] = {}
        for path in paths if given is None else ():
            found |= _places_of(path_of(path))
        return cls(sorted(found.items(), key=lambda each: -len(each[0])), given)

    @property
    def ids(self) -> list[int | None]:
        """The ids of all brokers; None for a log directory without one."""
        return [self.given] if self.given is not None else list(dict.fromkeys(each for _, each in self.by_place))

    def of_path(self, path: str | None) -> int | None:
        """The broker of a file. For no path, and for one elsewhere: the only broker, None where there are several."""
        if path is not None:
            for place, broker_id in self.by_place:
                if path == place or path.startswith(f"{place}/"):
                    return broker_id
        return self.ids[0] if len(self.ids) == 1 else None


def _places_of(path: Path) -> dict[str, int | None]:
    """The log directories at, below or around a path, with their node ids."""
    try:
        target = Target(path)
        if target.kind is Kind.LOG_DIR:
            return {str(each.path): node_id_of(each.path) for each in target.log_dirs}
    except KafkaLogError:
        pass  # the command reports it
    for place in (path.absolute().parent, path.absolute().parent.parent):
        broker_id = node_id_of(place)
        if broker_id is not None:
            return {str(path): broker_id}
    return {str(path): None}


def node_id_of(place: Path) -> int | None:
    """The node id in the ``meta.properties`` of a log directory; None where there is none."""
    try:
        return meta_properties.read(place / layout.META_PROPERTIES).node_id
    except (KafkaLogError, OSError):
        return None
