"""recompress --estimate and --explain: what recompress would save, and what it would do; nothing is written."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.codecs import compress, decompress
from format.columns import BATCH_DECISION, ESTIMATE
from format.errors import KafkaLogError
from format.findings import Finding
from format.io.source import FileSource
from format.layout import CODEC_BITS_NAMES, CODEC_NAMES
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_header import read_header
from format.log.batch_table import BatchTable
from format.log.read_records import message_table
from format.node.partition_surroundings import unread_findings
from format.rewriting.rewriter import Decision, batch_bytes
from format.rewriting.sources import WriteSources, is_cluster_metadata
from format.rows.record_rows import Row
from format.scan.drivers import scan_logs, take_results, with_last_finding
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Depth, LogParts, LogUnit, Needs, OpenedRange, Unfolded
from format.scan.read_log import IntactElsewhere, crc_findings, tail_finding
from format.scan.selected_logs import every_log_of
from format.verbs.recompress.new_batches import DECISIONS, ChunkWork, PlanTerms, Reason, TargetFormat, plan
from format.wording import counted, listed

DEFAULT_SAMPLE_BYTES = 16 * MIB
#: A sample is taken in pieces of this size, spread over the topic's segments.
_PIECE_BYTES = MIB
_ZSTD = layout.CODEC_NAMES.index("zstd")
_DECISION = BATCH_DECISION.names.index("decision")
_REASON = BATCH_DECISION.names.index("reason")
_CONFIG = {"none": "uncompressed"}


def not_measured(largest_log_bytes: int, sample_bytes: int | None) -> list[str]:
    """Notes about what estimates leave out, given the bytes of the largest topic's ``.log`` files."""
    if sample_bytes is None or largest_log_bytes <= sample_bytes:
        return []
    return [f"what lies outside the samples, of up to {sample_bytes} log bytes per topic"]


class Estimate(msgspec.Struct, frozen=True):
    """One row of ESTIMATE: a topic under one codec and level; times are of one thread."""

    topic: str
    codec: str
    level: int | None
    log_bytes: int
    sampled_bytes: int
    estimated_bytes: int
    compress_ns: int = 0
    decompress_ns: int = 0
    plain_bytes: int = 0  # of the sample, uncompressed

    def row(self) -> Row:
        saved = self.log_bytes - self.estimated_bytes
        scale = self.log_bytes / self.sampled_bytes if self.sampled_bytes else 0
        return ESTIMATE.row_of(
            self,
            saved_bytes=saved,
            saved_percent=round(100 * saved / self.log_bytes) if self.log_bytes else 0,
            compress_mb_per_s=_mb_per_s(self.plain_bytes, self.compress_ns),
            decompress_mb_per_s=_mb_per_s(self.plain_bytes, self.decompress_ns),
            compress_ms=round(self.compress_ns * scale / 1e6) if self.compress_ns else None,
        )


class _Measured(msgspec.Struct):
    """Sums over batches for one target."""

    target: TargetFormat
    size_bytes: int = 0
    compress_ns: int = 0
    decompress_ns: int = 0


class Sums(msgspec.Struct):
    """The measurements of some batches, as sums that can be added to those of other batches."""

    measured: list[_Measured]
    batch_count: int = 0
    sampled_bytes: int = 0
    plain_bytes: int = 0

    @classmethod
    def of(cls, targets: Sequence[TargetFormat]) -> Sums:
        """Sums of no batches, for these targets."""
        return cls([_Measured(target) for target in targets])

    def ratio_of(self, each: _Measured) -> float:
        """The size of the batches under a target, by the one that they have; 1 where no batch could be read."""
        return each.size_bytes / self.sampled_bytes if self.sampled_bytes else 1.0

    def add(self, other: Sums) -> None:
        """Add the sums of other batches, for the same targets."""
        self.batch_count += other.batch_count
        self.sampled_bytes += other.sampled_bytes
        self.plain_bytes += other.plain_bytes
        for own, new in zip(self.measured, other.measured, strict=True):
            own.size_bytes += new.size_bytes
            own.compress_ns += new.compress_ns
            own.decompress_ns += new.decompress_ns


class SumsByCodec(msgspec.Struct):
    """The measurements of some of a topic's batches, by the codec that they have."""

    targets: tuple[TargetFormat, ...]
    by_codec: dict[int, Sums] = msgspec.field(default_factory=dict)

    def of(self, codec: int) -> Sums:
        """The sums of the batches with a codec."""
        if codec not in self.by_codec:
            self.by_codec[codec] = Sums.of(self.targets)
        return self.by_codec[codec]

    def add(self, other: SumsByCodec) -> None:
        """Add the sums of other batches, for the same targets."""
        for codec, sums in other.by_codec.items():
            self.of(codec).add(sums)

    def total(self, codec: int | None = None) -> Sums:
        """The sums of the batches with a codec, or of all where none of them was measured."""
        if codec in self.by_codec:
            return self.by_codec[codec]
        total = Sums.of(self.targets)
        for sums in self.by_codec.values():
            total.add(sums)
        return total


