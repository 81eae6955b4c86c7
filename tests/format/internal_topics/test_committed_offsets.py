"""The committed offsets that the decoded logs add up to, against what the brokers answered."""

from __future__ import annotations

from pathlib import Path

from format.internal_topics.decoder import decoder_for
from tests.corpora import Corpus
from tests.format.internal_topics.segment_records import records_of

TOPIC = "__consumer_offsets"


def committed_offsets(partitions: list[Path]) -> dict[str, dict[str, int]]:
    """The last commit of each group and partition, without those that a tombstone took back."""
    decoder = decoder_for(TOPIC)
    found: dict[str, dict[str, int]] = {}
    for partition in partitions:
        for segment in sorted(partition.glob("*.log")):
            for _, is_control, raw_key, raw_value in records_of(segment):
                if is_control:
                    continue
                key = decoder.decode_key(raw_key)
                value = decoder.decode_value(key, raw_value)
                assert key.problems == value.problems == ()
                if key.record_type != "OFFSET_COMMIT":
                    continue
                assert key.data is not None
                of_group = found.setdefault(key.data["group"], {})
                name = f"{key.data['topic']}-{key.data['partition']}"
                if value.data is None:
                    of_group.pop(name, None)
                else:
                    of_group[name] = value.data["offset"]
    return {group: offsets for group, offsets in found.items() if offsets}


def test_committed_offsets(corpus: Corpus) -> None:
    partitions = [each for each in corpus.partitions() if each.name.startswith(TOPIC + "-")]
    expected = corpus.truth_json("groups") if partitions else {}
    assert committed_offsets(partitions) == expected
