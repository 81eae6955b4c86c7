"""Files that Kafka did not write: what is said about them, and which damaged logs must not be taken for one."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import crc32c
import pytest
import zstandard
from lz4 import frame as lz4_frame

from format.errors import InputError, NotALogDir
from format.node.log_dir import Kind
from format.node.target import Target, absent_words
from tests.building import BASE_TIMESTAMP, batches, write_segment

LOG = b"".join(batches(4))
PACKED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "00000000000000000000.log.gz": (gzip.compress, "compressed with gzip: unpack it first, with: gzip -dk "),
    "a.log.zst": (zstandard.ZstdCompressor().compress, "compressed with zstd: unpack it first, with: zstd -d "),
    "a.log.lz4": (lz4_frame.compress, "compressed with lz4: unpack it first, with: lz4 -d "),
    "a.log.bz2": (bz2.compress, "compressed with bzip2: unpack it first, with: bzip2 -dk "),
    "a.log.xz": (lzma.compress, "compressed with xz: unpack it first, with: xz -dk "),
    "a.zip": (lambda content: zipped(content), "compressed with zip: unpack it first, with: unzip "),
    "a.tar": (lambda content: archived(content), "a tar archive: unpack it first, with: tar xf "),
    "a.tgz": (lambda content: gzip.compress(archived(content)), "unpack it first, with: tar xf "),
    "a.tar.gz": (lambda content: gzip.compress(archived(content)), "unpack it first, with: tar xf "),
    "gzip.log": (gzip.compress, "compressed with gzip: unpack it first, with: gzip -dk "),
    "server.log": (lambda _content: b"[2026-11-22 08:00:00,123] INFO started\n" * 100, "a text file, not a Kafka log"),
    "notes": (lambda _content: "größer\n".encode(), "a text file, not a Kafka log"),
}


def archived(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("00000000000000000000.log")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.log", content)
    return buffer.getvalue()


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("kind", [None, Kind.LOG])
def test_what_is_not_of_kafka_is_named(tmp_path: Path, name: str, kind: Kind | None) -> None:
    make, words = PACKED[name]
    path = tmp_path / name
    path.write_bytes(make(LOG))
    with pytest.raises(InputError, match=words) as refused:
        _ = Target(path, kind).kind
    assert not isinstance(refused.value, NotALogDir), "its advice would name the kinds of input again"


def test_a_name_with_a_space_is_quoted(tmp_path: Path) -> None:
    path = tmp_path / "a b.log.gz"
    path.write_bytes(gzip.compress(LOG))
    with pytest.raises(InputError, match=r"gzip -dk '/.*/a b\.log\.gz'$"):
        _ = Target(path).kind


@pytest.mark.parametrize(
    "content", [LOG, LOG[:40], b"", bytes(1000), b"\xff" * 100, b"text, then a\0byte that none has"]
)
def test_a_log_of_another_name_and_a_damaged_one_are_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "found.log"
    path.write_bytes(content)
    assert Target(path).kind is Kind.LOG
    assert Target(path, Kind.LOG).kind is Kind.LOG


def test_a_segment_overwritten_with_text_is_damaged_not_foreign(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"text\n" * 100)
    assert Target(path).kind is Kind.LOG


def test_a_partition_of_compressed_segments(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / "00000000000000000000.log.gz").write_bytes(gzip.compress(LOG))
    with pytest.raises(InputError, match=r"compressed as files, such as 00000000000000000000\.log\.gz: unpack"):
        _ = Target(partition).kind


def test_segments_of_redpanda(tmp_path: Path) -> None:
    """The header as Redpanda's offline log viewer unpacks it, with the CRC of what follows the first field."""
    rest = struct.pack("<iqbIhiqqqhii", 61 + 40, 0, 1, 7, 0, 0, BASE_TIMESTAMP, BASE_TIMESTAMP, -1, -1, -1, 1)
    segment = tmp_path / "kafka" / "orders" / "0_18" / "0-1-v1.log"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(struct.pack("<I", crc32c.crc32c(rest)) + rest + bytes(40))
    with pytest.raises(InputError, match="a segment of Redpanda, whose format is not Kafka's"):
        _ = Target(segment).kind
    with pytest.raises(InputError, match=r"its segments, such as 0-1-v1\.log, are those of Redpanda"):
        _ = Target(segment.parent).kind
    segment.write_bytes(LOG)  # a log of Kafka, whatever its name is
    assert Target(segment).kind is Kind.LOG


def test_a_topic_without_its_partition(tmp_path: Path) -> None:
    for number in (10, 2, 0):
        write_segment(tmp_path / f"orders-{number}", 0, batches(1))
    write_segment(tmp_path / "orders-old-0", 0, batches(1))
    (tmp_path / "orders-3.0123456789abcdef0123456789abcdef-delete").mkdir()
    nothing = "there is no such file or directory"
    words = absent_words(tmp_path / "orders")
    assert words == (
        f"{nothing}; orders is a topic, and its partitions are orders-0, orders-2 and orders-10: "
        "give one of these directories"
    )
    assert absent_words(tmp_path / "orders-old").endswith("its partition is orders-old-0: give that directory")
    assert absent_words(tmp_path / "none" / "orders") == f"{nothing}: of this path, only {tmp_path} exists"
    assert absent_words(tmp_path / "orders-7") == (
        f"{nothing}; the partitions of orders here are orders-0, orders-2 and orders-10"
    )
    assert absent_words(tmp_path / "orders-old-7") == f"{nothing}; the partition of orders-old here is orders-old-0"
    assert absent_words(tmp_path / "zzz") == nothing
    assert absent_words(tmp_path / "ordres-old-0").startswith(f"{nothing}. Did you mean {tmp_path}/orders-old-0")
    for number in range(20, 40):
        (tmp_path / f"many-{number}").mkdir()
    assert "many-26, many-27 and 12 more: give one" in absent_words(tmp_path / "many")


def test_log_directories_with_numbers_are_no_partitions(tmp_path: Path) -> None:
    for number in (1, 2):
        write_segment(tmp_path / f"node-{number}" / "orders-0", 0, batches(1))
        (tmp_path / f"node-{number}" / "meta.properties").write_text("version=1\n")
    for name in ("node-3", "node"):
        words = absent_words(tmp_path / name)
        assert words.startswith(f"there is no such file or directory. Did you mean {tmp_path}/node-"), words


def test_a_typing_error_in_a_directory_of_the_path(tmp_path: Path) -> None:
    (tmp_path / "node-1").mkdir()
    words = absent_words(tmp_path / "nodes-1" / "orders-0")
    assert words.endswith(f": of this path, only {tmp_path} exists. Did you mean {tmp_path}/node-1?")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("s3:/logs/node-1", "s3://logs/node-1"),
        ("S3:logs/node-1", "s3://logs/node-1"),
        ("arn:aws:s3:::logs/node-1", "s3://logs/node-1"),
        ("gs:/logs/a", "gs://logs/a"),
    ],
)
def test_an_address_with_a_slash_too_few(typed: str, meant: str) -> None:
    assert absent_words(Path(typed)).endswith(f"An address has two slashes after its scheme: {meant}")


def test_a_directory_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "node-1" / "orders-0").mkdir(parents=True)
    with pytest.raises(InputError, match="a directory, not a log"):
        _ = Target(tmp_path / "node-1" / "orders-0", Kind.LOG).kind
