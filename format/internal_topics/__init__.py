"""Decoders for the records of Kafka's internal topics, driven by tables of Kafka's message schemas.

``decoder_for(topic)`` gives the decoder of __consumer_offsets, __transaction_state, __share_group_state,
__cluster_metadata (also for KRaft snapshots and bootstrap.checkpoint) or __remote_log_metadata;
``decode_control_value`` decodes the control records between them; ``dump_log_json`` and ``dump_log_contents`` write
what kafka-dump-log prints.
"""

from format.internal_topics.control_values import decode_control_value
from format.internal_topics.decoded import Decoded, Problem
from format.internal_topics.decoder import INTERNAL_TOPICS, Decoder, decoder_for
from format.internal_topics.dump_log import dump_log_contents, dump_log_json

__all__ = [
    "INTERNAL_TOPICS",
    "Decoded",
    "Decoder",
    "Problem",
    "decode_control_value",
    "decoder_for",
    "dump_log_contents",
    "dump_log_json",
]
