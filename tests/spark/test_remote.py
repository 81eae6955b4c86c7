"""Logs in a store and behind other addresses give what the same logs give on a disk."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")


import pyarrow.parquet as pq

from format.errors import InputError, OutputInsideSource
from format.findings import Finding
from format.io.session import Session, path_of
from format.rows.record_rows import RowBlock
from format.verbs.ls.ls import ListTerms, ls
from format.verbs.verify.verify import verify
from spark_jobs import planning, spark_cluster, view_reader
from spark_jobs.planning import PROCESS, plan_units
from spark_jobs.report import check_output
from spark_jobs.view_reader import plan_logs, units_listed
from tests.building import batches, write_segment
from tests.corpora import REPOSITORY
from tests.dumping import dump
from tests.spark.scanning import EVERY_RECORD, Printed, scanned, store_of_four

Upload = Callable[[Path, str], str]


def _moved(reported: Iterable[Any], place: Path, address: str) -> list[Any]:
    """What is reported of a place on disk as it would be reported of another address."""

    def text(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(str(place), address)
        return type(value)(map(text, value)) if isinstance(value, (tuple, list)) else value

    def found(each: Finding) -> Finding:
        cause = None if each.caused_by is None else replace(each.caused_by, path=text(each.caused_by.path))
        place_of_it = replace(each.location, path=text(each.location.path))
        return replace(each, location=place_of_it, message=text(each.message), caused_by=cause)

    return [found(each) if isinstance(each, Finding) else text(each) for each in reported]


@pytest.fixture(scope="module")
def some_damaged(damaged_copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few partitions of the damaged directory: a store on this machine takes its time."""
    target = tmp_path_factory.mktemp("some") / "node-1"
    target.mkdir()
    for path in damaged_copy.iterdir():
        if path.is_file():
            shutil.copy(path, target)
        elif path.name in ("__consumer_offsets-1", "clicks-zstd-0", "orders-0", "trimmed-0", "users-0"):
            shutil.copytree(path, target / path.name)
    return target


@pytest.fixture(scope="module")
def address(upload: Upload, some_damaged: Path) -> str:
    """Where the same lies in the store."""
    return upload(some_damaged, "node-1")


def _rows(blocks: Iterable[RowBlock | Finding]) -> list[Any]:
    return [row for block in blocks for row in ([block] if isinstance(block, Finding) else block.rows)]


def _check_operations(place: Path, address: str) -> None:
    remote = path_of(address)
    assert list(verify(remote)) == _moved(verify(place), place, address)
    got, expected = _rows(dump(remote, records=True)), _rows(dump(place, records=True))
    assert got == _moved(expected, place, address)
    assert [repr(each) for each in ls(remote, ListTerms(segments=True))] == [
        repr(each).replace(str(place), address).replace("PosixPath", "RemotePath")
        for each in ls(place, ListTerms(segments=True))
    ]


def test_operations_read_a_store_as_they_read_a_disk(address: str, some_damaged: Path) -> None:
    _check_operations(some_damaged, address)


