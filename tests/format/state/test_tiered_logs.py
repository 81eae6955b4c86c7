"""Records of __remote_log_metadata that are newer than this program."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.limits import DEFAULT_LIMITS
from format.node.partition import read_partition
from format.state.tiered_logs import TOPIC, read_remote_segments
from tests.building import batch, write_segment

NEWER = {"a later frame": b"\2\0\0", "a later type": b"\1\x63\0", "a later version": b"\1\0\x63"}


@pytest.mark.parametrize("name", NEWER)
def test_a_newer_record_is_said(tmp_path: Path, name: str) -> None:
    """The list of remote segments may lack one, which must not look like a whole list."""
    write_segment(tmp_path / f"{TOPIC}-0", 0, [batch(0, [NEWER[name] + bytes(24)], key=None)])
    found = read_remote_segments([read_partition(tmp_path / f"{TOPIC}-0")], DEFAULT_LIMITS)
    assert [(each.code, each.location.offset) for each in found.findings] == [("version-unknown", 0)]
