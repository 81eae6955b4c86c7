"""Secrets in every place that a bundle could copy bytes from: none is in the archive."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from format.internal_topics.decoder import decoder_for
from format.io.bundles.schemas import MANIFEST
from format.layout import CLUSTER_METADATA_TOPIC
from format.node.target import Target
from tests.building import batch, write_segment

pytest.importorskip("pyarrow.parquet")

CONTROL = 32  # in the attributes of a batch
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


class Secrets:
    """Secrets, each another one, and where each was planted."""

    def __init__(self) -> None:
        self.places: dict[bytes, str] = {}
        self.in_names: set[bytes] = set()

    def new(self, place: str) -> bytes:
        made = b"hush-%04d-hush" % len(self.places)
        self.places[made] = place
        return made

    def name(self, place: str) -> str:
        """A secret in the name of a file, which stays unless names are redacted."""
        made = self.new(place)
        self.in_names.add(made)
        return made.decode()


def compact(content: bytes) -> bytes:
    return bytes([len(content) + 1]) + content


def config(name: bytes, value: bytes, end: bytes = b"\0") -> bytes:
    return b"\x01\x04\x00\x04" + compact(b"1") + compact(name) + compact(value) + end


def metadata_batches(secrets: Secrets, place: str) -> Iterator[bytes]:
    """Batches of the cluster's metadata with a secret in each."""

    def new(what: str) -> bytes:
        return secrets.new(f"{place}: {what}")

    offset = 0

    def made(value: bytes | None, **options: object) -> bytes:
        nonlocal offset
        offset += 1
        return batch(offset - 1, [value], **{"key": None, **options})  # type: ignore[arg-type]

    plain = config(b"log.cleaner.threads", b"2")
    tag = new("an unknown tagged field")
    yield made(config(b"a", b"b", b"\x01\x09" + bytes([len(tag)]) + tag))
    yield made(plain + new("bytes after a value"))
    yield made(plain, key=new("a key"))
    yield made(plain, headers=((new("the key of a header"), new("the value of a header")),))
    yield made(b"\x01\x7d\x00" + new("an unknown type"))
    yield made(b"\x02\x04\x00" + new("a frame version"))
    yield made(new("no frame at all"))
    decoder = decoder_for(CLUSTER_METADATA_TOPIC)
    for number, record_type in decoder.record_types.items():
        later = record_type.value.versions.highest + 1
        yield made(bytes([1, number, later]) + new(f"{record_type.name} of a later version"))
        yield made(bytes([1, number, later - 1]) + b"\xff" + new(f"{record_type.name} that is damaged"))
    for number in range(9):
        key = b"\0\0" + number.to_bytes(2, "big")
        for version in (0, 9):
            value = version.to_bytes(2, "big") + new(f"control record {number} of version {version}")
            yield made(value, key=key, attributes=CONTROL)
    yield made(b"\0\0\0\0\0\0", key=b"\0\0\0\1" + new("a control key"), attributes=CONTROL)
    yield made(plain + new("a compressed batch"), codec=1)
    broken = bytearray(made(config(b"a", new("a batch with a wrong CRC"))))
    broken[20] ^= 1
    yield bytes(broken)
    yield new("bytes between batches") * 4
    yield made(config(b"ssl.keystore.password", new("a password")))
    yield made(config(b"a", new("a batch that is cut off")))[:-2]


def node_with(secrets: Secrets, node: Path) -> None:
    """A log directory with secrets."""
    new = secrets.new
    metadata, orders = node / "__cluster_metadata-0", node / "orders-0"
    write_segment(metadata, 0, metadata_batches(secrets, "the metadata log"))
    for name in ("__cluster_metadata-0/00000000000000000005-0000000001.checkpoint", "bootstrap.checkpoint"):
        (node / name).write_bytes(b"".join(metadata_batches(secrets, name)))
    (metadata / f"{secrets.name('the name of a snapshot')}.checkpoint").write_bytes(new("a snapshot with another name"))
    state = {"leaderId": 1, "leaderEpoch": 1, "votedId": -1, "votedDirectoryId": TOPIC_ID, "data_version": 1}
    texts = {
        "leader-epoch-checkpoint": b"0\n1\n0 0\n",
        "replication-offset-checkpoint": b"0\n1\norders 0 9\n",
        "recovery-point-offset-checkpoint": b"0\n1\norders 0 9\n",
        "cleaner-offset-checkpoint": b"0\n1\norders 0 9\n",
        "log-start-offset-checkpoint": b"0\n1\norders 0 0\n",
        "partition.metadata": f"version: 0\ntopic_id: {TOPIC_ID}\n".encode(),
        "quorum-state": json.dumps({**state, "more": new("an unknown key of quorum-state").decode()}).encode(),
        ".kafka_cleanshutdown": b'{"version":0,"brokerEpoch":1,"more":"%s"}' % new("an unknown key of the mark"),
        ".lock": b"",
    }
    properties = b"#\n#Mon Oct 05 10:11:12 UTC 2026\nversion=1\ncluster.id=abc\nnode.id=1\n"
    properties += b"#" + secrets.new("a comment") + b"\nsasl.password=" + secrets.new("a property") + b"\n"
    properties += b"a\\\n " + secrets.new("a continued line") + b"\n"
    (node / "meta.properties").write_bytes(properties)
    write_segment(orders, 0, orders_batches(secrets))
    for name, text in texts.items():
        directory = {"leader-epoch-checkpoint": orders, "partition.metadata": orders, "quorum-state": metadata}
        (directory.get(name, node) / name).write_bytes(text)
    (orders / secrets.name("the name of an odd file")).write_bytes(new("an odd file"))
    (orders / f"{secrets.name('the name of an odd log')}.log").write_bytes(new("an odd log"))
    (node / secrets.name("the name of a directory")).mkdir()


