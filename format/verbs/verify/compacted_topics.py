"""The topics in whose logs compaction leaves gaps."""

from __future__ import annotations

from collections.abc import Sequence

from format.errors import KafkaLogError
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import Limits
from format.node.log_dir import Kind
from format.node.target import Target


def compacted_topics_at(targets: Sequence[Target], limits: Limits) -> frozenset[str]:
    """The compacted topics by the metadata log of the given log directories.

    A partition that is given by itself is not worth reading the metadata log around it.
    """
    try:
        log_dirs = [each for each in targets if each.kind is Kind.LOG_DIR]
        if not any((CLUSTER_METADATA_TOPIC, 0) in each.topic_partitions for at in log_dirs for each in at.log_dirs):
            return frozenset()
        from format.state.cluster_context import ContextTerms, read_context  # takes longer to load than to run

        return read_context(log_dirs, ContextTerms(limits=limits)).compacted_topics()
    except KafkaLogError:
        return frozenset()  # verifying the path reports it
