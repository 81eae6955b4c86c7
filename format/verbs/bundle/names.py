"""Replaces names in a bundle by keyed digests: equal names get equal digests under the same key."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from format import layout
from format.findings import FINDING_CODES
from format.internal_topics.decoder import INTERNAL_TOPICS
from format.io.bundles.schemas import WHOLE_TOPICS
from format.node.log_dir import kind_of_file
from format.node.partition import is_temporary, parse_partition_dir

#: Names that Kafka itself gives, which reveal nothing.
_KAFKAS_TOPICS = frozenset((*WHOLE_TOPICS, *INTERNAL_TOPICS, "__remote_log_metadata"))
_KAFKAS_FILES = frozenset(
    (
        *layout.LOG_DIR_FILES,
        layout.LEADER_EPOCH_CHECKPOINT,
        layout.PARTITION_METADATA,
        layout.QUORUM_STATE,
        layout.REMOTE_INDEX_CACHE,
    )
)
_DIGEST_BYTES = 6


class Names:
    """Replaces the names of topics, directories and files that are not Kafka's own. ``key`` is secret."""

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(key, digest_size=blake2b.MAX_KEY_SIZE, person=b"kafkalog bundle").digest()
        self.replaced = lru_cache(4096)(self._replaced)

    @property
    def key_fingerprint(self) -> str:
        """A number that is equal for equal keys and does not show the key."""
        return blake2b(b"", key=self._key, digest_size=8, person=b"fingerprint").hexdigest()

    def _replaced(self, kind: str, name: str) -> str:
        digest = blake2b(f"{kind} {name}".encode(errors="surrogateescape"), key=self._key, digest_size=_DIGEST_BYTES)
        return f"{kind}-{digest.hexdigest()}"

    def topic(self, name: str) -> str:
        """The new name of a topic; Kafka's own topics keep their names."""
        return name if name in _KAFKAS_TOPICS else self.replaced("topic", name)

    def file(self, name: str) -> str:
        """The new name of a file or directory in a source."""
        parsed = parse_partition_dir(name)
        if parsed is not None:
            topic, number, _ = parsed
            return f"{self.topic(topic)}{name.removeprefix(topic)}" if number is not None else name
        if name in _KAFKAS_FILES or is_temporary(name):
            return name
        if layout.SEGMENT_FILE.match(name) or layout.KRAFT_SNAPSHOT_FILE.match(name):
            return name
        suffix = Path(name).suffix if kind_of_file(name) is not None else ""
        return self.replaced("file", name) + suffix

    def finding(self, values: dict[str, Any]) -> dict[str, Any]:
        """A finding with the meaning of its code in place of its message, which may have names in it."""
        entry = FINDING_CODES[values["code"]]
        kept = {name: value for name, value in values.items() if name in _PLAIN_VALUES or isinstance(value, int)}
        if "topic" in values:
            kept["topic"] = self.topic(values["topic"])
        return {**kept, "message": entry.meaning, "next_step": entry.next_step}


_PLAIN_VALUES = ("code", "severity", "certainty", "path", "lost_offsets", "caused_by")
