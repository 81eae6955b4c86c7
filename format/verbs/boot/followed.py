"""Files as a broker sees them: it follows symbolic links, and a link that leads nowhere is no file to it.

Other commands do not read through links. A start has to: it reads and changes the files to which they lead.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from format.errors import FileChanged, UnreadableFile
from format.io.session import Entry, is_on_disk, is_there
from format.io.source import FileSource, os_reason
from format.location import Location


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


def is_link(entry: Entry) -> bool:
    """Whether an entry of a listing is a symbolic link; in stores and bundles there are none."""
    return isinstance(entry, os.DirEntry) and entry.is_symlink()


def is_file(entry: Entry) -> bool:
    """Whether an entry of a listing is a regular file or a link to one. Raises OSError, but not for a loop of links."""
    return _unless_loop(entry.is_file)


def is_directory(entry: Entry) -> bool:
    """Whether an entry of a listing is a directory or a link to one. Raises OSError, but not for a loop of links."""
    return _unless_loop(entry.is_dir)


def _unless_loop(asked: Callable[..., bool]) -> bool:
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
