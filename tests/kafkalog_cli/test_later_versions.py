"""Records that a later Kafka may write, under every verb: what is not known is said, and the run goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from format.internal_topics.decoder import INTERNAL_TOPICS, decoder_for
from format.layout import CONTROL_BIT, CONTROL_KEY, CONTROL_TYPES
from tests.building import batch, write_segment
from tests.metadata_logs import topic_id_of, write_metadata_log, write_node
from tests.record_encoder import encode_unsigned_varint
from tests.running import Run, Word

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
#: The values of control records: a later version, none, cut short, and bytes of no meaning.
CONTROL_VALUES = {"later": b"\x00\x63" + bytes(20), "none": None, "short": b"\x00", "odd": b"\x00\x00" + b"\xff" * 9}
LATER = 99


def control(offset: int, type_number: int, value: bytes | None) -> bytes:
    """A control batch with one record of a type."""
    return batch(offset, [value], key=CONTROL_KEY.struct.pack(0, type_number), attributes=CONTROL_BIT, leader_epoch=1)


def control_batches() -> dict[str, Callable[[int], bytes]]:
    """Control batches of every type, and of one that is not known, by name."""
    return {
        f"{name}-{kind}": lambda offset, number=number, value=value: control(offset, number, value)
        for number, name in enumerate((*CONTROL_TYPES, "unknown"))
        for kind, value in CONTROL_VALUES.items()
    }


def framed(frame: int, number: int, version: int, content: bytes = bytes(24)) -> bytes:
    return b"".join(map(encode_unsigned_varint, (frame, number, version))) + content


def framed_values(topic: str) -> dict[str, bytes]:
    """Values of every record type in a later version, of a type that is not known, and of a later frame."""
    decoder = decoder_for(topic)
    assert decoder.is_framed
    found = {each.name: framed(1, each.id, LATER) for each in decoder.record_types.values()}
    return {**found, "unknown-type": framed(1, 9999, 0), "later-frame": framed(2, 2, 0), "empty": b""}


def coordinator_values(topic: str) -> dict[str, tuple[bytes, bytes]]:
    """Keys and values of every record type in a later version, and of a type that is not known."""
    decoder = decoder_for(topic)
    later = LATER.to_bytes(2, "big") + bytes(24)
    found = {each.name: (each.id.to_bytes(2, "big") + bytes(24), later) for each in decoder.record_types.values()}
    return {**found, "unknown-type": (later, later)}


def node_with_metadata(folder: Path, odd: Iterable[bytes]) -> Path:
    """A log directory with a metadata log that has some batches after its records, and a log of the topic."""
    node = write_node(folder, 1)
    metadata = write_metadata_log(node)
    log = metadata / f"{0:020d}.log"
    log.write_bytes(log.read_bytes() + b"".join(odd))
    write_segment(node / "orders-0", 0, [batch(0)])
    (node / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_of('orders')}")
    return node


def cases(folder: Path) -> Iterator[tuple[str, Path]]:
    """Log directories, each with odd records of one kind, by name."""
    for name, made in control_batches().items():
        if name.endswith(("-later", "-none")):
            yield name, node_with_metadata(folder / name, [made(2)])
    for topic in INTERNAL_TOPICS:
        node = write_node(folder / topic, 1)
        if topic == "__remote_log_metadata":
            odd = [batch(at, [each], key=None) for at, each in enumerate(framed_values(topic).values())]
        elif topic != "__cluster_metadata":
            pairs = coordinator_values(topic).values()
            odd = [batch(at, [value], key=key) for at, (key, value) in enumerate(pairs)]
        else:
            continue
        write_segment(node / f"{topic}-0", 0, odd)
        yield topic, node


def verbs(node: Path, output: Path) -> Iterator[tuple[Word, ...]]:
    """The verbs that read such records, with what they need."""
    json = ("--format", "jsonl")
    for verb in ("verify", "ls", "metadata", "boot", "retention", "compaction", "groups", "txns", "producers"):
        yield (verb, *json, node)
    yield ("dump", "--records", *json, *sorted(node.glob("__*-0")))
    yield ("report", "--format", "json", "--output", output / "report.json", node)
    yield ("salvage", node, "--output", output / "salvage")
    yield ("bundle", "--no-report", node, "--output", output / "bundle.tar.zst")
    yield ("diff", *json, node, node.parent / "copy")


def check_all(run_many: RunMany, nodes: dict[str, Path], output: Path) -> None:
    """Run all verbs on some log directories: none may end with an internal error."""
    lines = []
    for name, node in nodes.items():
        shutil.copytree(node, node.parent / "copy", dirs_exist_ok=True)
        (output / name).mkdir(parents=True)
        lines += list(verbs(node, output / name))
    for run in run_many(lines):
        run.check(0, 1, 2, 3, 5)


def test_no_verb_fails_at_a_log_of_a_later_kafka(run_kafkalog_many: RunMany, tmp_path: Path) -> None:
    """All odd records in one log: after each, the next is read."""
    controls = control_batches().values()
    values = framed_values("__cluster_metadata").values()
    odd = [made(2 + at) for at, made in enumerate(controls)]
    odd += [batch(2 + len(odd) + at, [each], key=None, leader_epoch=1) for at, each in enumerate(values)]
    node = node_with_metadata(tmp_path / "node", odd)
    check_all(run_kafkalog_many, {"node": node}, tmp_path / "output")
    (run,) = run_kafkalog_many([("metadata", "--format", "jsonl", node)])
    found = [row["offset"] for row in run.check(1, 3).rows("finding") if row["code"] == "version-unknown"]
    assert len(found) > len(decoder_types()) + 4, "each is said"


def decoder_types() -> list[str]:
    decoder = decoder_for("__cluster_metadata")
    return [each.name for each in decoder.record_types.values()]


@pytest.mark.long
def test_no_verb_fails_at_one_record_of_a_later_kafka(run_kafkalog_many: RunMany, tmp_path: Path) -> None:
    """Each odd record in a log of its own, and the logs of the other topics of brokers."""
    check_all(run_kafkalog_many, dict(cases(tmp_path)), tmp_path / "output")


@pytest.mark.parametrize("name", [each for each in CONTROL_TYPES if each not in ("ABORT", "COMMIT")])
def test_a_later_control_record_is_incomplete_and_no_damage(
    run_kafkalog_many: RunMany, tmp_path: Path, name: str
) -> None:
    later = control(2, CONTROL_TYPES.index(name), CONTROL_VALUES["later"])
    node = node_with_metadata(tmp_path / "node", [later])
    for verb in ("verify", "metadata"):
        (run,) = run_kafkalog_many([(verb, "--format", "jsonl", node)])
        codes = {(row["code"], row["offset"]) for row in run.check(3).rows("finding")}
        assert ("version-unknown", 2) in codes, (verb, codes)
