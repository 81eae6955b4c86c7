"""What a bundle overwrites in the files of the cluster's metadata, and that all else stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.io.source import FileSource
from format.limits import Limits
from format.log.walker import batch_chunks
from format.verbs.bundle.secrets import may_hold_secrets, secrets_of, without
from tests.building import batch

PASSWORD = "correct horse battery staple"
SALT, STORED, SERVER = b"salt-of-alice", b"stored-key-of-alice", b"server-key-of-alice"
LIMITS = Limits()


def compact(content: bytes) -> bytes:
    return bytes([len(content) + 1]) + content


def config(name: str, value: str | None, resource_type: int = 4) -> bytes:
    found = b"\0" if value is None else compact(value.encode())
    return b"\x01\x04\x00" + bytes([resource_type]) + compact(b"1") + compact(name.encode()) + found + b"\0"


def scram(salt: bytes = SALT) -> bytes:
    fields = compact(b"alice") + b"\x01" + compact(salt) + compact(STORED) + compact(SERVER)
    return b"\x01\x0b\x00" + fields + (4096).to_bytes(4, "big") + b"\0"


def masked(content: bytes, tmp_path: Path, piece_bytes: int = 1 << 20) -> bytes:
    """The content of a metadata log as it goes into a bundle, copied in pieces of a size."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(content)
    with FileSource(path) as source:
        found = secrets_of(source, LIMITS)
    pieces = range(0, len(content), piece_bytes)
    return b"".join(without(found, at, content[at : at + piece_bytes]) for at in pieces)


def crcs(content: bytes, tmp_path: Path) -> list[int]:
    path = tmp_path / "00000000000000000001.log"
    path.write_bytes(content)
    with FileSource(path) as source:
        return [each for chunk in batch_chunks(source, limits=LIMITS) for each in chunk.table.crc_valid.tolist()]


@pytest.mark.parametrize("piece_bytes", [1, 7, 100, 1 << 20])
def test_passwords_are_overwritten_and_batches_stay_sound(tmp_path: Path, piece_bytes: int) -> None:
    plain = batch(0, [config("log.retention.ms", "604800000"), config("ssl.keystore.password", None)], key=None)
    secret = batch(
        2,
        [
            config("log.cleaner.threads", "2"),
            config("listener.name.external.ssl.keystore.password", PASSWORD),
            config("sasl.jaas.config", PASSWORD),
            scram(),
        ],
        key=None,
    )
    content = plain + secret + plain
    found = masked(content, tmp_path, piece_bytes)
    assert len(found) == len(content)
    assert found[: len(plain)] == found[-len(plain) :] == plain
    for each in (PASSWORD.encode(), SALT, STORED, SERVER):
        assert each in content
        assert each not in found
        assert b"*" * len(each) in found
    assert b"log.cleaner.threads" in found
    assert b"alice" in found
    assert crcs(found, tmp_path) == [1, 1, 1]


def test_a_salt_of_one_byte_is_overwritten_where_it_is(tmp_path: Path) -> None:
    """The same byte is in the keys that follow it, and in the number of iterations."""
    for salt in (b"s", b"\0"):
        found = masked(batch(0, [scram(salt)], key=None), tmp_path)
        hidden = (compact(b"*" * len(each)) for each in (salt, STORED, SERVER))
        assert compact(b"alice") + b"\x01" + b"".join(hidden) + (4096).to_bytes(4, "big") in found


def test_what_cannot_be_read_keeps_its_header_alone(tmp_path: Path) -> None:
    sound, secret = batch(0, [config("a", "b", 2)], key=None), batch(1, [scram()], key=None)
    broken = bytearray(secret)
    broken[-1] ^= 1
    found = masked(sound + bytes(broken) + sound, tmp_path)
    start = len(sound)
    assert found[: start + 61] == (sound + bytes(broken))[: start + 61]
    assert not any(found[start + 61 : start + len(broken)])
    assert found[start + len(broken) :] == sound
    torn = masked(sound + secret[:-3], tmp_path)
    assert torn == sound + secret[:61] + bytes(len(secret) - 64)


def test_a_record_that_cannot_be_decoded_keeps_its_type_alone(tmp_path: Path) -> None:
    content = batch(0, [scram()[:20]], key=None)
    found = masked(content, tmp_path)
    assert SALT[:8] not in found
    assert SALT[:8] in content
    assert crcs(found, tmp_path) == [1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("__cluster_metadata-0/00000000000000000000.log", True),
        ("__cluster_metadata-0/00000000000000000000.log.deleted", True),
        ("__cluster_metadata-0/00000000000000000025-0000000001.checkpoint", True),
        ("__cluster_metadata-0/00000000000000000025-0000000001.checkpoint.part", True),
        ("__cluster_metadata-0/00000000000000000000.index", False),
        ("__cluster_metadata-0/quorum-state", False),
        ("__cluster_metadata-0/leader-epoch-checkpoint", False),
        ("bootstrap.checkpoint", True),
        ("__consumer_offsets-0/00000000000000000000.log", False),
    ],
)
def test_only_records_of_the_metadata_are_looked_at(name: str, expected: bool) -> None:
    assert may_hold_secrets(Path("/kafka") / name) is expected
