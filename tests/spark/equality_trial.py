"""Every verb of ``kafkalog scan`` against the plain command, byte for byte, on each kind of master.

    python -m tests.spark.equality_trial [--master local] [--master cluster] [--master connect] [--verb NAME]

The masters are ``local[2]``, a standalone master with two workers, and a Spark Connect server, started here; by default
all of them in turn. The logs are the corpora that ship, and a damaged copy of one. Compared are exit status, standard
output and written files. Prints a line for each verb, and exits with 1 for a difference.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kafkalog_cli.main import main
from tests.corpora import DATA_DIR, corpora
from tests.spark.clusters import connect_server, standalone_cluster
from tests.spark.scanning import damaged_copy_of
from tests.spark.test_scans import WORDS

_MASTERS = ("local", "cluster", "connect")
_NODE = DATA_DIR / "kafka-4.3-single" / "node-1"
_TIMES = re.compile(rb'"(de)?compress_(mb_per_s|ms)":\d+')


def _printed(words: list[str]) -> tuple[int, bytes]:
    """The exit status and the standard output of the program, run in this process, which keeps its session."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as output, open(os.devnull, "wb") as nothing:
        saved = [os.dup(number) for number in (1, 2)]
        os.dup2(output.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        try:
            code = main(words)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            for number, copy in enumerate(saved, 1):
                os.dup2(copy, number)
                os.close(copy)
        output.seek(0)
        return code, _TIMES.sub(b"", output.read())


def _runs(place: Path) -> Iterator[tuple[str, list[str]]]:
    """Verbs and their arguments; OUTPUT stands for a new directory."""
    damaged = str(damaged_copy_of(_NODE, place / "damaged" / "node-1"))
    nodes = [damaged, *(str(each.log_dirs[0]) for each in corpora() if not each.is_shared)]
    for verb, many in WORDS.items():
        for words in many:
            for node in nodes if words == many[0] else [damaged]:
                yield verb, [verb, *words, node]
    partition = next(each for each in Path(damaged).iterdir() if each.name.startswith("payments"))
    files = ",".join(str(each) for each in sorted(partition.iterdir()) if each.suffix in (".log", ".index"))
    for flag in ("--print-data-log", "--index-sanity-check"):
        yield "dump-log", ["dump-log", flag, "--files", files]
    for node in nodes:
        yield "diff", ["diff", str(_NODE), node]
        yield "recompress", ["recompress", "--estimate", node]
        yield "extract", ["extract", node, "--output", "OUTPUT"]


def _digests(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith("manifest.json")
    }


def _compare(master: str, only: str | None) -> bool:
    """Whether all verbs are the same on a master; one line for each."""
    found: dict[str, list[int]] = {}
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="equality-") as root:
        place = Path(root)
        for verb, words in _runs(place):
            if only not in (None, verb):
                continue
            counts = found.setdefault(verb, [0, 0, 0])
            here, there = ([each.replace("OUTPUT", str(place / side)) for each in words] for side in ("here", "there"))
            plain = [] if verb == "dump-log" else ["--format", "jsonl"]
            expected = _printed([*here, *plain])
            sizes = [] if verb in ("extract", "recompress", "diff") else ["--range-size", "3000"]
            conf = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m"]
            got = _printed(["scan", *there, *plain, *sizes, "--master", master, *conf])
            same = got == expected and _digests(place / "here") == _digests(place / "there")
            counts[0] += 1
            counts[1] += len(expected[1])
            counts[2] += not same
            if not same:
                print(f"DIFFERENT on {master}: {' '.join(there)}", flush=True)
            for side in ("here", "there"):
                shutil.rmtree(place / side, ignore_errors=True)
    for verb, (runs, size_bytes, different) in found.items():
        print(f"{master.partition(':')[0]:10} {verb:12} {runs:3} runs, {size_bytes:9} bytes, {different} different")
    print(f"{master}: {time.monotonic() - started:.0f} s", flush=True)
    return not any(counts[2] for counts in found.values())


def _with_session(master: str) -> None:
    """Start the session that all scans of this process share: a command closes only a session that it started."""
    from spark_jobs.session import open_session

    settings = {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false", "spark.executor.memory": "512m"}
    open_session(master, {} if master.startswith("sc:") else settings)


def run() -> int:
    """The program: each kind of master in a process of its own, as a process has one session."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master", action="append")
    parser.add_argument("--verb")
    given = parser.parse_args()
    masters = given.master or _MASTERS
    if len(masters) == 1 and masters[0] not in _MASTERS:
        _with_session(masters[0])
        return 0 if _compare(masters[0], given.verb) else 1
    failed = False
    for kind in masters:
        with tempfile.TemporaryDirectory(prefix="masters-") as place:
            verb = [] if given.verb is None else ["--verb", given.verb]
            command = [sys.executable, "-m", "tests.spark.equality_trial", *verb, "--master"]
            environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "XDG_CACHE_HOME": os.devnull}
            if kind == "cluster":
                with standalone_cluster(Path(place)) as cluster:
                    done = subprocess.run([*command, cluster.url], env=cluster.environment | environment, check=False)
            elif kind == "connect":
                with connect_server(Path(place)) as address:
                    done = subprocess.run([*command, address], env=environment, check=False)
            else:
                done = subprocess.run([*command, "local[2]"], env=environment, check=False)
            failed |= done.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run())
