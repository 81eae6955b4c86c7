"""Where the fields of batch and message headers are, their sizes, and the bits of their attributes.

All of it comes from ``format.layout``. ``header_layout.pxd`` has the same numbers for the compiled modules; a test
compares them.
"""

from __future__ import annotations

from format import layout

LENGTH_AT = layout.LOG_ENTRY.offset_of("length")
OVERHEAD = layout.LOG_ENTRY.size_bytes
MAGIC_AT = layout.RECORD_BATCH.offset_of("magic")

EPOCH_AT = layout.RECORD_BATCH.offset_of("leader_epoch")
CRC_AT = layout.RECORD_BATCH.offset_of("crc")
ATTRIBUTES_AT = layout.RECORD_BATCH.offset_of("attributes")
LAST_DELTA_AT = layout.RECORD_BATCH.offset_of("last_offset_delta")
BASE_TIMESTAMP_AT = layout.RECORD_BATCH.offset_of("base_timestamp")
MAX_TIMESTAMP_AT = layout.RECORD_BATCH.offset_of("max_timestamp")
PRODUCER_ID_AT = layout.RECORD_BATCH.offset_of("producer_id")
PRODUCER_EPOCH_AT = layout.RECORD_BATCH.offset_of("producer_epoch")
BASE_SEQUENCE_AT = layout.RECORD_BATCH.offset_of("base_sequence")
COUNT_AT = layout.RECORD_BATCH.offset_of("record_count")

LEGACY_CRC_AT = layout.MESSAGE_V0.offset_of("crc")
LEGACY_ATTRIBUTES_AT = layout.MESSAGE_V0.offset_of("attributes")
LEGACY_TIMESTAMP_AT = layout.MESSAGE_V1.offset_of("timestamp")

HEADER_V0 = layout.MESSAGE_V0.size_bytes
HEADER_V1 = layout.MESSAGE_V1.size_bytes
HEADER_V2 = layout.RECORD_BATCH.size_bytes
# The least value of the length field.
MIN_V0 = layout.MIN_MESSAGE_LENGTH
MIN_V1 = layout.MIN_V1_MESSAGE_LENGTH
MIN_V2 = layout.RECORD_BATCH.size_bytes - layout.LOG_ENTRY.size_bytes

# The first byte that the CRC covers.
CRC_START_V2 = layout.RECORD_BATCH.offset_of("attributes")
CRC_START_LEGACY = layout.MESSAGE_V0.offset_of("magic")

CODEC_MASK = layout.CODEC_MASK
TIMESTAMP_TYPE_BIT = layout.TIMESTAMP_TYPE_BIT
TRANSACTIONAL_BIT = layout.TRANSACTIONAL_BIT
CONTROL_BIT = layout.CONTROL_BIT
DELETE_HORIZON_BIT = layout.DELETE_HORIZON_BIT
KNOWN_V0 = layout.KNOWN_ATTRIBUTES_V0
KNOWN_V1 = layout.KNOWN_ATTRIBUTES_V1
KNOWN_V2 = layout.KNOWN_ATTRIBUTES_V2

# The largest distance of an offset from the base offset of its segment.
MAX_RELATIVE_OFFSET = layout.MAX_RELATIVE_OFFSET
