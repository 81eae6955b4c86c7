"""Adds facts from the metadata log to listed partitions: topic id, configs, and whether a directory is stray."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from format.io.session import path_of
from format.layout import CLUSTER_METADATA_TOPIC
from format.node.log_dir import directory_around
from format.node.offsets import MARKS_OF_REPLICAS
from format.state.cluster_context import ClusterContext
from format.verbs.ls.partition_listing import ListedPartition, PartitionListing
from format.verbs.ls.segment_listing import joined_notes


def known_by(context: ClusterContext | None, listed: ListedPartition, log_dir: Path | None = None) -> ListedPartition:
    """The listing with the topic id, if the directory has none, the topic's configs, and notes.

    ``log_dir`` is the directory of the partition's own, for callers that have it.
    """
    listing = listed.listing
    image = None if context is None else context.image
    if context is None or image is None or listing.topic is None or listing.mark not in MARKS_OF_REPLICAS:
        return listed
    log_dir = log_dir or directory_around(path_of(listing.path))
    if context.is_at_another_cluster(log_dir):
        return listed
    topic_id = image.topic_id(listing.topic)
    configs = image.topic_configs(listing.topic)
    note = None if listing.topic == CLUSTER_METADATA_TOPIC else _note(context, log_dir, listing, topic_id)
    notes = [each for each in (listing.notes, note) if each]
    known = replace(listing, topic_id=listing.topic_id or topic_id, configs=dict(configs), notes=joined_notes(notes))
    return ListedPartition(known, listed.segments)


def _note(context: ClusterContext, log_dir: Path, listing: PartitionListing, topic_id: str | None) -> str | None:
    """Why the directory is stray; None where it is not, or where the image may be incomplete."""
    image = context.image
    if image is None or image.problem is not None:
        return None
    if listing.topic_id is not None and listing.topic_id != topic_id:
        if listing.topic_id in image.names:
            return f"stray: its topic id is that of {image.names[listing.topic_id]}"
        return "stray: the metadata log has no topic of its id"
    if topic_id is None:
        return "stray: the metadata log has no topic of its name"
    node_id = context.node_id_at(log_dir)
    state = image.partitions.get((topic_id, -1 if listing.partition is None else listing.partition))
    if node_id is not None and (state is None or node_id not in state.replicas):
        return f"stray: the metadata log does not assign it to node {node_id}"
    return None
