"""The columns of the kernel's int64 tables, by name and by index.

``tables.pxd`` has the same indexes for the compiled modules; a test compares them.
"""

from __future__ import annotations

#: Columns of a batch row; one row for each v2 batch or outermost v0/v1 message.
BATCH_COLUMNS = (
    "position",
    "size_bytes",
    "magic",
    "base_offset",
    "last_offset_delta",
    "record_count",  # -1: a compressed v0/v1 wrapper, unknown until it is decompressed
    "attributes",
    "crc",
    "leader_epoch",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)
#: Columns of a record row; starts are indexes in the buffer of the records, lengths are in bytes (-1 for null).
RECORD_COLUMNS = (
    "batch",  # row of its batch in the batch table
    "offset",
    "timestamp",
    "attributes",
    "start",
    "size_bytes",
    "key_start",
    "key_length",
    "value_start",
    "value_length",
    "headers_start",
    "header_count",  # -1: a format without headers
)
#: Columns of a span, the decompressed records of one v2 batch: where they are, and the bases of their deltas.
SPAN_COLUMNS = (
    "batch",
    "start",
    "end",
    "record_count",
    "base_offset",
    "base_timestamp",
    "append_timestamp",  # the timestamp of every record when the timestamp type is LogAppendTime
    "is_append_time",
)
#: Columns of a decoded group coordinator record; starts are indexes in the buffer of the records.
GROUP_COLUMNS = (
    "error",  # GROUP_RECORD_ERRORS, 0 for none
    "type",  # the record type, plus SHARE_STATE_TYPES for __share_group_state; -1: unknown
    "group_start",
    "group_length",
    "name_start",  # of the key's second name: a topic, a member, or the 16 bytes of a topic id
    "name_length",  # -1: the key has none
    "partition",  # -1: the key has none
    "number",  # the offset of a commit, the generation or epoch of a group or member, the start offset of a share
    "detail",  # leader epoch of a commit or share, members of a classic group, state of a member, validated topology
    "timestamp",  # of the commit, the state or the write
    "expire_timestamp",  # of a commit; for a share the number of records delivered past the start offset
    "text_start",
    "text_length",  # the metadata of a commit, the leader of a classic group, the topics of a share group; -1 for none
)
#: Columns of the sums over batch headers of a log. Without a batch, offsets and timestamps are undefined.
HEADER_SUMS = (
    "batch_count",
    "first_offset",
    "last_offset",
    "first_timestamp",  # of the first batch; -1 if it has none, or has a delete horizon in its place
    "max_timestamp",  # -1 if no batch has one
    "magics",  # a bit for each magic
    "least_offset",  # the least base offset that the next batch of the log may have
    "codec_counts",  # the number of batches of codec 0; codecs 1 to 7 follow
    *(f"codec_counts_{codec}" for codec in range(1, 8)),
    "codec_bytes",  # the bytes of batches of codec 0; codecs 1 to 7 follow
    *(f"codec_bytes_{codec}" for codec in range(1, 8)),
    "in_transactions",  # batches that begin, continue or end a transaction
    "gaps",  # places where a batch does not begin at the offset after the batch before it
)
#: Columns of the sums over a table of batches. Without a batch, least and greatest are undefined.
TABLE_SUMS = (
    "magics",  # a bit for each magic
    "record_count",  # without the batches whose count is not known
    "size_bytes",
    "least_offset",  # of the base offsets
    "greatest_offset",
    "least_delta",  # of the last offset deltas
    "greatest_delta",
    "max_timestamp",
    "lowest_epoch",
    "highest_epoch",
    "rises",  # 1 if the last offset of each batch is higher than that of the batch before
    "follows",  # 1 if each batch also starts after the last offset of the batch before
    "right_crcs",  # the number of batches with a right CRC
    "wrong_crcs",
    "wrappers",  # compressed v0 and v1 messages
    "controls",  # control batches
    "transactionals",  # transactional batches, control batches among them
    "with_producer",  # batches that have a producer id
    "in_transactions",  # those of them that are transactional or control batches
    "producer_changes",  # the batches with another producer id than the batch before
    "codec_counts",  # the number of batches of codec 0; codecs 1 to 7 follow
    *(f"codec_counts_{codec}" for codec in range(1, 8)),
    "codec_bytes",  # the bytes of batches of codec 0; codecs 1 to 7 follow
    *(f"codec_bytes_{codec}" for codec in range(1, 8)),
)
#: Columns of the live files of one base offset in a partition's directory.
SEGMENT_COLUMNS = (
    "base_offset",
    "suffixes",  # a bit for each of SEGMENT_SUFFIXES
    "log_bytes",  # -1: there is no log
)
SEGMENT_SUFFIXES = (".index", ".log", ".snapshot", ".timeindex", ".txnindex")  # in the order of a sorted listing
#: Columns of a name in a directory that is no live file of a segment.
OTHER_COLUMNS = (
    "number",  # of the name in the list
    "size_bytes",  # -1: no regular file
)
#: Columns of the result of a span.
RESULT_COLUMNS = ("error", "position", "records", "end")

B_POSITION = BATCH_COLUMNS.index("position")
B_SIZE = BATCH_COLUMNS.index("size_bytes")
B_MAGIC = BATCH_COLUMNS.index("magic")
B_BASE_OFFSET = BATCH_COLUMNS.index("base_offset")
B_LAST_DELTA = BATCH_COLUMNS.index("last_offset_delta")
B_COUNT = BATCH_COLUMNS.index("record_count")
B_ATTRIBUTES = BATCH_COLUMNS.index("attributes")
B_CRC = BATCH_COLUMNS.index("crc")
B_EPOCH = BATCH_COLUMNS.index("leader_epoch")
B_BASE_TIMESTAMP = BATCH_COLUMNS.index("base_timestamp")
B_MAX_TIMESTAMP = BATCH_COLUMNS.index("max_timestamp")
B_PRODUCER_ID = BATCH_COLUMNS.index("producer_id")
B_PRODUCER_EPOCH = BATCH_COLUMNS.index("producer_epoch")
B_BASE_SEQUENCE = BATCH_COLUMNS.index("base_sequence")

