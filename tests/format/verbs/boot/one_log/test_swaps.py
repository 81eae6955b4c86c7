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


def test_no_file_of_a_swapped_in_segment_stays_where_that_is_removed(data_dir: Path, tmp_path: Path) -> None:
    """Recovery rebuilds the renamed indexes, and the log then ends below the log start offset: 3.9.1 removes all."""
    node = copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")
    log = node.segments("orders-0")[0]
    (log.parent.parent / ".kafka_cleanshutdown").unlink()
    (log.parent.parent / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    (log.parent.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 30\n")
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    swaps = [log.with_suffix(f"{suffix}.swap") for suffix in (".log", ".index", ".timeindex")]
    for each in swaps:
        each.with_suffix("").rename(each)
    result = boot(node.log_dirs, BootTerms(every_file=True))
    assert set(swaps) <= {step.path for step in result.having(Action.DELETE)}
    assert not set(swaps) & {step.path for step in result.having(Action.KEEP)}
