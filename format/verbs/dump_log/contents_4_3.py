"""Records of internal topics as kafka-dump-log 4.3.1 knows them: without the types and fields that 4.4 added."""

from __future__ import annotations

from msgspec.structs import replace

from format import layout
from format.internal_topics.decoder import CoordinatorDecoder, Decoder, FramedDecoder
from format.internal_topics.schema import Message

_LATER_TYPES = {layout.CLUSTER_METADATA_TOPIC: {29}}
#: Later fields are tagged: they are skipped, and not printed.
_LATER_FIELDS = {"StreamsGroupMetadataValue": {"storedDescriptionTopologyEpoch", "failedDescriptionTopologyEpoch"}}


def as_of_4_3(decoder: Decoder) -> Decoder:
    """The decoder of the same topic in that release."""
    later = _LATER_TYPES.get(decoder.topic, ())
    known = [each for number, each in decoder.record_types.items() if number not in later]
    types = tuple(replace(each, value=_message(each.value)) for each in known)
    kind = FramedDecoder if isinstance(decoder, FramedDecoder) else CoordinatorDecoder
    return kind(decoder.topic, types)


def _message(message: Message) -> Message:
    later = _LATER_FIELDS.get(message.name)
    if later is None:
        return message
    return replace(message, fields=tuple(each for each in message.fields if each.name not in later))
