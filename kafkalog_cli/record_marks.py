"""What is said of a record beside its own fields: who can see it, and which replicas of its partition have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from format.columns import RECORD, RowSchema
from format.files.meta_properties import node_id_in
from format.layout import META_PROPERTIES
from format.limits import Limits
from format.node.log_dir import directory_around
from format.node.target import Target, clusters_of
from format.verbs.find.lookup import Visibility
from format.verbs.find.record_visibility import RecordVisibility
from format.wording import listed
from kafkalog_cli.render.records import BELOW_START, MARKS
from kafkalog_cli.render.text import printable

_OFFSET, _IS_TRANSACTIONAL = (RECORD.names.index(name) for name in ("offset", "is_transactional"))
_NO_END = 2**63 - 1
#: A visible record has no mark, and that a record is a control record is seen without files.
_WORDS = {
    Visibility.READ_UNCOMMITTED_ONLY: "read_uncommitted only",
    Visibility.ABORTED: "aborted",
    Visibility.NOT_REPLICATED: "not replicated",
    Visibility.BELOW_LOG_START: BELOW_START,
}


def marked_schema(schema: RowSchema) -> RowSchema:
    """The row type of records with their marks, for a renderer that shows records for people."""
    return RowSchema(schema.type, (*schema.columns, MARKS))


class RecordMarks:
    """The marks of records below some targets.

    The node is named where there are several log directories. Without ``shows_visibility``, as for logs that grow, no
    file but meta.properties is read.
    """

    def __init__(self, targets: Sequence[Target], limits: Limits, *, shows_visibility: bool = True) -> None:
        self._names_nodes = len(targets) > 1 or any(len(target.log_dirs) > 1 for target in targets)
        self._visibility = RecordVisibility(limits) if shows_visibility else None
        names_paths = self._names_nodes and len(clusters_of(targets, limits)) > 1  # a node id is that of one cluster
        self._node = lru_cache(None)(lambda log_dir: None if names_paths else node_id_in(log_dir / META_PROPERTIES))

    def of(self, row: Sequence[Any], directories: Sequence[Path], differing: Sequence[Path] = ()) -> list[str]:
        """The marks of a row of a record that these partition directories have; ``differing`` ones have another."""
        return self._seen(row, directories) + self._places(directories, differing)

    def marked(self, rows: Iterable[tuple[Any, ...]], directory: Path) -> Iterator[tuple[Any, ...]]:
        """The rows of one partition directory, each with its marks."""
        plain = self._places((directory,), ())
        first, end = (0, _NO_END) if self._visibility is None else self._visibility.plain_range(directory)
        for row in rows:
            is_plain = first <= row[_OFFSET] < end and not row[_IS_TRANSACTIONAL]
            yield (*row, plain if is_plain else self.of(row, (directory,)))

    def _seen(self, row: Sequence[Any], directories: Sequence[Path]) -> list[str]:
        if self._visibility is None:
            return []
        words = {each: _WORDS.get(self._visibility.of(row, each)) for each in directories}  # type: ignore[arg-type]
        if len(set(words.values())) == 1:
            return [word for word in words.values() if word is not None][:1]
        where: dict[str, list[Path]] = {}
        for directory, word in words.items():
            if word is not None:
                where.setdefault(word, []).append(directory)
        return [f"{word} ({self._nodes(several)})" for word, several in where.items()]

    def _places(self, directories: Sequence[Path], differing: Sequence[Path]) -> list[str]:
        if not self._names_nodes:
            return []
        others = [f"another record on {self._nodes(differing)}"] if differing else []
        return [f"on {self._nodes(directories)}", *others]

    def _nodes(self, directories: Sequence[Path]) -> str:
        """Such as ``nodes 1 and 2``; a log directory without a node id is named by its path."""
        found = {directory_around(each): self._node(directory_around(each)) for each in directories}
        ids = sorted({each for each in found.values() if each is not None})
        names = [printable(str(path)) for path, node_id in found.items() if node_id is None]
        if ids:
            names.insert(0, f"node{'s' if len(ids) > 1 else ''} {listed([str(each) for each in ids])}")
        return listed(names)