class MeasuredPart(msgspec.Struct, frozen=True):
    """The part of a log that is measured: from its start to the position ``end``."""

    location: Location
    path: Path
    end: int


def targets_of(codec: str | None, level: int | None) -> list[TargetFormat]:
    """The target with the given codec and level, or every codec at Kafka's default level."""
    names = [codec] if codec is not None else list(layout.CODEC_NAMES)
    return [TargetFormat(layout.CODEC_NAMES.index(name), level) for name in names]


def estimate(
    sources: WriteSources,
    targets: Sequence[TargetFormat],
    sample_bytes: int | None = DEFAULT_SAMPLE_BYTES,
    *,
    limits: Limits = DEFAULT_LIMITS,
    advance: Advance = no_progress,
) -> Iterator[Estimate | Finding]:
    """For each topic its present size, and its size under each target; ``sample_bytes`` None measures everything.

    Batches are compressed one by one, as recompress does without merging: control batches and empty ones stay, and so
    do v0 and v1 messages under zstd. Batches that cannot be decoded count with their present size.
    """
    yield from sources.findings
    for partition in sources.partitions.values():
        yield from unread_findings(partition)
    topics = _logs_by_topic(sources)
    pieces = {topic: sampled(whole, sample_bytes) for topic, whole in topics.items()}
    logs = [LogUnit(each.path, each.location, end=each.end) for some in pieces.values() for each in some]
    items = scan_logs(EstimateScan(tuple(targets), limits), logs, advance=advance)
    for topic, whole in topics.items():
        sums = SumsByCodec(tuple(targets))
        yield from take_results(items, len(pieces[topic]), sums.add)
        yield from _estimates(topic, sum(each.end for each in whole), sums)


@cache
def warm_up(targets: tuple[TargetFormat, ...], limits: Limits) -> None:
    """Load the codecs' libraries, so that no measurement in this process includes that."""
    for target in targets:
        if target.codec:
            decompress(target.codec, compress(target.codec, b"warm", level=target.level), magic=2, limits=limits)


def _logs_by_topic(sources: WriteSources) -> dict[str, list[MeasuredPart]]:
    topics: dict[str, list[MeasuredPart]] = {}
    for name, partition in sources.partitions.items():
        if is_cluster_metadata(partition):
            continue
        pieces = topics.setdefault(partition.topic or name, [])
        for segment in partition.segments:
            path = segment.files[layout.LOG_SUFFIX]
            with contextlib.suppress(OSError):  # a live broker deleted it
                pieces.append(MeasuredPart(partition.location(path, segment.base_offset), path, path.lstat().st_size))
    return dict(sorted(topics.items()))


