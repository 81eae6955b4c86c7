"""Tiered logs that a real broker wrote: the local and the remote part as one log, against what clients of it saw."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from format.io.aiven_store import decode_manifest, decode_sizes
from kafkalog_cli.main import main
from tests.aiven_objects import packed_sizes, write_objects

pytestmark = pytest.mark.slow

Outcome = tuple[int, list[dict[str, Any]], str]
Program = Callable[..., Outcome]
_OBJECTS = "remote/kafka-tiered-storage"


@pytest.fixture
def program(capfd: pytest.CaptureFixture[str]) -> Program:
    """Runs the program in this process: exit code, rows, and standard error."""

    def run(*words: object) -> Outcome:
        capfd.readouterr()
        code = main([str(word) for word in (*words, "--format", "jsonl")])
        captured = capfd.readouterr()
        return code, [json.loads(line) for line in captured.out.splitlines()], captured.err

    return run


@pytest.fixture
def tiered(tmp_path: Path, data_dir: Path) -> Path:
    """A copy of the node and its objects."""
    shutil.copytree(data_dir / "trials" / "tiered", tmp_path / "tiered")
    return tmp_path / "tiered"


@pytest.fixture(scope="module")
def truth(data_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data_dir / "trials/tiered/truth/tiered.json").read_text())
    return found


def _object(tiered: Path, start_offset: int, suffix: str = ".log") -> Path:
    [found] = (tiered / _OBJECTS).glob(f"*/{start_offset:020d}-*{suffix}")
    return found


@pytest.fixture(params=["kafka", "plugin", "plugin-plain", "plugin-s3"])
def remote(request: pytest.FixtureRequest, tiered: Path) -> str:
    """The objects as Kafka's LocalTieredStorage has them, and as the plugin does: compressed, only cut, on S3."""
    if request.param == "kafka":
        return str(tiered / "remote")
    plugin = tiered / "plugin"
    write_objects(tiered / "remote", plugin, compresses=request.param != "plugin-plain")
    if request.param == "plugin-s3":
        address: str = request.getfixturevalue("upload")(plugin, "tiered")
        return address
    return str(plugin)


def test_records_of_both_parts_are_what_a_consumer_got(
    program: Program, tiered: Path, remote: str, truth: dict[str, Any]
) -> None:
    code, rows, _ = program("dump", "--records", tiered / "node-1" / "orders-0", "--remote", remote)
    assert code == 0
    assert [[row["offset"], row["timestamp"], row["value"]] for row in rows[:-1]] == truth["records"]


def test_a_search_goes_through_both_parts(program: Program, tiered: Path, remote: str, truth: dict[str, Any]) -> None:
    code, rows, _ = program("grep", "--all", tiered / "node-1" / "orders-0", "--remote", remote)
    assert code == 0
    assert [[row["offset"], row["timestamp"], row["value"]] for row in rows[:-1]] == truth["records"]


def test_an_extract_has_the_records_of_both_parts(
    program: Program, tiered: Path, remote: str, truth: dict[str, Any], tmp_path: Path
) -> None:
    output = tmp_path / "records"
    words = (tiered / "node-1" / "orders-0", "--output", output, "--to", "jsonl", "--remote", remote)
    code, rows, _ = program("extract", *words)
    assert (code, rows[-1]["counts"]["records"]) == (0, len(truth["records"]))
    lines = (output / "topic=orders/partition=0/part-00000.jsonl").read_text().splitlines()
    found = [row for row in map(json.loads, lines) if row["type"] == "record"]
    assert [[row["offset"], row["timestamp"], row["value"]] for row in found] == truth["records"]


