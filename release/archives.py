"""Archives that come out the same, byte for byte, whenever they are made from the same files."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path


def write_archive(folder: Path, archive: Path, time: int) -> None:
    """A ``.tar.gz`` of a folder: names in order, one time for all, no owners."""
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted((folder, *folder.rglob("*"))):
            entry = tar.gettarinfo(str(path), str(path.relative_to(folder.parent)))
            entry.mtime = time
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            if entry.isfile():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive that holds one folder; returns this folder."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # from 3.11.4 on
        (top,) = {member.name.split("/")[0] for member in tar.getmembers()}
    return folder / top
