"""The typed row schemas, from which tables, text, JSON lines, CSV, Parquet, Spark and the documentation are derived.

Names and their order are promises of the command line's contract. There is one module for each subject; ``SCHEMAS`` has
all schemas, in the order of the documentation. ``schema`` defines columns and their types.

A column of batches or records also has a ``Fill``, the source of its values for rows, lines of text and JSON, CSV, Arrow
and Spark. A new column is one line in its row type, and one expression in ``format.rows.record_rows`` if no existing
kind of ``Fill`` fits.
"""

from __future__ import annotations

from format.columns.clients import GROUP, GROUP_COMMIT, GROUP_OFFSET, PRODUCER, TRANSACTION
from format.columns.cluster_metadata import (
    ACL,
    ASSIGNMENT,
    BROKER,
    CONFIG,
    CREDENTIAL,
    FEATURE,
    IMAGE,
    METADATA_CHANGE,
    QUOTA,
    TOPIC,
)
from format.columns.findings import BOOT_STEP, FINDING
from format.columns.partitions import (
    CLEANER,
    DISK_USAGE,
    DIVERGENCE,
    LOG_DIR,
    PARTITION,
    REPLICA,
    RETENTION_TOTAL,
    SEGMENT,
    SEGMENT_RETENTION,
)
from format.columns.records import BATCH, EXTRA_RECORD_COLUMNS, FILE_MATCH, IS_MATCH, MATCH, RECORD, STEP, record_schema
from format.columns.reports import (
    BATCH_SIZES,
    BYTES_BY_OFFSET,
    BYTES_BY_TIME,
    DAMAGED_PLACE,
    FILE_BYTES,
    FINDING_SUMMARY,
    REPORT_PARTITION,
    RUN,
    TIMELINE_EVENT,
    TOPIC_USAGE,
    TRANSACTION_TOTAL,
)
from format.columns.schema import Column, Fill, RowSchema
from format.columns.side_files import (
    ABORTED_TXN,
    CHECKPOINT_OFFSET,
    LEADER_EPOCH,
    OFFSET_INDEX_ENTRY,
    PRODUCER_SNAPSHOT_ENTRY,
    PROPERTY,
    TIME_INDEX_ENTRY,
)
from format.columns.written_files import BATCH_DECISION, ESTIMATE, EXTRACTED_FILE, WRITTEN_SEGMENT

SCHEMAS = (
    LOG_DIR,
    PARTITION,
    SEGMENT,
    BATCH,
    RECORD,
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    ABORTED_TXN,
    PRODUCER_SNAPSHOT_ENTRY,
    LEADER_EPOCH,
    CHECKPOINT_OFFSET,
    PROPERTY,
    FINDING,
    STEP,
    MATCH,
    FILE_MATCH,
    WRITTEN_SEGMENT,
    EXTRACTED_FILE,
    ESTIMATE,
    BATCH_DECISION,
    BOOT_STEP,
    TRANSACTION,
    PRODUCER,
    IMAGE,
    TOPIC,
    ASSIGNMENT,
    BROKER,
    CONFIG,
    FEATURE,
    ACL,
    QUOTA,
    CREDENTIAL,
    METADATA_CHANGE,
    SEGMENT_RETENTION,
    RETENTION_TOTAL,
    CLEANER,
    DIVERGENCE,
    REPLICA,
    GROUP,
    GROUP_OFFSET,
    GROUP_COMMIT,
    DISK_USAGE,
    REPORT_PARTITION,
    TOPIC_USAGE,
    FINDING_SUMMARY,
    TIMELINE_EVENT,
    BYTES_BY_TIME,
    BYTES_BY_OFFSET,
    DAMAGED_PLACE,
    BATCH_SIZES,
    TRANSACTION_TOTAL,
    FILE_BYTES,
    RUN,
)
