"""A Spark session for the tests of this folder; they are skipped, and say so, where Spark cannot start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kafkalog_cli.main import main
from spark_jobs.session import SparkMissing, close_session, open_session, require_spark
from tests.spark.scanning import Printed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here need Spark."""
    here = Path(__file__).parent
    try:
        require_spark()
    except SparkMissing as error:
        if os.environ.get("KAFKALOG_REQUIRE_SPARK") == "1":
            raise pytest.UsageError(error.message) from None
        mark = pytest.mark.skip(reason=error.message)
        for item in items:
            if here in item.path.parents:
                item.add_marker(mark)


@pytest.fixture(scope="session", autouse=True)
def no_class_archive() -> Iterator[None]:
    """Tests leave nothing in the user's cache, and no JVM that writes an archive when they are done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", os.devnull)
        yield


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for all tests: two cores of this machine. Its workers keep the environment that it starts with."""
    if find_spec("moto") and find_spec("boto3"):
        request.getfixturevalue("store")
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    session = open_session("local[2, 3]", {"spark.sql.warehouse.dir": warehouse})  # a task is tried three times
    yield session
    close_session(session)


@pytest.fixture(scope="session")
def spark_and_store(store: str, spark: Any) -> Any:
    """The session, whose workers get the store's address from the environment."""
    return spark


@pytest.fixture(scope="session")
def damaged_copy(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    """A log directory with damage of every sort in it: bits, cuts, holes, lost files, wrong indexes."""
    target = tmp_path_factory.mktemp("damaged") / "node-1"
    shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", target)
    logs = sorted((each for each in target.rglob("*.log") if each.stat().st_size > 2000), key=str)
    for number, path in enumerate(logs):
        content = bytearray(path.read_bytes())
        middle = len(content) // 2
        how = number % 7
        if how == 0:
            content[middle] ^= 1
        elif how == 1:
            del content[-7:]
        elif how == 2:
            content[middle : middle + 300] = b"\0" * 300
        elif how == 3:
            content[8:12] = b"\x7f\xff\xff\xff"
        elif how == 4:
            del content[middle : middle + 100]
        elif how == 5:
            content += b"\0" * 5000
        path.write_bytes(content)
        index = path.with_suffix(".index")
        if how == 6 and index.exists():
            index.write_bytes(b"\0\0\0\1\0\0\0\5" * 3)
    (target / "replication-offset-checkpoint").write_text("0\n1\nnothing 0 5\n")
    return target


@pytest.fixture
def printed(spark: Any, capfd: pytest.CaptureFixture[str]) -> Callable[..., Printed]:
    """Runs the program in this process, which has a session: exit code, standard output and standard error."""

    def run(*words: object) -> Printed:
        capfd.readouterr()
        code = main([str(word) for word in words])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run