def sampled(pieces: list[MeasuredPart], sample_bytes: int | None) -> list[MeasuredPart]:
    """All pieces, or the beginnings of evenly spread ones that make up the sample."""
    if sample_bytes is None or sum(each.end for each in pieces) <= sample_bytes:
        return pieces
    count = max(1, min(len(pieces), sample_bytes // _PIECE_BYTES))
    most = max(1, sample_bytes // count)
    numbers = np.linspace(0, len(pieces) - 1, count).round().astype(int).tolist()
    return [_beginning(pieces[number], most) for number in numbers]


def _beginning(piece: MeasuredPart, most_bytes: int) -> MeasuredPart:
    """The first bytes of a piece, with the whole first batch."""
    end = most_bytes
    with contextlib.suppress(KafkaLogError), FileSource(piece.path) as source:  # measuring it reports the error
        first = read_header(source, 0)
        end = max(end, 0 if first is None else first.end_position)
    return replace(piece, end=min(piece.end, end))


class EstimateScan(msgspec.Struct, frozen=True):
    """The scan of an estimate: the parts are the sums of each chunk, the fold adds them up.

    Each log is read by one process, since the time that codecs take is measured.
    """

    targets: tuple[TargetFormat, ...]
    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[SumsByCodec]:
        """The measurements of each chunk."""
        warm_up(self.targets, self.limits)
        for chunk in opened.batches:
            sums = SumsByCodec(self.targets)
            measure(chunk, np.flatnonzero(chunk.table.crc_valid == 1), sums, self.limits)
            yield sums

    def fold(self, log: LogUnit, parts: LogParts[SumsByCodec]) -> Iterator[SumsByCodec | Finding]:
        """A finding where the log cannot be read to its end, and then the sums of what was read."""
        sums = SumsByCodec(self.targets)
        for part in with_last_finding(log, parts):
            if isinstance(part, Finding):
                yield part
            else:
                sums.add(part)
        yield sums


def _estimates(topic: str, log_bytes: int, found: SumsByCodec) -> Iterator[Estimate]:
    """The rows of a topic whose logs have ``log_bytes``: its present state, then each target."""
    pairs = sorted(found.by_codec.items())
    now = ",".join(f"{CODEC_BITS_NAMES[codec]}:{each.batch_count}" for codec, each in pairs) or "none:0"
    sums = found.total()
    yield Estimate(topic, now, None, log_bytes, sums.sampled_bytes, log_bytes)
    for each in sums.measured:
        yield Estimate(
            topic,
            layout.CODEC_NAMES[each.target.codec],
            each.target.level,
            log_bytes,
            sums.sampled_bytes,
            round(log_bytes * sums.ratio_of(each)),
            each.compress_ns,
            each.decompress_ns,
            sums.plain_bytes,
        )


def measure(chunk: BatchChunk, rows: NDArray[np.intp], found: SumsByCodec, limits: Limits) -> None:
    """Compress these batches, whose CRCs are right, for each target, and add the results to the sums."""
    table = chunk.table
    are_fixed = table.is_control | (table.record_count == 0)
    columns = (table.size_bytes, table.codec, table.magic, table.is_wrapper, are_fixed)
    for row, size_bytes, codec, magic, is_wrapper, is_fixed in zip(
        rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
    ):
        sums = found.of(codec)
        sums.sampled_bytes += size_bytes
        sums.batch_count += 1
        plain = None if is_fixed else _plain(chunk, row, codec, magic, is_wrapper, limits)
        if plain is None:
            for each in sums.measured:
                each.size_bytes += size_bytes
            continue
        sums.plain_bytes += len(plain[0])
        for each in sums.measured:
            each.size_bytes += _tried(each, plain, size_bytes, codec, magic, limits)


def _plain(
    chunk: BatchChunk, row: int, codec: int, magic: int, is_wrapped: bool, limits: Limits
) -> tuple[bytes | memoryview, int] | None:
    """The uncompressed content of a batch, and the bytes around it; None where it cannot be read."""
    content = batch_bytes(chunk, row)
    try:
        if magic == 2:
            payload = content[layout.RECORD_BATCH.size_bytes :]
            plain = decompress(codec, payload, magic=2, limits=limits) if codec else payload
            return plain, layout.RECORD_BATCH.size_bytes
        if not is_wrapped:
            return content, layout.MESSAGE_V0.size_bytes + 2 * 4 + (8 if magic else 0)
        payload_bytes = message_table(chunk, [row], Location("")).value(0) or b""
        return decompress(codec, payload_bytes, magic=magic, limits=limits), len(content) - len(payload_bytes)
    except KafkaLogError:
        return None


def _tried(
    each: _Measured, plain: tuple[bytes | memoryview, int], size_bytes: int, codec: int, magic: int, limits: Limits
) -> int:
    """The batch's size under the target; its times are added to ``each``."""
    target = each.target
    content, around = plain
    if target.codec == 0:
        return len(content) + (around if magic == 2 else 0)
    if magic < 2 and target.codec == _ZSTD:
        return size_bytes
    start = time.perf_counter_ns()
    packed = compress(target.codec, content, level=target.level, magic=magic)
    middle = time.perf_counter_ns()
    decompress(target.codec, packed, magic=magic, limits=limits)
    each.compress_ns += middle - start
    each.decompress_ns += time.perf_counter_ns() - middle
    if codec == target.codec and target.level is None:
        return size_bytes  # copied byte for byte
    return around + len(packed)


def _mb_per_s(plain_bytes: int, nanoseconds: int) -> int | None:
    return round(plain_bytes / nanoseconds * 1000) if nanoseconds else None


class ExplainScan(msgspec.Struct, Unfolded[list[Row] | Finding], frozen=True):
    """The scan of --explain: the parts are rows of BATCH_DECISION and findings."""

    plan: PlanTerms
    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.CRC, limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[list[Row] | Finding]:
        """The rows of each chunk, after findings in it and before the damage behind it."""
        location, elsewhere = opened.log.location, IntactElsewhere.of_log(opened.log, self.limits)
        for chunk in opened.batches:
            for found in crc_findings(chunk, opened.log):
                yield from elsewhere.counted(found)
            works = plan(chunk.table, chunk.table.crc_valid == 1, self.plan)
            yield [row for work in works for row in _rows(work, chunk.table, location)]
            if chunk.damage is not None:
                yield from elsewhere.counted(tail_finding(opened.source, chunk, opened.log))


def explain_recompress(
    sources: WriteSources, terms: PlanTerms, *, limits: Limits = DEFAULT_LIMITS, advance: Advance = no_progress
) -> Iterator[list[Row] | Finding]:
    """Rows of BATCH_DECISION for every intact batch, chunk by chunk, and findings about the rest."""
    yield from sources.findings
    for partition in sources.partitions.values():
        yield from unread_findings(partition)
    logs = (log for partition in sources.partitions.values() for log in every_log_of(partition))
    yield from scan_logs(ExplainScan(terms, limits), logs, advance=advance)


def _rows(work: ChunkWork, table: BatchTable, location: Location) -> Iterator[Row]:
    decision, broker = DECISIONS[work.reason]
    place = (location.topic, location.partition, location.base_offset)
    what = (decision.word, work.reason.value, broker)
    rows = np.array(work.rows)
    columns = (table.position, table.base_offset, table.last_offset, table.size_bytes, table.magic, table.codec)
    for *of_batch, codec in zip(*(column[rows].tolist() for column in columns), strict=True):
        yield (*place, *of_batch, CODEC_BITS_NAMES[codec], *what)


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
