"""What eats the disk: file systems that are nearly full, and directories that are left over."""

from __future__ import annotations

import os
from collections.abc import Iterator

from format.io.session import is_on_disk
from format.verbs.doctor.draft import Draft, command
from format.verbs.doctor.evidence import Evidence, directory_of
from format.wording import counted

#: A file system is nearly full with less than this share free; it matters to a log directory that is a tenth of it.
_FREE_SHARE = 0.02
_OWN_SHARE = 0.1
_MUCH = 64 * 2**20
_MOST_NAMED = 3


def full_disks(evidence: Evidence) -> Iterator[Draft]:
    """File systems of this host that are nearly full, with the topics that take most of them."""
    seen: set[int] = set()
    for log_dir in evidence.log_dirs:
        path = str(log_dir.path)
        if not is_on_disk(log_dir.path):
            continue
        try:
            status = os.statvfs(log_dir.path)
        except OSError:
            continue  # verify reports that the directory cannot be read
        sizes: dict[str, int] = {}
        for each in evidence.partitions:
            if each.path.startswith(f"{path}/"):
                name = f"{each.topic or each.path}{'' if each.mark is None else ' (-' + each.mark + ')'}"
                sizes[name] = sizes.get(name, 0) + (each.size_bytes or 0)
        total, free, own = status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize, sum(sizes.values())
        is_its = log_dir.broker_lock.is_held or own >= _OWN_SHARE * total
        if status.f_fsid in seen or status.f_flag & os.ST_RDONLY or not is_its or free >= _FREE_SHARE * total:
            continue
        seen.add(status.f_fsid)
        largest = sorted(sizes, key=lambda name: -sizes[name])[:_MOST_NAMED]
        most = ", ".join(f"{name} {counted(sizes[name], 'byte')}" for name in largest)
        words = f"The file system has {counted(free, 'byte')} of {counted(total, 'byte')} free. The logs take "
        words += f"{counted(own, 'byte')}, most of them: {most}."
        yield Draft("disk-full", path, words, path, None, command("ls", "--sort", "size", path), weight=own)


def leftovers(evidence: Evidence) -> Iterator[Draft]:
    """Log directories in which directories that are no replicas any more take much room."""
    own: dict[str, int] = {}
    left: dict[str, list[tuple[int, str]]] = {}
    for each in evidence.partitions:
        path, size = str(directory_of(each)), each.size_bytes or 0
        own[path] = own.get(path, 0) + size
        if each.mark in ("delete", "stray"):
            left.setdefault(path, []).append((size, each.path))
    for path, found in left.items():
        size = sum(each for each, _ in found)
        if size < _MUCH or size < own[path] // 10:
            continue
        count, largest = counted(len(found), "directory"), max(found)[1]
        words = f"{count} marked -delete or -stray take{'s' if len(found) == 1 else ''} {counted(size, 'byte')} of "
        words += f"{counted(own[path], 'byte')}."
        yield Draft("leftovers", path, words, largest, None, command("ls", "--sort", "size", path), weight=size,
                    node=evidence.node_of(path))  # fmt: skip
