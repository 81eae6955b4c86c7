"""Addresses as paths of the plain commands: the same results as from a disk, few requests, and clear errors."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from format.io import obstore_store
from format.io.obstore_store import Patience
from kafkalog_cli.main import main
from tests.building import batches, write_segment
from tests.front_server import front_server

pytestmark = pytest.mark.long

Upload = Callable[[Path, str], str]
Outcome = tuple[int, list[str], str]
Program = Callable[..., Outcome]

_PARTITIONS = ("__consumer_offsets-1", "__cluster_metadata-0", "orders-0", "payments-0", "users-0")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses."""
    monkeypatch.setattr(obstore_store, "PATIENCE", Patience(first_pause_s=0.001))


@pytest.fixture
def program(capfd: pytest.CaptureFixture[str]) -> Program:
    """Runs the program in this process: exit code, lines of standard output, and standard error."""

    def run(*words: object) -> Outcome:
        capfd.readouterr()
        code = main([str(word) for word in words])
        captured = capfd.readouterr()
        return code, captured.out.splitlines(), captured.err

    return run


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    """A real log directory, with fewer partitions and some damage."""
    source, target = data_dir / "kafka-4.3-single" / "node-1", tmp_path_factory.mktemp("log-dir") / "node-1"
    target.mkdir()
    for path in source.iterdir():
        if path.is_file():
            shutil.copy(path, target)
        elif path.name in _PARTITIONS:
            shutil.copytree(path, target / path.name)
    damaged = target / "users-0" / f"{0:020d}.log"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    return target


@pytest.fixture(scope="module")
def address(upload: Upload, log_dir: Path) -> str:
    return upload(log_dir, "plain/node-1")


_COMMANDS = (
    "ls {}", "ls --by topic {}", "dump --records {}/orders-0", "dump {}/meta.properties", "verify {}",
    "grep e {}/orders-0", "find {}/orders-0 --timestamp 2020-01-01", "find {}/payments-0 --offset 120", "groups {}",
    "txns {} --at 2026-01-01", "producers {}", "metadata {}", "compaction {} --at 2026-01-01", "boot {}",
    "recompress --estimate --codec zstd {}/orders-0",
)  # fmt: skip


def _without_measures(lines: list[str]) -> list[Any]:
    """The rows without what differs by nature: bytes and requests, speeds, and modification times of a copy."""
    rows = [json.loads(line) for line in lines]
    for row in rows:
        for name in ("compress_mb_per_s", "decompress_mb_per_s", "compress_ms", "allocated_bytes"):
            row.pop(name, None)
        if row["type"] == "disk_usage":
            row.pop("percent")
        if row["type"] == "summary":
            for name in ("fetched_bytes", "bytes_read", "visibility_bytes_read", "allocated_bytes"):
                row["counts"].pop(name, None)
    return rows


@pytest.mark.parametrize("words", _COMMANDS)
def test_every_command_reads_an_address_as_it_reads_a_disk(
    program: Program, address: str, log_dir: Path, words: str
) -> None:
    there = program(*words.format(address).split(), "--format", "jsonl")
    here = program(*words.format(log_dir).split(), "--format", "jsonl")
    assert there[0] == here[0]
    # At an address, the metadata log is read only where it is named.
    unknown = there[2].partition(" Consumers read from the leader, which is not known")[0]
    assert here[2].startswith(unknown.replace(address, str(log_dir)).rstrip("\n"))
    moved = [line.replace(address, str(log_dir)) for line in there[1]]
    known = re.compile(r'"(is_leader|node_id|leader|isr|eligible_leader_replicas)":(false|true|\d+|\[[^]]*\])')
    local = [known.sub(r'"\1":null', line) if '"type":"match"' in line else line for line in here[1]]
    assert _without_measures(moved) == _without_measures(local)
    counts = json.loads(there[1][-1])["counts"]
    assert (counts["fetched_bytes"] > 0) is not words.startswith("ls --by")
    assert "fetched_bytes" not in json.loads(here[1][-1])["counts"]


def test_dump_log_reads_an_address(program: Program, address: str, log_dir: Path) -> None:
    files = f"{{}}/orders-0/{0:020d}.log,{{}}/orders-0/{0:020d}.index,{{}}/orders-0/{0:020d}.timeindex"
    there = program("dump-log", "--print-data-log", "--files", files.replace("{}", address))
    here = program("dump-log", "--print-data-log", "--files", files.replace("{}", str(log_dir)))
    assert there[0] == here[0] == 0
    assert [line.replace(address, str(log_dir)) for line in there[1]] == here[1]


@pytest.mark.parametrize(
    "words", ["salvage", "recompress --codec zstd", "rebuild-index", "extract --to jsonl", "redact --key-file {key}"]
)
def test_a_command_that_writes_reads_an_address_and_writes_a_directory(
    program: Program, address: str, log_dir: Path, tmp_path: Path, words: str
) -> None:
    (tmp_path / "key").write_bytes(b"k" * 32)
    words = words.format(key=tmp_path / "key")
    written = []
    for source, name in ((address, "there"), (str(log_dir), "here")):
        code, _, error = program(*words.split(), f"{source}/orders-0", "--output", tmp_path / name)
        assert code == 0, error
        files = (
            path for path in sorted((tmp_path / name).rglob("*")) if path.is_file() and "manifest" not in path.name
        )
        written.append({str(path.relative_to(tmp_path / name)): path.read_bytes() for path in files})
    assert written[0] == written[1]
    assert len(written[0]) >= 1


