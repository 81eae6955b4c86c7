"""The two doors to the codecs, on payloads that Kafka and other clients wrote, and on damaged ones."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import json
import random
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from format.codecs import COMPRESSION_LEVELS, compress, gzip_members
from format.codecs.failures import failed
from format.errors import DecompressionFailed, KafkaLogError, LimitExceeded, UnknownCodec
from format.layout import CODEC_NAMES
from format.limits import MIB, Limits
from tests.corpora import DATA_DIR, REPOSITORY
from tests.format.payloads import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    compressed_payloads,
    decompress,
    gzip_member,
    json_records,
    lz4_frame,
    snappy_stream,
    zstd_undeclared,
)

pytestmark = pytest.mark.long

CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
CAPTURED: dict[str, Any] = json.loads((DATA_DIR / "codecs" / "written_and_read_by_kafka.json").read_text())

inflate_libraries = [pytest.param(zlib, id="zlib")]
try:
    inflate_libraries.append(pytest.param(importlib.import_module("isal.isal_zlib"), id="isal"))
except ImportError:
    inflate_libraries.append(pytest.param(None, id="isal", marks=pytest.mark.skip("isal is not installed")))


@pytest.fixture(params=inflate_libraries)
def inflate_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each library that can serve gzip."""
    monkeypatch.setattr(gzip_members, "inflate_library", request.param)


# -- what Kafka wrote and what it read -------------------------------------------------------------------------


@pytest.mark.usefixtures("inflate_library")
def test_every_shipped_payload_gives_what_kafkas_reader_gave() -> None:
    seen = set()
    for name, by_position in CAPTURED["decompressed"].items():
        found = {}
        for position, codec, magic, payload in compressed_payloads(DATA_DIR / name):
            whole = decompress(codec, memoryview(payload), magic=magic)
            found[str(position)] = [len(whole), hashlib.sha256(whole).hexdigest()]
            seen.add((codec, magic))
        assert found == by_position, name
    assert seen == {(codec, magic) for codec in CODECS for magic in (0, 1, 2)} - {(ZSTD, 0), (ZSTD, 1)}


def test_every_payload_of_the_shared_corpus(shared_corpus: Path) -> None:
    payloads = 0
    for log in shared_corpus.rglob("*.log"):
        for _, codec, magic, payload in compressed_payloads(log):
            assert decompress(codec, payload, magic=magic)
            payloads += 1
    assert payloads > 300


def test_framings_of_other_clients_are_among_the_shipped_payloads() -> None:
    """librdkafka's bare snappy blocks; kafka-python's and aiokafka's lz4 with a content size and gzip with a time."""
    payloads = {
        (codec, payload)
        for name in CAPTURED["decompressed"]
        for _, codec, magic, payload in compressed_payloads(DATA_DIR / name)
        if magic == 2
    }
    assert {payload[:8] == b"\x82SNAPPY\x00" for codec, payload in payloads if codec == SNAPPY} == {True, False}
    assert {payload[4] for codec, payload in payloads if codec == LZ4} == {0x60, 0x68, 0x70}
    assert {payload[4:8] == bytes(4) for codec, payload in payloads if codec == GZIP} == {True, False}


