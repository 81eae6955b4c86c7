"""docs/spark.md and docs/spark-sql.md: every command, query and Python block runs, in the order of the page."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from tests.building import batches, write_segment
from tests.corpora import DATA_DIR, REPOSITORY
from tests.spark.scanning import Printed

_PAGE = (REPOSITORY / "docs" / "spark.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
#: What a cluster needs: such masters, the archive, and where executors look for a store have tests of their own.
_OF_CLUSTERS = re.compile(r" --(?:master|archive|archives) \S+")
_PARTITIONS = ("orders-0", "users-0", "__cluster_metadata-0")


@pytest.fixture
def places(tmp_path: Path, store: str, upload: Callable[[Path, str], str]) -> dict[str, str]:
    """What stands on the page, and what it is here."""
    node = tmp_path / "kafka"
    source = DATA_DIR / "kafka-4.3-single" / "node-1"
    for name in _PARTITIONS:
        shutil.copytree(source / name, node / name)
    shutil.copy(source / "meta.properties", node)
    for broker_id in (1, 2):
        place = tmp_path / "store" / f"node-{broker_id}"
        write_segment(place / "t-0", 0, batches(3 + broker_id))
        (place / "meta.properties").write_text(f"version=1\nnode.id={broker_id}\ncluster.id=abcdefghijklmnopqrstuw\n")
    upload(tmp_path / "store" / "node-1", "page/node-1")
    return {
        "/var/kafka": str(node),
        "/mnt/store": str(tmp_path / "store"),
        "s3://bucket": "s3://logs/page",
        "minio:9000": store.removeprefix("http://"),
        **{f"/mnt/{name}": str(tmp_path / name) for name in ("report", "segments", "records", "checkpoint", "damage")},
    }


def test_every_block_of_the_page_runs(
    spark_and_store: Any,
    places: dict[str, str],
    tmp_path: Path,
    printed: Callable[..., Printed],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    session: dict[str, Any] = {"spark": spark_and_store}
    ran: list[str] = []
    for block in _BLOCK.finditer(_PAGE):
        text = block["text"]
        for there, here in places.items():
            text = text.replace(there, here)
        ran.append(block["kind"])
        if block["kind"] == "sh":
            continue  # installs packages on a fresh machine
        if block["kind"] == "python":
            exec(compile(text, "docs/spark.md", "exec"), session)
            if "query" in session:
                query = session.pop("query")
                query.processAllAvailable()
                query.stop()
        elif block["kind"] == "sql":
            for statement in filter(None, map(str.strip, text.split(";"))):
                spark_and_store.sql(statement).collect()
        else:
            for line in text.replace("\\\n", " ").splitlines():
                _run(line, printed, monkeypatch)
    assert ran.count("python") >= 4
    assert ran.count("sql") >= 2
    assert ran.count("") >= 7
    assert spark_and_store.read.parquet(places["/mnt/records"]).count() > 100  # what the stream wrote
    assert (tmp_path / "findings.jsonl").exists() is False  # redirections are the shell's


def test_every_statement_of_the_page_of_sql_has_an_answer(spark: Any, data_dir: Path) -> None:
    log_dir = str(data_dir / "kafka-4.3-single" / "node-1")
    page = (REPOSITORY / "docs" / "spark-sql.md").read_text(encoding="utf-8")
    without_rows = []
    for block in _BLOCK.finditer(page):
        assert block["kind"] == "sql"
        for statement in filter(None, map(str.strip, block["text"].replace("/var/kafka", log_dir).split(";"))):
            rows = spark.sql(statement).collect()
            if not rows and statement.startswith("SELECT"):
                without_rows.append(statement)
    of_what_is_wrong = ("not_replicated", "latest_before", "missing")
    assert [each for each in without_rows if not any(words in each for words in of_what_is_wrong)] == []


def _run(line: str, printed: Callable[..., Printed], monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a shell: what it prints ends with a summary of a run that read everything."""
    words = shlex.split(_OF_CLUSTERS.sub("", line.split(" > ")[0]))
    if words[0] == "spark-submit":
        words = words[next(number for number, word in enumerate(words) if word.endswith(".py")) :]
        monkeypatch.setattr("sys.argv", [str(REPOSITORY / words[0]), *words[1:]])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(REPOSITORY / words[0]), run_name="__main__")
        assert ended.value.code in (0, 1), line
        return
    assert words[:2] == ["kafkalog", "scan"], line
    if "--pack" in words:
        return  # takes minutes: tests/spark/test_cluster.py
    code, out, err = printed(*words[1:])
    assert code in (0, 1), (line, err)
    assert out, line


def test_the_page_names_extras_that_exist() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = set(re.findall(r"kafkalog\[([\w,-]+)\]", _PAGE))
    assert {"spark", "spark-connect", "spark-provided"} <= named <= set(project["optional-dependencies"])
