"""The messages of the classic consumer protocol in the metadata of a group: subscriptions and assignments.

Source: clients common/message. A version precedes each message; newer versions only add fields at the end.
"""

from __future__ import annotations

from format.internal_topics.schema import field, message

# The topics that a member subscribes to.
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

# The partitions that the leader assigned to a member.
CONSUMER_PROTOCOL_ASSIGNMENT = message(
    "ConsumerProtocolAssignment",
    field("assignedPartitions", "[]struct", field("topic", "string"), field("partitions", "[]int32")),
    field("userData", "bytes", nullable="0+"),
    valid="0-3",
    flexible="none",
)
