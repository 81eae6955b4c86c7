"""Logs of replicas that are read beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.limits import DEFAULT_LIMITS
from format.log import walker
from format.node.target import targets_at
from format.scan.progress import no_progress
from format.verbs.diff.replica_log import ReplicaLog, matched
from tests.format.verbs.diff.building_replicas import ModelReplica, plain


def test_chunks_are_shared_again_after_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walker, "BODY_CHUNK_BYTES", 1000)
    batches = plain(40)
    sizes = [len(each.encoded()) for each in batches]
    for number in range(3):
        directory = ModelReplica(batches, batches[-1].last_offset + 1).write(tmp_path / f"node-{number}")
        if number:
            [log] = directory.glob("*.log")
            content = bytearray(log.read_bytes())
            start = sum(sizes[: 19 + number])  # of batch 20 or 21
            content[start : start + 61] = bytes(61)
            log.write_bytes(content)
    [group] = matched(targets_at([tmp_path / f"node-{number}" for number in range(3)]), DEFAULT_LIMITS).groups
    logs = [ReplicaLog(each, DEFAULT_LIMITS, no_progress) for each in group.replicas]
    read: list[list[int]] = [[], [], []]
    shared = []
    while True:
        for each in logs:
            if not each.has_batches:
                each.load(logs)
        if all(each.is_at_end for each in logs):
            break
        last = min(each.last_offset for each in logs if not each.is_at_end)
        shared.append(all(each.chunk is logs[0].chunk for each in logs))
        for number, each in enumerate(logs):
            window = None if each.is_at_end else each.window(last)
            read[number] += [] if window is None else window.base_offset.tolist()
            each.consume(last)
    offsets = [each.base_offset for each in batches]
    assert read == [offsets, offsets[:20] + offsets[21:], offsets[:21] + offsets[22:]]
    assert [each.damaged for each in logs] == [[], *([(each.base_offset, each.last_offset)] for each in batches[20:22])]
    assert shared[:2] == shared[-2:] == [True, True]
    assert not all(shared)
