"""Damaged and odd copies of a single KRaft node, on which a broker is then started: each mutation makes one."""

from __future__ import annotations

from tests.oracle.boot_mutations import (
    checkpoints,
    combinations,
    directories,
    logs,
    metadata,
    odd_batches,
    odd_files,
    odd_metadata,
    odd_nodes,
    pipes,
    side_files,
)
from tests.oracle.boot_mutations.node import Mutation

FAMILIES = (
    directories.untouched,
    directories.directory_names,
    directories.two_directories,
    directories.partition_metadata,
    directories.meta_properties,
    logs.tails,
    logs.middles,
    side_files.indexes,
    side_files.transaction_indexes,
    side_files.producer_snapshots,
    side_files.leftovers,
    checkpoints.offset_checkpoints,
    checkpoints.leader_epochs,
    metadata.quorum_states,
    metadata.metadata_logs,
    metadata.bootstraps,
    directories.missing,
    directories.marked_directories,
    logs.segment_files,
    logs.log_starts,
    combinations.old_formats,
    combinations.kraft_pairs,
    combinations.several_directories,
    combinations.twins,
    combinations.remote_heads,
    combinations.half_done,
    odd_files.file_kinds,
    odd_files.node_file_kinds,
    odd_files.odd_segments,
    odd_files.odd_side_files,
    odd_files.swaps,
    pipes.pipes,
    odd_nodes.odd_names,
    odd_nodes.half_moves,
    odd_nodes.odd_properties,
    odd_nodes.odd_offsets,
    odd_nodes.odd_kraft,
    odd_batches.odd_batches,
    odd_metadata.odd_metadata,
    combinations.pairs,
)


def mutations() -> list[Mutation]:
    """All of them, in a fixed order."""
    found = [
        Mutation(family.__name__.replace("_", "-"), name, apply) for family in FAMILIES for name, apply in family()
    ]
    assert len({str(each) for each in found}) == len(found), "two mutations of one name"
    return found
