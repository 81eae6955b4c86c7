"""Make the corpus tests/_data/groups: a real broker with groups of every protocol, and what it says of them.

    python -m tests.oracle.groups_corpus OUTPUT [--groups 500] [--seed 7]

The broker is killed right after it was asked, while members and transactions are still there. OUTPUT gets ``node-1``,
its log directory without the metadata and transaction logs, and ``truth/groups.json``, what its AdminClient reported.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.corpora import REPOSITORY
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

VERSION = "4.3.1"
_SETTINGS = {
    "offsets.topic.segment.bytes": "1048576",
    "transaction.state.log.num.partitions": "1",
    "group.max.session.timeout.ms": "1800000",
    "group.consumer.session.timeout.ms": "1000000",
    "group.consumer.max.session.timeout.ms": "1800000",
    "group.share.session.timeout.ms": "1000000",
    "group.share.max.session.timeout.ms": "1800000",
    "group.streams.session.timeout.ms": "1000000",
    "group.streams.max.session.timeout.ms": "1800000",
    "group.share.max.groups": "1000",
    "group.share.max.share.sessions": "2000",
    "log.index.size.max.bytes": "4096",
}
#: Parts of the log directory that the groups do not need: an excerpt, on which no broker would start.
_LEFT_OUT = ("__cluster_metadata-", "__transaction_state-", "bootstrap.checkpoint", "meta.properties")


def make(output: Path, groups: int, seed: int) -> None:
    """Run the scenario, and copy what is left of it."""
    lab = KafkaLab()
    missing = lab.missing(VERSION)
    if missing is not None:
        sys.exit(missing)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        log_dir = work / "node-1"
        with Broker(lab, VERSION, log_dir, work / "broker", _SETTINGS) as broker:
            truth = _described(lab, broker, groups, seed)
        _copy(log_dir, output / "node-1")
    folder = output / "truth"
    folder.mkdir(parents=True)
    content = json.dumps(json.loads(truth), indent=0, sort_keys=True, ensure_ascii=False).encode()
    (folder / "groups.json.gz").write_bytes(gzip.compress(content, mtime=0))


def _described(lab: KafkaLab, broker: Broker, groups: int, seed: int) -> str:
    """What the scenario says of the groups; the broker is killed while the members are still there."""
    words = [str(REPOSITORY / "tests/oracle/GroupScenario.java"), broker.address, str(groups), str(seed)]
    command = [*lab.java_command(VERSION, ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as scenario:
        assert scenario.stdout is not None
        assert scenario.stderr is not None
        try:
            truth = scenario.stdout.readline()
            if not truth:
                sys.exit(scenario.stderr.read())
            broker.kill()
        finally:
            scenario.kill()
    return truth


def _copy(log_dir: Path, output: Path) -> None:
    """The log directory without what the groups do not need; sparse and preallocated files stay as they are."""

    def left_out(_folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name.startswith(_LEFT_OUT)]

    shutil.copytree(log_dir, output, ignore=left_out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    make(given.output, given.groups, given.seed)
