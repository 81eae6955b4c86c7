"""ls --by: the sums are what du counts, whatever they are grouped by."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from format.errors import NotALogDir
from format.node.target import Target
from format.rewriting.sources import read_measured_sources
from format.verbs.ls.disk_usage import GROUPINGS, DiskUsage, EstimateTerms, disk_usage
from format.verbs.recompress.estimate import Estimate, estimate
from format.verbs.recompress.new_batches import TargetFormat as NewCodec
from tests.building import BASE_TIMESTAMP, batch, write_segment

HOUR_MS = 3_600_000


ZSTD = NewCodec(4)


def usages(
    by: str, *paths: Path, now_ms: int = BASE_TIMESTAMP, terms: EstimateTerms | None = None
) -> dict[str | None, DiskUsage]:
    found = disk_usage([Target(path) for path in paths], by, now_ms, estimate=terms)
    return {each.name: each for each in found if isinstance(each, DiskUsage)}


def du_bytes(*paths: Path) -> int:
    done = subprocess.run(["du", "-s", "-B1", "-c", *paths], capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1].split()[0])


@pytest.mark.parametrize("by", GROUPINGS)
def test_all_rows_together_are_what_du_says(by: str, data_dir: Path, tmp_path: Path) -> None:
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    for node in nodes:
        shutil.copytree(data_dir / "kafka-4.3" / node.name, node)
    sparse = nodes[0] / "ledger-0" / "00000000000000000000.index"
    sparse.chmod(0o644)
    os.truncate(sparse, 0)
    os.truncate(sparse, 10 * 1024 * 1024)
    os.link(nodes[0] / "meta.properties", nodes[0] / "second-name")
    (nodes[0] / "lost+found").mkdir()
    (nodes[0] / "lost+found" / "file").write_bytes(bytes(9000))
    found = usages(by, *nodes)
    assert sum(each.allocated_bytes for each in found.values()) == du_bytes(*nodes)
    sizes = [each.size_bytes for each in found.values()]
    assert sum(sizes) > sum(each.allocated_bytes for each in found.values())
    allocated = [each.allocated_bytes for each in found.values()]
    assert allocated == sorted(allocated, reverse=True)


def test_topics_over_nodes(data_dir: Path) -> None:
    nodes = [data_dir / "kafka-4.3" / name for name in ("node-1", "node-2")]
    found = usages("topic", *nodes)
    assert set(found) == {"ledger", "payments", None}
    ledger = found["ledger"]
    logs = [node / "ledger-0" / "00000000000000000000.log" for node in nodes]
    assert ledger.log_bytes == sum(each.stat().st_size for each in logs)
    assert (len(ledger.partitions), ledger.segment_count) == (1, 2)


def test_codecs_by_the_bytes_of_their_batches(tmp_path: Path) -> None:
    plain, packed = batch(0, [b"x" * 5000]), batch(1, [os.urandom(3000)], codec=4)
    write_segment(tmp_path / "t-0", 0, [plain, packed, plain[:20]])
    found = usages("codec", tmp_path)
    assert (found["none"].log_bytes, found["zstd"].log_bytes) == (len(plain), len(packed))


def test_ages_of_segments(tmp_path: Path) -> None:
    for base, hours in ((0, 2000), (3, 30), (6, 2), (9, 0)):
        write_segment(tmp_path / "t-0", base, [batch(base, timestamp=BASE_TIMESTAMP - hours * HOUR_MS - 10)])
    (tmp_path / "t-0" / "00000000000000000003.index").write_bytes(bytes(8))
    found = usages("age", tmp_path)
    assert {name: each.segment_count for name, each in found.items() if name} == {
        "last hour": 1,
        "last day": 1,
        "last 7 days": 1,
        "last 365 days": 1,
    }
    assert found["last 7 days"].size_bytes == found["last day"].size_bytes + 8


def test_what_a_broker_will_delete(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])
    write_segment(tmp_path / f"t-1.{'a' * 32}-delete", 0, [batch(0, [b"x" * 9000])])
    (tmp_path / "t-0" / "00000000000000000000.log.deleted").write_bytes(bytes(20000))
    found = usages("topic", tmp_path)
    assert found["t"].leftover_bytes > 20000 + 9000
    assert len(found["t"].partitions) == 2


@pytest.mark.parametrize("by", GROUPINGS)
def test_savings_are_those_that_recompress_estimates_however_they_are_grouped(by: str, data_dir: Path) -> None:
    nodes = [data_dir / "kafka-4.3" / name for name in ("node-1", "node-2")]
    measured = [each for each in estimate(read_measured_sources(nodes), [ZSTD]) if isinstance(each, Estimate)]
    new_bytes = {each.topic: each.estimated_bytes for each in measured if each.codec == "zstd"}
    found = usages(by, *nodes, terms=EstimateTerms(ZSTD, None))
    total = sum(each.estimated_bytes or 0 for each in found.values())
    assert abs(total - sum(new_bytes.values())) <= len(measured) * 4  # each log is rounded
    saved = sum(each.saved_bytes or 0 for each in found.values())
    logs = [each for node in nodes for each in node.glob("*/*.log")]
    log_bytes, allocated = sum(each.stat().st_size for each in logs), du_bytes(*logs)
    assert 0.9 < saved / (allocated * (1 - total / log_bytes)) < 1.1
    if by == "topic":
        assert {name: found[name].estimated_bytes for name in new_bytes} == pytest.approx(new_bytes, abs=4)
        assert found[None].saved_bytes is None


def test_savings_of_a_sample(tmp_path: Path) -> None:
    for base in range(0, 40, 10):
        batches = [batch(base + number, [bytes(9000)]) for number in range(10)]
        write_segment(tmp_path / "t-0", base, [*batches, batch(base + 10, [b"x" * 50], codec=4)][: 10 if base else 11])
    terms = EstimateTerms(ZSTD, 40_000)
    row = usages("codec", tmp_path, terms=terms)["none"]
    assert row.estimated_bytes is not None
    assert 0 < row.estimated_bytes < row.log_bytes / 20
    assert terms.largest_topic_bytes == sum(each.stat().st_size for each in tmp_path.glob("t-0/*.log"))


def test_nothing_is_saved_on_the_metadata_log_and_on_what_will_be_deleted(tmp_path: Path) -> None:
    write_segment(tmp_path / "__cluster_metadata-0", 0, [batch(0, [bytes(9000)])])
    write_segment(tmp_path / "t-0", 0, [batch(0, [bytes(9000)])])
    (tmp_path / "t-0" / "00000000000000000000.log").rename(tmp_path / "t-0" / "00000000000000000000.log.deleted")
    found = usages("topic", tmp_path, terms=EstimateTerms(ZSTD))
    assert [(found[name].estimated_bytes, found[name].saved_bytes) for name in found] == [(None, None)] * len(found)


def test_what_is_behind_a_link_is_not_counted_and_said(tmp_path: Path) -> None:
    write_segment(tmp_path / "elsewhere" / "b-0", 0, [batch(0, [b"value"])])
    write_segment(tmp_path / "node" / "a-0", 0, [batch(0, [b"value"])])
    (tmp_path / "node" / "b-0").symlink_to(tmp_path / "elsewhere" / "b-0")
    found, *usages = disk_usage([Target(tmp_path / "node")], "topic", 0)
    assert (found.code, found.location.path) == ("file-unreadable", str(tmp_path / "node" / "b-0"))
    assert {each.name for each in usages} == {"a", None}


def test_a_file_is_refused(data_dir: Path) -> None:
    with pytest.raises(NotALogDir):
        list(disk_usage([Target(data_dir / "kafka-4.3" / "node-1" / "meta.properties")], "topic", 0))
