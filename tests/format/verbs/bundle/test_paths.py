"""The paths of files in a bundle."""

from __future__ import annotations

import os
from pathlib import Path

from format.node.target import Target
from format.verbs.bundle.contents import InnerPaths
from tests.building import batch, write_segment


def test_bytes_that_are_not_utf8_are_escaped(tmp_path: Path) -> None:
    node = tmp_path / os.fsdecode(b"node-\xff")
    log = write_segment(node / "orders-0", 0, [batch(0)])
    inner = InnerPaths([Target(node)]).of(log)
    assert inner == f"{tmp_path}/node-\\udcff/orders-0/{log.name}".lstrip("/")
