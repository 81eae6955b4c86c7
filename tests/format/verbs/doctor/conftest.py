"""Small directories are looked at as large ones here: only what is odd is read."""

from __future__ import annotations

import pytest

from format.verbs.doctor import doctor


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SMALL_SEGMENTS", 0)
