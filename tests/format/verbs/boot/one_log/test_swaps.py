"""Swaps that a broker did not finish: its next start does, and the user is told of each file that this costs."""

from __future__ import annotations

from pathlib import Path

from format.verbs.boot.boot import boot
from format.verbs.boot.steps import Action, BootTerms
from tests.oracle.boot_mutations.node import copied_node


def test_an_empty_swap_takes_the_place_of_a_log(data_dir: Path, tmp_path: Path) -> None:
    """4.3.1 renamed it over the log, whose records were gone."""
    node = copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")
    log = node.segments("orders-0")[0]
    log.with_name(f"{log.name}.swap").write_bytes(b"")
    size = log.stat().st_size
    [deleted] = [step for step in boot(node.log_dirs, BootTerms()).having(Action.DELETE) if step.path == log]
    assert (deleted.bytes, deleted.reason) == (size, "the .swap file takes its place")
