"""txns: which transactions are open, who holds back the last stable offset, and what ended how.

Source: KIP-98, KIP-664, KIP-890; tools TransactionsCommand for what counts as hanging.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace

from format.errors import KafkaLogError, NotALogDir
from format.findings import Finding
from format.layout import TRANSACTION_STATE_TOPIC
from format.limits import Limits
from format.location import Location
from format.node.checkpoints import Checkpoints
from format.node.log_dir import Kind
from format.node.partition import Partition, read_partition
from format.node.target import Target, nothing_to_read
from format.scan.progress import Advance, no_progress
from format.scan.selected_logs import partitions_below
from format.state.transactional_ids import TransactionalIds
from format.verbs.txns.coordinator_records import read_coordinator_records
from format.verbs.txns.partition_transactions import PartitionTransactions, read_partition_transactions
from format.verbs.txns.terms import TransactionTerms

PartitionKey = tuple[str | None, int | None]


@dataclass(slots=True)
class Transactions:
    """What was found: of each partition the replica that is furthest, and what the coordinators' records say."""

    ids: TransactionalIds = field(default_factory=TransactionalIds)
    partitions: dict[PartitionKey, PartitionTransactions] = field(default_factory=dict)
    skipped: int = 0  # directories that are no replicas
    targets: tuple[Target, ...] = ()

    def has_all_coordinators(self, limits: Limits) -> bool:
        """Whether every partition of __transaction_state was read: a producer that none names has no coordinator.

        The metadata log at or around the paths says how many there are.
        """
        if not self.ids.partitions:
            return False
        from format.state.cluster_context import ContextTerms, read_context  # few runs ask this, and it loads much

        image = read_context(self.targets, ContextTerms(limits=limits)).image
        topic_id = None if image is None else image.topic_id(TRANSACTION_STATE_TOPIC)
        count = 0 if image is None else sum(key[0] == topic_id for key in image.partitions)
        return count > 0 and self.ids.partitions >= set(range(count))

    def add(self, found: PartitionTransactions) -> None:
        """Take a replica of a partition; the newest leader epoch counts, and the log end offset within one."""
        key = found.partition.topic, found.partition.number
        known = self.partitions.get(key)
        if known is None or _progress(known) < _progress(found):
            self.partitions[key] = found


def _progress(found: PartitionTransactions) -> tuple[int, int]:
    return found.leader_epoch, found.log_end_offset


def read_transactions(
    targets: Iterable[Target], terms: TransactionTerms, advance: Advance = no_progress
) -> Generator[Finding, None, Transactions]:
    """Read all partitions at some paths by their headers, and __transaction_state by its records.

    Yields what is wrong. Raises NotALogDir for a path at which no partition lies.
    """
    result = Transactions(targets=tuple(targets))
    for target in result.targets:
        is_empty = True
        for found in replicas_at(target):
            if isinstance(found, Finding):
                is_empty = False
                yield found
                continue
            partition, checkpoints = found
            is_empty = is_empty and not partition.segments
            if partition.mark is not None and target.kind is Kind.LOG_DIR:
                result.skipped += 1
            elif partition.topic == TRANSACTION_STATE_TOPIC:
                yield from read_coordinator_records(partition, result.ids, terms.at_ms, terms.limits, advance)
            elif not terms.topics or partition.topic in terms.topics:
                transactions = yield from read_partition_transactions(
                    partition, checkpoints, terms.at_ms, terms.limits, advance
                )
                result.add(transactions)
        if is_empty:
            yield nothing_to_read(target)
    return result


def replicas_at(target: Target) -> Iterator[tuple[Partition, Checkpoints] | Finding]:
    """The partitions at a target; a log file is a partition of one segment."""
    if target.kind in (Kind.LOG_DIR, Kind.PARTITION):
        yield from partitions_below(target)
        return
    location = Location(str(target.path))
    if target.kind is not Kind.LOG:
        raise NotALogDir("name a log directory, a partition directory or a .log file", location)
    partition = read_partition(target.path.parent)
    segments = [each for each in partition.segments if each.log is not None and each.log.name == target.path.name]
    if not segments:
        raise NotALogDir("the name of a segment is its base offset in 20 digits and .log", location)
    try:
        checkpoints = Target(target.path.parent).checkpoints_around()
    except KafkaLogError:
        checkpoints = Checkpoints()
    yield replace(partition, segments=segments), checkpoints
