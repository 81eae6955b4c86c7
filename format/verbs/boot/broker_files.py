"""Files as a broker sees and opens them: links, pipes, permissions, and the files of one partition directory.

A broker follows symbolic links, and a link that leads nowhere is no file to it. It waits at a pipe until another
process opens the other end. It opens every file of a log to read and to write. Which user runs it is not known: the
owner of the log directory is the likely one, who after a restore as root often cannot write the files.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from format import layout
from format.errors import FileChanged, UnreadableFile
from format.files.side_file import INT64_RANGE, decode_integer
from format.io.session import entries_of, is_on_disk, is_there
from format.io.source import FileSource, os_reason
from format.location import Location
from format.node.partition import parse_partition_dir, segment_file_name
from format.verbs.boot.steps import Action, FailsLogDir, NotKnown, Step, StopsStart

_READ, _WRITE, _SEARCH = 4, 2, 1
_OPENED_TO_WRITE = (
    layout.LOG_SUFFIX,
    layout.OFFSET_INDEX_SUFFIX,
    layout.TIME_INDEX_SUFFIX,
    layout.TRANSACTION_INDEX_SUFFIX,
)
_STAYS = "the file stays as it is"
_WRITTEN = (Action.REBUILD_SNAPSHOT, Action.REBUILD_INDEX, Action.CREATE)


def exists(path: Path) -> bool:
    """Whether a path leads to something, as Java's File.exists."""
    return os.path.exists(path) if is_on_disk(path) else is_there(path)


def leads_nowhere(path: Path) -> bool:
    """Whether a path is a symbolic link to nothing, or to itself."""
    return is_there(path) and not exists(path)


def why_closed(path: Path) -> str | None:
    """The system's words about a name under which no file can be opened or made; None where one can.

    A folder cannot, nor a link to itself. A link to a missing file can, if the folder of that file is there.
    """
    if not is_on_disk(path) or path.is_file():
        return None
    if path.is_dir():
        return os.strerror(errno.EISDIR)
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return os.strerror(errno.ELOOP)
    return None if os.path.isdir(os.path.dirname(os.path.realpath(path))) else os.strerror(errno.ENOENT)


def is_seen(name: str) -> bool:
    """Whether a broker sees a file of this name, as bytes that are not UTF-8 become other ones in Java's strings."""
    return name.isascii() or not any("\udc80" <= each <= "\udcff" for each in name)


