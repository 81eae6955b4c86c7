"""The answers of recompress --estimate and --explain in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from format.columns import BATCH_DECISION
from format.layout import CODEC_NAMES
from format.rewriting.written_batches import Decision
from format.rows.record_rows import Row
from format.verbs.recompress.estimate import Estimate
from format.verbs.recompress.plan import DECISIONS, Reason
from format.wording import counted, listed

_DECISION = BATCH_DECISION.names.index("decision")
_REASON = BATCH_DECISION.names.index("reason")
_CONFIG = {"none": "uncompressed"}


class Savings(msgspec.Struct):
    """What each codec would save over all topics."""

    log_bytes: int = 0
    by_codec: dict[str, Counter[str]] = msgspec.field(default_factory=dict)  # codec -> bytes by topic
    _topics: set[str] = msgspec.field(default_factory=set)

    def take(self, each: Estimate) -> None:
        """Add an estimate; the first one of a topic is its present state."""
        if each.topic not in self._topics:
            self._topics.add(each.topic)
            self.log_bytes += each.log_bytes
            return
        self.by_codec.setdefault(each.codec, Counter())[each.topic] += each.log_bytes - each.estimated_bytes

    def sentence(self) -> str:
        """Such as "zstd would save 540,672 of 1,040,384 bytes (52 %), most of them of orders."; empty for no log."""
        if not self.by_codec or not self.log_bytes:
            return ""
        codec, topics = max(self.by_codec.items(), key=lambda item: item[1].total())
        saved = topics.total()
        if saved <= 0:
            return "No codec would save anything." if len(self.by_codec) > 1 else f"{codec} would save nothing."
        words = f"{codec} would save {saved:,} of {self.log_bytes:,} bytes ({100 * saved / self.log_bytes:.0f} %)"
        if len(topics) == 1:
            return f"{words}."
        topic, most = topics.most_common(1)[0]
        return f"{words}, the most in {topic}: {counted(most, 'byte')}."


class Decided(msgspec.Struct):
    """How many batches would be copied, recompressed, rebuilt and refused, and why."""

    codec: int
    _reasons: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)

    def take(self, rows: Iterable[Row]) -> None:
        """Count rows of BATCH_DECISION."""
        self._reasons.update((row[_DECISION], row[_REASON]) for row in rows)

    def sentences(self) -> Iterator[str]:
        """Such as "With zstd, of 2 batches: 1 copied (1 same-codec) and 1 recompressed (1 codec-differs)."

        Then one line for each reason: what a broker does that compresses a topic with this codec.
        """
        total = self._reasons.total()
        if not total:
            return
        parts = []
        for decision in Decision:
            reasons = {reason: count for (word, reason), count in self._reasons.items() if word == decision.word}
            if reasons:
                why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
                parts.append(f"{sum(reasons.values()):,} {decision.word} ({why})")
        codec = CODEC_NAMES[self.codec]
        yield f"With {codec}, of {counted(total, 'batch')}: {listed(parts)}."
        broker = f"a broker with compression.type={_CONFIG.get(codec, codec)}"
        for reason in sorted({reason for _, reason in self._reasons}):
            yield f"{reason}: {broker} {DECISIONS[Reason(reason)][1]}."
