"""Records of __transaction_state: one per transactional id.

Source: transaction-coordinator common/message.
"""

from __future__ import annotations

from format.internal_topics.schema import RecordType, field, message

# The state of the transactional id's transaction: its producer, its status (see TRANSACTION_STATUSES), its partitions.
TRANSACTION_LOG_KEY = message("TransactionLogKey", field("transactionalId", "string"), flexible="none")
TRANSACTION_LOG_VALUE = message(
    "TransactionLogValue",
    field("producerId", "int64"),
    field("previousProducerId", "int64", versions="1+", tag=0, default=-1),
    field("nextProducerId", "int64", versions="1+", tag=1, default=-1),
    field("producerEpoch", "int16"),
    field("nextProducerEpoch", "int16", versions="1+", tag=3, default=-1),
    field("transactionTimeoutMs", "int32"),
    field("transactionStatus", "int8"),
    field(
        "transactionPartitions",
        "[]struct",
        field("topic", "string"),
        field("partitionIds", "[]int32"),
        nullable="0+",
    ),
    field("transactionLastUpdateTimestampMs", "int64"),
    field("transactionStartTimestampMs", "int64"),
    field("clientTransactionVersion", "int16", versions="1+", tag=2),
    valid="0-1",
    flexible="1+",
)

RECORD_TYPES = (RecordType(0, "TRANSACTION_LOG", TRANSACTION_LOG_KEY, TRANSACTION_LOG_VALUE),)

#: transactionStatus by number (transaction-coordinator TransactionState).
TRANSACTION_STATUSES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
