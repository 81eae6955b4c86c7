"""What clients left behind: producers, transactions, consumer groups and their offsets."""

from __future__ import annotations

from format.columns.schema import PARTITION_COLUMN, TOPIC_COLUMN, Column, RowSchema

TRANSACTION = RowSchema(
    "transaction",
    (
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("producer_id", "int", "the producer"),
        Column("producer_epoch", "int", "its epoch in the transaction's batches; of a lone marker, the marker's"),
        Column("transactional_id", "string", "its transactional id, from __transaction_state; null where that is not there"),
        Column("state", "string", "open, aborted or committed, by the end marker in this partition"),
        Column("coordinator_state", "string", "state of the transactional id by name, such as Ongoing; of ended transactions only the producer's last one here has it"),
        Column("first_offset", "int", "offset of its first record; null for an end marker without records before it"),
        Column("last_offset", "int", "offset of the end marker; of an open transaction, of its last record"),
        Column("start_timestamp", "timestamp", "ms; base timestamp of its first batch, null where that is gone"),
        Column("last_timestamp", "timestamp", "ms; of the end marker, or of the last batch of an open transaction"),
        Column("timeout_ms", "int", "transaction.timeout.ms, from __transaction_state"),
        Column("record_count", "int", "its records in this partition"),
        Column("size_bytes", "int", "bytes of its batches in this partition, the end marker aside"),
        Column("is_hanging", "bool", "silent for longer than --max-timeout, and its coordinator does not know of it here; null where that cannot be said"),
        Column("abort_command", "string", "Kafka's command that aborts an open transaction on this partition"),
        Column("duration_ms", "int", "from its first batch to its end, or to --at or now"),
        Column("holds_last_stable_offset", "bool", "the oldest open transaction of the partition"),
        Column("last_stable_offset", "int", "where consumers of committed records stop in this partition"),
        Column("waiting_record_count", "int", "records from its first one on, those of others too; null where it ended"),
        Column("waiting_bytes", "int", "bytes of the batches that hold them"),
        Column("coordinator_epoch", "int", "of its end marker; of an open transaction, of the producer's marker before it"),
        Column("path", "string", "the partition's directory"),
        Column("segment_base_offset", "int", "of the segment with the first batch; of an ended transaction, with the marker"),
        Column("position", "int", "byte position of its first batch, or of a lone marker, in that batch's segment"),
    ),
)
GROUP = RowSchema(
    "group",
    (
        Column("group", "string", "the group's id"),
        Column("protocol", "string", "classic, consumer, share or streams"),
        Column("state", "string", "Empty, Stable, Assigning, Reconciling, NotReady or Dead, as far as the log says it"),
        Column("generation", "int", "generation of a classic group, epoch of any other; null for none"),
        Column("member_count", "int", "members that the log names"),
        Column("leader", "string", "member id of the leader of a classic group, null for none"),
        Column("committed_partitions", "int", "partitions with a committed offset, or with a start offset of a share group"),
        Column("total_lag", "int", "sum of the lags that are known, null where none is"),
        Column("partitions_without_lag", "int", "committed partitions whose lag is not known"),
        Column("pending_partitions", "int", "partitions with an offset in a transaction that has not ended"),
        Column("last_commit_timestamp", "timestamp", "time of the last commit in the log, aborted ones too"),
        Column("commit_count", "int", "commits in the log"),
        Column("commits_per_hour", "int", "their rate from the first to the last, null for fewer than two"),
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
        Column("topic", "string", "topic; the topic id of a share group where no path has the topic's name"),
        Column("partition", "int", "partition number"),
        Column("offset", "int", "committed offset, or start offset of a share group; null where only a pending one is there"),
        Column("leader_epoch", "int", "leader epoch of the last record that was consumed, null for none"),
        Column("metadata", "string", "what the consumer noted with it"),
        Column("commit_timestamp", "timestamp", "time of the commit"),
        Column("expire_timestamp", "timestamp", "when it expires; null unless an old client said so"),
        Column("log_end_offset", "int", "log end of the partition at the paths, null where it is not there"),
        Column("high_watermark", "int", "from the replication-offset-checkpoint there, null for none"),
        Column("lag", "int", "log end offset minus offset; of a share group also minus what is delivered past it"),
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
        Column("leader_epoch", "int", "leader epoch of the last record that was consumed, null for none"),
        Column("metadata", "string", "what the consumer noted with it"),
        Column("commit_timestamp", "timestamp", "time of the commit"),
        Column("outcome", "string", "committed, aborted or open for a commit in a transaction; plain; or deleted for a tombstone"),
        Column("producer_id", "int", "producer of the transaction, null for none"),
        *_COMMIT_PLACE,
    ),
)
PRODUCER = RowSchema(
    "producer",
    (
        Column("producer_id", "int", "the producer; -1 for all that wrote without an id"),
        Column("transactional_id", "string", "its transactional id, from __transaction_state; null for none, or where that is not there"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("epochs", "string", "the epochs of its batches, such as 0-3,7; null without an id"),
        Column("first_offset", "int", "offset of its first record that is there"),
        Column("last_offset", "int", "offset of its last record"),
        Column("first_sequence", "int", "sequence of its first record that is there, -1 for none"),
        Column("last_sequence", "int", "sequence of its last record, -1 for none"),
        Column("gap_count", "int", "batches whose sequence leaves some out after the batch before, or begins a new epoch above 0"),
        Column("duplicate_count", "int", "batches whose sequence repeats or goes back, in the same epoch"),
        Column("batch_count", "int", "its batches, end markers aside"),
        Column("record_count", "int", "records in them"),
        Column("mean_batch_bytes", "int", "bytes of its batches, by their number"),
        Column("codecs", "string", "the codecs in use, with the number of batches of each"),
        Column("first_timestamp", "timestamp", "ms; base timestamp of its first batch, null where it has none"),
        Column("last_timestamp", "timestamp", "ms; largest timestamp of its last batch"),
        Column("size_bytes", "int", "bytes of its batches"),
        Column("transactional_batch_count", "int", "batches that are part of transactions"),
        Column("magics", "string", "the formats in use, such as 0,1,2"),
        Column("path", "string", "the partition's directory"),
    ),
)
