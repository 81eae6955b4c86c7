"""Decoders for the records of Kafka's internal topics, driven by a schema file for each topic (see ``schema``).

``decoder.decoder_for(topic)`` returns the decoder of __consumer_offsets, __transaction_state, __share_group_state,
__cluster_metadata (also for KRaft snapshots and bootstrap.checkpoint) or __remote_log_metadata; it reads the schema
when it is first called. ``decoder.decode_control_value`` decodes control records, and ``dump_log`` has what
kafka-dump-log prints.
"""
