"""Findings, and the steps of a broker's start."""

from __future__ import annotations

from format.columns.schema import PARTITION_COLUMN, PATH_COLUMN, SEGMENT_COLUMN, TOPIC_COLUMN, Column, RowSchema

FINDING = RowSchema(
    "finding",
    (
        Column("code", "string", "stable code, see the table of finding codes"),
        Column("severity", "string", "info, warning, error or fatal"),
        Column("certainty", "string", "proven, likely or possible"),
        PATH_COLUMN,
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        SEGMENT_COLUMN,
        Column("position", "int", "first byte in the file"),
        Column("length", "int", "bytes"),
        Column("offset", "int", "record offset"),
        Column("message", "string", "description of what was found"),
        Column("expected", "any", "what should be there"),
        Column("actual", "any", "what is there"),
        Column("next_step", "string", "what to do about it"),
        Column("lost_offsets", "any", "[first, last] of the offsets that cannot be read, null for none"),
        Column("caused_by", "any", "code, path, position and offset of the finding that is the cause of this one, null for none"),
    ),
)
BOOT_STEP = RowSchema(
    "boot_step",
    (
        Column("action", "string", "refuse, offline, unknown, truncate, recover, rename, delete, create, rebuild_index, rebuild_snapshot or keep"),
        Column("path", "string", "the file or directory"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        Column("offset", "int", "the offset at which it is done: where a log is truncated, a segment starts or a snapshot ends"),
        Column("position", "int", "byte position in the file at which it is done"),
        Column("bytes", "int", "bytes that are read, truncated or deleted"),
        Column("reason", "string", "why"),
        Column("broker_message", "string", "the log message of the broker, without parts that change from start to start"),
        Column("kafka_class", "string", "the class, or class and method, of Kafka that does it"),
        Column("lost_offsets", "any", "[first, last] of the offsets below the high watermark that consumers lose, null for none"),
        Column("new_path", "string", "the new name; UNIQUE stands for 32 characters that the broker chooses"),
        Column("log_start_offset", "int", "the log start offset after the start, in rows of partitions"),
        Column("log_end_offset", "int", "the log end offset after the start, in rows of partitions"),
    ),
)
