"""``kafkalog extract``: the files hold what dump shows, in every format."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from format.columns import RECORD
from format.findings import Finding
from format.node.target import Target
from tests.building import batch, batches, write_segment
from tests.corpora import Corpus
from tests.dumping import dump
from tests.running import Run, Word

pytestmark = pytest.mark.slow

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
RunOne = Callable[..., Run]
Row = tuple[Any, ...]
OUT_OF_PATH = ("topic", "partition")


def extracted(run_many: RunMany, *words: Word) -> Run:
    (run,) = run_many([("extract", *words, "--format", "jsonl")])
    return run


def rows_of(path: Path) -> list[Row]:
    return [row for item in dump(path, records=True) if not isinstance(item, Finding) for row in item.rows]


def files_in(output: Path, suffix: str) -> list[Path]:
    return sorted(output.rglob(f"*.{suffix}"))


def parquet_rows(path: Path) -> list[Row]:
    """The rows of a Parquet file with topic and partition as the directories name them."""
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")
    topic, partition = path.parent.parent.name.removeprefix("topic="), path.parent.name.removeprefix("partition=")
    with pq.ParquetFile(path) as parquet:
        assert parquet.schema_arrow.names == [name for name in RECORD.names if name not in OUT_OF_PATH]
        listed = parquet.read().to_pylist()
    for row in listed:
        if row["timestamp"] is not None:
            row["timestamp"] = round(1000 * row["timestamp"].timestamp())
        if row["headers"] is not None:
            row["headers"] = [(each["key"], each["value"]) for each in row["headers"]]
    return [(topic, int(partition), *row.values()) for row in listed]


# -- the corpus ----------------------------------------------------------------------------------------------


def test_parquet_holds_what_dump_shows(
    corpus: Corpus, tmp_path: Path, run_kafkalog_many: RunMany, source_snapshot: Callable[[Path], None]
) -> None:
    for number, log_dir in enumerate(corpus.log_dirs):
        source_snapshot(log_dir)
        output = tmp_path / str(number)
        run = extracted(run_kafkalog_many, log_dir, "--output", output).check(0, 1)
        expected = rows_of(log_dir)
        extract = files_in(output, "parquet")
        found = [row for path in extract for row in parquet_rows(path)]
        assert sorted(found, key=lambda row: row[:3]) == sorted(expected, key=lambda row: row[:3])
        assert run.summary["counts"]["records"] == len(expected)
        reported = {row["path"]: row for row in run.rows("extracted_file")}
        assert set(reported) == {path.relative_to(output).as_posix() for path in extract}
        for path in extract:
            row = reported[path.relative_to(output).as_posix()]
            rows = parquet_rows(path)
            assert (row["record_count"], row["size_bytes"]) == (len(rows), path.stat().st_size)
            assert (row["first_offset"], row["last_offset"]) == (rows[0][2], rows[-1][2])


@pytest.mark.parametrize("to", ["jsonl", "csv"])
def test_text_is_that_of_dump(corpus: Corpus, tmp_path: Path, run_kafkalog_many: RunMany, to: str) -> None:
    """Byte for byte, partition by partition."""
    log_dir = corpus.log_dirs[0]
    partitions = [each for each in sorted(log_dir.iterdir()) if each.is_dir() and any(each.glob("*.log"))]
    commands: list[tuple[Word, ...]] = [("extract", log_dir, "--output", tmp_path / "out", "--to", to)]
    commands += [("dump", "--records", "--raw", "--format", to, each) for each in partitions]
    runs = run_kafkalog_many(commands)
    for partition, run in zip(partitions, runs[1:], strict=True):
        topic, number = partition.name.rsplit("-", 1)
        path = tmp_path / "out" / f"topic={topic}" / f"partition={number}" / f"part-00000.{to}"
        lines = run.stdout.splitlines(keepends=True)
        expected = lines[:-1] if to == "jsonl" else lines
        expected = [line for line in expected if not line.startswith('{"type":"finding"')]
        if len(expected) > (to == "csv"):
            assert path.read_text(encoding="utf-8") == "".join(expected)
        else:
            assert not path.exists()


def test_it_reads_as_one_data_set(tmp_path: Path, data_dir: Path, run_kafkalog_many: RunMany) -> None:
    """The directories name topic and partition, as other programs expect it."""
    dataset = pytest.importorskip("pyarrow.dataset", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")
    source = data_dir / "kafka-4.3-single" / "node-1"
    extracted(run_kafkalog_many, source, "--output", tmp_path / "out").check(0)
    table = dataset.dataset(tmp_path / "out", format="parquet", partitioning="hive").to_table()
    assert len(table) == len(rows_of(source))
    assert set(table.column_names) == set(RECORD.names)
    orders = table.filter(dataset.field("topic") == "orders").filter(dataset.field("partition") == 1)
    assert len(orders) == len(rows_of(source / "orders-1"))


# -- what is chosen, how it is cut ---------------------------------------------------------------------------


def partition_of(parent: Path, name: str = "orders-0", content: bytes | None = None) -> Path:
    """Thirty records in ten batches, unless other numbers are given."""
    partition = parent / name
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").write_bytes(b"".join(batches(10)) if content is None else content)
    return partition


@pytest.mark.parametrize("to", ["parquet", "jsonl", "csv"])
def test_files_of_so_many_records(tmp_path: Path, run_kafkalog_many: RunMany, to: str) -> None:
    made = batches(10)
    partition = partition_of(tmp_path, content=b"".join(made[:4]))
    (partition / f"{12:020d}.log").write_bytes(b"".join(made[4:]))  # a file goes on into the next segment
    words = (partition, "--output", tmp_path / "out", "--to", to, "--records-per-file", "7")
    run = extracted(run_kafkalog_many, *words).check(0)
    assert [row["record_count"] for row in run.rows("extracted_file")] == [7, 7, 7, 7, 2]
    assert [row["first_offset"] for row in run.rows("extracted_file")] == [0, 7, 14, 21, 28]
    assert [path.name for path in files_in(tmp_path / "out", to)] == [f"part-{number:05d}.{to}" for number in range(5)]
    if to == "jsonl":
        lines = b"".join(path.read_bytes() for path in files_in(tmp_path / "out", to)).splitlines()
        assert [json.loads(line)["offset"] for line in lines] == list(range(30))


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
def test_files_of_about_so_many_bytes(tmp_path: Path, run_kafkalog_many: RunMany, to: str) -> None:
    values = [os.urandom(1000) for _ in range(40)]
    content = b"".join(batch(20 * number, values[20 * number :][:20]) for number in range(2))
    words = (partition_of(tmp_path, content=content), "--output", tmp_path / "out", "--to", to)
    run = extracted(run_kafkalog_many, *words, "--bytes-per-file", "10000").check(0)
    rows = run.rows("extracted_file")
    assert len(rows) > 1
    assert all(row["size_bytes"] < 50_000 for row in rows)
    assert sum(row["record_count"] for row in rows) == 40


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
def test_ranges(tmp_path: Path, run_kafkalog_many: RunMany, to: str) -> None:
    words = (partition_of(tmp_path), "--output", tmp_path / "out", "--to", to, "--from-offset", "4", "--to-offset", "9")
    (row,) = extracted(run_kafkalog_many, *words).check(0).rows("extracted_file")
    assert (row["first_offset"], row["last_offset"], row["record_count"]) == (4, 9, 6)


def test_nothing_selected(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    words = (partition_of(tmp_path), "--output", tmp_path / "out", "--from-offset", "400")
    run = extracted(run_kafkalog_many, *words).check(0)
    assert run.summary["counts"]["records"] == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["_manifest.json"]


# -- damage and refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["parquet", "jsonl", "csv"])
def test_damage(tmp_path: Path, run_kafkalog_many: RunMany, to: str) -> None:
    """The records around it are there; a finding and the exit status report it."""
    made = batches(5)
    damaged = bytearray(made[2])
    damaged[-3] ^= 1
    partition = partition_of(tmp_path, content=b"".join([*made[:2], bytes(damaged), *made[3:]]))
    run = extracted(run_kafkalog_many, partition, "--output", tmp_path / "out", "--to", to).check(1)
    assert [row["code"] for row in run.rows("finding")] == ["batch-crc-mismatch"]
    assert run.rows("extracted_file")[0]["record_count"] == 12
    assert run.summary["conditions"] == ["damage"]


def test_marked_directories_are_left_out(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """They are copies, or on their way out; given by themselves they are extracted."""
    partition_of(tmp_path / "logs")
    name = f"orders-0.{'0' * 32}-future"
    partition_of(tmp_path / "logs", name)
    run = extracted(run_kafkalog_many, tmp_path / "logs", "--output", tmp_path / "out", "--to", "csv").check(0)
    assert run.summary["counts"]["records"] == 30
    assert any(name in each for each in run.summary["not_checked"])
    alone = extracted(run_kafkalog_many, tmp_path / "logs" / name, "--output", tmp_path / "two", "--to", "csv").check(0)
    assert alone.summary["counts"]["records"] == 30


def test_records_never_come_twice(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    one, other = partition_of(tmp_path / "a"), partition_of(tmp_path / "b")
    log = one / f"{0:020d}.log"
    run = extracted(run_kafkalog_many, one, other, "--output", tmp_path / "out").check(2)
    assert not (tmp_path / "out").exists()
    assert "two directories" in run.stderr
    for number, words in enumerate(((one, one), (one, log), (log, one), (log, log), (tmp_path / "a", one))):
        run = extracted(run_kafkalog_many, *words, "--output", tmp_path / f"once-{number}").check(0)
        assert run.summary["counts"]["records"] == 30
    extracted(run_kafkalog_many, one, partition_of(tmp_path / "b", "orders-1"), "--output", tmp_path / "out").check(0)


def test_refusals(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = partition_of(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    extracted(run_kafkalog_many, partition, "--output", tmp_path / "full").check(5)
    extracted(run_kafkalog_many, partition, "--output", partition / "out").check(5)
    extracted(run_kafkalog_many, partition, "--output", tmp_path / "out", "--to", "xml").check(2)
    snapshot = partition / f"{0:020d}.snapshot"
    snapshot.write_bytes(b"")
    extracted(run_kafkalog_many, snapshot, "--output", tmp_path / "out").check(2)
    assert not (tmp_path / "out").exists()


def test_a_log_outside_a_partition_directory(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    path = tmp_path / f"{0:020d}.log"
    shutil.copy(partition_of(tmp_path / "p") / path.name, path)
    extracted(run_kafkalog_many, path, "--output", tmp_path / "out", "--to", "jsonl").check(0)
    (written,) = files_in(tmp_path / "out", "jsonl")
    assert written.parent.name == "partition=__HIVE_DEFAULT_PARTITION__"


def test_without_pyarrow(tmp_path: Path, run_kafkalog: RunOne) -> None:
    """Parquet says what to install; the text formats need none of it."""
    hidden = tmp_path / "hidden" / "pyarrow"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('not here')")
    partition = partition_of(tmp_path)
    # The checkout's own directory comes first on the path, so that a site hook hides the library.
    (tmp_path / "hidden" / "sitecustomize.py").write_text("import sys\nsys.modules['pyarrow'] = None\n")
    env = {"PYTHONPATH": str(tmp_path / "hidden")}
    run = run_kafkalog("extract", partition, "--output", tmp_path / "out", "--to", "parquet", env=env)
    if run.code == 0:
        pytest.skip("the library cannot be hidden here")
    assert run.code == 2
    assert "kafkalog[arrow]" in run.stderr
    assert "or give --to jsonl or --to csv" in run.stderr
    by_itself = run_kafkalog("extract", partition, "--output", tmp_path / "default", env=env).check(0)
    assert (
        "pyarrow is not installed: writing JSON lines; for Parquet: pip install 'kafkalog[arrow]'" in by_itself.stderr
    )
    assert files_in(tmp_path / "default", "jsonl")
    run_kafkalog("extract", partition, "--output", tmp_path / "out", "--to", "jsonl", env=env).check(0)


def test_a_parquet_file_that_reads_back_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the library writes is believed only once it is read back: then nothing is published."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")
    from format.errors import OutputError
    from format.rewriting.publication import Publication
    from format.verbs.extract import Extraction, ParquetFormat, _Sink, extract, extract_sources

    real = _Sink.write

    def write(sink: Any, content: Any) -> int:
        return real(sink, bytes(content).replace(b"value-1", b"value-7"))

    monkeypatch.setattr(_Sink, "write", write)
    content = b"".join(batch(number, [os.urandom(50) + b"value-1"]) for number in range(5))
    sources = extract_sources([partition_of(tmp_path, content=content)], [])
    with pytest.raises(OutputError), Publication(tmp_path / "out", [sources[0].path]) as publication:
        list(extract(sources, publication, Extraction(ParquetFormat())))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("suffix", "writes"), [("parquet", 0), ("parquet", 3), ("jsonl", 0)])
def test_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], suffix: str, writes: int
) -> None:
    """An error of the file below the library comes out as what it is, and nothing is left or said twice."""
    import gc

    from format.errors import OutputError
    from format.rewriting.publication import NewFile, Publication
    from format.verbs.extract import Extraction, ParquetFormat, extract, extract_sources
    from kafkalog_cli.commands.extract import _file_format

    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")

    real = NewFile.write
    left = [writes]

    def write(file: NewFile, content: Any) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OutputError("no space left")
        return real(file, content)

    file_format = _file_format(suffix, None, RECORD)
    if suffix == "parquet":
        file_format = ParquetFormat(row_group_bytes=100)
    sources = extract_sources([partition_of(tmp_path)], [])
    monkeypatch.setattr(NewFile, "write", write)
    with Publication(tmp_path / "out", [sources[0].path]) as publication, pytest.raises(OutputError, match="no space"):
        list(extract(sources, publication, Extraction(file_format)))
    gc.collect()
    assert capfd.readouterr().err == ""
    assert [path.name for path in tmp_path.iterdir()] == ["orders-0"]


# -- taken up again ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["parquet", "jsonl", "csv"])
def test_resume(tmp_path: Path, run_kafkalog_many: RunMany, to: str) -> None:
    """Partitions that were finished are not read again, and the output is that of a run without a break."""
    if to == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")
    damaged = bytearray(b"".join(batches(4)))
    damaged[-3] ^= 1
    first = partition_of(tmp_path / "logs", "orders-0", bytes(damaged))
    blocked = partition_of(tmp_path / "logs", "orders-1")
    options = ("--to", to, "--records-per-file", "7")
    whole = extracted(run_kafkalog_many, tmp_path / "logs", "--output", tmp_path / "whole", *options).check(1)
    words = (tmp_path / "logs", "--output", tmp_path / "out", *options, "--keep-partial")
    partial = _interrupted(tmp_path, words, "orders-1")
    done = sorted(path for path in partial.rglob(f"*.{to}") if "partition=0" in str(path))
    assert len(done) == 2
    inodes = [path.stat().st_ino for path in done]
    other = extracted(run_kafkalog_many, *words, "--from-offset", "1", "--resume")
    assert other.summary["counts"]["records"] < whole.summary["counts"]["records"]
    shutil.rmtree(tmp_path / "out")
    run = extracted(run_kafkalog_many, *words, "--resume").check(1)
    assert run.summary["counts"] == {**whole.summary["counts"], "resumed_files": 2}
    assert run.rows("extracted_file") == whole.rows("extracted_file")
    assert [row["code"] for row in run.rows("finding")] == [row["code"] for row in whole.rows("finding")]
    assert [(tmp_path / "out" / path.relative_to(partial)).stat().st_ino for path in done] == inodes
    assert first.exists()
    assert blocked.exists()
    assert not partial.exists()
    for path in files_in(tmp_path / "whole", to):
        assert (tmp_path / "out" / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes()


def _interrupted(tmp_path: Path, words: tuple[Word, ...], name: str) -> Path:
    """The partial directory of a run that fails when it comes to the partition of that name."""
    from format.errors import OutputError
    from format.verbs import extract as operation
    from kafkalog_cli.main import main

    real = operation.dumped_rows

    def failing(target: Target, *terms: Any, **options: Any) -> Any:
        if target.path.name == name:
            raise OutputError("no space left")
        return real(target, *terms, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operation, "dumped_rows", failing)
        assert main(["extract", *map(str, words)]) == 4
    (partial,) = tmp_path.glob(".out.partial-*")
    return partial


def test_a_record_too_long_for_the_kernel(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """It comes out as in any other run: the same line that dump shows."""
    content = b"".join(batch(3 * number, [b"a", os.urandom(3_000_000), b"c"]) for number in range(2))
    partition = partition_of(tmp_path, content=content)
    words = ("dump", "--records", "--raw", "--format", "jsonl", partition)
    extracted(run_kafkalog_many, partition, "--output", tmp_path / "out", "--to", "jsonl").check(0)
    (shown,) = run_kafkalog_many([words])
    (written,) = files_in(tmp_path / "out", "jsonl")
    assert written.read_text(encoding="utf-8").splitlines() == shown.stdout.splitlines()[:-1]


def test_a_range_in_which_nothing_lies_is_said(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = write_segment(tmp_path / "t-0", 0, batches(4)).parent
    past, held = run_kafkalog_many(
        ("extract", partition, "--to", "jsonl", "--output", tmp_path / offset, "--from-offset", offset)
        for offset in ("12", "11")
    )
    assert "No record in the range: the log of t-0 goes from offset 0 to 11.\n" in past.check(0).stderr
    assert "No record in the range" not in held.check(0).stderr


def test_the_command_for_duckdb_runs_as_it_is_printed(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """A name that a shell or SQL would read otherwise is quoted; other formats, and no records, have no command."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    partition = write_segment(tmp_path / "t-0", 0, batches(2)).parent
    parquet, lines, nothing = run_kafkalog_many(
        [
            ("extract", partition, "--output", tmp_path / "it's $HOME"),
            ("extract", partition, "--output", tmp_path / "lines", "--to", "jsonl"),
            ("extract", partition, "--output", tmp_path / "nothing", "--from-offset", "99"),
        ]
    )
    (command,) = [line for line in parquet.check(0).stderr.splitlines() if line.startswith("to query it: ")]
    program, flag, query = shlex.split(command.removeprefix("to query it: "))
    assert (program, flag) == ("duckdb", "-c")
    assert duckdb.sql(query).fetchall() == [("t", 6)]
    assert "duckdb -c" not in lines.check(0).stderr + nothing.check(0).stderr
