"""diff, boot and report of a bundle: what they say of the directories, or that a bundle does not say it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from format.verbs.bundle.verify_bundle import NOT_CHECKED
from tests.format.verbs.diff.building_replicas import ModelBatch, ModelReplica, compacted, plain
from tests.kafkalog_cli.page.reports import damaged_node
from tests.oracle.boot_mutations.node import copied_node
from tests.oracle.boot_mutations.table import mutations
from tests.running import Run, Word

pytestmark = pytest.mark.slow

pytest.importorskip("pyarrow.parquet")

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
JSON = ("--format", "jsonl")
_BATCHES = plain(20)
#: Pairs of replicas for which headers and CRCs say all: the second of each is another.
DECIDED: dict[str, tuple[ModelReplica, ModelReplica]] = {
    "the same": (ModelReplica(_BATCHES), ModelReplica(_BATCHES, segment_starts=(15, 33))),
    "behind": (ModelReplica(_BATCHES[:12], high_watermark=30), ModelReplica(_BATCHES, high_watermark=48)),
    "damaged": (ModelReplica(_BATCHES), ModelReplica(_BATCHES, damaged={7})),
    "a hole": (ModelReplica(_BATCHES), ModelReplica(_BATCHES[:10] + _BATCHES[12:])),
    "another epoch": (
        ModelReplica(_BATCHES),
        ModelReplica(_BATCHES[:10] + plain(12, size=2, first=30, epoch=3, tag="b")),
    ),
}


def bundled(run_many: RunMany, *directories: Path) -> list[Path]:
    """A bundle beside each directory, and its path with that of the directory inside."""
    bundles = [each.with_name(f"{each.name}.tar.zst") for each in directories]
    words = ("--no-report", "--jobs", "1")
    for run in run_many([("bundle", a, "--output", b, *words) for a, b in zip(directories, bundles, strict=True)]):
        run.check(0, 1, 3)
    return bundles


def compared(run_many: RunMany, folder: Path, *replicas: ModelReplica) -> tuple[Run, Run]:
    """diff of the directories, and of their bundles under the same names."""
    nodes = [folder / f"node-{number}" for number in range(len(replicas))]
    for node, replica in zip(nodes, replicas, strict=True):
        node.mkdir(parents=True)
        replica.write(node)
    bundles = bundled(run_many, *nodes)
    one, other = run_many([("diff", *JSON, *nodes), ("diff", *JSON, *bundles)])
    stdout = other.stdout
    for bundle, node in zip(bundles, nodes, strict=True):
        stdout = stdout.replace(f"{bundle}{node}", str(node))
    return one.check(0, 1), replace(other, stdout=stdout).check(0, 1)


@pytest.mark.parametrize("name", DECIDED)
def test_replicas_that_headers_tell_apart(run_kafkalog_many: RunMany, tmp_path: Path, name: str) -> None:
    one, other = compared(run_kafkalog_many, tmp_path, *DECIDED[name])
    assert other.rows() == one.rows()
    assert other.code == one.code
    assert "verify checked the CRCs" in other.summary["not_checked"][-1]


@pytest.mark.parametrize(
    ("replica", "words"),
    [
        (ModelReplica([replace(each, codec=3) for each in _BATCHES]), "the same record"),
        (ModelReplica(_BATCHES[:10] + plain(10, first=30, tag="b")), "the same record"),
        (ModelReplica(compacted(_BATCHES, 50), was_cleaned=True), "compacted away"),
    ],
)
def test_what_takes_records_is_left_open(
    run_kafkalog_many: RunMany, tmp_path: Path, replica: ModelReplica, words: str
) -> None:
    _, other = compared(run_kafkalog_many, tmp_path, ModelReplica(_BATCHES), replica)
    (divergence,) = other.rows("divergence")
    assert divergence["kind"] == "different_bytes"
    assert divergence["lost_if_elected"] == 0
    assert other.summary["exit_code"] == 1
    assert "incomplete" in other.summary["conditions"]
    assert any(words in each for each in other.summary["not_checked"])
    assert "not known whether the records are the same" in other.stderr


def test_a_batch_that_spans_others_is_not_lost(run_kafkalog_many: RunMany, tmp_path: Path) -> None:
    pairs = zip(_BATCHES[::2], _BATCHES[1::2], strict=True)
    merged = [ModelBatch(a.base_offset, b.last_offset, 0, a.records | b.records) for a, b in pairs]
    _, other = compared(run_kafkalog_many, tmp_path, ModelReplica(_BATCHES), ModelReplica(merged))
    assert other.rows("divergence")[0]["lost_if_elected"] == 0


@pytest.mark.parametrize(
    ("mutation", "outcome"),
    [
        ("untouched/mark-empty", "same"),
        ("middles/32 payments-0 flip-header point active unclean", "message"),
        ("marked-directories/future instead of the partition, log", "message"),
        ("segment-files/magic 1 clean", "same"),
        ("middles/13 users-0 zero-batch point zero unclean", "unknown"),
    ],
)
def test_a_start_is_followed_as_far_as_headers_go(
    run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path, mutation: str, outcome: str
) -> None:
    node = copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")
    next(each for each in mutations() if str(each) == mutation).apply(node)
    (bundle,) = bundled(run_kafkalog_many, node.first)
    words = ("--every-file", "--node-id", "1", *JSON)
    one, other = run_kafkalog_many([("boot", *words, node.first), ("boot", *words, bundle)])
    rows, found = one.rows(), [json.loads(json.dumps(row).replace(str(bundle), "")) for row in other.rows()]
    if outcome == "same":
        assert (found, other.code) == (rows, one.code)
        return
    if outcome == "message":  # the computed CRC is not in the bundle
        assert other.code == one.code
        for row, there in zip(rows, found, strict=True):
            message = there.pop("broker_message") or ""
            assert (row.pop("broker_message") or "").startswith(message)
            assert there == row
        return
    assert other.code == 3
    unknown = {row["path"] for row in found if row["action"] == "unknown"}
    assert unknown
    assert not [row for row in found if row not in rows and row["path"] not in unknown]


def test_a_report_is_that_of_the_directory(run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path) -> None:
    node = damaged_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path)
    (bundle,) = bundled(run_kafkalog_many, node)
    one, other = run_kafkalog_many([("report", "--format", "json", each) for each in (node, bundle)])
    plain_report, found = json.loads(one.stdout), json.loads(other.stdout.replace(f"{bundle}{node}", str(node)))
    assert other.code == one.code == 1
    assert found["findings"] == plain_report["findings"]
    assert found["counts"] == plain_report["counts"]
    assert NOT_CHECKED in found["not_checked"]
    depend_on_the_time = {"topic_usage", "transaction", "retention_total"}
    assert found["tables"].keys() == plain_report["tables"].keys()
    for name, table in plain_report["tables"].items():
        if name not in depend_on_the_time:
            assert _sorted(found["tables"][name]["rows"]) == _sorted(table["rows"]), name


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    # A broker's message has a computed CRC, which a bundle has not.
    return sorted(json.dumps({**row, "broker_message": None}) for row in rows)


def test_a_bundle_without_names_says_what_it_cannot_answer(
    run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path
) -> None:
    bundle, node = tmp_path / "b.tar.zst", data_dir / "kafka-4.3-single" / "node-1"
    (made,) = run_kafkalog_many([("bundle", node, "--output", bundle, "--redact-names", "--no-report", "--jobs", "1")])
    made.check(0, 1)
    groups, metadata, retention, page = run_kafkalog_many(
        [("groups", bundle), ("metadata", bundle), ("retention", bundle), ("report", bundle, "--format", "json")]
    )
    assert "No group is known: " in groups.stderr + groups.stdout
    assert "The metadata is not known: no record of its log can be read." in metadata.stderr + metadata.stdout
    assert "With Kafka's defaults for " in retention.stderr + retention.stdout
    document = json.loads(page.stdout)
    assert any(each.startswith("groups: ") for each in document["not_checked"])
    assert any("the metadata log here does not have them" in each for each in document["not_checked"])


def test_report_refuses_what_a_bundle_lacks(run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path) -> None:
    node = tmp_path / "node-2"
    shutil.copytree(data_dir / "kafka-4.3" / "node-2", node)
    (bundle,) = bundled(run_kafkalog_many, node)
    content, both = run_kafkalog_many(
        [("report", "--format", "json", "--with-bytes", bundle), ("report", "--format", "json", bundle, node)]
    )
    assert "no bytes of records" in content.check(2).stderr
    assert "not both" in both.check(2).stderr


def test_compressed_messages_of_old_formats(run_kafkalog_many: RunMany, data_dir: Path, tmp_path: Path) -> None:
    """Their headers have neither the first offset nor the number of records; the bundle has both."""
    node = tmp_path / "data"
    shutil.copytree(data_dir / "kafka-0.8-to-2.8" / "data", node)
    (bundle,) = bundled(run_kafkalog_many, node)
    inside = Path(f"{bundle}{node}")
    found, expected, compared_with_it, page, expected_page = run_kafkalog_many(
        [
            *(("find", *JSON, each / "legacy-0", "--offset", "500") for each in (inside, node)),
            ("diff", *JSON, node, bundle),
            *(("report", "--format", "json", each) for each in (bundle, node)),
        ]
    )
    (match,), (expected_match,) = found.rows("match"), expected.rows("match")
    assert match.pop("path") == f"{bundle}{expected_match.pop('path')}"
    assert match == expected_match
    assert compared_with_it.check(0).rows("divergence")[0]["kind"] == "identical"
    for name in ("batch_sizes", "bytes_by_offset", "bytes_by_time", "topic_usage"):
        assert _rows(page, name, str(bundle)) == _rows(expected_page, name) != []


def _rows(page: Run, name: str, bundle: str = "") -> Any:
    rows = json.loads(page.stdout.replace(bundle, ""))["tables"][name]["rows"]
    return [{key: value for key, value in row.items() if key != "age_ms"} for row in rows]
