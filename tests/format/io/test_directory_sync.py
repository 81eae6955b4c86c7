"""Waiting until a directory's entries are on the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from format.io.file_writer import sync_directory


def test_the_directory_itself_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    descriptors = len(os.listdir("/dev/fd"))
    sync_directory(tmp_path)
    assert synced == [tmp_path.stat().st_ino]
    assert len(os.listdir("/dev/fd")) == descriptors


def test_what_is_no_directory_raises(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "missing"):
        with pytest.raises(OSError, match=name):
            sync_directory(tmp_path / name)
