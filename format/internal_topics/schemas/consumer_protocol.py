"""What consumers of the classic protocol put into their group's metadata, for each other.

Source: clients common/message. A version precedes each; newer versions only add fields at the end.
"""

from __future__ import annotations

from format.internal_topics.schema import field, message

# What a member wants to read.
CONSUMER_PROTOCOL_SUBSCRIPTION = message(
    "ConsumerProtocolSubscription",
    field("topics", "[]string"),
    field("userData", "bytes", nullable="0+"),
    field(
        "ownedPartitions",
        "[]struct",
        field("topic", "string"),
        field("partitions", "[]int32"),
        versions="1+",
    ),
    field("generationId", "int32", versions="2+"),
    field("rackId", "string", versions="3+", nullable="3+"),
    valid="0-3",
    flexible="none",
)

# What the leader gave it.
CONSUMER_PROTOCOL_ASSIGNMENT = message(
    "ConsumerProtocolAssignment",
    field("assignedPartitions", "[]struct", field("topic", "string"), field("partitions", "[]int32")),
    field("userData", "bytes", nullable="0+"),
    valid="0-3",
    flexible="none",
)
