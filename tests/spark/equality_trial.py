"""Every verb of ``kafkalog scan`` and every view against the plain command and reader, on each kind of master.

    python -m tests.spark.equality_trial [--master KIND]… [--only NAME…]

The kinds are ``local``; ``cluster``, a standalone master with two workers; ``killed``, the same, where a worker is
killed every minute and another one started; ``connect``, a Spark Connect server; and ``store``, local with logs in
a store. By default all of them in turn. The logs are the corpora that ship, a damaged copy of one, and 300 partitions
made of it. Compared are exit status, standard output and written files of verbs, byte for byte, and all rows of views,
with those that are read from the disk without Spark. Prints a line for each, with the first difference if there is one,
and exits with 1 for any.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkalog_cli.main import main
from tests.corpora import DATA_DIR, corpora
from tests.spark.clusters import Cluster, connect_server, standalone_cluster, store_server, upload
from tests.spark.scanning import EVERY_RECORD, damaged_copy_of
from tests.spark.test_scans import WORDS

_MASTERS = ("local", "cluster", "killed", "connect", "store")
_NODE = DATA_DIR / "kafka-4.3-single" / "node-1"
_TRANSACTIONS = DATA_DIR / "trials" / "transactions" / "node-1"
#: What differs from run to run, or where others fetch the bytes.
_OWN = re.compile(rb'"(de)?compress_(mb_per_s|ms)":\d+|,?"fetched_bytes":\d+')
_PARTITION = re.compile(r"(?P<topic>[^ ]+)(?P<between>[- ])(?P<number>[0-9]+)(?P<rest>| [0-9]+)")
_KILLED_AFTER_S = 60  # on a busy machine an executor needs half of it to begin
#: The options of views, besides the size of the ranges.
_OPTIONS: dict[str, tuple[dict[str, str], ...]] = {
    "records": (
        {**EVERY_RECORD, "includeControl": "true", "columnNameOfCorruptRecord": "damage"},
        {"isolationLevel": "read_committed"},
    ),
    "batches": ({}, {"level": "headers"}),
    "transactions": ({"at": "2000000000000"},),
}


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
        return code, _OWN.sub(b"", output.read())


def _many_of(source: Path, target: Path, count: int) -> Path:
    """A copy of a log directory with so many partitions: each of them again and again, with other numbers."""

    def copies(name: str) -> Iterator[str]:
        match = _PARTITION.fullmatch(name)
        for more in range(0, 100 * rounds if match else 0, 100):
            assert match
            yield f"{match['topic']}{match['between']}{int(match['number']) + more}{match['rest']}"

    partitions = [each for each in source.iterdir() if each.is_dir()]
    rounds = -(-count // len(partitions))
    target.mkdir(parents=True)
    for path in partitions:
        for name in copies(path.name):
            shutil.copytree(path, target / name)
    for path in source.glob("*checkpoint"):
        lines = [copy for line in path.read_bytes().decode("latin-1").splitlines()[2:] for copy in copies(line)]
        (target / path.name).write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    shutil.copy(source / "meta.properties", target)
    return target


@dataclass(frozen=True)
class _Trial:
    """What is compared where: a master with its session, the logs, and their addresses, if they are in a store."""

    master: str
    session: Any
    place: Path
    damaged: Path
    many: Path
    addresses: dict[str, str]

    def range_bytes(self, node: str) -> str:
        """The size of the ranges in which logs at a place are read; that of hundreds of partitions is no tiny one."""
        return "100000" if node == str(self.many) else "3000"

    def address(self, text: str) -> str:
        """A text with addresses in place of paths."""
        for path, address in self.addresses.items():
            text = text.replace(path, address)
        return text

    def path(self, text: str) -> str:
        """A text with paths in place of addresses."""
        for path, address in self.addresses.items():
            text = text.replace(address, path)
        return text


#: What was compared: the verb or view, its words, the number of lines or rows, and the first difference, if any.
_Compared = tuple[str, list[str], int, str | None]


def _runs(trial: _Trial) -> Iterator[tuple[str, list[str]]]:
    """Verbs and their arguments; OUTPUT stands for a new directory."""
    damaged = str(trial.damaged)
    nodes = [damaged, str(_TRANSACTIONS), str(trial.many)]
    if not trial.addresses:
        nodes += [str(each.log_dirs[0]) for each in corpora() if not each.is_shared]
    for verb, lines in WORDS.items():
        for words in lines:
            for node in nodes if words == lines[0] else nodes[:2]:
                yield verb, [verb, *words, node]
    partition = next(each for each in Path(damaged).iterdir() if each.name.startswith("payments"))
    files = ",".join(str(each) for each in sorted(partition.iterdir()) if each.suffix in (".log", ".index"))
    for flag in ("--print-data-log", "--index-sanity-check"):
        yield "dump-log", ["dump-log", flag, "--files", files]
    for node in nodes:
        yield "diff", ["diff", str(_NODE), node]
        yield "recompress", ["recompress", "--estimate", node]
        yield "extract", ["extract", node, "--output", "OUTPUT"]


def _digests(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith("manifest.json")
    ]


def _difference(got: Sequence[str], expected: Sequence[str]) -> str | None:
    """The first line or row that differs, from shortly before the place where it does; None where all are equal."""
    for number, (one, other) in enumerate(itertools.zip_longest(got, expected, fillvalue="(nothing)")):
        if one != other:
            alike = sum(1 for _ in itertools.takewhile(lambda each: each[0] == each[1], zip(one, other, strict=False)))
            start = max(alike - 60, 0)
            return f"at {number}: {one[start : start + 300]!r} in place of {other[start : start + 300]!r}"
    return None


def _compare_verbs(trial: _Trial, only: Sequence[str] | None) -> Iterator[_Compared]:
    """Runs each verb as the plain command and on a master."""
    place = trial.place
    for verb, words in _runs(trial):
        if only is not None and verb not in only:
            continue
        at = list(map(trial.address, words))
        here, there = ([each.replace("OUTPUT", str(place / side)) for each in at] for side in ("here", "there"))
        plain = [] if verb == "dump-log" else ["--format", "jsonl"]
        expected = _printed([*here, *plain])
        sizes = [] if verb in ("extract", "recompress", "diff") else ["--range-size", trial.range_bytes(words[-1])]
        conf = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m"]
        got = _printed(["scan", *there, *plain, *sizes, "--master", trial.master, *conf])
        sides = (
            [
                f"exit status {code}",
                *output.decode(errors="backslashreplace").splitlines(keepends=True),
                *_digests(place / side),
            ]
            for (code, output), side in ((got, "there"), (expected, "here"))
        )
        yield verb, there, len(expected[1].splitlines()), _difference(*sides)
        for side in ("here", "there"):
            shutil.rmtree(place / side, ignore_errors=True)


def _rows(batches: Iterable[Any], *, is_stored: bool) -> list[str]:
    """All rows as text. A copy in a store is not what a broker fetches anew, so that other steps come next."""
    found: list[str] = []
    for batch in batches:
        for name in batch.schema.names:
            place = batch.schema.get_field_index(name)
            if is_stored and name == "next_step":
                batch = batch.remove_column(place)
            elif pa.types.is_timestamp(batch.schema.field(name).type):
                batch = batch.set_column(place, name, batch.column(place).cast(pa.int64()))
        found += map(repr, batch.to_pylist())
    return found


def _compare_views(trial: _Trial, only: Sequence[str] | None) -> Iterator[_Compared]:
    """Reads each view from the disk without Spark, and by the data source and ``read_view`` on Spark."""
    from pyspark_kafkalog import read_view
    from spark_jobs.data_source import KafkaLogReader, _schemas
    from spark_jobs.schemas import columns_of_view
    from spark_jobs.view_options import VIEW_NAMES, parse_options
    from spark_jobs.view_reader import WALKS

    is_stored = bool(trial.addresses)
    nodes = (trial.many, _TRANSACTIONS, *(() if is_stored else (trial.damaged,)))
    for view, node in itertools.product(VIEW_NAMES, nodes):
        for options in _OPTIONS.get(view, ({},)) if only is None or view in only else ():
            columns = columns_of_view(view, options.get("columnNameOfCorruptRecord"))
            given = {"columns": ",".join(columns), **options}
            parsed = parse_options({"path": str(node), "view": view, **given})
            reader = KafkaLogReader(parsed, _schemas(parsed)[1])
            alone = (batch for share in reader.partitions() for batch in reader.read(share))
            expected = sorted(_rows(alone, is_stored=is_stored))
            given["rangeBytes"] = trial.range_bytes(str(node))
            address = trial.address(str(node))
            source = trial.session.read.format("kafkalog").options(view=view, **given).load(address)
            frames = {"data source": source}
            if view in WALKS:
                frames["read_view"] = read_view(trial.session, view, address, **given)
            for how, frame in frames.items():
                got = sorted(map(trial.path, _rows([frame.toArrow()], is_stored=is_stored)))
                yield f"view {view}", [how, view, str(options), address], len(expected), _difference(got, expected)


def _compare(master: str, only: Sequence[str] | None, *, is_stored: bool) -> bool:
    """Whether all is the same on a master; one line for each verb and view."""
    session = _with_session(master)
    found: dict[str, list[int]] = {}
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="equality-") as root:
        place = Path(root)
        damaged = damaged_copy_of(_NODE, place / "damaged" / "node-1")
        many = _many_of(damaged, place / "many" / "node-1", 300)
        places = (damaged, many, _TRANSACTIONS) if is_stored else ()
        moved = {str(each): upload(each, f"{number}/node-1") for number, each in enumerate(places)}
        trial = _Trial(master, session, place, damaged, many, moved)
        for name, words, count, difference in itertools.chain(_compare_verbs(trial, only), _compare_views(trial, only)):
            counts = found.setdefault(name, [0, 0, 0])
            counts[0] += 1
            counts[1] += count
            counts[2] += difference is not None
            print("the same" if difference is None else "DIFFERENT", count, name, *words, flush=True)
            if difference is not None:
                print(f"    {difference}", flush=True)
    for name, (runs, rows, different) in found.items():
        print(
            f"{master.partition(':')[0]:10} {name:18} {runs:3} runs, {rows:9} rows, {different} different", flush=True
        )
    print(f"{master}: {time.monotonic() - started:.0f} s", flush=True)
    return not any(counts[2] for counts in found.values())


def _with_session(master: str) -> Any:
    """The session that all scans of this process share: a command closes only a session that it started."""
    from spark_jobs.session import open_session

    settings = {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false", "spark.executor.memory": "512m"}
    return open_session(master, {} if master.startswith("sc:") else settings)


@contextlib.contextmanager
def _master_of(kind: str, place: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a master that is started here, and the environment of its clients."""
    if kind in ("cluster", "killed"):
        with standalone_cluster(place) as cluster, _killed_workers(cluster) if kind == "killed" else nullcontext():
            yield cluster.url, cluster.environment
    elif kind == "connect":
        with connect_server(place) as address:
            yield address, {}
    elif kind == "store":
        with store_server() as environment:
            yield "local[2]", environment
    else:
        yield "local[2]", {}


