"""The user's cache: files that nothing uses any more are removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from format.user_cache import note_use, remove_unused, user_cache


def test_files_that_were_not_used_for_long_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = user_cache()
    assert place == tmp_path / "kafkalog"
    (place / "folder").mkdir()
    for name, days in (("new", 0), ("last-month", 59), ("old", 61), ("old-but-used", 61), ("folder", 61)):
        if name != "folder":
            (place / name).write_text("")
        os.utime(place / name, (time.time() - days * 86400,) * 2)
    (tmp_path / "target").write_text("")
    (place / "link").symlink_to(tmp_path / "target")
    note_use(place / "old-but-used")
    note_use(place / "none")
    remove_unused(place)
    assert sorted(path.name for path in place.iterdir()) == ["folder", "last-month", "link", "new", "old-but-used"]
    remove_unused(place / "none")