def orders_batches(secrets: Secrets) -> Iterator[bytes]:
    new = secrets.new
    yield batch(0, [new("a value")], key=new("a key of a record"))
    yield batch(1, [b"x"], headers=((new("the key of a record's header"), new("the value of a record's header")),))
    yield batch(2, [b"\0\0\0\0\0\0" + new("a marker's value")], key=b"\0\0\0\1", attributes=CONTROL)
    yield batch(3, [b"\0\0\0\0\0\0"], key=b"\0\0\0\1" + new("a marker's key"), attributes=CONTROL)
    yield batch(4, [b"\0\0\0\0\0\0"], key=b"\0\0\0\1", headers=((new("a marker's header"), None),), attributes=CONTROL)
    yield new("bytes that are no batch") * 4
    yield batch(5, [new("a batch that is cut off")])[:-2]


def junk_in_side_files(secrets: Secrets, node: Path) -> None:
    """More secrets, in side files that the bundle with names has as they are."""
    numbers = "00000000000000000000"
    orders = node / "orders-0"
    for name in ("index", "timeindex", "txnindex", "snapshot"):
        (orders / f"{numbers}.{name}").write_bytes(secrets.new(f"the .{name}") * 3)
    (node / "quorum-state.tmp").write_bytes(secrets.new("a temporary file"))
    (node / ".lock").write_bytes(secrets.new("the lock"))
    for name in node.rglob("*checkpoint"):
        if name.name != "bootstrap.checkpoint":
            name.write_bytes(name.read_bytes() + secrets.new(name.name) + b"\n")
    for name in (orders / "partition.metadata", node / "__cluster_metadata-0" / "quorum-state"):
        name.write_bytes(name.read_bytes() + b"\n" + secrets.new(name.name) + b"\n")


def archived(node: Path, *, without_names: bool) -> dict[str, bytes]:
    """The members of a bundle of a log directory, unpacked."""
    from format.verbs.bundle.bundle import BundleRun, BundleTerms
    from format.verbs.bundle.secrets import Names

    made = BundleRun([Target(node)], BundleTerms(names=Names(b"k" * 32) if without_names else None))
    for _ in made.findings():
        pass
    parts: list[bytes] = []
    made.finish(parts.append)
    content = zstandard.ZstdDecompressor().stream_reader(b"".join(parts)).read()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]


def found_in(members: dict[str, bytes], secrets: Secrets) -> set[str]:
    """The places of the secrets that are in a bundle, also in its Parquet files."""
    import pyarrow.parquet as pq

    content = b"\n".join(name.encode() + b"\n" + each for name, each in members.items())
    for name in members:
        if name.endswith(".parquet"):
            content += repr(pq.read_table(io.BytesIO(members[name])).to_pylist()).encode()
    return {f"{place} ({secret.decode()})" for secret, place in secrets.places.items() if secret in content}


def test_no_secret_is_in_a_bundle(tmp_path: Path) -> None:
    secrets = Secrets()
    node_with(secrets, tmp_path / "node")
    members = archived(tmp_path / "node", without_names=False)
    assert len(secrets.places) > 200
    assert "overwritten" in " ".join(json.loads(members[MANIFEST])["left_out"])
    secrets.places = {each: place for each, place in secrets.places.items() if each not in secrets.in_names}
    secrets.places = {each: place for each, place in secrets.places.items() if "unknown key of" not in place}
    assert not found_in(members, secrets)
    files = map(json.loads, members["files.jsonl"].splitlines())
    digests = {each["path"].rpartition("/")[2]: "sha256" in each for each in files if each["type"] == "file"}
    assert not digests["meta.properties"], "a password could be guessed: the rest of the file is known"
    assert not digests["bootstrap.checkpoint"]
    assert not any(has_digest for name, has_digest in digests.items() if name in secrets.in_names)
    assert digests["00000000000000000000.log"]


def test_no_secret_and_no_name_is_in_one_without_names(tmp_path: Path) -> None:
    secrets = Secrets()
    node_with(secrets, tmp_path / "node")
    junk_in_side_files(secrets, tmp_path / "node")
    members = archived(tmp_path / "node", without_names=True)
    assert not found_in(members, secrets)
    (properties,) = (content for name, content in members.items() if name.endswith("meta.properties"))
    assert properties == b"version=1\ncluster.id=abc\nnode.id=1\n"
