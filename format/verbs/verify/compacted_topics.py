"""The topics in whose logs compaction leaves gaps."""

from __future__ import annotations

from collections.abc import Sequence

from format.errors import KafkaLogError
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import Limits
from format.node.log_dir import Kind
from format.node.target import Target


def compacted_topics_at(targets: Sequence[Target], limits: Limits) -> frozenset[str]:
    """The topics that the metadata log in the given log directories configures as compacted.

    Empty where there is no metadata log, or it cannot be read. Targets that are no log directories are passed over:
    for a single partition, reading the metadata log around it takes too long.
    """
    try:
        log_dirs = [target for target in targets if target.kind is Kind.LOG_DIR]
        directories = [log_dir for target in log_dirs for log_dir in target.log_dirs]
        if not any((CLUSTER_METADATA_TOPIC, 0) in each.topic_partitions for each in directories):
            return frozenset()
        from format.state.cluster_context import ContextTerms, read_context  # takes longer to import than to run

        return read_context(log_dirs, ContextTerms(limits=limits)).compacted_topics()
    except KafkaLogError:
        return frozenset()  # verifying the path reports it
