"""Segments to measure with, written as brokers write them; the same bytes every time.

``python -m tests.benchmarks.make_data DIR [NAME …]`` makes partition directories below DIR, each with a log and its
indexes. Records have keys of 12 bytes and JSON values of 132; batches hold 16 KiB to 1 MiB of them, as those of a
producer that lingers do.
"""

from __future__ import annotations

import math
import random
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from format import layout
from format.log.encode_batches import BatchHeader, encode_batch, encode_message, encode_wrapper
from tests.record_encoder import encode_varint

RECORD_COUNT = 1_500_000
TINY_BATCH_COUNT = 1_400_000  # of one record of 100 bytes each: 240 MB
SEGMENT_COUNT = 8
START_MS = 1_700_000_000_000
_VALUE_BYTES = 132
_SMALLEST_BATCH_BYTES = 16 * 1024
_LARGEST_BATCH_BYTES = 1024 * 1024
_INDEX_INTERVAL_BYTES = 4096
_PATHS = ("/products", "/checkout", "/account/orders", "/search", "/")

Batches = Iterable[tuple[int, bytes]]  # last offset, bytes


_VARINTS = [encode_varint(number) for number in range(20_000)]


def record(timestamp_delta: int, offset_delta: int, key: bytes, value: bytes) -> bytes:
    """One v2 record without headers."""
    body = b"".join(
        (
            b"\0",
            _VARINTS[timestamp_delta],
            _VARINTS[offset_delta],
            _VARINTS[len(key)],
            key,
            _VARINTS[len(value)],
            value,
            b"\0",
        )
    )
    return _VARINTS[len(body)] + body


def batch(base_offset: int, timestamp: int, max_timestamp: int, codec: int, records: list[bytes]) -> bytes:
    """One v2 batch of records that were encoded already."""
    count = len(records)
    header = BatchHeader(base_offset, count - 1, count, base_timestamp=timestamp, max_timestamp=max_timestamp)
    return encode_batch(header, b"".join(records), codec=codec)


def keys_and_values(count: int) -> Iterator[tuple[bytes, bytes]]:
    """The records' keys and values, a third of which is random, as ids and times are."""
    chance = random.Random(20)
    for number in range(count):
        bits = chance.getrandbits(96)
        user = bits & 0xFFFFF
        text = (
            f'{{"id":"{bits:024x}","user":{user},"path":"{_PATHS[number % 5]}","ms":{(bits >> 20) & 0x3FF},"ok":true,'
            f'"agent":"Mozilla/5.0 (X11)","note":"'
        )
        yield b"user-%07d" % user, (text.ljust(_VALUE_BYTES - 2, "-")[: _VALUE_BYTES - 2] + '"}').encode()


def batch_sizes() -> Iterator[int]:
    """Sizes of batches before compression, spread evenly over the powers of two."""
    chance = random.Random(21)
    smallest, largest = math.log(_SMALLEST_BATCH_BYTES), math.log(_LARGEST_BATCH_BYTES)
    while True:
        yield int(math.exp(chance.uniform(smallest, largest)))