R_BATCH = RECORD_COLUMNS.index("batch")
R_OFFSET = RECORD_COLUMNS.index("offset")
R_TIMESTAMP = RECORD_COLUMNS.index("timestamp")
R_ATTRIBUTES = RECORD_COLUMNS.index("attributes")
R_START = RECORD_COLUMNS.index("start")
R_SIZE = RECORD_COLUMNS.index("size_bytes")
R_KEY_START = RECORD_COLUMNS.index("key_start")
R_KEY_LENGTH = RECORD_COLUMNS.index("key_length")
R_VALUE_START = RECORD_COLUMNS.index("value_start")
R_VALUE_LENGTH = RECORD_COLUMNS.index("value_length")
R_HEADERS_START = RECORD_COLUMNS.index("headers_start")
R_HEADER_COUNT = RECORD_COLUMNS.index("header_count")

S_BATCH = SPAN_COLUMNS.index("batch")
S_START = SPAN_COLUMNS.index("start")
S_END = SPAN_COLUMNS.index("end")
S_COUNT = SPAN_COLUMNS.index("record_count")
S_BASE_OFFSET = SPAN_COLUMNS.index("base_offset")
S_BASE_TIMESTAMP = SPAN_COLUMNS.index("base_timestamp")
S_APPEND_TIMESTAMP = SPAN_COLUMNS.index("append_timestamp")
S_IS_APPEND_TIME = SPAN_COLUMNS.index("is_append_time")

G_ERROR = GROUP_COLUMNS.index("error")
G_TYPE = GROUP_COLUMNS.index("type")
G_GROUP_START = GROUP_COLUMNS.index("group_start")
G_GROUP_LENGTH = GROUP_COLUMNS.index("group_length")
G_NAME_START = GROUP_COLUMNS.index("name_start")
G_NAME_LENGTH = GROUP_COLUMNS.index("name_length")
G_PARTITION = GROUP_COLUMNS.index("partition")
G_NUMBER = GROUP_COLUMNS.index("number")
G_DETAIL = GROUP_COLUMNS.index("detail")
G_TIMESTAMP = GROUP_COLUMNS.index("timestamp")
G_EXPIRE = GROUP_COLUMNS.index("expire_timestamp")
G_TEXT_START = GROUP_COLUMNS.index("text_start")
G_TEXT_LENGTH = GROUP_COLUMNS.index("text_length")

H_COUNT = HEADER_SUMS.index("batch_count")
H_FIRST_OFFSET = HEADER_SUMS.index("first_offset")
H_LAST_OFFSET = HEADER_SUMS.index("last_offset")
H_FIRST_TIMESTAMP = HEADER_SUMS.index("first_timestamp")
H_MAX_TIMESTAMP = HEADER_SUMS.index("max_timestamp")
H_MAGICS = HEADER_SUMS.index("magics")
H_LEAST_OFFSET = HEADER_SUMS.index("least_offset")
H_CODEC_COUNTS = HEADER_SUMS.index("codec_counts")
H_CODEC_BYTES = HEADER_SUMS.index("codec_bytes")
H_IN_TRANSACTIONS = HEADER_SUMS.index("in_transactions")
H_GAPS = HEADER_SUMS.index("gaps")

T_MAGICS = TABLE_SUMS.index("magics")
T_COUNT = TABLE_SUMS.index("record_count")
T_SIZE = TABLE_SUMS.index("size_bytes")
T_LEAST_OFFSET = TABLE_SUMS.index("least_offset")
T_GREATEST_OFFSET = TABLE_SUMS.index("greatest_offset")
T_LEAST_DELTA = TABLE_SUMS.index("least_delta")
T_GREATEST_DELTA = TABLE_SUMS.index("greatest_delta")
T_MAX_TIMESTAMP = TABLE_SUMS.index("max_timestamp")
T_LOWEST_EPOCH = TABLE_SUMS.index("lowest_epoch")
T_HIGHEST_EPOCH = TABLE_SUMS.index("highest_epoch")
T_RISES = TABLE_SUMS.index("rises")
T_FOLLOWS = TABLE_SUMS.index("follows")
T_RIGHT_CRCS = TABLE_SUMS.index("right_crcs")
T_WRONG_CRCS = TABLE_SUMS.index("wrong_crcs")
T_WRAPPERS = TABLE_SUMS.index("wrappers")
T_CONTROLS = TABLE_SUMS.index("controls")
T_TRANSACTIONALS = TABLE_SUMS.index("transactionals")
T_WITH_PRODUCER = TABLE_SUMS.index("with_producer")
T_IN_TRANSACTIONS = TABLE_SUMS.index("in_transactions")
T_PRODUCER_CHANGES = TABLE_SUMS.index("producer_changes")
T_CODEC_COUNTS = TABLE_SUMS.index("codec_counts")
T_CODEC_BYTES = TABLE_SUMS.index("codec_bytes")

F_BASE_OFFSET = SEGMENT_COLUMNS.index("base_offset")
F_SUFFIXES = SEGMENT_COLUMNS.index("suffixes")
F_LOG_BYTES = SEGMENT_COLUMNS.index("log_bytes")

O_NUMBER = OTHER_COLUMNS.index("number")
O_SIZE = OTHER_COLUMNS.index("size_bytes")
