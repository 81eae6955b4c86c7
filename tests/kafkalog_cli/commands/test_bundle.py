"""kafkalog bundle as a user runs it: what is in the archive, and that verbs read it as they read the directory."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from format.io.bundles.schemas import MANIFEST
from tests.building import batch, write_indexed_segment, write_segment
from tests.kafkalog_cli.terminals import Terminal, run_on_terminal
from tests.running import Run, Word

pytestmark = pytest.mark.slow

pq = pytest.importorskip("pyarrow.parquet")

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
JSON = ("--format", "jsonl")
QUICK = ("--no-report",)
AT = ("--at", "2026-11-22T00:00:00Z")
READERS: tuple[tuple[str, ...], ...] = (
    ("ls",), ("ls", "--by", "codec"), ("txns", *AT), ("producers",), ("metadata",), ("groups",), ("retention", *AT),
)  # fmt: skip


def members(bundle: Path) -> dict[str, bytes]:
    """What a bundle holds, by name."""
    content = zstandard.ZstdDecompressor().stream_reader(bundle.open("rb"), closefd=True).read()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]


def records_of(run: Run) -> list[dict[str, Any]]:
    """The records of user topics in the output of dump."""
    return [row for row in run.rows("record") if not row["is_control"] and not row["topic"].startswith("__")]


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-0.8-to-2.8", "kafka-4.3-single"])
def test_verbs_read_it_as_they_read_the_directory(
    run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path, name: str
) -> None:
    source, bundle = data_dir / name, tmp_path / "incident.tar.zst"
    made, dumped = run_kafkalog_many(
        [("bundle", source, "--output", bundle, *QUICK), ("dump", "--records", *JSON, source)]
    )
    made.check(0)
    plain = run_kafkalog_many([(*words, *JSON, source) for words in READERS])
    again = run_kafkalog_many([(*words, *JSON, bundle) for words in READERS])
    inner = f"{bundle}{source}"
    for words, one, other in zip(READERS, plain, again, strict=True):
        assert other.stdout.replace(inner, str(source)) == one.stdout, words
        assert other.stderr.replace(inner, str(source)) == one.stderr, words
        assert other.code == one.code, words
    assert run_kafkalog_many([("ls", *JSON, bundle.as_uri())])[0].stdout == again[READERS.index(("ls",))].stdout
    content = b"".join(members(bundle).values())
    records = records_of(dumped)
    assert len(records) > 1000
    for row in records:
        for value in (row["key"], row["value"], *(each for header in row["headers"] or () for each in header)):
            if isinstance(value, str) and len(value.encode()) > 8:
                assert value.encode() not in content, row


def test_manifest_headers_and_order(run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path) -> None:
    source = tmp_path / "node"
    shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", source)
    (source / "orders-0" / "notes.txt").write_text("customer 4711 called")
    bundles = [tmp_path / f"{jobs}.tar.zst" for jobs in (1, 2)]
    for run in run_kafkalog_many([("bundle", source, "--output", each, "--jobs", each.name[0]) for each in bundles]):
        run.check(0)
    assert bundles[0].read_bytes() == bundles[1].read_bytes()
    found = members(bundles[0])
    assert next(iter(found)) == MANIFEST
    assert list(found)[1:] == sorted(set(found) - {MANIFEST})
    manifest = json.loads(found[MANIFEST])
    assert [each["name"] for each in manifest["members"]] == list(found)[1:]
    assert not any(b"customer 4711" in content for content in found.values())
    table = pq.read_table(io.BytesIO(found["batches.parquet"]))
    assert table.num_rows == sum(table.column("magic").to_pylist()) // 2
    listed = {each["path"]: each for each in map(json.loads, found["files.jsonl"].splitlines())}
    notes = listed[f"{str(source).lstrip('/')}/orders-0/notes.txt"]
    assert (notes["size_bytes"], notes.get("kept")) == (20, None)


def test_verify_of_one_partition_has_no_findings_of_others(run_kafkalog_many: RunMany, tmp_path: Path) -> None:
    """Neither of one whose name begins like its own, nor of one whose findings are about its directory; nor counts."""
    node, bundle = tmp_path / "node", tmp_path / "b.tar.zst"
    for name in ("t-1", "t-2"):
        write_indexed_segment(node / name, 0, [batch(base_offset=0)])
    log = write_indexed_segment(node / "t-10", 0, [batch(base_offset=0)])
    log.write_bytes(log.read_bytes()[:-1] + b"!")
    (node / "replication-offset-checkpoint").write_text("0\n1\nt 2 4711\n")
    run_kafkalog_many([("bundle", node, "--output", bundle, *QUICK)])[0].check(1)
    parts = [f"{bundle}{node}/{name}" for name in ("t-1", "t-2", "t-10")]
    whole, *runs = run_kafkalog_many([("verify", *JSON, each) for each in (bundle, *parts)])
    assert [run.summary["counts"]["partitions"] for run in (whole, *runs)] == [3, 1, 1, 1]
    assert whole.summary["counts"]["records"] > 0
    found = [{row["partition"] for row in run.rows("finding") if row["severity"] != "info"} for run in runs]
    assert found == [set(), {2}, {10}]
    assert [run.code for run in runs] == [0, 0, 1]


def test_a_terminal_is_told_what_was_written(data_dir: Path, tmp_path: Path) -> None:
    node = data_dir / "kafka-4.3-single" / "node-1"
    words = ["bundle", str(node), "--output", str(tmp_path / "incident.tar.zst")]
    shown = "\n".join(run_on_terminal(words, Terminal(shows_progress=False), tmp_path).screen(80))
    assert shown.startswith("bundle: 24 partitions, 32 segments,")


def test_the_bytes_of_headers_come_back(run_kafkalog: Callable[..., Run], data_dir: Path, tmp_path: Path) -> None:
    """Each header that is read from the bundle is that of the log, whatever its format."""
    from format.io.bundles.unpacking import open_bundle
    from format.io.source import FileSource
    from format.log.walker import header_chunks

    for corpus in ("kafka-0.8-to-2.8", "kafka-4.3"):
        source, path = data_dir / corpus, tmp_path / f"{corpus}.tar.zst"
        run_kafkalog("bundle", source, "--output", path, *QUICK).check(0)
        bundle = open_bundle(str(path))
        sizes = {0: 18, 1: 26, 2: 61}
        count = 0
        for log in source.rglob("*.log"):
            stored = bundle.open(str(log).lstrip("/"))
            with FileSource(log) as original:
                for chunk in header_chunks(original):
                    headers = chunk.headers
                    for position, magic in zip(headers.position.tolist(), headers.magic.tolist(), strict=True):
                        size = sizes[magic]
                        assert stored.read(size, position)[0] == original.read_at(position, size)
                        count += 1
        assert count > 50


def test_names_that_are_not_utf8(run_kafkalog_many: RunMany, tmp_path: Path) -> None:
    node = tmp_path / os.fsdecode(b"node-\xff")
    for name in b"orders-0", b"odd-\xff-0":
        write_segment(node / os.fsdecode(name), 0, [batch(0, [b"one", b"two"])])
    (made,) = run_kafkalog_many([("bundle", node, "--output", tmp_path / "a.tar.zst", *QUICK)])
    made.check(0)
    (read,) = run_kafkalog_many([("ls", *JSON, tmp_path / "a.tar.zst")])
    (row,) = read.check(0).rows("partition")
    assert (row["topic"], row["log_end_offset"]) == ("orders", 2)


def test_damage_is_bundled_with_its_findings(run_kafkalog_many: RunMany, tmp_path: Path) -> None:
    node = tmp_path / "node"
    parts = [batch(number * 3, [b"secret value %d" % number] * 3) for number in range(40)]
    parts[7] = parts[7][:61] + b"\xff" + parts[7][62:]
    parts[20] = b"another secret that is no batch at all" * 5
    write_segment(node / "orders-0", 0, parts)
    with (node / "orders-0" / f"{0:020d}.log").open("ab") as file:
        file.write(batch(120, [b"a tail of customers"])[:70])
    bundle = tmp_path / "damaged.tar.zst"
    made, verified, listed = run_kafkalog_many(
        [("bundle", node, "--output", bundle), ("verify", *JSON, node), ("ls", *JSON, node)]
    )
    assert made.code == verified.check(1).code
    again, listed_again = run_kafkalog_many([("verify", *JSON, bundle), ("ls", *JSON, bundle)])
    inner = f"{bundle}{node}"
    assert again.check(1).stdout.replace(inner, str(node)).splitlines()[:-1] == verified.stdout.splitlines()[:-1]
    assert "time when the bundle was made" in again.summary["not_checked"][0]
    assert listed_again.stdout.replace(inner, str(node)) == listed.stdout
    content = b"".join(members(bundle).values())
    for secret in (b"secret", b"customers"):
        assert secret not in content


def test_a_torn_segment_is_found_once(run_kafkalog_many: RunMany, tmp_path: Path) -> None:
    """The header of a batch that is not whole is not in the bundle, so that its offset is known from the finding."""
    node, bundle = tmp_path / "node", tmp_path / "torn.tar.zst"
    write_segment(node / "orders-0", 0, [batch(0), batch(1)])
    write_segment(node / "orders-0", 2, [batch(2, [b"x" * 200])[:70]])
    (node / "replication-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    _, verified, listed = run_kafkalog_many(
        [("bundle", node, "--output", bundle), ("verify", *JSON, node), ("ls", *JSON, node)]
    )
    again, listed_again = run_kafkalog_many([("verify", *JSON, bundle), ("ls", *JSON, bundle)])
    assert listed_again.stdout.replace(f"{bundle}{node}", str(node)) == listed.stdout
    (torn,) = (row for row in listed.rows("finding") if row["code"] == "tail-torn")
    assert torn["offset"] == 2
    again.check(1)
    assert [row["code"] for row in verified.rows("finding")].count("tail-torn") == 1
    assert again.stdout.replace(f"{bundle}{node}", str(node)).splitlines()[:-1] == verified.stdout.splitlines()[:-1]


def test_refusals(run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path) -> None:
    node, bundle = data_dir / "kafka-4.3" / "node-2", tmp_path / "node.tar.zst"
    made = run_kafkalog_many([("bundle", node, "--output", bundle, *QUICK)])[0]
    made.check(0)
    log = next(node.rglob("*.log"))
    partition = log.parent
    named, there, inside, file, grep, side, level, gone, short, follow = run_kafkalog_many(
        [
            ("bundle", node, "--output", tmp_path / "node.zip"),
            ("bundle", node, "--output", bundle),
            ("bundle", node, "--output", node / "new.tar.zst"),
            ("bundle", log, "--output", tmp_path / "new.tar.zst"),
            ("grep", "x", bundle),
            ("dump", f"{bundle}{partition}/partition.metadata"),
            ("verify", "--level", "crc", bundle),
            ("ls", f"{bundle}/no/such/path"),
            ("ls", f"{bundle}/{partition.name}"),
            ("txns", bundle, "--follow"),
        ]
    )
    assert ".tar.zst" in named.check(2).stderr
    assert "exists" in there.check(5).stderr
    inside.check(5)
    assert "whole logs" in file.check(2).stderr
    assert "is a bundle" in grep.check(2).stderr
    assert "--level" in level.check(2).stderr
    assert "no such path" in gone.check(2).stderr
    assert f"Did you mean {bundle}{partition}?" in short.check(2).stderr
    assert f"Side files are in it as they are: tar --zstd -xf {bundle}" in side.check(2).stderr
    assert "--follow takes log directories of this host" in follow.check(2).stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["node.tar.zst"]


def test_a_missing_library_is_named(run_kafkalog: Callable[..., Run], data_dir: Path, tmp_path: Path) -> None:
    from tests.corpora import REPOSITORY

    (tmp_path / "pyarrow.py").write_text("raise ImportError('none here')\n")
    run = run_kafkalog(
        "bundle",
        data_dir / "kafka-4.3" / "node-2",
        "--output",
        tmp_path / "x.tar.zst",
        env={"PYTHONPATH": f"{tmp_path}:{REPOSITORY}"},
    )
    assert "pip install 'kafkalog[arrow]'" in run.check(2).stderr


def test_names_are_replaced(run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path) -> None:
    """No name of a topic, group, member, host or directory is left, and the numbers of ls are the same."""
    source, key = data_dir / "kafka-4.3-single" / "node-1", tmp_path / "key"
    key.write_bytes(b"k" * 32)
    bundles = [tmp_path / f"{number}.tar.zst" for number in range(3)]
    redacted = ("--redact-names", *QUICK)
    *made, unused, short = run_kafkalog_many(
        [
            ("bundle", source, "--output", bundles[0], *redacted, "--key-file", key),
            ("bundle", source, "--output", bundles[1], *redacted, "--key-file", key),
            ("bundle", source, "--output", bundles[2], *redacted),
            ("bundle", source, "--output", tmp_path / "x.tar.zst", "--key-file", key),
            ("bundle", source, "--output", tmp_path / "x.tar.zst", *redacted, "--key-file", "/dev/null"),
        ]
    )
    assert [run.code for run in made] == [0, 0, 0]
    assert "--redact-names" in unused.check(2).stderr
    assert "0 bytes" in short.check(2).stderr
    assert bundles[0].read_bytes() == bundles[1].read_bytes() != bundles[2].read_bytes()
    plain, other, groups, metadata, metadata_there = run_kafkalog_many(
        [
            ("ls", *JSON, source),
            ("ls", *JSON, bundles[0]),
            ("groups", *JSON, source),
            ("metadata", *JSON, source),
            ("metadata", *JSON, bundles[0]),
        ]
    )
    numbers = ("segment_count", "log_size_bytes", "first_offset", "log_end_offset", "high_watermark", "batch_count")

    def counted(run: Run) -> list[tuple[Any, ...]]:
        return sorted(tuple(row[name] for name in numbers) for row in run.rows("partition"))

    assert counted(other) == counted(plain)
    names = {row["topic"] for row in plain.rows("partition")} | {row["group"] for row in groups.rows("group")}
    names = {each for each in names if not each.startswith("__")} | {"localhost", "tests/_data"}
    assert {"orders", "payments"} < names
    assert metadata.rows("topic")
    assert metadata_there.code != 0
    assert "has only the headers of this log" in metadata_there.stdout + metadata_there.stderr
    for bundle in bundles:
        content = b"".join(name.encode() + b"\0" + each for name, each in members(bundle).items())
        for name in names:
            assert name.encode() not in content, name


def test_find_reads_as_far_as_headers_go(run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path) -> None:
    source, bundle = data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node.tar.zst"
    run_kafkalog_many([("bundle", source, "--output", bundle, *QUICK)])[0].check(0)
    inner = f"{bundle}{source}"
    offset, latest, by_time = (("--offset", "320"), ("--max-timestamp",), ("--timestamp", "2026-11-01T00:00:00Z"))
    runs = run_kafkalog_many(
        [("find", f"{at}/orders-0", *words, *JSON) for words in (offset, latest, by_time) for at in (source, inner)]
    )
    rows = [json.loads(run.stdout.replace(inner, str(source)).splitlines()[0]) for run in runs]
    assert rows[1] == {**rows[0], "timestamp": None}
    assert rows[3] == rows[2]
    assert runs[5].code == 3
    assert "does not hold the timestamps" in runs[5].stderr
    assert rows[5]["next_step"] == "Run the command on the logs themselves."


def test_no_password_is_bundled(run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path) -> None:
    source, bundle = data_dir / "trials" / "metadata" / "node-1", tmp_path / "incident.tar.zst"
    log = next(source.glob("__cluster_metadata-0/*.log"))
    made, records, plain = run_kafkalog_many(
        [
            ("bundle", source, "--output", bundle, *QUICK),
            ("dump-log", "--cluster-metadata-decoder", "--files", log),
            ("metadata", source, *JSON),
        ]
    )
    made.check(0)
    found = re.findall(r'"(?:salt|storedKey|serverKey)":"([^"]+)"', records.stdout)
    secrets = [base64.b64decode(each) for each in found]
    assert len(secrets) >= 3
    content = members(bundle)
    assert not [each for each in secrets if any(each in member for member in content.values())]
    assert "passwords" in " ".join(json.loads(content[MANIFEST])["left_out"])
    (again,) = run_kafkalog_many([("metadata", bundle, *JSON)])
    assert again.stdout.replace(f"{bundle}{source}", str(source)) == plain.stdout