def test_lookups_cross_over(program: Program, tiered: Path, remote: str, truth: dict[str, Any]) -> None:
    partition = tiered / "node-1" / "orders-0"
    for timestamp, offset in truth["lookups"].items():
        code, rows, _ = program("find", partition, "--timestamp", timestamp, "--remote", remote)
        assert (code, [row["offset"] for row in rows[:-1]]) == ((1, []) if offset < 0 else (0, [offset]))
    for offset in (0, 149, 150, 599, 600, 899):
        code, rows, _ = program("find", partition, "--offset", offset, "--remote", remote)
        assert (code, rows[0]["offset"], rows[0]["visibility"]) == (0, offset, "visible")


def test_a_listing_is_of_one_log(program: Program, tiered: Path, remote: str, truth: dict[str, Any]) -> None:
    code, rows, _ = program("ls", "--segments", tiered / "node-1", "--remote", remote)
    assert code == 0
    [partition] = [row for row in rows if row["type"] == "partition" and row["topic"] == "orders"]
    shown = partition["log_start_offset"], partition["first_offset"], partition["log_end_offset"]
    assert shown == (truth["offsets"]["earliest"], 0, truth["offsets"]["latest"])
    assert "4 of 6 segments remote" in partition["notes"]
    segments = [row for row in rows if row["type"] == "segment" and row["topic"] == "orders"]
    are_remote = {row["segment_base_offset"]: "remote" in (row["notes"] or "") for row in segments}
    first_local = truth["offsets"]["earliest_local"]
    assert are_remote == {offset: offset < first_local for offset in range(0, 900, 150)}


def test_both_parts_are_clean(program: Program, tiered: Path, remote: str) -> None:
    code, rows, _ = program("verify", tiered / "node-1", "--remote", remote)
    assert (code, [row for row in rows if row["type"] == "finding"]) == (0, [])
    assert rows[-1]["counts"]["records"] >= 900


@pytest.mark.parametrize("words", [("verify", "--fail-on", "warning"), ("ls",)])
def test_the_remote_part_that_was_not_asked_for_is_named_as_not_checked(
    program: Program, tiered: Path, words: tuple[str, ...]
) -> None:
    code, rows, _ = program(*words, tiered / "node-1")
    assert (code, rows[-1]["complete"], rows[-1]["conditions"]) == (0, True, [])
    assert [row for row in rows if row["type"] == "finding"] == []
    assert rows[-1]["not_checked"] == ["the part of 1 log in remote storage: give its address with --remote"]


def test_records_of_the_remote_part_are_missing_in_a_dump(program: Program, tiered: Path) -> None:
    code, rows, _ = program("dump", "--records", tiered / "node-1" / "orders-0")
    assert (code, rows[-1]["conditions"]) == (3, ["incomplete"])
    assert [row["code"] for row in rows if row["type"] == "finding"] == ["log-head-remote"]


# -- what is not as the metadata says ------------------------------------------------------------------------