def followed_is(asked: Callable[..., bool]) -> bool:
    """What ``is_file`` or ``is_dir`` of an entry of a listing says, links followed; False for a loop of links.

    Raises OSError.
    """
    try:
        return asked(follow_symlinks=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise


def followed(path: Path) -> Path:
    """The file to which a path leads, the path itself if it is no link. Raises UnreadableFile."""
    if not is_on_disk(path) or not path.is_symlink():
        return path
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop, before Python 3.13
        reason = os_reason(error) if isinstance(error, OSError) else "a loop of symbolic links"
        raise UnreadableFile(f"cannot open: {reason}", Location(os.fspath(path))) from error


def opened(path: Path) -> FileSource:
    """Open a file, through links. Raises UnreadableFile and FileChanged."""
    try:
        return FileSource(path)
    except UnreadableFile:
        place = followed(path)
        if place == path:
            raise
        return FileSource(place)


def size_of(path: Path) -> int:
    """The bytes of a file, links followed. Raises FileChanged where it is gone, and UnreadableFile."""
    try:
        return path.stat().st_size
    except FileNotFoundError as error:
        raise FileChanged("the file no longer exists", Location(os.fspath(path))) from error
    except OSError as error:
        raise UnreadableFile(f"cannot open: {os_reason(error)}", Location(os.fspath(path))) from error


def is_pipe(path: Path) -> bool:
    """Whether a path leads to a pipe, links followed."""
    try:
        return is_on_disk(path) and stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


def stop_at_pipe(path: Path, kafka_class: str) -> None:
    """Raises StopsStart where a path leads to a pipe: opening it does not return, and the broker says nothing."""
    if is_pipe(path):
        reason = "it is a pipe: the broker waits for another process to open it, and its start never ends"
        raise StopsStart(None, kafka_class, path=path, reason=reason)


def closed_to_this_user(log_dirs: list[Path]) -> list[NotKnown]:
    """The log directories that the user of this program may not list."""
    found = []
    for path in filter(is_on_disk, log_dirs):
        try:
            os.listdir(path)
            (path / ".").stat()
        except PermissionError as error:
            found.append(NotKnown(f"the log directory cannot be listed: {os_reason(error)}", path))
        except OSError:
            continue  # not a directory, or not there: the simulated start reports it
    return found


def note_read_only(log_dirs: Iterable[Path]) -> Iterator[str]:
    """A note for each log directory on a file system that is mounted read-only, such as after an error."""
    for path in filter(is_on_disk, log_dirs):
        with suppress(OSError):  # verify and the simulated start report it
            if os.statvfs(path).f_flag & os.ST_RDONLY:
                yield f"whether a broker can write: {path} is mounted read-only here, where no broker starts"


def closed_to_the_owner(log_dirs: list[Path]) -> list[NotKnown]:
    """One entry for each directory with files that the owner of its log directory can apparently not open.

    Where that is root, the owner of most partitions takes its place: a broker hardly runs as root if these are not its.
    """
    found = []
    for log_dir in filter(is_on_disk, log_dirs):
        try:
            owner, whose = log_dir.stat(), "the log directory"
            names = sorted(name for name in os.listdir(log_dir) if parse_partition_dir(name))
            if owner.st_uid == 0 and names:
                stats = [(log_dir / name).stat() for name in names]
                (most, _), *_ = Counter(each.st_uid for each in stats).most_common(1)
                owner, whose = next(each for each in stats if each.st_uid == most), "most partitions here"
        except OSError:
            continue
        if owner.st_uid == 0:
            continue  # root opens everything
        directories = [log_dir, *(log_dir / name for name in names)]
        is_copy = not any(_has_writable_log(directory) for directory in directories)
        for directory in directories:
            if closed := _closed(directory, owner, is_copy=is_copy):
                found.append(NotKnown(_words(closed, owner.st_uid, whose), directory))
    return found


def _has_writable_log(directory: Path) -> bool:
    """Whether the mode of some log in a directory lets its owner write: often of none in a copy kept as evidence."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):  # a link that leads nowhere, or a file that has just been removed
                if entry.name.endswith(layout.LOG_SUFFIX) and entry.stat().st_mode & stat.S_IWUSR:
                    return True
    return False


def _closed(directory: Path, owner: os.stat_result, *, is_copy: bool) -> list[tuple[str, os.stat_result]]:
    """The files in a directory that the owner cannot open, and ``.`` for the directory itself, by name."""
    closed = []
    with suppress(OSError):  # not listable for this user: nothing more can be found out
        status = directory.stat()
        if not _is_open(status, owner, _READ | _WRITE | _SEARCH, is_copy=True):
            closed.append((".", status))
        with os.scandir(directory) as entries:
            for entry in entries:
                with suppress(OSError):  # a link that leads nowhere, or a file that has just been removed
                    status = entry.stat()
                    wanted = _wanted(entry.name)
                    if stat.S_ISREG(status.st_mode) and not _is_open(status, owner, wanted, is_copy=is_copy):
                        closed.append((entry.name, status))
    return sorted(closed)


def _wanted(name: str) -> int:
    """The access that a start needs: logs, indexes and the lock are opened to write, the others only read."""
    if name == layout.CLEAN_SHUTDOWN:
        return 0
    return _READ | _WRITE if name == layout.LOCK or name.endswith(_OPENED_TO_WRITE) else _READ


def _is_open(status: os.stat_result, owner: os.stat_result, wanted: int, *, is_copy: bool) -> bool:
    """Whether the permission bits grant the owner of the log directory the access ``wanted``.

    ``is_copy``: no log can be written. For the owner's own files read access is then enough: the original may differ.
    The owner may be a member of other groups than its own, but hardly of root's.
    """
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == owner.st_uid:
        needed = wanted & _READ if is_copy else wanted
        return (mode >> 6) & needed == needed
    as_member = (mode >> 3) & wanted == wanted
    if status.st_gid == owner.st_gid:
        return as_member
    return mode & wanted == wanted or (status.st_gid != 0 and as_member)


def _words(closed: list[tuple[str, os.stat_result]], owner: int, whose: str) -> str:
    name, status = closed[0]
    first = "the directory" if name == "." else name
    more = f", and {len(closed) - 1:,} more here" if len(closed) > 1 else ""
    return (
        f"the owner of {whose}, user {owner}, cannot open {first} (user {status.st_uid}, mode "
        f"{stat.S_IMODE(status.st_mode):04o}){more}: a broker that runs as that user fails on it"
    )


class PartitionFiles(msgspec.Struct):
    """The names in a partition directory, and the steps of the start on them. Nothing is written to disk.

    ``present`` maps each name to that of the file on disk with its bytes, None for a file that the start makes: names,
    since paths of many files take long to make, and few are needed.
    ``folders`` are names of what is no regular file, ``dangling`` those of links that lead nowhere,
    ``links`` those of links to files.
    """

    path: Path
    topic: str
    partition: int
    present: dict[str, str | None]
    folders: list[str] = msgspec.field(default_factory=list)
    dangling: list[str] = msgspec.field(default_factory=list)
    links: list[str] = msgspec.field(default_factory=list)
    steps: list[Step] = msgspec.field(default_factory=list)
    _on_disk: dict[str, None] = msgspec.field(default_factory=dict)  # in order

    def place(self, name: str) -> Path | None:
        """The file on disk that holds the bytes of a name; None for one that the start makes, or that is not there."""
        on_disk = self.present.get(name)
        return None if on_disk is None else self.path / on_disk

    def step(self, action: Action, name: str, reason: str, **values: object) -> None:
        """Add a step for a file, under the name that it has on disk; empty for the directory."""
        path = self.path / name if name else self.path
        self.steps.append(
            Step(action, path, self.topic, self.partition, reason=reason, **values)  # type: ignore[arg-type]
        )

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
        return name in self.folders and is_pipe(self.path / name)

    @property
    def unread_logs(self) -> list[Path]:
        """Paths with the name of a log that are no regular files: a broker ignores them."""
        logs = filter(layout.SEGMENT_FILE.match, self.folders)
        return [self.path / name for name in logs if name.endswith(layout.LOG_SUFFIX)]

    def original(self, name: str) -> str:
        """The name on disk of a file that may have been renamed since."""
        return self.present.get(name) or name

    def size_bytes(self, name: str) -> int:
        """The size on disk of a file that may have been renamed since."""
        place = self.place(name)
        return 0 if place is None else size_of(place)

    def delete(self, name: str, reason: str, *, to: str | None = None, **values: object) -> None:
        """Delete a file; ``to`` is the name that it has until it is removed."""
        path = self.path / name
        renamed = [step.path.name for step in self.steps if step.action is Action.RENAME and step.new_path == path]
        place = self.present.pop(name, None) or next(iter(renamed), name if name in self._on_disk else None)
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
            self.step(Action.DELETE, place, reason, bytes=size_of(self.path / place), **values)

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
            kept = [place for place in (self.path / each for each in self._on_disk) if place not in touched]
            steps += [Step(Action.KEEP, place, self.topic, self.partition, reason=_STAYS) for place in kept]
        return steps


def file_name(base_offset: int, suffix: str) -> str:
    """The name of a segment's file, also for a negative base offset, which only an invalid file name gives."""
    return segment_file_name(base_offset, suffix) if base_offset >= 0 else f"-{-base_offset:020d}{suffix}"


def offset_of_name(files: PartitionFiles, name: str) -> int:
    """The offset at the start of a file name. Raises StopsStart where the broker cannot parse it."""
    head, point, _ = name.partition(".")
    offset = decode_integer(head, *INT64_RANGE) if point else None
    if offset is None:
        text = f'For input string: "{head}"' if point else "begin 0, end -1, length"
        reason = f"the name {name} ends as a file of a segment does and does not begin with an offset"
        raise StopsStart(text, "LogFileUtils.offsetFromFileName", path=files.path / name, reason=reason)
    return offset


def read_partition_files(path: Path, topic: str, partition: int) -> PartitionFiles:
    """The regular files of a partition directory, links followed as a broker follows them.

    Raises UnreadableFile where it cannot be listed.
    """
    files = PartitionFiles(path, topic, partition, {})
    try:
        with entries_of(path) as entries:
            for entry in sorted((each for each in entries if is_seen(each.name)), key=lambda each: each.name):
                if followed_is(entry.is_file):
                    files.present[entry.name] = entry.name
                    files._on_disk[entry.name] = None
                    if isinstance(entry, os.DirEntry) and entry.is_symlink():
                        files.links.append(entry.name)
                else:
                    (files.dangling if leads_nowhere(path / entry.name) else files.folders).append(entry.name)
    except FileNotFoundError as error:
        raise FileChanged("cannot list: the directory is not there any more", Location(os.fspath(path))) from error
    except OSError as error:
        raise UnreadableFile(f"cannot list: {os_reason(error)}", Location(os.fspath(path))) from error
    return files
