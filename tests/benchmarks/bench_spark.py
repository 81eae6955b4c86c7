"""How fast ``scan verify`` is after its session has started, against ``kafkalog verify`` on the same directory.

``python -m tests.benchmarks.bench_spark PATH [--rounds N] [--cores N]`` runs them in turn (A B A B …) and prints the
median ratio of their rates, the start of the session, and the memory of the driver, the JVM and the workers.
``--plan N…`` instead plans for N segments in partitions of ten, each plan in a process of its own, and says how long
that took, and what memory the process needed; ``--starts N`` starts N
sessions, each in a process of its own, and says how long it took until it was there and how long the first scan took
after that;
``--small N`` scans N partitions of ``--segments`` tiny segments each, and says what a segment costs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.datasource import InputPartition

from format.io.session import Session
from format.limits import DEFAULT_LIMITS
from format.node.target import Target
from format.scan.cluster import ResultT, UnitScan, UnitT
from format.scan.progress import no_progress
from format.verbs.grep.grep import Criteria, grep
from format.verbs.verify.verify import VerifyScan, units_of, verify
from spark_jobs import stream_reader
from spark_jobs.planning import TaskPlan, plan_units
from spark_jobs.session import Where, close_session, open_session
from spark_jobs.spark_cluster import SparkCluster
from spark_jobs.stream_reader import KafkaLogStreamReader
from spark_jobs.view_options import parse_options
from spark_jobs.view_reader import KafkaLogReader
from tests.benchmarks.measure import run
from tests.building import batches, write_segment
from tests.corpora import DATA_DIR


def _children_rss_bytes() -> dict[str, int]:
    """Resident bytes of this process's descendants, by the kind of process."""
    parents: dict[int, list[tuple[int, str, int]]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = (each / "stat").read_text().rsplit(") ", 1)[1].split()
                name = (each / "comm").read_text().strip()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append((int(each.name), name, int(fields[21]) * 4096))
    found: dict[str, int] = {}
    waiting = [os.getpid()]
    while waiting:
        for pid, name, rss in parents.get(waiting.pop(), ()):
            found[name] = max(found.get(name, 0), rss)
            waiting.append(pid)
    return found


class Peaks(threading.Thread):
    """The largest resident size of each kind of descendant, looked at again and again.

    ``cpu_s`` is what the looking itself has cost: it is no part of what the driver does.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[str, int] = {}
        self.cpu_s = 0.0
        self.is_done = False

    def run(self) -> None:
        while not self.is_done:
            for name, rss in _children_rss_bytes().items():
                self.peaks[name] = max(self.peaks.get(name, 0), rss)
            self.cpu_s = time.thread_time()
            time.sleep(0.2)


def _plan_synthetic(counts: list[int]) -> None:
    """Plan for partitions of ten segments of 1 GiB, which are holes, with their indexes."""
    for count in counts:
        with tempfile.TemporaryDirectory() as root:
            _make_holes(Path(root), count)
            for name, planned in _PLANS.items():
                process = multiprocessing.get_context("spawn").Process(
                    target=_report_plan, args=(name, planned, root, count)
                )
                process.start()
                process.join()


def _make_holes(root: Path, count: int) -> None:
    for partition in range(count // 10):
        directory = root / f"topic-{partition}"
        directory.mkdir()
        for segment in range(10):
            log = directory / f"{segment * 1000:020d}.log"
            with log.open("wb") as file:
                file.truncate(1 << 30)
            for suffix in (".index", ".timeindex"):
                log.with_suffix(suffix).touch()
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")


def _report_plan(name: str, planned: Callable[[Path], tuple[int, int]], root: str, count: int) -> None:
    started, started_cpu = time.perf_counter(), time.process_time()
    tasks, size_bytes = planned(Path(root))
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - started_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name}: {count} segments in {count // 10} partitions planned in {seconds:.1f} s, {cpu_s:.1f} s of processor "
        f"time, {tasks} tasks of {size_bytes // max(tasks, 1)} bytes, driver {peak:.0f} MiB",
        flush=True,
    )


class _PlanningCluster:
    """A cluster of 1,000 cores that plans scans, and runs none. ``sizes`` are the bytes of the tasks of each job."""

    def __init__(self) -> None:
        self.sizes: list[list[int]] = []

    def results(self, scan: UnitScan[UnitT, ResultT], units: Iterable[UnitT], advance: object) -> Iterator[ResultT]:
        for made in plan_units(scan, units, parallelism=1000):
            self.sizes.append(_bytes_of_tasks(made))
        yield from ()

    @property
    def total(self) -> tuple[int, int]:
        """The tasks of all jobs, and their bytes."""
        return sum(map(len, self.sizes)), sum(map(sum, self.sizes))


def _of_verify(root: Path) -> tuple[int, int]:
    cluster = _PlanningCluster()
    list(cluster.results(VerifyScan(), units_of(Target(root), DEFAULT_LIMITS), no_progress))
    return cluster.total


def _on(cluster: object, path: Path) -> Path:
    """The path in a session that has the cluster."""
    session = Session()
    session.cluster = cluster
    return session.path(path)


def _of_grep(root: Path) -> tuple[int, int]:
    cluster = _PlanningCluster()
    list(grep(_on(cluster, root), Criteria()))
    return cluster.total


def _bytes_of_tasks(made: TaskPlan) -> list[int]:
    return list(map(len, made.tasks.contents))


def _of_source(root: Path) -> tuple[int, int]:
    """The tasks, and the bytes of them that Spark gets, which takes them as it is done here."""
    return _as_spark_gets(KafkaLogReader(parse_options({"path": str(root)}), _PLANNED_COLUMNS).partitions())


def _of_stream(root: Path) -> tuple[int, int]:
    """The same for the first batch of a stream, with all offsets found by their files' names."""
    reader = KafkaLogStreamReader(parse_options({"path": str(root)}), _PLANNED_COLUMNS)
    stream_reader.log_end_of = lambda partition: 10_000  # the logs are holes
    start = reader.initialOffset()
    return _as_spark_gets(reader.partitions(start, reader.latestOffset(start)))


def _as_spark_gets(partitions: list[InputPartition]) -> tuple[int, int]:
    serializer = CloudPickleSerializer()
    return len(partitions), sum(len(serializer.dumps(each)) for each in partitions)


_PLANNED_COLUMNS = pa.schema([pa.field("offset", pa.int64())])
_PLANS = {"scan verify": _of_verify, "scan grep": _of_grep, "the data source": _of_source, "a stream": _of_stream}


def cpu_s_by_kind() -> dict[str, float]:
    """Processor time of this process, the driver, of the JVM, and of the workers that live."""
    children: dict[int, list[int]] = {}
    times: dict[int, tuple[str, float]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = (each / "stat").read_text().rsplit(") ", 1)[1].split()
                name = (each / "comm").read_text().strip()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(each.name))
            times[int(each.name)] = name, sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    found = {"driver": 0.0, "JVM": 0.0, "workers": 0.0}
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        name, cpu_s = times.get(pid, ("", 0.0))
        kind = "driver" if pid == os.getpid() else "JVM" if name == "java" else "workers"
        found[kind] += cpu_s
        waiting += children.get(pid, ())
    return found


def _cpu_s() -> float:
    """Processor time of this process and of all its descendants that live."""
    return sum(cpu_s_by_kind().values())


def _small_partitions(root: Path, count: int, segments: int) -> None:
    """Partitions of tiny segments with their indexes; the files are links to those of the first one."""
    first = root / "source" / "topic-0"
    for number in range(segments):
        write_segment(first, number * 30, batches(10, number * 30))
    command = [sys.executable, "-m", "kafkalog_cli", "rebuild-index", str(first), "--with-log", "--quiet"]
    subprocess.run([*command, "--output", str(root / "made")], check=True, stdout=subprocess.DEVNULL)
    files = sorted((root / "made" / "topic-0").iterdir())
    node = root / "node"
    for number in range(count):
        directory = node / f"topic-{number}"
        directory.mkdir(parents=True)
        for file in files:
            os.link(file, directory / file.name)
    (node / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abcdefghijklmnopqrstuw\n")


def _scan_small(count: int, segments: int, cores: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        _small_partitions(Path(place), count, segments)
        node = Path(place) / "node"
        session = open_session(f"local[{cores}]")
        for number in range(rounds + 1):
            before, started = _cpu_s(), time.perf_counter()
            with SparkCluster(Where("verify")) as cluster:
                verified = verify(_on(cluster, node))
                results = sum(1 for _ in verified)
            seconds, cpu_s = time.perf_counter() - started, _cpu_s() - before
            each = verified.coverage.segments
            print(
                f"scan {number + 1}: {each} segments in {count} partitions, {results} findings: {seconds:.1f} s, "
                f"{cpu_s:.1f} s of processor time, {1000 * cpu_s / each:.2f} ms a segment, driver "
                f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
            )
        before, started = time.process_time(), time.perf_counter()
        for _ in verify(node):
            pass
        cpu_s = time.process_time() - before
        print(f"verify in this process: {time.perf_counter() - started:.1f} s, {cpu_s:.1f} s of processor time")
        close_session(session)


_START = """
import sys
import time
from pathlib import Path
from format.io.session import Session
from format.verbs.verify.verify import verify
from spark_jobs.session import Where
from spark_jobs.session import close_session, open_session
from spark_jobs.spark_cluster import SparkCluster
started = time.perf_counter()
session = open_session("local[2]")
opened = time.perf_counter()
here = Session()
with SparkCluster(Where("verify")) as here.cluster:
    assert list(verify(here.path(sys.argv[1])))
print(opened - started, time.perf_counter() - opened)
close_session(session)
"""


def _start_sessions(count: int) -> None:
    opened, scans = [], []
    node = str(DATA_DIR / "kafka-4.3-single" / "node-1")
    for number in range(count):
        done = subprocess.run([sys.executable, "-c", _START, node], capture_output=True, text=True, check=True)
        seconds = list(map(float, done.stdout.split()[-2:]))
        opened.append(seconds[0])
        scans.append(seconds[1])
        print(f"start {number + 1}: session {seconds[0]:.1f} s, first scan {seconds[1]:.1f} s", flush=True)
    print(f"median: session {statistics.median(opened):.1f} s, first scan {statistics.median(scans):.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--plan", type=int, nargs="+")
    parser.add_argument("--starts", type=int)
    parser.add_argument("--small", type=int)
    parser.add_argument("--segments", type=int, default=1)
    given = parser.parse_args()
    if given.plan:
        _plan_synthetic(given.plan)
        return
    if given.small:
        _scan_small(given.small, given.segments, given.cores, given.rounds)
        return
    if given.starts:
        _start_sessions(given.starts)
        return
    command = [sys.executable, "-m", "kafkalog_cli", "verify", "--quiet", "--jobs", str(given.cores), str(given.path)]
    started = time.perf_counter()
    session = open_session(f"local[{given.cores}]")
    print(f"session started in {time.perf_counter() - started:.1f} s")
    peaks = Peaks()
    peaks.start()
    ratios, cpu_ratios = [], []
    for _ in range(given.rounds + 1):
        plain = run(command, (0, 1))
        before, looked_before_s, started = cpu_s_by_kind(), peaks.cpu_s, time.perf_counter()
        with SparkCluster(Where("verify")) as cluster:
            count = sum(1 for _ in verify(_on(cluster, given.path)))
        by_spark = time.perf_counter() - started
        cpu_s = {kind: after - before[kind] for kind, after in cpu_s_by_kind().items()}
        cpu_s["driver"] -= peaks.cpu_s - looked_before_s
        ratios.append(plain.wall_s / by_spark)
        cpu_ratios.append(plain.cpu_s / sum(cpu_s.values()))
        print(
            f"verify {plain.wall_s:.2f} s, {plain.cpu_s:.2f} s of processor time; scan verify {by_spark:.2f} s "
            f"({count} results), {sum(cpu_s.values()):.2f} s: "
            + ", ".join(f"{kind} {seconds:.2f}" for kind, seconds in cpu_s.items())
            + f"; rate ratio {ratios[-1]:.2f}, by processor time {cpu_ratios[-1]:.2f}",
            flush=True,
        )
    peaks.is_done = True
    print(
        f"medians without the first round: rate ratio {statistics.median(ratios[1:]):.2f} "
        f"({min(ratios[1:]):.2f}-{max(ratios[1:]):.2f}), by processor time {statistics.median(cpu_ratios[1:]):.2f}"
    )
    print(f"driver {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    for name, rss in sorted(peaks.peaks.items()):
        print(f"largest {name}: {rss / 1048576:.0f} MiB")
    close_session(session)


if __name__ == "__main__":
    main()