@contextlib.contextmanager
def _killed_workers(cluster: Cluster) -> Iterator[None]:
    """The context in which the older worker of two is killed every minute, with its executor."""
    is_done = threading.Event()

    def kill_in_turn() -> None:
        for number in itertools.count():
            if is_done.wait(_KILLED_AFTER_S):
                return
            cluster.start_worker()
            cluster.wait_for_workers()
            os.killpg(cluster.workers[number].pid, signal.SIGKILL)

    thread = threading.Thread(target=kill_in_turn)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()
        print(f"killed: {len(cluster.workers) - 2} workers", flush=True)


def run() -> int:
    """The program: each kind of master in a process of its own, as a process has one session."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master", action="append")
    parser.add_argument("--stored", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="verbs and views")
    given = parser.parse_args()
    kinds = given.master or _MASTERS
    if len(kinds) == 1 and kinds[0] not in _MASTERS:
        return 0 if _compare(kinds[0], given.only, is_stored=given.stored) else 1
    failed = False
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="masters-") as place, _master_of(kind, Path(place)) as (url, more):
            print(f"{kind}:", flush=True)
            command = [sys.executable, "-m", "tests.spark.equality_trial", "--master", url]
            command += ["--only", *given.only] if given.only else []
            environment = {**os.environ, **more, "PYSPARK_PYTHON": sys.executable, "XDG_CACHE_HOME": os.devnull}
            done = subprocess.run(command + ["--stored"] * (kind == "store"), env=environment, check=False)
            failed |= done.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run())