def test_nothing_is_written_to_an_address(program: Program, log_dir: Path) -> None:
    code, _, error = program("salvage", log_dir / "orders-0", "--output", "s3://logs/out")
    assert code == 2
    assert "is an address; a new directory can only be written to a file system of this host" in error


@pytest.mark.parametrize("command", ["dump", "grep e", "verify", "txns"])
def test_an_address_is_not_followed(program: Program, address: str, command: str) -> None:
    code, _, error = program(*command.split(), f"{address}/orders-0", "--follow")
    assert code == 2
    assert "--follow takes log directories of this host" in error


def test_a_lookup_takes_few_requests(program: Program, store: str, address: str) -> None:
    words = ("--offset", 1200, "--format", "jsonl")
    with front_server(store) as front:
        code, lines, _ = program("find", f"{address}/orders-0?{front.options}", *words)
    assert code == 0
    assert len(front.seen) <= 8  # two listings, two checkpoints, index, log, snapshot
    assert {method for method, _ in front.seen} == {"GET"}
    assert json.loads(lines[-1])["counts"]["fetched_bytes"] < 100_000


def test_a_partition_more_takes_few_requests_more(program: Program, store: str, upload: Upload, tmp_path: Path) -> None:
    """Names and sizes of all of them come from one listing."""
    requests = []
    for number in (4, 12):
        for each in range(number):
            write_segment(tmp_path / str(number) / f"t-{each}", 0, batches(3))
        top = upload(tmp_path / str(number), f"requests-{number}")
        with front_server(store) as front:
            assert program("verify", f"{top}?{front.options}")[0] == 0
        requests.append(len(front.seen))
    assert requests[1] - requests[0] <= 2 * 8


def test_the_limit_of_what_is_read_for_the_visibility(program: Program, upload: Upload, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(4000))
    (tmp_path / "meta.properties").write_text("version=1\n")
    there = f"{upload(tmp_path, 'limited')}/t-0"
    words = ("--offset", "3", "--format", "jsonl")
    rows = [json.loads(line) for line in program("find", there, *words)[1]]
    assert rows[0]["visibility"] is None
    [said] = rows[-1]["not_checked"]
    assert said.startswith("who can see the record: ")
    assert rows[-1]["exit_code"] == 0
    for limited in (("find", there, *words, "--visibility-limit", "1MiB"), ("find", tmp_path / "t-0", *words)):
        rows = [json.loads(line) for line in program(*limited)[1]]
        assert (rows[0]["visibility"], rows[-1]["not_checked"]) == ("visible", [])
    rows = [json.loads(line) for line in program("find", tmp_path / "t-0", *words, "--visibility-limit", "1000")[1]]
    assert rows[0]["visibility"] is None


# -- what goes wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code"), [(403, "file-unreadable"), (404, "file-changed"), (503, "file-unreadable")]
)
def test_an_object_that_cannot_be_read_is_a_finding_and_the_scan_goes_on(
    program: Program, store: str, address: str, status: int, code: str
) -> None:
    def fault(method: str, target: str) -> int | None:
        return status if method == "GET" and f"orders-0/{0:020d}.log" in target else None

    with front_server(store, fault) as front:
        exit_code, lines, _ = program("verify", f"{address}?{front.options}", "--format", "jsonl")
    rows = [json.loads(line) for line in lines]
    unread = [row for row in rows if row.get("code") == code]
    assert [row["path"] for row in unread] == [f"{address}/orders-0/{0:020d}.log"]
    assert exit_code == 1  # users-0 is damaged, which the rest of the scan has found
    assert {"damage", "incomplete"} <= set(rows[-1]["conditions"])
    assert "batch-crc-mismatch" in {row.get("code") for row in rows}
    if status == 403:
        assert unread[0]["message"] == "read failed: the store denies access with these credentials (403 AccessDenied)"
        assert unread[0]["next_step"] == "Check the address, the credentials and the network, then run again."


def test_a_store_that_is_busy_for_a_moment_changes_nothing(program: Program, store: str, address: str) -> None:
    busy = iter([503, None, None, 503, 503] * 1000)
    with front_server(store, lambda method, target: next(busy)) as front:
        there = program("verify", f"{address}?{front.options}", "--format", "jsonl")
    calm = program("verify", address, "--format", "jsonl")
    assert there[0] == calm[0]
    assert there[1][:-1] == calm[1][:-1]


def test_a_store_that_denies_everything_is_unknown_and_not_clean(program: Program, store: str, address: str) -> None:
    with front_server(store, lambda method, target: 403) as front:
        code, _, error = program("verify", f"{address}?{front.options}")
    assert code == 3
    assert "cannot access: the store denies access with these credentials (403)" in error


