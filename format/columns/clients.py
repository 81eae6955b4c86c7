"""Rows about clients: producers, transactions, consumer groups and their offsets."""

from __future__ import annotations

from format.columns.schema import PARTITION_COLUMN, TOPIC_COLUMN, Column, RowSchema

TRANSACTION = RowSchema(
    "transaction",
    (
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("producer_id", "int", "the producer"),
        Column("producer_epoch", "int", "its epoch in the transaction's batches; for an end marker alone, the epoch of the marker"),
        Column("transactional_id", "string", "its transactional id, from __transaction_state; null without that topic"),
        Column("state", "string", "open, aborted or committed, by the end marker in this partition"),
        Column("coordinator_state", "string", "state of the transactional id, such as Ongoing; of the ended transactions, only the producer's last one here has it"),
        Column("first_offset", "int", "offset of its first record; null for an end marker alone"),
        Column("last_offset", "int", "offset of the end marker; for an open transaction, of its last record"),
        Column("start_timestamp", "timestamp", "ms; base timestamp of its first batch, null if that is no longer there"),
        Column("last_timestamp", "timestamp", "ms; of the end marker, or of the last batch of an open transaction"),
        Column("timeout_ms", "int", "transaction.timeout.ms, from __transaction_state"),
        Column("record_count", "int", "its records in this partition"),
        Column("size_bytes", "int", "bytes of its batches in this partition, without the end marker"),
        Column("is_hanging", "bool", "idle for longer than --max-timeout, and not known to its coordinator here; null if that is unknown"),
        Column("abort_command", "string", "Kafka's command that aborts it on this partition; null if it is not open, or is known not to hang"),
        Column("duration_ms", "int", "from its first batch to its end, or to --at or now; null where that time is before its first batch"),
        Column("holds_last_stable_offset", "bool", "the oldest open transaction of the partition"),
        Column("last_stable_offset", "int", "last stable offset of the partition, where read_committed consumers stop"),
        Column("waiting_record_count", "int", "records from its first record on, of all producers; null for an ended transaction"),
        Column("waiting_bytes", "int", "bytes of the batches with these records"),
        Column("coordinator_epoch", "int", "of its end marker; for an open transaction, of the producer's previous marker"),
        Column("path", "string", "the partition's directory"),
        Column("segment_base_offset", "int", "of the segment with the first batch; for an ended transaction, with the marker"),
        Column("position", "int", "byte position of its first batch, or of an end marker alone, in the segment of that batch"),
    ),
)
GROUP = RowSchema(
    "group",
    (
        Column("group", "string", "the group's id"),
        Column("protocol", "string", "classic, consumer, share or streams"),
        Column("state", "string", "Empty, Stable, Assigning, Reconciling, NotReady or Dead, as far as the log shows it"),
        Column("generation", "int", "generation of a classic group, epoch of other groups; null for none"),
        Column("member_count", "int", "members of the group in the log"),
        Column("leader", "string", "member id of the leader of a classic group, null for none"),
        Column("committed_partitions", "int", "partitions with a committed offset, or with a start offset of a share group"),
        Column("total_lag", "int", "sum of the known lags, null if none is known"),
        Column("partitions_without_lag", "int", "committed partitions whose lag is not known"),
        Column("pending_partitions", "int", "partitions with an offset in a transaction that has not ended"),
        Column("last_commit_timestamp", "timestamp", "time of the last commit in the log, including aborted commits"),
        Column("commit_count", "int", "commits in the log"),
        Column("commits_per_hour", "int", "rate of commits from the first to the last, null for fewer than two"),
        Column("record_count", "int", "records of the group in the log, of all kinds"),
        Column("size_bytes", "int", "bytes of these records, uncompressed"),
        Column("coordinator_partition", "int", "partition of __consumer_offsets that holds the group"),
    ),
)
_GROUP = Column("group", "string", "the group's id")
_COMMIT_PLACE = (
    Column("path", "string", "the log with the commit"),
    Column("position", "int", "byte position of its batch in the log"),
    Column("record_offset", "int", "offset of the commit's record in the coordinator's partition"),
)
GROUP_OFFSET = RowSchema(
    "group_offset",
    (
        _GROUP,
        Column("topic", "string", "topic; for a share group the topic id, if its name is not known from the paths"),
        Column("partition", "int", "partition number"),
        Column("offset", "int", "committed offset, or start offset of a share group; null if there is only a pending one"),
        Column("leader_epoch", "int", "leader epoch of the last consumed record, null for none"),
        Column("metadata", "string", "metadata that the consumer committed with the offset"),
        Column("commit_timestamp", "timestamp", "time of the commit"),
        Column("expire_timestamp", "timestamp", "when it expires; null unless an old client set it"),
        Column("log_end_offset", "int", "log end offset of the partition, null if its log is not at the paths"),
        Column("high_watermark", "int", "high watermark of the partition, from the replication-offset-checkpoint; null for none"),
        Column("lag", "int", "log end offset minus offset; for a share group, also minus the records delivered past the offset"),
        Column("pending_offset", "int", "offset committed in a transaction that has not ended, null for none"),
        Column("pending_producer_id", "int", "producer of that transaction"),
        *_COMMIT_PLACE,
    ),
)
GROUP_COMMIT = RowSchema(
    "group_commit",
    (
        _GROUP,
        Column("topic", "string", "topic"),
        Column("partition", "int", "partition number"),
        Column("offset", "int", "committed offset, null for a tombstone"),
        Column("leader_epoch", "int", "leader epoch of the last consumed record, null for none"),
        Column("metadata", "string", "metadata that the consumer committed with the offset"),
        Column("commit_timestamp", "timestamp", "time of the commit"),
        Column("outcome", "string", "committed, aborted or open for a commit in a transaction; plain; or deleted for a tombstone"),
        Column("producer_id", "int", "producer of the transaction, null for none"),
        *_COMMIT_PLACE,
    ),
)
PRODUCER = RowSchema(
    "producer",
    (
        Column("producer_id", "int", "the producer; -1 for all producers without an id"),
        Column("transactional_id", "string", "its transactional id, from __transaction_state; null for none, or without that topic"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("epochs", "string", "the epochs of its batches, such as 0-3,7; null without an id"),
        Column("first_offset", "int", "offset of its first record in the log"),
        Column("last_offset", "int", "offset of its last record"),
        Column("first_sequence", "int", "sequence of its first record in the log, -1 for none"),
        Column("last_sequence", "int", "sequence of its last record, -1 for none"),
        Column("gap_count", "int", "batches with a gap between the sequence of the previous batch and theirs, or with a new epoch that does not start at 0"),
        Column("duplicate_count", "int", "batches whose sequence repeats or goes back, in the same epoch"),
        Column("batch_count", "int", "its batches, without end markers"),
        Column("record_count", "int", "records in them"),
        Column("mean_batch_bytes", "int", "mean size of its batches in bytes"),
        Column("codecs", "string", "the codecs in use, with the number of batches of each"),
        Column("first_timestamp", "timestamp", "ms; base timestamp of its first batch, null if it has none"),
        Column("last_timestamp", "timestamp", "ms; largest timestamp of its last batch"),
        Column("size_bytes", "int", "bytes of its batches"),
        Column("transactional_batch_count", "int", "batches that are part of transactions"),
        Column("magics", "string", "the formats in use, such as 0,1,2"),
        Column("path", "string", "the partition's directory"),
    ),
)
