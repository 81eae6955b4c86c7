"""Merges replicas that a test has built, and reads the result back record by record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from format.findings import Finding
from format.io.source import FileSource
from format.layout import MANIFEST
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.node.target import targets_at
from format.rewriting.publication import Publication
from format.rewriting.rewriter import RewritingResult, WriteTerms
from format.state.cluster_context import ContextTerms, read_context
from format.verbs.merge.merge import MergedPartition, branch_sources, merge, read_merge, write_branches
from format.verbs.verify.verify import verify
from tests.format.verbs.diff.building_replicas import ModelReplica

Content = dict[int, tuple[bytes | None, bytes | None]]


class Merged(msgspec.Struct, frozen=True):
    """The result of a merge of one partition: its plan, the findings, the offsets that are lost, and the output."""

    plan: MergedPartition
    findings: list[Finding]
    losses: list[Finding]
    output: Path

    @property
    def codes(self) -> list[str]:
        return [each.code for each in self.findings]

    @property
    def lost(self) -> set[int]:
        ranges = [each.lost_offsets for each in self.losses if each.lost_offsets is not None]
        return {offset for first, last in ranges for offset in range(first, last + 1)}

    @property
    def directory(self) -> Path:
        return self.output / self.plan.name

    @property
    def records(self) -> Content:
        """The key and value of each record, by offset."""
        return records_in(self.directory)

    @property
    def log_bytes(self) -> bytes:
        return b"".join(each.read_bytes() for each in sorted(self.directory.glob("*.log")))

    @property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.output / MANIFEST).read_bytes())
        return found


def records_in(directory: Path) -> Content:
    """The key and value of each record of a partition directory, by offset; no offset comes twice."""
    found: Content = {}
    for log in sorted(directory.glob("*.log")):
        with FileSource(log) as source:
            for chunk in batch_chunks(source):
                assert chunk.damage is None
                assert (chunk.table.crc_valid == 1).all()
                for table in record_tables(chunk):
                    for row, offset in enumerate(table.offset.tolist()):
                        assert offset not in found
                        found[offset] = (table.key(row), table.value(row))
    return found


def merged(paths: Sequence[Path], output: Path, *, branches: Path | None = None, jobs: int = 1) -> Merged:
    """Merge the replicas at the paths, which are of one partition."""
    targets = targets_at(paths)
    merging = read_merge(targets, read_context(targets, ContextTerms()))
    merging.plan()
    result = RewritingResult()
    terms = WriteTerms(jobs=jobs)
    with Publication(output, paths, job=merging.job()) as publication:
        items = list(merge(merging, publication, terms, result))
    sources = branch_sources(merging)
    if branches is not None and sources.partitions:
        with Publication(branches, paths, job={"branches": True}) as publication:
            list(write_branches(sources, publication, terms))
    [plan] = merging.plans
    findings = [each for each in items if isinstance(each, Finding)]
    return Merged(plan, findings, result.losses, output)


def merged_models(replicas: Sequence[ModelReplica], tmp_path: Path, *, branches: bool = False) -> Merged:
    """Write replicas as nodes and merge them; what was written verifies without a new error."""
    nodes = []
    for number, replica in enumerate(replicas):
        node = tmp_path / f"node-{number + 1}"
        replica.write(node)
        nodes.append(node)
    found = merged(nodes, tmp_path / "out", branches=tmp_path / "branches" if branches else None)
    assert [each for each in verify(found.directory) if each.severity >= 2] == []
    return found
