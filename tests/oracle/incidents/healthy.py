"""Directories with which nothing is wrong: doctor must say nothing of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.corpora import REPOSITORY, SHARED_CORPUS
from tests.oracle.incidents.cluster import HOUR, Lab, Running, fill, keep
from tests.oracle.incidents.terminal import shown

_LIVE_WRITER = Path(__file__).parent.parent / "LiveWriter.java"
_CLEANING = {
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "500",
    "metadata.log.max.record.bytes.between.snapshots": "4096",
}
_CAUGHT_UP = tuple({"do": "catch_up", "group": group} for group in ("billing-app", "statistics"))
_CONTROLLER = (
    "node.id={node}\ncontroller.listener.names=CONTROLLER\ncontroller.quorum.voters=2@127.0.0.1:{controller_port}\n"
    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
)
_ROLES = {
    "broker": _CONTROLLER + "process.roles=broker\nlisteners=PLAINTEXT://127.0.0.1:{port}\n",
    "controller": _CONTROLLER + "process.roles=controller\nlisteners=CONTROLLER://127.0.0.1:{controller_port}\n",
}


@dataclass(frozen=True)
class Healthy:
    """Paths that are asked together, relative to the folder."""

    name: str
    paths: tuple[str, ...]


def build_healthy(lab: Lab, folder: Path) -> None:
    """Write the directories that are not there yet."""
    for name, build in _builders(lab):
        target = folder / name
        if (target / "done").exists():
            continue
        shutil.rmtree(target, ignore_errors=True)
        print(f"building healthy {name}", file=sys.stderr, flush=True)
        try:
            build(target)
            (target / "done").touch()
        except Exception:
            traceback.print_exc()


def _builders(lab: Lab) -> Iterator[tuple[str, Callable[[Path], None]]]:
    for version in ("3.9.1", "4.0.0", "4.2.0", "4.3.1"):
        yield f"{version}-one-node", partial(_one, lab, version)
        yield f"{version}-cleaned", partial(_cleaned, lab, version)
    for version in ("3.9.1", "4.3.1"):
        yield f"{version}-three-nodes", partial(_three, lab, version)
        yield f"{version}-two-disks", partial(_disks, lab, version)
        yield f"{version}-separate-roles", partial(_roles, lab, version)


def _one(lab: Lab, version: str, target: Path) -> None:
    """Stopped cleanly, and killed, started again and stopped."""
    with lab.cluster(version=version) as cluster:
        fill(cluster, 1)
        cluster.stop()
        keep(cluster, target / "stopped")
        cluster.start()
        cluster.do(
            {"do": "send", "topic": "orders", "partition": 0, "count": 500},
            {"do": "consume", "partition": "orders-0"},
        )
        cluster.kill()
        cluster.start()
        cluster.do({"do": "send", "topic": "orders", "partition": 0, "count": 5}, *_CAUGHT_UP)
        cluster.stop()
        keep(cluster, target / "killed-and-restarted")


def _cleaned(lab: Lab, version: str, target: Path) -> None:
    """Stopped after a client that committed and aborted, while logs were compacted and deleted."""
    with lab.cluster(version=version, settings=_CLEANING) as cluster:
        with writing(cluster, 20):
            pass
        old = int(time.time() * 1000) - 9 * HOUR
        configs = {"retention.ms": str(HOUR), "segment.bytes": "1048576"}
        cluster.do(
            {"do": "create", "topic": "brief-history", "configs": configs},
            {
                "do": "send",
                "topic": "brief-history",
                "count": 100,
                "size": 50_000,
                "batch": 5,
                "time": old,
                "every_ms": 300_000,
            },
        )
        time.sleep(5)
        cluster.stop()
        keep(cluster, target / "stopped")


@contextmanager
def writing(cluster: Running, seconds: int) -> Iterator[None]:
    """LiveWriter for some seconds, to its end."""
    command = cluster.lab.java_command(
        "4.3.1", ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"], extra=cluster.lab.logging_jars()
    )
    writer = subprocess.Popen(
        [*command, str(_LIVE_WRITER), cluster.bootstrap, str(seconds)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
        writer.wait(seconds + 120)
    finally:
        writer.kill()
        writer.wait()


def _three(lab: Lab, version: str, target: Path) -> None:
    """Three nodes stopped cleanly; and then with one of them killed and started again."""
    with lab.cluster(3, version=version) as cluster:
        fill(cluster, 3)
        cluster.stop()
        keep(cluster, target / "stopped")
        cluster.start()
        _in_sync(cluster)
        cluster.kill(2)
        cluster.do({"do": "send", "topic": "orders", "partition": 0, "count": 500, "producer": {"acks": "1"}})
        cluster.start(2)
        _in_sync(cluster)
        cluster.do(
            {"do": "send", "topic": "orders", "partition": 0, "count": 50}, *_CAUGHT_UP, {"do": "sleep", "ms": 6000}
        )
        cluster.stop()
        keep(cluster, target / "killed-and-restarted")


def _in_sync(cluster: Running) -> None:
    """Wait until all replicas of the shop are."""
    end = time.monotonic() + 90
    while time.monotonic() < end:
        told = cluster.do({"do": "describe", "topic": "orders"}, {"do": "describe", "topic": "payments"})
        if all(each["isr"] == [1, 2, 3] for topic in told for each in topic["partitions"]):
            break
        time.sleep(1)


def _disks(lab: Lab, version: str, target: Path) -> None:
    with lab.cluster(version=version, dirs=2) as cluster:
        fill(cluster, 1)
        cluster.stop()
        keep(cluster, target / "stopped")


def _roles(lab: Lab, version: str, target: Path) -> None:
    """A broker and a controller of its own."""
    with lab.cluster(2, version=version, roles=_ROLES) as cluster:
        fill(cluster, 1)
        cluster.stop()
        keep(cluster, target / "stopped")


def directories(folder: Path) -> list[Healthy]:
    """What there is to ask."""
    found = []
    for done in sorted(folder.glob("*/done")):
        for state in sorted(path for path in done.parent.iterdir() if path.is_dir()):
            nodes = sorted(path.name for path in state.iterdir())
            found.append(Healthy(f"{done.parent.name} {state.name}", tuple(str(state / each) for each in nodes)))
            if len(nodes) > 1 and "two-disks" not in done.parent.name:
                found += [
                    Healthy(f"{done.parent.name} {state.name}, {each} alone", (str(state / each),))
                    for each in nodes[:2]
                ]
    data = REPOSITORY / "tests" / "_data"
    shipped = ["kafka-0.8-to-2.8/data", "trials/controller-4.3/node-1"]  # others are excerpts, or have what is wrong
    found += [Healthy(f"shipped {each}", (str(data / each),)) for each in shipped if (data / each).exists()]
    field = sorted(data.glob("field/0.*-clients*formats/node-1-*"))
    found += [Healthy(f"shipped {path.relative_to(data)}", (str(path),)) for path in field]
    if SHARED_CORPUS.exists():
        found.append(Healthy("shared kafka-0.8-to-2.8/data", (str(SHARED_CORPUS / "kafka-0.8-to-2.8" / "data"),)))
    return found


def live(lab: Lab, program: Path, screens: Path) -> list[tuple[str, str]]:
    """What doctor says beside running brokers to which clients write, one and three nodes."""
    said = []
    for version in ("3.9.1", "4.2.0", "4.3.1"):
        with lab.cluster(version=version, settings=_CLEANING) as cluster, writing(cluster, 40):
            time.sleep(12)
            said += [
                (f"{version} live, {at}", _asked(program, (str(cluster.log_dir()),), screens, f"live-{version}-{at}"))
                for at in (1, 2, 3)
            ]
    with lab.cluster(3) as cluster:
        fill(cluster, 3)
        paths = tuple(str(cluster.log_dir(at)) for at in (1, 2, 3))
        said += [("4.3.1 live, three nodes", _asked(program, paths, screens, "live-three-nodes"))]
    return said


def _asked(program: Path, paths: tuple[str, ...], screens: Path, name: str) -> str:
    """What doctor accuses, or an empty text."""
    command = [str(program), "doctor", *paths]
    answer = shown(command, Path("/"))
    (screens / f"healthy-{name.replace(' ', '-').replace('/', '-').replace(',', '')}.txt").write_text(
        f"$ {answer.command}\n{answer.text}\n[exit {answer.exit_status}, {answer.seconds:.1f} s]\n"
    )
    done = subprocess.run(
        [*command, "--format", "jsonl"], capture_output=True, text=True, check=False, timeout=600, cwd="/"
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = [
        f"{row['severity']} {row['code']} {row['subject']}: {row['sentence']}"
        for row in rows
        if row.get("type") == "diagnosis"
    ]
    if not rows or answer.exit_status not in (0, 3):
        found.append(f"exit {answer.exit_status}: {done.stderr.strip()[-200:]}")
    return " / ".join(found)


def ask_healthy(program: Path, folder: Path, screens: Path, lab: Lab | None) -> str:
    """A line for each directory of which doctor says something, and their number."""
    said = [(each.name, _asked(program, each.paths, screens, each.name)) for each in directories(folder)]
    if lab is not None:
        said += live(lab, program, screens)
    wrong = [f"- {name}: {words}" for name, words in said if words]
    return "\n".join([f"{len(said)} healthy directories, doctor says something of {len(wrong)}:", *wrong])
