"""A query of topics that are not at the paths is refused: a misspelt topic would look like an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

import pyarrow as pa

from spark_jobs.view_options import VIEW_NAMES, BadOption, parse_options
from spark_jobs.view_reader import KafkaLogReader, Share
from tests.building import batches, write_segment

_SCHEMA = pa.schema([pa.field("offset", pa.int64())])


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log directory whose own name looks like that of a partition."""
    for name in ("orders-0", "orders-1", "payments-0"):
        write_segment(tmp_path / "node-1" / name, 0, batches(2))
    (tmp_path / "node-1" / "meta.properties").write_text("version=1\n")
    return tmp_path / "node-1"


def read(path: Path, topics: str, view: str = "records", **more: str) -> list[str]:
    """The directories and files that the query would read."""
    given = {"path": str(path), "topics": topics, "view": view, **more}
    shares = KafkaLogReader(parse_options({name: each for name, each in given.items() if each}), _SCHEMA).partitions()
    return [str(each.unit.path) for share in shares if isinstance(share, Share) for each in share.items]


@pytest.mark.parametrize("view", VIEW_NAMES)
def test_a_misspelt_topic(log_dir: Path, view: str) -> None:
    expected = r"^there is no partition of the topic order at the paths\. Did you mean orders\?"
    with pytest.raises(BadOption, match=expected):
        read(log_dir, "payments, order", view)


@pytest.mark.parametrize("view", VIEW_NAMES)
def test_the_name_of_the_log_directory_is_no_topic(log_dir: Path, view: str) -> None:
    with pytest.raises(BadOption, match="no partition of the topic node at the paths"):
        read(log_dir, "node", view)


@pytest.mark.parametrize("view", VIEW_NAMES)
def test_topics_that_are_there(log_dir: Path, view: str) -> None:
    names = {Path(each) if Path(each).is_dir() else Path(each).parent for each in read(log_dir, "orders", view)}
    assert sorted(each.name for each in names) == ["orders-0", "orders-1"]


@pytest.mark.parametrize("view", VIEW_NAMES)
def test_a_pattern_that_no_topic_fits(log_dir: Path, view: str) -> None:
    with pytest.raises(BadOption, match=r"no topic at the paths fits the option subscribePattern, order$"):
        read(log_dir, "", view, subscribePattern="order")
    assert read(log_dir, "", view, subscribePattern="order.*") == read(log_dir, "orders", view)


@pytest.mark.parametrize("view", VIEW_NAMES)
def test_numbers_of_partitions_that_no_selected_topic_has(log_dir: Path, view: str) -> None:
    assert read(log_dir, "", view, partitions="0,1")
    with pytest.raises(BadOption, match="no topic at the paths that is read has a partition 1"):
        read(log_dir, "payments", view, partitions="0,1")


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
@pytest.mark.parametrize(
    ("offsets", "words"),
    [('{"order": {"0": 3}}', r"order-0 at the paths\. Did you mean orders\?"), ('{"orders": {"7": 3}}', "orders-7")],
)
def test_offsets_of_a_partition_that_is_not_there(log_dir: Path, option: str, offsets: str, words: str) -> None:
    """Spark's Kafka source refuses them, too: the partition that was meant would be read whole."""
    options = parse_options({"path": str(log_dir), option: offsets})
    with pytest.raises(BadOption, match=f"there is no partition {words}"):
        KafkaLogReader(options, _SCHEMA).partitions()


@pytest.mark.parametrize("name", ["subscribe", "topics", "columns", "partitions"])
def test_an_option_that_names_nothing(name: str) -> None:
    with pytest.raises(BadOption, match=f"the option {name} names nothing"):
        parse_options({"path": "x", name: " , "})


def test_the_topic_of_a_partition_and_of_a_log(log_dir: Path) -> None:
    log = log_dir / "orders-1" / f"{0:020d}.log"
    assert read(log.parent, "orders") == read(log, "orders") == [str(log)]
    assert read(log, "orders", "findings") == [str(log)]
    with pytest.raises(BadOption, match="no partition of the topic payments"):
        read(log, "payments")