@pytest.mark.parametrize("captured", CAPTURED["compressed"], ids=lambda each: f"{each['codec']}-{each['level']}")
@pytest.mark.usefixtures("inflate_library")
def test_what_kafkas_writers_wrote(captured: dict[str, Any]) -> None:
    payload = base64.b64decode(captured["payload"])
    codec, plain = CODEC_NAMES.index(captured["codec"]), CAPTURED["plain_text"].encode() * captured["times"]
    assert decompress(codec, payload, magic=captured["magic"]) == plain
    if codec == LZ4 and captured["level"] is None:
        assert compress(codec, plain, magic=captured["magic"]) == payload
    if codec == SNAPPY:  # the same framing; two snappy libraries may choose other copies
        ours = compress(codec, plain)
        assert ours[:16] == payload[:16]
        assert len(_chunks(ours)) == len(_chunks(payload)) == -(-len(plain) // (32 * 1024))


def _chunks(stream: bytes) -> list[bytes]:
    chunks, position = [], 16
    while position < len(stream):
        length = int.from_bytes(stream[position : position + 4], "big")
        chunks.append(stream[position + 4 : position + 4 + length])
        position += 4 + length
    return chunks


# -- round trips -----------------------------------------------------------------------------------------------

SIZES = (0, 1, 63, 1000, 32 * 1024 - 1, 32 * 1024, 64 * 1024, 64 * 1024 + 1, 300_000)


def levels_to_try() -> Iterator[tuple[int, int | None]]:
    for codec in CODECS:
        yield codec, None
        if codec in COMPRESSION_LEVELS:
            lowest, highest, default = COMPRESSION_LEVELS[codec]
            yield from ((codec, level) for level in {lowest, default, highest, *range(1, min(highest, 12))})


@pytest.mark.parametrize(("codec", "level"), list(levels_to_try()))
def test_round_trip(codec: int, level: int | None) -> None:
    text = json_records(8000)
    for size in SIZES if level is None else (1, 70_000):
        for content in (text[:size], random.Random(size).randbytes(size)):
            payload = compress(codec, memoryview(content), level=level)
            assert decompress(codec, payload, magic=2) == content
            assert decompress(codec, memoryview(payload), magic=1) == content


@given(content=st.binary(max_size=2000), codec=st.sampled_from(CODECS), magic=st.sampled_from((0, 1, 2)))
@settings(max_examples=200, deadline=None)
def test_round_trip_of_anything(content: bytes, codec: int, magic: int) -> None:
    assert decompress(codec, compress(codec, content, magic=magic), magic=magic) == content


def test_levels_are_kafkas() -> None:
    for codec, level in ((GZIP, 0), (GZIP, 10), (LZ4, 0), (LZ4, 18), (ZSTD, 23), (ZSTD, -131073), (SNAPPY, 1)):
        with pytest.raises(ValueError, match=CODEC_NAMES[codec]):
            compress(codec, b"x", level=level)
    text = json_records(3000)
    for codec in (GZIP, LZ4, ZSTD):
        lowest, highest, _ = COMPRESSION_LEVELS[codec]
        assert len(compress(codec, text, level=highest)) < len(compress(codec, text, level=lowest))


def test_codec_none_and_unknown_codecs() -> None:
    assert decompress(0, memoryview(b"as it is"), magic=2) == compress(0, b"as it is") == b"as it is"
    for codec in (5, 6, 7, -1, 8):
        with pytest.raises(UnknownCodec, match=str(codec)):
            decompress(codec, b"x", magic=2)
        with pytest.raises(UnknownCodec, match=str(codec)):
            compress(codec, b"x")


# -- damage ----------------------------------------------------------------------------------------------------

TEXT = json_records(60)
HALVES = (TEXT[:900], TEXT[900:])


def whole_payloads() -> Iterator[Any]:
    """Codec, magic, a payload of one part or more, and the lengths at which a shorter payload looks whole."""
    empty_header = len(snappy_stream())
    for magic in (0, 1, 2):
        yield pytest.param(LZ4, magic, compress(LZ4, TEXT, magic=magic), (), id=f"lz4-{magic}")
    checked = lz4_frame(TEXT, content_checksum=True, block_checksum=True, store_size=True)
    yield pytest.param(LZ4, 2, checked, (), id="lz4-checksums")
    yield pytest.param(LZ4, 2, lz4_frame(TEXT, block_linked=True), (), id="lz4-linked")
    frames = [lz4_frame(half) for half in HALVES]
    yield pytest.param(LZ4, 2, b"".join(frames), (len(frames[0]),), id="lz4-two")
    yield pytest.param(SNAPPY, 2, compress(SNAPPY, TEXT), (empty_header,), id="snappy")
    yield pytest.param(SNAPPY, 2, _chunks(compress(SNAPPY, TEXT))[0], (), id="snappy-raw")
    streams = [compress(SNAPPY, half) for half in HALVES]
    ends = (empty_header, len(streams[0]), len(streams[0]) + empty_header)
    yield pytest.param(SNAPPY, 2, b"".join(streams), ends, id="snappy-two")
    yield pytest.param(GZIP, 2, gzip_member(TEXT), (), id="gzip")
    yield pytest.param(GZIP, 2, gzip_member(TEXT, level=0), (), id="gzip-stored")
    members = [gzip_member(half) for half in HALVES]
    yield pytest.param(GZIP, 2, b"".join(members), (len(members[0]),), id="gzip-two")
    yield pytest.param(ZSTD, 2, compress(ZSTD, TEXT), (0,), id="zstd")
    yield pytest.param(ZSTD, 2, zstd_undeclared(TEXT), (0,), id="zstd-undeclared")
    yield pytest.param(ZSTD, 2, zstandard.ZstdCompressor(write_checksum=True).compress(TEXT), (0,), id="zstd-checksum")
    parts = [zstd_undeclared(HALVES[0]), compress(ZSTD, HALVES[1])]
    yield pytest.param(ZSTD, 2, b"".join(parts), (0, len(parts[0])), id="zstd-two")


@pytest.mark.parametrize(("codec", "magic", "payload", "looks_whole"), list(whole_payloads()))
@pytest.mark.usefixtures("inflate_library")
def test_a_payload_cut_at_any_byte_fails(codec: int, magic: int, payload: bytes, looks_whole: tuple[int, ...]) -> None:
    assert decompress(codec, payload, magic=magic) == TEXT
    for length in range(len(payload)):
        if length in looks_whole:
            assert TEXT.startswith(decompress(codec, payload[:length], magic=magic))
        else:
            with pytest.raises(DecompressionFailed):
                decompress(codec, payload[:length], magic=magic)


@pytest.mark.parametrize(("codec", "magic", "payload", "looks_whole"), list(whole_payloads()))
@pytest.mark.usefixtures("inflate_library")
def test_changed_bytes_give_bytes_or_a_clean_error(
    codec: int, magic: int, payload: bytes, looks_whole: tuple[int, ...]
) -> None:
    rng = random.Random(len(payload))
    reasons = set()
    for at in range(len(payload)):
        for mask in range(1, 256) if at < 20 else (0x01, 0x80, rng.randrange(1, 256)):
            changed = bytearray(payload)
            changed[at] ^= mask
            try:
                assert isinstance(decompress(codec, changed, magic=magic), bytes)  # type: ignore[arg-type]
            except (DecompressionFailed, LimitExceeded) as error:
                reasons.add(error.message)
    assert reasons
    for reason in reasons:
        assert reason.startswith(CODEC_NAMES[codec] + ": ")
        assert reason.isascii()
        assert reason.isprintable()
        assert len(reason) < 200


@given(garbage=st.binary(max_size=200), codec=st.sampled_from(CODECS), magic=st.sampled_from((0, 1, 2)))
@settings(max_examples=400, deadline=None)
def test_garbage_never_raises_anything_else(garbage: bytes, codec: int, magic: int) -> None:
    starts = {GZIP: b"\x1f\x8b\x08", SNAPPY: b"\x82SNAPPY\x00", LZ4: b"\x04\x22\x4d\x18", ZSTD: b"\x28\xb5\x2f\xfd"}
    for payload in (garbage, starts[codec] + garbage):
        with contextlib.suppress(DecompressionFailed, LimitExceeded):
            decompress(codec, payload, magic=magic)


def test_a_librarys_words_become_one_line_of_printable_ascii() -> None:
    hostile = ValueError("lz4: bad\x1b[31m\n\tdata \x00 \u202e\ud800 \x9b " + "x" * 500)
    reason = failed("lz4", hostile).message
    assert reason.startswith("lz4: bad")
    assert reason.isascii()
    assert reason.isprintable()
    assert len(reason) < 200
    assert failed("lz4", ValueError()).message == "lz4: ValueError"


def test_an_empty_payload() -> None:
    """Kafka's readers fail at once, but for zstd-jni's, which takes nothing for an empty stream."""
    for codec in (GZIP, SNAPPY, LZ4):
        with pytest.raises(DecompressionFailed, match=CODEC_NAMES[codec]):
            decompress(codec, b"", magic=2)
    assert decompress(ZSTD, b"", magic=2) == b""


@pytest.mark.parametrize(("codec", "other"), [(codec, other) for codec in CODECS for other in CODECS if codec != other])
def test_the_wrong_codec(codec: int, other: int) -> None:
    with pytest.raises((DecompressionFailed, LimitExceeded)):
        decompress(codec, compress(other, TEXT), magic=2)


# -- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 1000, 128 * 1024, 300_000, 9 * MIB])
@pytest.mark.usefixtures("inflate_library")
def test_the_limit_is_exact(size: int) -> None:
    content = (json_records(8000) * (size // 300_000 + 1))[:size]
    half = size // 2
    for codec in CODECS:
        whole = [compress(codec, content), compress(codec, content[:half]) + compress(codec, content[half:])]
        if codec == ZSTD:
            whole += [zstd_undeclared(content), zstd_undeclared(content[:half]) + zstd_undeclared(content[half:])]
        if codec == LZ4:
            whole.append(lz4_frame(content, block_size=lz4.frame.BLOCKSIZE_MAX4MB, block_linked=True))
        for payload in whole:
            assert decompress(codec, payload, magic=2, limits=Limits(max_decompressed_bytes=size)) == content
            with pytest.raises(LimitExceeded, match=CODEC_NAMES[codec]):
                decompress(codec, payload, magic=2, limits=Limits(max_decompressed_bytes=size - 1))


# -- threads and imports ---------------------------------------------------------------------------------------


def test_threads_do_not_disturb_each_other() -> None:
    contents = [json_records(40 + 400 * n) for n in range(8)]
    failures: list[BaseException] = []

    def work(content: bytes) -> None:
        try:
            for _ in range(30):
                for codec in CODECS:
                    payload = compress(codec, content)
                    assert decompress(codec, payload, magic=2) == content
                    with pytest.raises(KafkaLogError):
                        decompress(codec, payload[: len(payload) // 2], magic=2)
                undeclared = zstd_undeclared(content)
                assert decompress(ZSTD, undeclared + undeclared, magic=2) == content * 2
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_codec_library_is_loaded_when_it_is_needed() -> None:
    script = (
        "import sys; from format.codecs import compress, decompress\n"
        "libraries = {'snappy', 'cramjam', 'lz4', 'zstandard', 'isal', 'zlib'}\n"
        "print(sorted(libraries & set(sys.modules)))\n"
        "decompress(4, compress(4, b'x'), magic=2); print(sorted(libraries & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    before, after = run.stdout.splitlines()
    assert before in ("[]", "['zlib']")  # a start-up file may load zlib
    assert "zstandard" in after
    assert "lz4" not in after
    assert "snappy" not in after
