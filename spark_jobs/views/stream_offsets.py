"""The offsets of a stream: by broker and topic, the id of the topic and the next offset of each partition."""

from __future__ import annotations

from typing import Any

import msgspec

#: By broker (its id, or the path of its log directory) and topic: ``id``, and the next offset by partition number.
StreamOffset = dict[str, dict[str, dict[str, Any]]]

_TOPIC_ID = "id"


class Place(msgspec.Struct, frozen=True):
    """The place of a partition in offsets. ``broker`` is its id, or the path of a log directory without one."""

    broker: str
    topic: str
    number: str
    topic_id: str

    def next_offset(self, offset: StreamOffset) -> int | None:
        """The next offset of this partition; None where the stream does not have it, or has a topic with another id."""
        topic = offset.get(self.broker, {}).get(self.topic, {})
        known = topic.get(self.number)
        return None if known is None or self._is_other(topic) else int(known)

    def put_offset(self, offset: StreamOffset, number: int) -> None:
        """Set the next offset of this partition."""
        topic = offset.setdefault(self.broker, {}).setdefault(self.topic, {})
        if self._is_other(topic):
            topic.clear()
        topic[_TOPIC_ID] = self.topic_id or topic.get(_TOPIC_ID, "")
        topic[self.number] = number

    def _is_other(self, topic: dict[str, Any]) -> bool:
        """Whether a topic of the offset has another id. An id may be missing: brokers write it after the directory."""
        known = topic.get(_TOPIC_ID, "")
        return bool(known and self.topic_id and known != self.topic_id)


def in_order(offset: StreamOffset) -> StreamOffset:
    """An offset with sorted keys, as Spark compares offsets as text."""
    return {
        broker: {topic: dict(sorted(numbers.items())) for topic, numbers in sorted(topics.items())}
        for broker, topics in sorted(offset.items())
    }
