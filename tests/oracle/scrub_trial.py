"""Trial of scrub beside a real broker, of planted rot, and of kills.

    python -m tests.oracle.scrub_trial [--seconds 600] [--rounds 3] [--rots 40] [--kills 200] [--pause 0]

Beside a broker that rolls, compacts, deletes and moves logs between two directories under the clients of the live
trial, and is killed and started again, everything is scrubbed over and over with one state: nothing may be found. Then
the broker stops, and rot is planted into sealed segments: flipped bits, segments that change places, and batches with
other bytes and repaired CRCs; one pass must find each. At the end the program scrubs a copy slowly, and is killed at
random moments: the state stays sound, and no pass verifies more than one segment again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import crc32c

from format.findings import Finding, Severity
from format.node.target import targets_at
from format.verbs.scrub.scrub import ScrubTerms, plan_pass, scrub
from format.verbs.scrub.state import writing_state
from tests.corpora import REPOSITORY
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.live_trial import LIVE_SETTINGS, LIVE_WRITER, write_old_records


def scrubbed(node: Path, state_path: Path, *, period_ms: int = 0) -> tuple[list[Finding], int]:
    """What one pass over everything finds, and how many segments it verified."""
    with writing_state(str(state_path)) as state:
        terms = ScrubTerms(period_ms)
        before = state.totals()[0]
        found = list(scrub(plan_pass(targets_at([node]), state, terms), state, terms))
        return found, state.totals()[0] - before


def beside_the_broker(
    lab: KafkaLab, version: str, folder: Path, seconds: int, rounds: int, pause_s: float
) -> Counter[str]:
    """Scrub beside a broker with two log directories that is killed after each round; the counts of what accuses."""
    counts: Counter[str] = Counter()
    nodes, state_path = [folder / "node-1", folder / "node-1-b"], folder / "scrub.db"
    for node in nodes:
        node.mkdir(parents=True)
    settings = {**LIVE_SETTINGS, "log.dirs": ",".join(map(str, nodes))}
    for number in range(rounds):
        with Broker(lab, version, nodes[0], folder / f"work-{number}", settings) as broker:
            if number == 0:
                broker.run("org.apache.kafka.tools.TopicCommand", "--create", "--topic", "old-records")
            write_old_records(broker.address)
            java = lab.java_command(version, extra=lab.logging_jars())
            with (folder / "writer.log").open("w") as output:
                command = [*java, str(LIVE_WRITER), broker.address, str(seconds // rounds)]
                writer = subprocess.Popen(command, stdout=output, stderr=output)
                mover = threading.Thread(target=_move, args=(broker, nodes, folder, writer, counts))
                mover.start()
                while writer.poll() is None:
                    _note(counts, "beside the broker", folder, state_path)
                    time.sleep(pause_s)
                mover.join()
            if number < rounds - 1:
                broker.kill()
        _note(counts, "after a stop", folder, state_path)
    return counts


def _move(
    broker: Broker, nodes: list[Path], folder: Path, writer: subprocess.Popen[bytes], counts: Counter[str]
) -> None:
    """Move partitions from directory to directory while clients write."""
    plan = folder / "moves.json"
    while writer.poll() is None:
        for topic in ("payments", "accounts", "old-records"):
            here = next((node for node in nodes if (node / f"{topic}-0").exists()), None)
            if here is None or writer.poll() is not None:
                continue
            to = str(nodes[1 - nodes.index(here)])
            move = {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": [to]}
            plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
            words = ("--reassignment-json-file", str(plan), "--execute")
            broker.run("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *words)
            counts["moves between directories"] += 1
            time.sleep(2)


def _note(counts: Counter[str], what: str, node: Path, state_path: Path) -> None:
    found, verified = scrubbed(node, state_path)
    counts[f"passes {what}"] += 1
    counts[f"segments {what}"] += verified
    for each in found:
        if each.severity > Severity.INFO and not each.is_incomplete:
            counts[f"FALSE {what}: {each.code}"] += 1
            print("FALSE", what, each.code, each.location, each.message, flush=True)


def planted(nodes: list[Path], state_path: Path, count: int, chance: random.Random) -> dict[Path, str]:
    """Rot in sealed segments, by file: its kind. Repaired CRCs look as if the disk had changed the bytes."""
    logs = [
        log
        for node in nodes
        for directory in sorted(node.iterdir())
        if directory.is_dir() and directory.name.rpartition("-")[2].isdecimal()
        for log in sorted(directory.glob("*.log"))[:-1]
        if log.stat().st_size > 200
    ]
    chance.shuffle(logs)
    rots: dict[Path, str] = {}
    for log in logs:
        if len(rots) >= count:
            break
        if log in rots:
            continue
        kind = chance.choice(("flipped bit", "swapped segment", "repaired CRC"))
        status = log.stat()
        if kind == "swapped segment":
            others = [each for each in log.parent.glob("*.log") if each in logs and each not in rots and each != log]
            if not others:
                continue
            other, aside = chance.choice(others), log.with_suffix(".aside")
            log.rename(aside)
            other.rename(log)
            aside.rename(other)
            rots[other] = kind
        else:
            content = bytearray(log.read_bytes())
            _rot(content, chance, repairs=kind == "repaired CRC")
            with log.open("r+b") as file:
                file.write(content)
            if kind == "repaired CRC":  # a change of a compacted log shows only if no program made it
                os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns))
                connection = sqlite3.connect(state_path)
                with connection:
                    query = "UPDATE segments SET ctime_ns = ? WHERE inode = ?"
                    connection.execute(query, (log.stat().st_ctime_ns, status.st_ino))
                connection.close()
        rots[log] = kind
    return rots


def _rot(content: bytearray, chance: random.Random, *, repairs: bool) -> None:
    """Change a bit of a random batch, or zero a part of it and repair its CRC."""
    starts, position = [], 0
    while position + 61 < len(content):
        starts.append(position)
        position += 12 + struct.unpack_from(">i", content, position + 8)[0]
    start = chance.choice(starts)
    end = start + 12 + struct.unpack_from(">i", content, start + 8)[0]
    at = chance.randrange(start + 61, end)
    if not repairs:
        content[at] ^= 1 << chance.randrange(8)
        return
    content[at : min(at + 512, end)] = bytes(min(at + 512, end) - at)
    content[end - 1] ^= 0x55  # zeros may have been there before
    struct.pack_into(">I", content, start + 17, crc32c.crc32c(bytes(content[start + 21 : end])))


def killed(node: Path, folder: Path, kills: int, chance: random.Random) -> tuple[int, int, int]:
    """Kill a slow scrub at random moments; the kills, the segments of the node, and those that were verified in all."""
    state_path = folder / "killed.db"
    command = [sys.executable, "-m", "kafkalog_cli", "scrub", str(node), "--state", str(state_path), "--once"]
    done = 0
    for _ in range(kills):
        with subprocess.Popen([*command, "--max-rate", "0.2"], cwd=REPOSITORY, stdout=subprocess.DEVNULL) as process:
            time.sleep(0.3 + chance.random())
            if process.poll() is not None:
                break
            process.kill()
            done += 1
        if state_path.exists():
            connection = sqlite3.connect(state_path)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            connection.close()
    subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)
    with writing_state(str(state_path)) as state:
        partitions = state.partitions()
        segments = sum(each.segment_count for each in partitions)
        assert segments == sum(len(state.segments(each.id)) for each in partitions)
        return done, segments, state.totals()[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rots", type=int, default=40)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0, help="seconds between two passes beside the broker")
    options = parser.parse_args()
    lab, chance = KafkaLab(), random.Random(options.seed)
    missing = lab.missing(options.kafka)
    if missing is not None:
        print(missing, file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="scrub-trial-"))
    try:
        counts = beside_the_broker(lab, options.kafka, folder, options.seconds, options.rounds, options.pause)
        sound = folder.with_name(f"{folder.name}-sound")
        for name in ("node-1", "node-1-b"):
            shutil.copytree(folder / name, sound / name)
        rots = planted([folder / "node-1", folder / "node-1-b"], folder / "scrub.db", options.rots, chance)
        found = {each.location.path for each in scrubbed(folder, folder / "scrub.db")[0]}
        missed = {str(log): kind for log, kind in rots.items() if str(log) not in found}
        beside = found - {str(log) for log in rots}
        kills, segments, verified = killed(sound, folder, options.kills, chance)
        shutil.rmtree(sound)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(f"{count:8} {words}" for words, count in sorted(counts.items())))
    print(f"{len(rots)} rots planted ({dict(Counter(rots.values()))}), {len(missed)} missed {missed}, beside {beside}")
    print(f"{kills} kills; {segments} segments, verified in all: {verified}")
    is_false = any(words.startswith("FALSE") for words in counts)
    return 1 if is_false or missed or beside or verified > segments + kills else 0


if __name__ == "__main__":
    sys.exit(main())
