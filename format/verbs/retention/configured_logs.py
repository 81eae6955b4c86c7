"""Logs with the configs of their topics: the units of the verbs that judge whole logs by configs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from format.findings import Finding
from format.limits import Limits
from format.node.offsets import PartitionOffsets, offsets_of
from format.node.partition import Partition
from format.node.partition_surroundings import unread_findings
from format.node.target import Target
from format.scan.progress import Advance
from format.scan.protocol import LogUnit
from format.scan.selected_logs import every_log_of, partitions_to_read
from format.scan.whole_units import WholeUnits
from format.state.cluster_context import ClusterContext, TopicConfigs

ResultT = TypeVar("ResultT")


class ConfiguredLog(msgspec.Struct, frozen=True):
    """A log, its configs, and whether it has no other replica by the metadata."""

    partition: Partition
    offsets: PartitionOffsets
    configs: TopicConfigs
    is_only_replica: bool


def configured_logs(
    target: Target, context: ClusterContext, limits: Limits, takes: Callable[[Partition, TopicConfigs], bool]
) -> Iterator[ConfiguredLog | Finding]:
    """The logs at or below a path for which ``takes`` is true, and findings about files that no reader opens."""
    for found in partitions_to_read(target, limits):
        if isinstance(found, Finding):
            yield found
            continue
        partition, checkpoints = found
        yield from unread_findings(partition)
        configs = context.configs_of(partition, checkpoints)
        if partition.segments and takes(partition, configs):
            offsets = offsets_of(partition, checkpoints)
            yield ConfiguredLog(partition, offsets, configs, context.is_only_replica(partition))


class ConfiguredLogScan(WholeUnits[ConfiguredLog | Finding, ResultT | Finding]):
    """The base of scans that judge logs one by one; subclasses define ``cost`` and ``judged``."""

    __slots__ = ()

    def judged(self, log: ConfiguredLog, advance: Advance) -> Iterator[ResultT | Finding]:
        """Findings about a log, and the verb's result for it; calls ``advance`` with the bytes that are done."""
        raise NotImplementedError

    def logs(self, unit: ConfiguredLog | Finding) -> Sequence[LogUnit]:
        """The logs of the segments."""
        return () if isinstance(unit, Finding) else tuple(every_log_of(unit.partition))

    def read(self, unit: ConfiguredLog | Finding, advance: Advance) -> Iterator[ResultT | Finding]:
        """A finding unchanged, or the results for a log."""
        if isinstance(unit, Finding):
            yield unit
        else:
            yield from self.judged(unit, advance)
