"""Logs built for tests: batches and messages with a few records each, by the program's own encoder.

What the decoder makes of real brokers' files is tested elsewhere; these are for cases that no broker writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from format.io import source
from format.log.encode_batches import BatchHeader, encode_batch, encode_message, encode_wrapper
from tests.record_encoder import NewRecord, encode_record

BASE_TIMESTAMP = 1_700_000_000_000


def batch(
    base_offset: int,
    values: Iterable[bytes | None] = (b"a", b"b", b"c"),
    *,
    codec: int = 0,
    key: bytes | None = b"k",
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
    timestamp: int | None = None,
    **fields: int,
) -> bytes:
    """A v2 batch of these values at consecutive offsets, a millisecond apart; ``fields`` of its header at will."""
    values = list(values)
    start = BASE_TIMESTAMP + base_offset if timestamp is None else timestamp
    records = b"".join(
        encode_record(NewRecord(number, number, key, value, headers)) for number, value in enumerate(values)
    )
    header = {
        "base_offset": base_offset,
        "last_offset_delta": max(len(values) - 1, 0),
        "record_count": len(values),
        "base_timestamp": start,
        "max_timestamp": start + max(len(values) - 1, 0),
        **fields,
    }
    return encode_batch(BatchHeader(**header), records, codec=codec)


def batches(count: int, first_offset: int = 0, *, values: int = 3, codec: int = 0) -> list[bytes]:
    """Consecutive v2 batches of ``values`` records each."""
    return [
        batch(first_offset + number * values, [b"value-%d" % each for each in range(values)], codec=codec)
        for number in range(count)
    ]


def wrapper(magic: int, first_offset: int, count: int = 3, *, codec: int = 1, last_offset: int | None = None) -> bytes:
    """A compressed v0 or v1 message of ``count`` inner messages."""
    base = 0 if magic else first_offset
    inner = [
        encode_message(magic, base + number, b"k", b"inner-%d" % number, timestamp=BASE_TIMESTAMP + number)
        for number in range(count)
    ]
    last = first_offset + count - 1 if last_offset is None else last_offset
    return encode_wrapper(magic, inner, codec=codec, last_offset=last, timestamp=BASE_TIMESTAMP + count - 1)


def write_segment(directory: Path, base_offset: int, content: Iterable[bytes]) -> Path:
    """A ``.log`` file of these batches in a partition directory, which is made if need be."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(content))
    return path


def write_indexed_segment(directory: Path, base_offset: int, content: Iterable[bytes]) -> Path:
    """The same with its indexes, which are empty as those of a log that is shorter than one interval of them."""
    log = write_segment(directory, base_offset, content)
    for suffix in (".index", ".timeindex"):
        log.with_suffix(suffix).touch()
    return log


def mixed_log() -> bytes:
    """400 batches of 3 records: wrapper messages among batches of every codec and of many sizes."""
    return b"".join(
        wrapper(1, number * 3)
        if number % 50 < 3
        else batch(number * 3, [b"v" * (number % 90), None, b"w"], codec=number % 5)
        for number in range(400)
    )


def damaged_at_random(log: bytes, chance: Random) -> bytes:
    """The log with up to two bytes changed, and at times cut off or zeros at its end; at times as it is."""
    content = bytearray(log)
    for _ in range(chance.randrange(3)):
        content[chance.randrange(len(content))] = chance.randrange(256)
    if chance.random() < 0.2:
        del content[chance.randrange(len(content)) :]
    if chance.random() < 0.2:
        content += bytes(5000)
    return bytes(content)


def forbid_reading(log: Path, monkeypatch: pytest.MonkeyPatch, error: OSError | None = None) -> None:
    """Let each opening of a file fail: permission is denied, or another error. Root need not mind a file's mode."""
    open_to_read = source._open_to_read

    def refuse(path: str) -> int:
        if path == str(log):
            raise error or PermissionError(13, "Permission denied")
        return open_to_read(path)

    monkeypatch.setattr(source, "_open_to_read", refuse)
    if error is not None:
        return
    has_access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: has_access(path, mode) and (mode != os.R_OK or str(path) != str(log))
    )
