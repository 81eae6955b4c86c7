"""The files of one partition directory while a start works on it: their names and their bytes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec

from format.errors import FileChanged, UnreadableFile
from format.io.session import entries_of
from format.io.source import os_reason
from format.layout import LOG_SUFFIX, SEGMENT_FILE
from format.location import Location
from format.node.partition import segment_file_name
from format.verbs.boot.followed import is_file, is_link, is_seen, leads_nowhere, size_of, why_closed
from format.verbs.boot.pipes import is_pipe
from format.verbs.boot.steps import Action, FailsLogDir, Step

_STAYS = "the file stays as it is"
_WRITTEN = (Action.REBUILD_SNAPSHOT, Action.REBUILD_INDEX, Action.CREATE)


class PartitionFiles(msgspec.Struct):
    """The names in a partition directory, and the steps of the start on them. Nothing is written to disk.

    ``present`` maps each name to the file that holds its bytes on disk, None for a file that the start makes.
    ``folders`` are names of what is no regular file, ``dangling`` those of links that lead nowhere,
    ``links`` those of links to files.
    """

    path: Path
    topic: str
    partition: int
    present: dict[str, Path | None]
    folders: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    steps: list[Step] = msgspec.field(default_factory=list)
    _on_disk: dict[str, Path] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        self._on_disk = {name: place for name, place in self.present.items() if place is not None}

    def step(self, action: Action, name: str, reason: str, **values: object) -> None:
        """Add a step for a file, under the name that it has on disk; empty for the directory."""
        path = self._on_disk.get(name) or (self.path / name if name else self.path)
        self.steps.append(
            Step(action, path, self.topic, self.partition, reason=reason, **values)  # type: ignore[arg-type]
        )

    def untouched(self) -> PartitionFiles:
        """The same files before any step."""
        on_disk: dict[str, Path | None] = {**self._on_disk}
        return PartitionFiles(self.path, self.topic, self.partition, on_disk, self.folders, self.dangling, self.links)

    def drop_step(self, action: Action, name: str) -> None:
        """Take back the steps of this action for a file."""
        self.steps = [each for each in self.steps if (each.action, each.path.name) != (action, name)]

    def check_opens(self, name: str, kafka_class: str, *, is_resized: bool = True) -> None:
        """Raises FailsLogDir where a name is taken by something that the broker cannot open, or give a size, as a file.

        A pipe that is only read is an empty file to it, as it is opened for writing too.
        """
        if name not in self.folders and name not in self.dangling:
            return
        words = why_closed(self.path / name)
        if words is None and is_resized and self.is_pipe(name):
            words = os.strerror(errno.ESPIPE)
        if words is not None:
            reason = "it is no file, and the broker cannot open or make one of this name"
            raise FailsLogDir(words, kafka_class, path=self.path / name, reason=reason)

    def is_pipe(self, name: str) -> bool:
        """Whether a pipe has this name."""
        return name in self.folders and is_pipe(self.path / name)

    @property
    def unread_logs(self) -> list[Path]:
        """Paths with the name of a log that are no regular files: a broker ignores them."""
        return [self.path / name for name in self.folders if name.endswith(LOG_SUFFIX) and SEGMENT_FILE.match(name)]

    def original(self, name: str) -> str:
        """The name on disk of a file that may have been renamed since."""
        place = self.present.get(name)
        return name if place is None else place.name

    def size_bytes(self, name: str) -> int:
        """The size on disk of a file that may have been renamed since."""
        place = self.present.get(name)
        return 0 if place is None else size_of(place)

    def delete(self, name: str, reason: str, *, to: str | None = None, **values: object) -> None:
        """Delete a file; ``to`` is the name that it has until it is removed."""
        place = self.present.pop(name, None) or self._on_disk.get(name)
        path = self.path / name
        self.steps = [
            step
            for step in self.steps
            if (step.action not in _WRITTEN or step.path.name != name)
            and (step.action is not Action.RENAME or step.new_path != path)
        ]
        if to is not None:
            self.present[to] = place
            values["new_path"] = self.path / to
        if place is not None:
            self.step(Action.DELETE, place.name, reason, bytes=size_of(place), **values)

    def rename(self, name: str, to: str, reason: str, **values: object) -> None:
        """Rename a file; a file that has the new name is replaced."""
        original = self.original(name)
        self.step(Action.RENAME, original, reason, new_path=self.path / to, **values)
        self.present[to] = self.present.pop(name)

    def create(self, name: str) -> None:
        """Note a file that the start creates or rewrites."""
        self.present[name] = None

    def settled_steps(self, *, with_kept: bool) -> list[Step]:
        """The steps, without deletions of files that are then rewritten; ``with_kept`` adds one for each other file."""
        written = {step.path for step in self.steps if step.action is Action.REBUILD_SNAPSHOT}
        steps = [step for step in self.steps if step.action is not Action.DELETE or step.path not in written]
        if with_kept:
            touched = {step.path for step in steps}
            kept = [place for place in self._on_disk.values() if place not in touched]
            steps += [Step(Action.KEEP, place, self.topic, self.partition, reason=_STAYS) for place in kept]
        return steps


def file_name(base_offset: int, suffix: str) -> str:
    """The name of a segment's file, also for a negative base offset, which only an invalid file name gives."""
    return segment_file_name(base_offset, suffix) if base_offset >= 0 else f"-{-base_offset:020d}{suffix}"


def read_partition_files(path: Path, topic: str, partition: int) -> PartitionFiles:
    """The regular files of a partition directory, links followed as a broker follows them.

    Raises UnreadableFile where it cannot be listed.
    """
    present: dict[str, Path | None] = {}
    folders: list[str] = []
    dangling: list[str] = []
    links: list[str] = []
    try:
        with entries_of(path) as entries:
            seen = sorted((each.name, is_file(each), is_link(each)) for each in entries if is_seen(each.name))
            for name, is_regular, is_linked in seen:
                if is_regular:
                    present[name] = path / name
                    if is_linked:
                        links.append(name)
                else:
                    (dangling if leads_nowhere(path / name) else folders).append(name)
    except FileNotFoundError as error:
        raise FileChanged("cannot list: the directory is not there any more", Location(os.fspath(path))) from error
    except OSError as error:
        raise UnreadableFile(f"cannot list: {os_reason(error)}", Location(os.fspath(path))) from error
    return PartitionFiles(path, topic, partition, present, tuple(folders), tuple(dangling), tuple(links))
