"""Decoders for the records of Kafka's internal topics, driven by tables of Kafka's message schemas.

``decoder.decoder_for(topic)`` returns the decoder of __consumer_offsets, __transaction_state, __share_group_state,
__cluster_metadata (also for KRaft snapshots and bootstrap.checkpoint) or __remote_log_metadata.
``control_values.decode_control_value`` decodes control records. ``dump_log.dump_log_json`` and
``dump_log.dump_log_contents`` return what kafka-dump-log prints. The tables are slow to import, so commands that do not
decode records of these topics should not import them.
"""
