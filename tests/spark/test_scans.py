"""``kafkalog scan VERB`` prints, writes and returns what ``kafkalog VERB`` does, byte for byte."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from format.rewriting.publication import Publication
from kafkalog_cli.command_table import COMMANDS
from tests.aiven_objects import write_objects
from tests.building import batches, write_segment
from tests.corpora import REPOSITORY, Corpus
from tests.spark.scanning import Printed

LATER = "2033-05-18T03:33:20Z"
#: What is run of each verb; a new verb of scan needs a line here.
WORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "ls": (("--segments",), ("--segments", "--sort", "time"), ("--segments", "--no-scan")),
    "verify": ((), ("--level", "crc")),
    "dump": (
        (),
        ("--records",),
        ("--records", "--from-offset", "5", "--to-offset", "40"),
        ("--records", "--limit", "7"),
        ("--records", "--with", "path", "--with", "is_below_log_start", "--from-log-start"),
    ),
    "grep": (
        ("e",),
        ("--count", "e"),
        ("-C", "2", "7"),
        ("--regex", "E", "-i", "--from-offset", "3"),
        ("--files-with-matches", "e"),
        ("no such text anywhere",),
    ),
    "producers": ((), ("--duplicates",)),
    "txns": (("--at", LATER),),
    "retention": (("--at", LATER), ("--at", LATER, "--totals")),
    "compaction": (("--at", LATER), ("--at", LATER, "--every-log")),
    "metadata": ((), ("--history",)),
    "groups": ((), ("--history",)),
}
#: Those that do not take paths as the others do: they have tests of their own below.
APART = ("extract", "recompress", "dump-log", "diff")


def test_every_verb_is_compared() -> None:
    assert {each.name for each in COMMANDS if each.is_scan} == {*WORDS, *APART}


@pytest.mark.parametrize("verb", WORDS)
@pytest.mark.parametrize("form", ["jsonl", "text"])
def test_a_verb_prints_what_the_command_prints(
    verb: str, form: str, printed: Callable[..., Printed], damaged_copy: Path
) -> None:
    for words in WORDS[verb] if form == "jsonl" else WORDS[verb][:2]:  # what prints is told nothing of Spark
        expected = printed(verb, *words, damaged_copy, "--format", form)
        assert len(expected[1]) > 60
        range_size = ("--range-size", "3000") if form == "jsonl" else ()
        assert printed("scan", verb, *words, damaged_copy, "--format", form, *range_size) == expected, words


def test_verbs_on_every_corpus(printed: Callable[..., Printed], corpus: Corpus) -> None:
    """Every verb on those that ship; on the larger ones, whose logs are of the same kinds, those that read all."""
    for verb in ("verify", "dump") if corpus.is_shared else WORDS:
        words = (*WORDS[verb][0], *corpus.log_dirs[:1], "--format", "jsonl")
        assert printed("scan", verb, *words, "--range-size", "9000") == printed(verb, *words), verb


def test_findings_about_records_stand_where_the_command_has_them(
    printed: Callable[..., Printed], data_dir: Path, tmp_path: Path
) -> None:
    """Also those about batches whose headers and CRCs are sound, whatever the ranges are that tasks read."""
    transactions = data_dir / "trials" / "transactions" / "node-1"
    undecodable = write_segment(tmp_path / "t-0", 0, batches(200)).parent
    for words in (
        ("dump", "--records", transactions),
        ("grep", "e", transactions),
        ("grep", "--count", "e", transactions),
        ("dump", "--records", "--value-as", "avro", undecodable),
        ("grep", "value", "--value-as", "avro", undecodable),
    ):
        expected = printed(*words, "--format", "jsonl")
        assert '"type":"finding"' in expected[1], words
        assert printed("scan", *words, "--format", "jsonl", "--range-size", "3000") == expected, words


@pytest.mark.parametrize("storage", ["kafka", "aiven"])
def test_tiered_logs(storage: str, printed: Callable[..., Printed], data_dir: Path, tmp_path: Path) -> None:
    tiered = data_dir / "trials" / "tiered"
    remote = tiered / "remote"
    if storage == "aiven":
        remote = tmp_path / "remote"
        write_objects(tiered / "remote", remote)
    for words in (("ls", "--segments"), ("verify",), ("dump", "--records"), ("grep", "7")):
        line = (*words, tiered / "node-1", "--remote", remote, "--format", "jsonl")
        assert printed("scan", *line, "--range-size", "300") == printed(*line), words


@pytest.mark.parametrize("words", [("--print-data-log",), ("--index-sanity-check",)])
def test_dump_log(words: tuple[str, ...], printed: Callable[..., Printed], damaged_copy: Path) -> None:
    partition = next(each for each in damaged_copy.iterdir() if each.name.startswith("payments"))
    files = ",".join(str(each) for each in sorted(partition.iterdir()) if each.suffix in (".log", ".index"))
    expected = printed("dump-log", *words, "--files", files)
    assert len(expected[1]) > 100
    assert printed("scan", "dump-log", *words, "--files", files, "--range-size", "2000") == expected


@pytest.mark.parametrize("to", ["parquet", "jsonl", "csv"])
def test_extract_writes_the_same_files(
    to: str, printed: Callable[..., Printed], damaged_copy: Path, tmp_path: Path
) -> None:
    words = (damaged_copy, "--to", to, "--from-offset", "2", "--format", "jsonl")
    here = printed("extract", *words, "--output", tmp_path / "here")
    there = printed("scan", "extract", *words, "--output", tmp_path / "there")
    assert there[:2] == here[:2]
    written = _digests(tmp_path / "there")
    assert written == _digests(tmp_path / "here")
    assert len(written) > 10
    assert _directories(tmp_path / "there") == _directories(tmp_path / "here")
    assert not list(tmp_path.glob(".there*"))


def _directories(root: Path) -> set[Path]:
    return {path.relative_to(root) for path in root.rglob("*") if path.is_dir()}


def _digests(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith("manifest.json")
    }


def test_extract_keeps_the_records_of_brokers_apart(printed: Callable[..., Printed], tmp_path: Path) -> None:
    store = tmp_path / "store"
    for broker_id in (1, 2):
        write_segment(store / f"node-{broker_id}" / "t-0", 0, batches(4 * broker_id))
        properties = f"version=1\nnode.id={broker_id}\ncluster.id=abcdefghijklmnopqrstuw\n"
        (store / f"node-{broker_id}" / "meta.properties").write_text(properties)
    code, out, _ = printed("scan", "extract", store, "--output", tmp_path / "out", "--format", "jsonl", "--to", "csv")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0, out
    assert [(row["path"], row["record_count"]) for row in rows if row["type"] == "extracted_file"] == [
        ("broker_id=1/topic=t/partition=0/part-00000.csv", 12),
        ("broker_id=2/topic=t/partition=0/part-00000.csv", 24),
    ]


def test_an_extract_that_was_interrupted_is_resumed(
    spark: Any, printed: Callable[..., Printed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        write_segment(tmp_path / "logs" / f"t-{number}", 0, batches(3 + number))
    words = (tmp_path / "logs", "--to", "csv", "--format", "jsonl", "--keep-partial")
    whole = printed("extract", *words, "--output", tmp_path / "here")
    real, taken = Publication.move_in, []

    def interrupted(*arguments: Any) -> None:
        taken.append(arguments)
        if len(taken) == 2:
            raise KeyboardInterrupt
        real(*arguments)

    there = ("scan", "extract", *words, "--output", tmp_path / "there")
    with monkeypatch.context() as patch:
        patch.setattr(Publication, "move_in", interrupted)
        assert printed(*there)[0] == 130
    assert not (tmp_path / "there").exists()
    (partial,) = tmp_path.glob(".there.partial-*")
    (done,) = partial.rglob("*.csv")
    inode = done.stat().st_ino
    code, out, _ = printed(*there, "--resume")
    assert (code, json.loads(out.splitlines()[-1])["counts"]["resumed_files"]) == (0, 1)
    assert out.splitlines()[:-1] == whole[1].splitlines()[:-1]
    assert _digests(tmp_path / "there") == _digests(tmp_path / "here")
    assert (tmp_path / "there" / done.relative_to(partial)).stat().st_ino == inode
    assert sorted(each.name for each in tmp_path.iterdir()) == ["here", "logs", "there"]


def test_diff(printed: Callable[..., Printed], damaged_copy: Path, data_dir: Path) -> None:
    words = (data_dir / "kafka-4.3-single" / "node-1", damaged_copy, "--format", "jsonl")
    assert printed("scan", "diff", *words) == printed("diff", *words)


def test_recompress_estimate(printed: Callable[..., Printed], damaged_copy: Path) -> None:
    for words in ((), ("--codec", "zstd", "--level", "9"), ("--sample", "200000")):
        here = printed("recompress", "--estimate", damaged_copy, *words, "--format", "jsonl")
        there = printed("scan", "recompress", "--estimate", damaged_copy, *words, "--format", "jsonl")
        assert (there[0], _without_times(there[1])) == (here[0], _without_times(here[1]))


def _without_times(lines: str) -> str:
    return re.sub(r'"(de)?compress_(mb_per_s|ms)":\d+', "", lines)


def test_the_entry_for_spark_submit_is_the_command(
    spark: Any, damaged_copy: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script that spark-submit is given takes the verb and the arguments of ``kafkalog scan``."""
    script = REPOSITORY / "spark_jobs" / "jobs" / "scan.py"
    monkeypatch.setattr("sys.argv", [str(script), "groups", "--format", "jsonl", str(damaged_copy)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert lines[-1]["type"] == "summary"
    assert lines[-1]["exit_code"] == ended.value.code


def test_a_partition_in_two_log_directories_of_a_broker(printed: Callable[..., Printed], tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("d1", "d2")]
    for number, place in enumerate(places):
        write_segment(place / "t-0", 0, batches(2 + number))
        (place / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abcdefghijklmnopqrstuw\n")
    expected = printed("verify", *places, "--format", "jsonl")
    assert "Duplicate log directories for t-0 are found" in expected[1]
    assert printed("scan", "verify", *places, "--format", "jsonl") == expected
