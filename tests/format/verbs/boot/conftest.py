"""The node that most tests of boot change and start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.boot_mutations.node import CLEAN_MARK, Node, copied_node


@pytest.fixture
def node(data_dir: Path, tmp_path: Path) -> Node:
    """A writable copy of the single node that ships with the tests, cleanly stopped."""
    copy = copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")
    (copy.first / CLEAN_MARK).touch()
    return copy
