"""Reading leaves the access times of the sources alone, where the system allows that."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from format.io.source import FileSource


def _read_by_the_system(path: Path) -> None:
    with open(path, "rb") as file:
        file.read()


def test_the_access_time_stays_where_the_system_allows_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    long_ago = (10**18, 2 * 10**18)  # before the file was written, so that the next access would be noted
    os.utime(path, ns=long_ago)
    with FileSource(path) as source:
        source.read_at(0, 7)
    assert path.stat().st_atime_ns == long_ago[0]
    _read_by_the_system(path)
    if path.stat().st_atime_ns == long_ago[0]:
        pytest.skip("this file system notes no access times")


def test_a_file_of_another_owner_is_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    open_file = os.open

    def refusing(name: str, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if flags & os.O_NOATIME:
            raise PermissionError(errno.EPERM, "not the owner")
        return open_file(name, flags, *rest, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)
    with FileSource(path) as source:
        assert source.read_at(0, 7) == b"content"
