"""Trial of metadata: a real cluster's life, and what an AdminClient said of it at four moments.

    python -m tests.oracle.metadata_trial [--kafka 4.3.1] [--voters static|dynamic] [--release 3.3-IV3] [--keep DIR]

starts three nodes, changes topics, configs, ACLs, quotas and credentials, moves replicas, kills a node and starts it
again. Then every image that the metadata logs of all nodes give is compared with what the client saw. ``--keep``
writes the metadata log of one node and the client's answers to a folder.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from format.node.target import Target
from format.state.metadata_log import Until
from format.verbs.metadata.metadata import MetadataResult, MetadataTerms, metadata
from tests.field.cluster import FieldCluster, Layout
from tests.oracle.kafka_lab import KafkaLab

_SOURCE = Path(__file__).with_name("ClusterScenario.java")
_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "replica.lag.time.max.ms": "3000",
    "metadata.log.max.record.bytes.between.snapshots": "6000",
    "metadata.max.idle.interval.ms": "1000",
}
#: After so long the controller has fenced a broker that was killed, and clients do not ask it any more.
_FENCED_SECONDS = 8


def scenario(cluster: FieldCluster, *words: str) -> str:
    """Run the Java program; the last line of JSON that it prints."""
    lines = cluster.tool(str(_SOURCE), cluster.bootstrap, *words).splitlines()
    return next((line for line in reversed(lines) if line.startswith("{")), "")


def described(cluster: FieldCluster, *, brokers: int) -> dict[str, Any]:
    """What the client says once that many brokers serve, every replica of theirs is in sync, and nothing moves."""
    deadline = time.monotonic() + 120
    while True:
        found: dict[str, Any] = json.loads(scenario(cluster, "describe"))
        again: dict[str, Any] = json.loads(scenario(cluster, "describe"))
        if len(found["brokers"]) == brokers and _settled(found) and _without_times(found) == _without_times(again):
            return found | {"time": again["time"], "end_offset": again["end_offset"]}
        assert time.monotonic() < deadline, f"the cluster does not settle: {found}"


def _settled(found: dict[str, Any]) -> bool:
    alive = set(found["brokers"])
    return all(
        sorted(partition["isr"]) == sorted(set(partition["replicas"]) & alive)
        for topic in found["topics"].values()
        for partition in topic["partitions"]
    )


def _without_times(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("time", "end_offset", "end_offset_before")}


def run(cluster: FieldCluster) -> Iterator[dict[str, Any]]:
    """The steps of the scenario, and what the client says after each."""
    scenario(cluster, "step", "1")
    yield described(cluster, brokers=3)
    scenario(cluster, "step", "2")
    yield described(cluster, brokers=3)
    scenario(cluster, "step", "3")
    cluster.kill(3)
    time.sleep(_FENCED_SECONDS)
    yield described(cluster, brokers=2)
    cluster.start(3)
    described(cluster, brokers=3)
    scenario(cluster, "step", "4")
    yield described(cluster, brokers=3)


def seen_by_metadata(result: MetadataResult) -> dict[str, Any]:
    """The rows of an image in the shape of the client's answers."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for schema, each in result.rows():
        rows[schema.type] = [dict(zip(schema.names, row, strict=True)) for row in each]
    topics = {
        row["topic"]: {
            "topic_id": row["topic_id"],
            "internal": row["internal"],
            "configs": row["configs"],
            "partitions": [
                {
                    "partition": part["partition"],
                    "leader": -1 if part["leader"] is None else part["leader"],
                    "replicas": part["replicas"],
                    "isr": part["isr"],
                }
                for part in rows["assignment"]
                if part["topic"] == row["topic"]
            ],
        }
        for row in rows["topic"]
        if not row["marked_deleted"]
    }
    brokers = [row["node_id"] for row in rows["broker"] if row["role"] == "broker" and not row["fenced"]]
    configs: dict[str, dict[str, Any]] = {"": {}, **{str(number): {} for number in brokers}}
    for row in rows["config"]:
        if row["resource_type"] == "broker" and (row["resource_name"] or "") in configs:
            configs[row["resource_name"] or ""][row["name"]] = row["value"]
    acl_names = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")
    return {
        "topics": topics,
        "brokers": brokers,
        "broker_configs": configs,
        "features": {row["name"]: row["level"] for row in rows["feature"]},
        "acls": sorted([row[name] for name in acl_names] for row in rows["acl"]),
        "quotas": sorted(([row["entity"], row["key"], row["value"]] for row in rows["quota"]), key=str),
        "scram": sorted([row["principal"], row["mechanism"], row["iterations"]] for row in rows["credential"]),
    }


def differences(truth: dict[str, Any], result: MetadataResult) -> list[str]:
    """In what an image differs from what the client said, kind by kind."""
    seen = seen_by_metadata(result)
    said = {name: truth[name] for name in seen}
    said["acls"], said["quotas"] = sorted(said["acls"]), sorted(said["quotas"], key=str)
    said["scram"] = sorted(said["scram"])
    # The client hears of a feature that is at level 0 too, and of no configs of brokers that are down.
    seen["features"] = {name: seen["features"].get(name, 0) for name in said["features"]}
    seen["broker_configs"] = {name: seen["broker_configs"].get(name, {}) for name in said["broker_configs"]}
    return [f"{name}: the client said {said[name]}, metadata {seen[name]}" for name in said if said[name] != seen[name]]


def compared(log_dir: Path, truths: list[dict[str, Any]]) -> list[str]:
    """Each moment by offset and by time against the image of one node."""
    found: list[str] = []
    for number, truth in enumerate(truths, 1):
        for name, until in (
            ("offset", Until(offset=truth["end_offset"] - 1)),
            ("time", Until(timestamp=truth["time"])),
        ):
            result = metadata([Target(log_dir)], MetadataTerms(until))
            found += [f"moment {number} by {name}, {log_dir.name}: {each}" for each in differences(truth, result)]
            found += [f"moment {number}: {each.message}" for each in result.state.findings]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--voters", choices=("static", "dynamic"), default="static")
    parser.add_argument("--release", help="the metadata.version to start with, such as 3.3-IV3")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="metadata-trial-"))
    try:
        is_dynamic = options.voters == "dynamic"
        layout = Layout(3, dynamic_voters=is_dynamic, all_vote=is_dynamic, release=options.release, settings=_SETTINGS)
        with FieldCluster(KafkaLab(), options.kafka, work, layout) as cluster:
            truths = list(run(cluster))
            cluster.stop()
        log_dirs = [node.log_dirs[0] for node in cluster.nodes]
        found = [each for log_dir in log_dirs for each in compared(log_dir, truths)]
        for each in found:
            print(each[:2000])
        where = f"Kafka {options.kafka}, {options.voters} voters: {len(truths)} moments, by offset and by time"
        print(f"{where}, on 3 nodes: {len(found)} differences")
        if options.keep is not None:
            _keep(log_dirs[0], truths, options.keep)
        return 1 if found else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _keep(log_dir: Path, truths: list[dict[str, Any]], target: Path) -> None:
    shutil.copytree(log_dir / "__cluster_metadata-0", target / "node-1" / "__cluster_metadata-0")
    shutil.copy(log_dir / "meta.properties", target / "node-1")
    (target / "truth").mkdir()
    (target / "truth" / "metadata.json").write_text(json.dumps(truths, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
