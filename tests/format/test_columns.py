"""The keys of rows that scripts depend on: others may be added, these stay; and the one list of all row types."""

from __future__ import annotations

import pytest

from format.columns import SCHEMAS

PROMISED = {
    "record": "topic partition offset timestamp timestamp_type magic codec key value headers leader_epoch producer_id "
    "producer_epoch sequence is_transactional is_control batch_base_offset segment_base_offset position size_bytes",
    "batch": "topic partition segment_base_offset position size_bytes base_offset last_offset record_count magic codec "
    "timestamp_type base_timestamp max_timestamp leader_epoch producer_id producer_epoch base_sequence "
    "is_transactional is_control delete_horizon_ms crc crc_valid",
    "offset_index_entry": "segment_base_offset relative_offset offset position",
    "time_index_entry": "segment_base_offset timestamp relative_offset offset",
    "finding": "code severity certainty path topic partition segment_base_offset position length offset message "
    "expected actual next_step lost_offsets caused_by",
    "step": "stage path position offset detail",
    "match": "topic partition offset timestamp segment_base_offset position leader_epoch visibility is_control "
    "is_transactional transaction_state producer_id producer_epoch batch_base_offset crc_valid is_leader path",
    "group": "group protocol state generation member_count leader committed_partitions total_lag "
    "last_commit_timestamp record_count size_bytes coordinator_partition",
    "group_offset": "group topic partition offset leader_epoch metadata commit_timestamp expire_timestamp "
    "log_end_offset high_watermark lag pending_producer_id path position record_offset",
    "transaction": "topic partition producer_id producer_epoch transactional_id state coordinator_state first_offset "
    "last_offset start_timestamp last_timestamp timeout_ms record_count size_bytes is_hanging abort_command",
    "producer": "producer_id transactional_id topic partition epochs first_offset last_offset first_sequence "
    "last_sequence gap_count duplicate_count batch_count record_count mean_batch_bytes codecs first_timestamp "
    "last_timestamp",
    "divergence": "topic partition kind offset leader_epoch log_end_offset unique_from unique_to lost_if_elected "
    "damaged",
    "segment_retention": "topic partition segment_base_offset size_bytes largest_timestamp largest_timestamp_offset "
    "retained_by deletable_at config_source",
    "cleaner": "topic partition cleaner_offset dirty_bytes clean_bytes dirty_ratio would_keep_bytes would_free_bytes "
    "tombstone_count delete_horizon blocked_by",
    "boot_step": "action path topic partition offset position bytes reason broker_message kafka_class",
    "topic": "topic topic_id partition_count replication_factor internal marked_deleted configs",
    "metadata_change": "offset timestamp record_type subject before after",
    "disk_usage": "by name allocated_bytes percent size_bytes log_bytes leftover_bytes partition_count segment_count "
    "estimated_bytes saved_bytes",
}


@pytest.mark.parametrize("row_type", PROMISED)
def test_the_promised_keys_of_a_row_are_there(row_type: str) -> None:
    names = {schema.type: schema.names for schema in SCHEMAS}[row_type]
    assert set(PROMISED[row_type].split()) <= set(names)
    assert "type" not in names, "it is the key of the row type in JSON lines"


def test_no_two_row_types_have_one_name() -> None:
    assert len(SCHEMAS) == len({each.type for each in SCHEMAS}) > 50
