"""A Spark session for the tests of this folder; they are skipped, and say so, where Spark cannot start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kafkalog_cli.main import main
from spark_jobs.session import SparkMissing, close_session, open_session, require_spark
from tests.spark.scanning import Printed, damaged_copy_of


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


@pytest.fixture(scope="module")
def kafkalog(spark: Any) -> Any:
    """Reads a view of the data source with options, as a frame."""

    def read(path: Path | None, view: str = "records", **options: Any) -> Any:
        reader = spark.read.format("kafkalog").option("view", view)
        for name, value in options.items():
            reader = reader.option(name, str(value).lower() if isinstance(value, bool) else value)
        return reader.load() if path is None else reader.load(str(path))

    return read


@pytest.fixture(scope="session")
def damaged_copy(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    """A log directory with damage of every sort in it: bits, cuts, holes, lost files, wrong indexes."""
    target = tmp_path_factory.mktemp("damaged") / "node-1"
    return damaged_copy_of(data_dir / "kafka-4.3-single" / "node-1", target)


@pytest.fixture
def printed(spark: Any, capfd: pytest.CaptureFixture[str]) -> Callable[..., Printed]:
    """Runs the program in this process, which has a session: exit code, standard output and standard error."""

    def run(*words: object) -> Printed:
        capfd.readouterr()
        code = main([str(word) for word in words])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run
