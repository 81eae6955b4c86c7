"""Decoders for the records of Kafka's internal topics, driven by tables of Kafka's message schemas.

``decoder.decoder_for(topic)`` gives the decoder of __consumer_offsets, __transaction_state, __share_group_state,
__cluster_metadata (also for KRaft snapshots and bootstrap.checkpoint) or __remote_log_metadata.
``control_values.decode_control_value`` decodes the control records between them. ``dump_log.dump_log_json`` and
``dump_log.dump_log_contents`` write what kafka-dump-log prints. The tables take long to import: commands that need no
record of these topics should not.
"""
