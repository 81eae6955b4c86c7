"""txns: which transactions are open, which of them hold back the last stable offset, and how others ended.

Source: KIP-98, KIP-664, KIP-890; tools TransactionsCommand for what counts as hanging.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from format.findings import Finding
from format.layout import TRANSACTION_STATE_TOPIC
from format.limits import Limits
from format.scan.progress import Advance, no_progress
from format.verbs.txns.partition_transactions import PartitionTransactions, read_partition_transactions
from format.verbs.txns.replicas import Replicas, ReplicaScan, ReplicaUnit
from format.verbs.txns.terms import TransactionTerms

if TYPE_CHECKING:
    from format.state.cluster_context import ClusterContext


class TransactionScan(ReplicaScan[PartitionTransactions], frozen=True):
    """Reads the transactions of partitions."""

    def replica(self, unit: ReplicaUnit, advance: Advance) -> Iterator[PartitionTransactions | Finding]:
        """Findings about a partition, and its transactions; __transaction_state itself has none."""
        if unit.partition.topic != TRANSACTION_STATE_TOPIC:
            found = PartitionTransactions.of_partition(unit.partition, unit.checkpoints)
            yield from read_partition_transactions(found, self.at_ms, self.limits, advance)
            yield found


class Transactions(Replicas[PartitionTransactions]):
    """The transactions in the longest replica of each partition, and the records of the coordinators.

    ``context``: that of the targets, if it was read before.
    """

    context: ClusterContext | None = None

    def read(self, terms: TransactionTerms, *, jobs: int = 1, advance: Advance = no_progress) -> Iterator[Finding]:
        """Read all partitions at the targets by their headers, and __transaction_state by its records.

        Yields findings. Raises NotALogDir for a path without partitions.
        """
        yield from self.read_by(TransactionScan(terms.at_ms, terms.limits), terms.topics, jobs, advance)

    def has_all_coordinators(self, limits: Limits) -> bool:
        """Whether every partition of __transaction_state was read: a producer in none of them has no coordinator.

        Their number is in the metadata log at or around the paths.
        """
        if not self.ids.partitions:
            return False
        from format.state.cluster_context import ContextTerms, read_context  # it imports much, and few runs need it

        image = (self.context or read_context(self.targets, ContextTerms(limits=limits))).image
        count = 0 if image is None else image.partition_count(TRANSACTION_STATE_TOPIC)
        return count > 0 and self.ids.partitions >= set(range(count))