def test_addresses_that_cannot_be_read(program: Program, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'kafkalog[remote]'")
    host = store.removeprefix("http://")
    for words, expected, sentence in (
        ("s3://logs/nothing/here", 2, "there is no such file or directory"),
        ("s3://absent-bucket/a", 2, "there is no such file or directory; there is no bucket absent-bucket"),
        ("strange://host/a", 2, "no store has the scheme strange: there are s3, gs, abfs, hdfs, https and http"),
        ("http://127.0.0.1:1/a", 3, "cannot reach 127.0.0.1:1: Connection refused"),
        ("s3://logs/a?nonsense=1", 2, "unknown option nonsense: an address takes anonymous, endpoint_override"),
        ("s3://logs/a?scheme=ftp", 2, "scheme=ftp: it is http or https"),
        (f"https://{host}/logs/a", 3, f"{host}: it does not speak TLS; without TLS: http://"),
        (f"http://{host}/logs/a", 2, f"a bucket there is 's3://BUCKET/PATH?endpoint_override={host}&scheme=http'"),
    ):
        code, _, error = program("verify", words)
        assert (code, sentence in error) == (expected, True), error


@pytest.mark.parametrize(
    ("typed", "requests", "words"),
    [
        ("s3://lgos/plain/node-1", 2, "there is no bucket lgos"),
        ("s3://logs/palin/node-1", 3, "of this path, only s3://logs exists. Did you mean s3://logs/plain?"),
        ("s3://logs/plain/node-1/ordres-0", 2, "Did you mean s3://logs/plain/node-1/orders-0?"),
        ("s3://logs/plain/node-1/orders", 2, "orders is a topic, and its partition is orders-0: give that directory"),
        ("s3://logs/plain/node-1/meta.property", 2, "Did you mean s3://logs/plain/node-1/meta.properties?"),
    ],
)
def test_a_typing_error_in_an_address_takes_few_requests_and_names_what_is_there(
    program: Program, store: str, address: str, typed: str, requests: int, words: str
) -> None:
    for command in ("verify", "dump", "ls", "groups"):
        with front_server(store) as front:
            code, _, error = program(command, f"{typed}?{front.options}")
            assert (code, words in error) == (2, True), error
            assert len(front.seen) <= requests, front.seen


def test_dump_log_prints_nothing_for_an_address_that_does_not_exist(program: Program, address: str) -> None:
    code, lines, error = program("dump-log", "--files", f"{address}/orders-0/{1:020d}.log")
    assert (code, lines) == (2, [])
    assert f"there is no such file or directory. Did you mean {address}/orders-0/{0:020d}.log" in error


def test_keys_and_options_of_an_address_are_not_shown(program: Program, store: str, address: str) -> None:
    host = store.removeprefix("http://")
    options = f"endpoint_override={host}&scheme=http"
    with_keys = address.replace("s3://", "s3://thekey:thesecret@")
    for words in (("ls", f"{with_keys}/orders-0?{options}"), ("verify", f"{with_keys}/nothing?{options}")):
        code, lines, error = program(*words, "--format", "jsonl")
        assert code == (0 if words[0] == "ls" else 2)
        assert "secret" not in "".join(lines) + error
        assert "thekey" not in "".join(lines) + error


def test_without_credentials(program: Program, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    code, _, error = program("find", "s3://logs/plain/node-1/orders-0", "--offset", 1)
    assert code == 3
    assert "cannot connect: no AWS credentials: " in error
    code, lines, _ = program("ls", f"{address}?anonymous=true")
    assert code == 3  # this store lists its names to everyone
    assert "the store denies access without credentials (403" in "".join(lines)


def test_google_without_credentials(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nothing")
    code, _, error = program("verify", "gs://bucket/x")
    assert code == 3
    assert "cannot connect: no Google credentials: Unable to open service account file from /nothing" in error


def test_two_damaged_and_two_clean_brokers_below_one_address(
    program: Program, upload: Upload, log_dir: Path, tmp_path: Path
) -> None:
    clean = log_dir / "orders-0"
    for number in (1, 2, 3, 4):
        node = tmp_path / f"node-{number}"
        shutil.copytree(clean, node / "orders-0")
        (node / "meta.properties").write_text(f"version=1\nnode.id={number}\ncluster.id=c\n")
        if number in (2, 4):
            log = node / "orders-0" / f"{0:020d}.log"
            content = bytearray(log.read_bytes())
            content[40_000] ^= 1
            log.write_bytes(content)
    top = upload(tmp_path, "four-nodes")
    code, lines, _ = program("verify", top, "--format", "jsonl")
    rows = [json.loads(line) for line in lines]
    assert code == 1
    damaged = [row["path"] for row in rows if row.get("code") == "batch-crc-mismatch"]
    assert damaged == [f"{top}/node-{number}/orders-0/{0:020d}.log" for number in (2, 4)]
    assert rows[-1]["counts"]["partitions"] == 4
    for number in (1, 3):
        assert program("verify", f"{top}/node-{number}")[0] == 0
