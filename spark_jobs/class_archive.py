"""An archive of the classes that the JVM of a session loads, with which the next session starts in half the time.

The JVM writes it at its end, once for each Java and Spark, and checks by itself whether it still fits. The archive is
trusted like code, so it is kept in a directory that only this user can write to, not in one for temporary files.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import time
import zlib
from pathlib import Path

from format.user_cache import note_use, remove_unused, user_cache
from spark_jobs.spark_version import spark_version

_BY_ITSELF_SINCE = 19  # from this Java on the JVM makes and replaces the archive by itself
_LONGEST_WRITE_S = 600
_UNFINISHED, _WANTED = ".unfinished", ".wanted"
_PLAIN = set("/._-+@ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")

_being_made: Path | None = None


def class_archive_options(java: Path, version: int) -> str:
    """Options for the JVM that make or use the archive; empty where there is no safe directory for it."""
    place = _place()
    if place is None:
        return ""
    archive = place / f"spark-{_key(java, version):08x}.jsa"
    note_use(archive)
    if version >= _BY_ITSELF_SINCE:
        return f" -XX:+AutoCreateSharedArchive -XX:SharedArchiveFile={archive}"
    is_being_made = _take_finished(archive)
    if archive.exists():
        return f" -XX:SharedArchiveFile={archive}"
    if is_being_made:
        return ""
    remove_unused(place)
    global _being_made
    _being_made = archive.with_name(f"{archive.name}.{os.getpid()}{_UNFINISHED}")
    return f" -XX:ArchiveClassesAtExit={_being_made}"


def want_class_archive() -> None:
    """Mark the archive that the JVM is making as worth keeping: the session ran a whole job, with all its classes."""
    if _being_made is not None:
        with contextlib.suppress(OSError):
            Path(f"{_being_made}{_WANTED}").touch()


def _place() -> Path | None:
    """The cache of the user; None without one, or where its path needs quotes in the options of a JVM."""
    place = user_cache()
    return place if place is not None and set(str(place)) <= _PLAIN else None


def _key(java: Path, version: int) -> int:
    """A number for this Java and this Spark: their versions and paths."""
    spark = importlib.util.find_spec("pyspark")
    words = (java.resolve(), version, spark_version(), None if spark is None else spark.origin)
    return zlib.crc32(repr(words).encode())


def _take_finished(archive: Path) -> bool:
    """Give archives that a JVM has written to their end their names; whether this one is still being written.

    Those of another Java or Spark too: after an upgrade nothing else would remove what was not finished.
    """
    is_being_made = False
    for each in archive.parent.glob(f"spark-*.jsa.*{_UNFINISHED}"):
        wanted = Path(f"{each}{_WANTED}")
        target = archive.with_name(f"{each.name.partition('.jsa.')[0]}.jsa")
        with contextlib.suppress(OSError):
            with open(each, "rb") as made:
                is_finished = any(made.read(4))  # the JVM writes the head last
            if is_finished and wanted.exists():
                os.replace(each, target)
            elif is_finished or time.time() - each.stat().st_mtime > _LONGEST_WRITE_S:
                each.unlink()
            else:
                is_being_made |= target == archive
                continue
            wanted.unlink(missing_ok=True)
    return is_being_made
