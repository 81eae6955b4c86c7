"""salvage --repair on real logs, of which one batch has one wrong field or one flipped bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.repair_trial import sound_logs, trials


@pytest.mark.slow
def test_no_repair_is_false(tmp_path: Path) -> None:
    logs = sound_logs(shipped=True)
    assert len(logs) > 20
    outcomes = trials(12, 5, logs, tmp_path / "trial")
    for name, result in outcomes.items():
        assert not result.false, name
        assert result.counts["as it was"] >= 6, result.counts
    assert "kept as it is: nothing proves the field wrong" not in outcomes["one flipped bit"].counts
    assert "left out" not in outcomes["one flipped bit"].counts
