"""The options of txns."""

from __future__ import annotations

import shlex

import msgspec

from format.limits import DEFAULT_LIMITS, Limits

#: transaction.max.timeout.ms of brokers by default: a transaction that is silent for longer may hang.
MAX_TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000


class TransactionTerms(msgspec.Struct, frozen=True):
    """Which transactions are shown, as of when, and how the commands that abort them are written.

    ``now_ms`` is the time at which transactions are judged as hanging. ``at_ms`` None reads the logs to their ends.
    """

    now_ms: int
    at_ms: int | None = None
    only_open: bool = False
    only_hanging: bool = False
    producer_id: int | None = None
    transactional_id: str | None = None
    topics: frozenset[str] = frozenset()
    max_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS
    bootstrap_server: str = "localhost:9092"
    before_3_0: bool = False
    limits: Limits = DEFAULT_LIMITS

    @property
    def as_of_ms(self) -> int:
        return self.now_ms if self.at_ms is None else self.at_ms

    def abort_command(
        self, topic: str, partition: int, first_offset: int, producer_id: int, epochs: tuple[int, int]
    ) -> str:
        """The command of kafka-transactions.sh; ``epochs`` are those of the producer and of its coordinator (-1: none).

        Brokers before 3.0 do not look the producer up by the first offset. For an unknown coordinator the tool takes
        epoch 0, below which no leader's epoch is (TransactionsCommand).
        """
        which = f"--start-offset {first_offset}"
        if self.before_3_0:
            which = f"--producer-id {producer_id} --producer-epoch {epochs[0]} --coordinator-epoch {max(epochs[1], 0)}"
        return (
            f"kafka-transactions.sh --bootstrap-server {shlex.quote(self.bootstrap_server)} abort "
            f"--topic {shlex.quote(topic)} --partition {partition} {which}"
        )