def _verified(program: Program, tiered: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    code, rows, _ = program("verify", tiered / "node-1", "--remote", tiered / "remote")
    return code, {row["code"]: row for row in rows if row["type"] == "finding"}


def test_objects_that_are_gone(program: Program, tiered: Path) -> None:
    _object(tiered, 150).unlink()
    code, found = _verified(program, tiered)
    assert code == 1
    assert found["remote-segment-missing"]["lost_offsets"] == [150, 299]
    assert "nor on the disk" in found["remote-segment-missing"]["message"]
    code, rows, _ = program("dump", "--records", tiered / "node-1" / "orders-0", "--remote", tiered / "remote")
    assert code == 1
    offsets = [row["offset"] for row in rows if row["type"] == "record"]
    assert offsets == [*range(150), *range(300, 900)]
    words = ("find", "--offset", "200", tiered / "node-1" / "orders-0", "--remote", tiered / "remote")
    _, rows, _ = program(*words)
    assert [row["visibility"] for row in rows if row["type"] == "match"] == ["damaged"]  # and not compacted


def test_objects_that_are_gone_and_lie_on_the_disk(program: Program, tiered: Path) -> None:
    _object(tiered, 600).unlink()
    code, found = _verified(program, tiered)
    assert (code, found["remote-segment-missing"]["severity"]) == (0, "warning")


def test_a_log_that_was_cut(program: Program, tiered: Path) -> None:
    log = _object(tiered, 300)
    log.write_bytes(log.read_bytes()[:-10])
    code, found = _verified(program, tiered)
    assert code == 1
    mismatch = found["remote-segment-mismatch"]
    assert mismatch["actual"] == mismatch["expected"] - 10


def test_a_remote_log_that_differs_from_the_local_one(program: Program, tiered: Path) -> None:
    log = _object(tiered, 600)
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    code, found = _verified(program, tiered)
    assert code == 1
    assert (found["remote-segment-mismatch"]["path"], found["remote-segment-mismatch"]["position"]) == (str(log), 70)


def test_damage_in_the_remote_part_is_found_there(program: Program, tiered: Path) -> None:
    log = _object(tiered, 0)
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    code, found = _verified(program, tiered)
    assert code == 1
    assert found["batch-crc-mismatch"]["path"] == str(log)


def test_objects_that_nothing_names(program: Program, tiered: Path) -> None:
    log = _object(tiered, 0)
    shutil.copy(log, log.with_name(f"{0:020d}-AAAAAAAAAAAAAAAAAAAAAA.log"))
    code, found = _verified(program, tiered)
    assert (code, list(found)) == (0, ["remote-object-orphan"])


def test_without_metadata_the_names_of_the_objects_say_what_belongs_together(
    program: Program, tiered: Path, truth: dict[str, Any]
) -> None:
    for number in (0, 1):
        shutil.rmtree(tiered / "node-1" / f"__remote_log_metadata-{number}")
    code, rows, _ = program("dump", "--records", tiered / "node-1" / "orders-0", "--remote", tiered / "remote")
    assert code == 0
    assert [row["offset"] for row in rows[:-1]] == [each[0] for each in truth["records"]]
    assert rows[-1]["not_checked"][0].startswith("the states of remote segments")


def test_an_encrypted_segment_is_refused_with_the_reason(program: Program, tiered: Path) -> None:
    plugin = tiered / "plugin"
    write_objects(tiered / "remote", plugin)
    for path in plugin.rglob("*.rsm-manifest"):
        values = json.loads(path.read_text())
        path.write_text(json.dumps({**values, "encryption": {"dataKey": "k:AAAA", "aad": "AAAA"}}))
    code, rows, _ = program("verify", tiered / "node-1" / "orders-0", "--remote", plugin)
    assert code == 3
    messages = {row["message"] for row in rows if row["type"] == "finding"}
    assert any("the segment is encrypted" in each for each in messages)


def test_a_place_without_objects(program: Program, tiered: Path) -> None:
    code, rows, _ = program("ls", tiered / "node-1", "--remote", tiered / "truth")
    assert code == 1
    assert {row["code"] for row in rows if row["type"] == "finding"} >= {"remote-segment-missing", "log-head-remote"}
    assert program("ls", tiered / "node-1", "--remote", tiered / "nothing")[0] == 2


def test_manifests_that_are_none() -> None:
    for content in (b"", b"[]", b"{}", b'{"version":"2"}', b'{"version":"1","chunkIndex":{}}'):
        with pytest.raises(OSError, match="manifest"):
            decode_manifest(content)
    fixed = {"type": "fixed", "originalChunkSize": 0, "originalFileSize": 5}
    with pytest.raises(OSError, match="cannot be decoded"):
        decode_manifest(json.dumps({"version": "1", "chunkIndex": fixed}).encode())


def test_sizes_are_packed_as_the_plugin_packs_them() -> None:
    for sizes in ([], [7], [7, 9], [1000, 1001, 5], [70_000, 1, 2, 3], [2**31 - 1, 0, 5]):
        assert decode_sizes(packed_sizes(sizes)) == sizes
    with pytest.raises(ValueError, match="cut off"):
        decode_sizes(packed_sizes([1, 2, 3])[:-1])