def linger_batches(codec: int, record_count: int) -> Batches:
    """v2 batches as a producer with a linger time sends them."""
    sizes = batch_sizes()
    room = next(sizes)
    records: list[bytes] = []
    base_offset = 0
    for offset, (key, value) in enumerate(keys_and_values(record_count)):
        delta = offset - base_offset
        records.append(record(delta // 10, delta, key, value))
        room -= len(records[-1])
        if room <= 0 or offset == record_count - 1:
            timestamp = START_MS + base_offset // 10
            yield offset, batch(base_offset, timestamp, timestamp + delta // 10, codec, records)
            records, base_offset, room = [], offset + 1, next(sizes)


def tiny_batches(batch_count: int) -> Batches:
    """v2 batches of one record of 100 bytes each."""
    for offset, (key, value) in enumerate(keys_and_values(batch_count)):
        timestamp = START_MS + offset // 10
        yield offset, batch(offset, timestamp, timestamp, 0, [record(0, 0, key, value[: 100 - 19])])


def messages(record_count: int) -> Batches:
    """v1 messages, uncompressed."""
    for offset, (key, value) in enumerate(keys_and_values(record_count)):
        yield offset, encode_message(1, offset, key, value, timestamp=START_MS + offset // 10)


def wrappers(codec: int, record_count: int) -> Batches:
    """v1 messages in compressed wrappers of 100."""
    inner: list[bytes] = []
    for offset, (key, value) in enumerate(keys_and_values(record_count)):
        timestamp = START_MS + offset // 10
        inner.append(encode_message(1, len(inner), key, value, timestamp=timestamp))
        if len(inner) == 100 or offset == record_count - 1:
            content = encode_wrapper(1, inner, codec=codec, last_offset=offset, timestamp=timestamp)
            yield offset, content
            inner = []


def largest_timestamp(last_offset: int, content: bytes) -> int:
    """That of a batch or a message, ms."""
    if content[layout.RECORD_BATCH.offset_of("magic")] < 2:
        return START_MS + last_offset // 10
    at = layout.RECORD_BATCH.offset_of("max_timestamp")
    return int.from_bytes(content[at : at + 8], "big")


def write_segment(directory: Path, batches: Batches) -> Path:
    """A segment of base offset 0: its log, and its indexes with an entry for about every 4 KiB."""
    directory.mkdir(parents=True)
    path = directory / f"{0:020d}{layout.LOG_SUFFIX}"
    entries: list[bytes] = []
    times: list[bytes] = []
    position = since_entry = timestamp = timestamp_offset = 0
    with path.open("wb") as log:
        for last_offset, content in batches:
            if (largest := largest_timestamp(last_offset, content)) > timestamp:
                timestamp, timestamp_offset = largest, last_offset
            if since_entry > _INDEX_INTERVAL_BYTES:
                entries.append(struct.pack(">ii", last_offset, position))
                times.append(struct.pack(">qi", timestamp, timestamp_offset))
                since_entry = 0
            log.write(content)
            position += len(content)
            since_entry += len(content)
    if not times or times[-1] != struct.pack(">qi", timestamp, timestamp_offset):
        times.append(struct.pack(">qi", timestamp, timestamp_offset))
    path.with_suffix(layout.OFFSET_INDEX_SUFFIX).write_bytes(b"".join(entries))
    path.with_suffix(layout.TIME_INDEX_SUFFIX).write_bytes(b"".join(times))
    return path


def repeat_segment(segment: Path, directory: Path, count: int) -> None:
    """A partition of ``count`` segments, each the same batches under later base offsets (those lie outside the CRC)."""
    directory.mkdir(parents=True)
    content = bytearray(segment.read_bytes())
    starts = []
    position = 0
    while position < len(content):
        starts.append(position)
        position += layout.LOG_ENTRY.size_bytes + int.from_bytes(content[position + 8 : position + 12], "big")
    last_start = starts[-1]
    first_of_last = int.from_bytes(content[last_start : last_start + 8], "big")
    at = last_start + layout.RECORD_BATCH.offset_of("last_offset_delta")
    step = first_of_last + int.from_bytes(content[at : at + 4], "big") + 1
    for number in range(count):
        path = directory / f"{number * step:020d}{layout.LOG_SUFFIX}"
        path.write_bytes(content)
        for suffix in (layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX):
            path.with_suffix(suffix).write_bytes(segment.with_suffix(suffix).read_bytes())
        for start in starts:
            base_offset = int.from_bytes(content[start : start + 8], "big") + step
            content[start : start + 8] = base_offset.to_bytes(8, "big")


def _codec(name: str) -> int:
    return layout.CODEC_NAMES.index(name)


SEGMENTS: dict[str, Callable[[float], Batches]] = {
    **{
        name: partial(lambda codec, share: linger_batches(codec, int(RECORD_COUNT * share)), _codec(name))
        for name in layout.CODEC_NAMES
    },
    "tiny": lambda share: tiny_batches(int(TINY_BATCH_COUNT * share)),
    "v1": lambda share: messages(int(RECORD_COUNT * share)),
    "v1-lz4": lambda share: wrappers(_codec("lz4"), int(RECORD_COUNT * share)),
}
#: Partitions of many segments, by the segment that they repeat: 2 GB as it is, 0.6 GB compressed.
REPEATED = {"many": "none", **{f"many-{name}": name for name in ("zstd", "lz4", "snappy", "gzip")}}
NAMES = (*SEGMENTS, *REPEATED)


def make(root: Path, name: str, share: float = 1.0) -> Path:
    """The partition directory of that name below ``root``, made unless it is there; ``share`` makes it smaller."""
    directory = root / f"{name}-0"
    if not directory.exists():
        if name in REPEATED:
            segment = next(make(root, REPEATED[name], share).glob(f"*{layout.LOG_SUFFIX}"))
            repeat_segment(segment, directory, SEGMENT_COUNT)
        else:
            write_segment(directory, SEGMENTS[name](share))
    return directory


if __name__ == "__main__":
    for each in sys.argv[2:] or NAMES:
        print(make(Path(sys.argv[1]), each))