def test_operations_read_through_fsspec(some_damaged: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'kafkalog[remote]'")
    fsspec.filesystem("memory").put(f"{some_damaged}/", "/kept/node-1", recursive=True)
    _check_operations(some_damaged, "memory:///kept/node-1")


def test_operations_read_through_an_address_of_this_machine(some_damaged: Path) -> None:
    _check_operations(some_damaged, f"local://{some_damaged}")


def test_file_addresses_are_paths(damaged_copy: Path) -> None:
    assert path_of(f"file://{damaged_copy}") == damaged_copy
    assert path_of(f"file:{damaged_copy}") == damaged_copy
    assert path_of("file:///a%20b") == Path("/a b")


def test_scan_verify(spark_and_store: Any, address: str, some_damaged: Path) -> None:
    got = scanned(lambda at: verify(at(address)), 4000)
    assert got == _moved(verify(some_damaged), some_damaged, address)
    assert len(got) > 10


def test_units_that_tasks_size_are_planned_as_here(
    spark_and_store: Any, address: str, some_damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_cluster, "_SIZED_HERE", 0)
    monkeypatch.setattr(planning, "_SIZED_TOGETHER", 2)
    monkeypatch.setattr(planning, "_LISTED_AT_ONCE", 2)
    monkeypatch.setattr(planning, "SMALLEST_RANGE_BYTES", 4000)
    made: list[list[Any]] = []

    def planned(*args: Any, **kwargs: Any) -> Any:
        for each in plan_units(*args, **kwargs):
            made[-1].append([[(item.name, item.size_bytes) for item in task] for task in each.tasks])
            yield each

    monkeypatch.setattr(planning, "plan_units", planned)
    found = []
    for place in (address, some_damaged):
        made.append([])
        found.append(scanned(lambda at, place=place: verify(at(place))))
    assert found[0] == _moved(found[1], some_damaged, address) == _moved(verify(some_damaged), some_damaged, address)
    assert [*map(str, made[0])] == [str(each).replace(str(some_damaged), address) for each in made[1]]
    assert any("part 2 of" in str(each) for each in made[0])


@pytest.mark.parametrize("words", ["ls", "grep e", "dump --records"])
def test_scan_verbs(
    spark_and_store: Any,
    address: str,
    some_damaged: Path,
    words: str,
    printed: Callable[..., Printed],
) -> None:
    there = printed("scan", *words.split(), address, "--range-size", "4000", "--format", "jsonl")
    here = printed("scan", *words.split(), some_damaged, "--format", "jsonl")
    assert there[1].splitlines() == here[1].replace(str(some_damaged), address).splitlines()
    assert len(there[1].splitlines()) > 15


def test_scan_extract_and_the_data_source(
    spark_and_store: Any,
    address: str,
    some_damaged: Path,
    tmp_path: Path,
    printed: Callable[..., Printed],
) -> None:
    spark = spark_and_store
    code, out, _ = printed("scan", "extract", address, "--output", f"{tmp_path}/out", "--format", "jsonl")
    assert code == 1
    blocks = [each for each in dump(some_damaged, records=True) if isinstance(each, RowBlock)]
    expected = sum(len(list(each.rows)) for each in blocks if each.schema.type == "record")
    assert json.loads(out.splitlines()[-1])["counts"]["records"] == expected
    written = spark.read.option("pathGlobFilter", "*.parquet").parquet(f"{tmp_path}/out")
    assert written.count() == expected
    every = {"includeControl": "true", **EVERY_RECORD}
    frame = spark.read.format("kafkalog").options(**every).load(address)
    assert frame.count() == expected
    deep = spark.read.format("kafkalog").option("recursiveFileLookup", True).options(**every)
    assert deep.load("s3://logs/node-1").count() == expected


def test_options_behind_an_address_reach_the_workers(
    spark_and_store: Any, store: str, address: str, some_damaged: Path
) -> None:
    host = store.removeprefix("http://")
    # As s3a the bucket is another one to the connections, so only the query says where it is.
    address = f"s3a://logs/node-1/users-0?endpoint_override={host}&scheme=http&region=us-east-1"
    PROCESS.session = Session()
    known = plan_logs([PROCESS.session.path(address)]).surroundings.session.description.addresses
    assert any(each.startswith("s3a://logs/?endpoint_override=") for each in known)
    got = scanned(lambda at: verify(at(address)))
    assert got == _moved(verify(some_damaged / "users-0"), some_damaged, "s3a://logs/node-1")


def test_files_written_anew_and_gone_since_they_were_planned(
    spark_and_store: Any,
    upload: Upload,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    printed: Callable[..., Printed],
) -> None:
    for name in ("t-0", "u-0", "v-0"):
        write_segment(tmp_path / name, 0, batches(20))
    address = upload(tmp_path, "anew")

    def plan_and_change(*args: Any, **kwargs: Any) -> Any:
        made = list(plan_units(*args, **kwargs))
        time.sleep(1.1)  # a store gives times in seconds
        upload(tmp_path / "t-0", "anew/t-0")
        system, root = Session().stores.writable_store(f"{address}/v-0")
        system.delete_file(f"{root}/{0:020d}.log")
        return made

    monkeypatch.setattr(planning, "plan_units", plan_and_change)
    tables = ("--output", tmp_path / "report", "--broker-id", "1")
    code, out, _ = printed("scan", "verify", address, "--format", "jsonl", *tables)
    *found, summary = map(json.loads, out.splitlines())
    changed = {each["path"]: each["message"] for each in found if each["code"] == "file-changed"}
    assert changed.pop(f"{address}/t-0") == "it was rewritten after the work was planned"
    assert [path for path in changed if path.startswith(f"{address}/v-0")]
    assert not [path for path in changed if "/u-0" in path]
    assert (code, summary["complete"]) == (3, False)
    runs = pq.read_table(tmp_path / "report" / "runs").to_pylist()
    assert [(row["exit_code"], row["complete"]) for row in runs] == [(3, False)]


def test_what_cannot_be_had_is_said(store: str) -> None:
    for address, words in (
        ("s3://logs/nothing/here", "no such file or directory"),
        ("s3://no-such-bucket/a", "s3://no-such-bucket/a"),
        ("strange://host/a", "no store has the scheme strange"),
    ):
        with pytest.raises(InputError, match=words):
            plan_logs([path_of(address)])


def test_a_report_is_not_written_into_a_store_that_is_read() -> None:
    for output in ("s3a://logs/inside/report", "s3://logs/inside", "s3://logs"):
        with pytest.raises(OutputInsideSource):
            check_output(path_of(output), [path_of("s3://logs/inside")])


def test_a_report_in_a_store(
    spark_and_store: Any, address: str, some_damaged: Path, printed: Callable[..., Printed]
) -> None:
    for _ in range(2):
        assert printed("scan", "verify", address, "--output", "s3://logs/report")[0] == 1
    findings = printed("scan", "verify", some_damaged, "--format", "jsonl")[1].splitlines()[:-1]
    system, root = Session().stores.writable_store("s3://logs/report")
    table = pq.read_table(f"{root}/findings/broker_id=1/verify.parquet", filesystem=system)
    assert table.num_rows == len(findings)


def test_two_damaged_and_two_sound_brokers_below_one_root(
    spark_and_store: Any, upload: Upload, tmp_path: Path, printed: Callable[..., Printed]
) -> None:
    """Here and in a store, by the plain command and by the scan: the same findings, each below its broker."""
    root = store_of_four(tmp_path / "store")
    address = upload(root, "four")
    code, out, err = printed("verify", root, "--format", "jsonl")
    *rows, summary = map(json.loads, out.splitlines())
    assert (code, summary["complete"], summary["counts"]["partitions"]) == (1, True, 4)
    damaged = [row["path"] for row in rows if row["code"] == "batch-crc-mismatch"]
    assert [Path(path).parts[-3] for path in damaged] == ["kafka-2", "kafka-4"]
    assert printed("scan", "verify", root, "--format", "jsonl") == (code, out, err)
    for words in (("verify",), ("scan", "verify")):
        there = printed(*words, address, "--format", "jsonl")
        *found, last = map(json.loads, there[1].replace(address, str(root)).splitlines())
        for row, row_there in zip(rows, found, strict=True):
            if row["code"] == "batch-crc-mismatch":  # a copy in a store is not what a broker fetches anew
                assert "intact there" in row["next_step"]
                assert (
                    row_there.pop("next_step")
                    == "Compare with another replica; run salvage to keep the batches after it."
                )
                row_there["next_step"] = row["next_step"]
        assert (there[0], found, last["complete"]) == (code, rows, True)
    for number in (2, 4):  # without the damaged ones nothing is left to report
        shutil.rmtree(root / f"kafka-{number}")
    address = upload(root, "two")
    for words in (("verify", root), ("verify", address), ("scan", "verify", root), ("scan", "verify", address)):
        assert printed(*words)[0] == 0


def test_the_command(address: str, some_damaged: Path) -> None:
    """In a process of its own."""

    def kafkalog(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kafkalog_cli", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)

    done = kafkalog("scan", "verify", address, "--format", "jsonl", "--master", "local[2]")
    assert done.returncode == 1, done.stderr
    assert len(done.stdout.splitlines()) - 1 == len(list(verify(some_damaged)))
    assert json.loads(done.stdout.splitlines()[0])["path"].startswith(address)
    plain = kafkalog("verify", address, "--format", "jsonl")
    assert plain.stdout.splitlines()[:-1] == done.stdout.splitlines()[:-1]


def test_views_of_several_brokers_in_a_store(
    spark_and_store: Any, upload: Upload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed at once, or where there are too many names one log directory after the other."""
    root = store_of_four(tmp_path / "store")
    address = upload(root, "views")
    several = json.dumps([f"{address}/{name.name}" for name in sorted(root.iterdir())])

    def rows(view: str, **options: str) -> list[Any]:
        frame = spark_and_store.read.format("kafkalog").options(view=view, columns="path", **options).load()
        return sorted(row[0].replace(address, str(root)) for row in frame.collect())

    for view in ("batches", "segments", "findings"):
        expected = rows(view, path=str(root))
        assert len(expected) >= 4 or view == "findings"
        assert rows(view, path=address) == rows(view, paths=several) == expected
        monkeypatch.setattr(view_reader, "FEW_NAMES", 3)
        planned = list(units_listed([Session().path(address)]))
        assert [type(each).__name__ for each in planned] == ["LogDirFiles", "PartitionDirectory"] * 4
        monkeypatch.undo()
