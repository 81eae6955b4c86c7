"""The planning of ``scan verify`` for very many segments in an object store that is made up.

``python -m tests.benchmarks.bench_planning [--brokers N] [--cores N] [--page-ms N] [--read-ms N] [--paths]`` starts a
server that answers as S3 does, for N brokers of 200 partitions of ten segments of 1 GiB each: a page of 1,000 names
takes 50 ms, and any other read 20 ms. Nothing of it is stored. The scan plans all its jobs, and of the first one a task
for each core runs, which opens its logs and finds where its ranges begin, by their indexes. ``--paths`` gives the
brokers as single paths, and not the directory above them. Printed are the time to the first task, that of all plans,
processor time, memory, and the bytes of a task.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import re
import resource
import statistics
import struct
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from format.io.session import Session
from format.limits import DEFAULT_LIMITS
from format.node.target import Target
from format.scan.cluster import UnitScan
from format.scan.progress import Advance
from format.verbs.verify.partition_checks import Coverage
from format.verbs.verify.verify import VerifyTerms, compacted_topics_at, verify_all
from spark_jobs.planning import PROCESS, Item, LogPart, PackedList, TaskPlan
from spark_jobs.session import Where, close_session, open_session
from spark_jobs.spark_cluster import SparkCluster
from spark_jobs.tasks import Result, bounds_of, opened, results_frame
from tests.benchmarks.bench_spark import Peaks, cpu_s_by_kind
from tests.building import batches

_PARTITIONS, _SEGMENTS = 200, 10
_SEGMENT_BYTES = 1 << 30
_OFFSETS = 1000  # of a segment
_PAGE_KEYS = 1000
_BATCH = batches(1, values=200)[0]
_ENTRIES = 1000  # of an index
_MODIFIED = "2026-01-01T00:00:00.000Z"
_KEY = (
    "<Contents><Key>%s</Key><LastModified>" + _MODIFIED + "</LastModified><ETag>&quot;1&quot;</ETag>"
    "<Size>%d</Size></Contents>"
)
_PREFIX = "<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>"


# -- the store -----------------------------------------------------------------------------------------------


@cache
def _index() -> bytes:
    """Entries at batches, from one end of the log to the other."""
    step = _SEGMENT_BYTES // len(_BATCH) // _ENTRIES * len(_BATCH)
    return b"".join(struct.pack(">ii", number + 1, (number + 1) * step) for number in range(_ENTRIES))


def _log(start: int, end: int) -> bytes:
    """A range of a log, which is one batch again and again."""
    first = start // len(_BATCH) * len(_BATCH)
    return (_BATCH * ((end - first) // len(_BATCH) + 1))[start - first : end - first]


@cache
def _names() -> tuple[list[str], list[int]]:
    """The names of a broker's files, in order, and their sizes."""
    sizes = {
        "meta.properties": len(_META % 1),
        **{f"{name}-offset-checkpoint": len(_checkpoint(name)) for name in _CHECKPOINTS},
        ".kafka_cleanshutdown": 0,
    }
    for number in range(_PARTITIONS):
        for segment in range(_SEGMENTS):
            base = f"topic-{number}/{segment * _OFFSETS:020d}"
            sizes |= {f"{base}.log": _SEGMENT_BYTES, f"{base}.index": 8 * _ENTRIES, f"{base}.timeindex": 12}
            sizes[f"{base}.snapshot"] = 100
        sizes |= {f"topic-{number}/leader-epoch-checkpoint": 10, f"topic-{number}/partition.metadata": 45}
    names = sorted(sizes)
    return names, [sizes[name] for name in names]


@cache
def _checkpoint(name: str) -> bytes:
    offset = _SEGMENTS * _OFFSETS if name in ("replication", "recovery-point") else 0
    lines = "".join(f"topic {number} {offset}\n" for number in range(_PARTITIONS))
    return f"0\n{_PARTITIONS}\n{lines}".encode()


_CHECKPOINTS = ("cleaner", "log-start", "recovery-point", "replication")
_META = "version=1\nnode.id=%04d\ncluster.id=abcdefghijklmnopqrstuw\n"


def _content(key: str, start: int, end: int) -> bytes:
    """A range of a file."""
    broker, _, name = key.partition("/")
    if name.endswith(".log"):
        return _log(start, end)
    if name.endswith(".index"):
        return _index()[start:end]
    if name == "meta.properties":
        return (_META % int(broker[7:])).encode()[start:end]
    if name.endswith("-offset-checkpoint"):
        return _checkpoint(name.removesuffix("-offset-checkpoint"))[start:end]
    return bytes(end - start)


def _keys(brokers: int, prefix: str, after: str) -> Iterator[tuple[str, int]]:
    """The names that begin with a prefix and come after another one, with their sizes."""
    names, sizes = _names()
    for number in range(brokers):
        broker = f"broker.{number:04d}/"
        if broker + "~" <= after or not (broker.startswith(prefix) or prefix.startswith(broker)):
            continue
        inner = prefix[len(broker) :]
        at = max(
            bisect_right(names, after[len(broker) :]) if after.startswith(broker) else 0, bisect_right(names, inner)
        )
        if inner and at and names[at - 1] == inner:
            at -= 1
        for name, size in zip(islice(names, at, None), islice(sizes, at, None), strict=True):
            if not name.startswith(inner):
                break
            yield broker + name, size


def _first_of_each(keys: Iterator[tuple[str, int]], prefix: str, after: str) -> Iterator[tuple[str, int]]:
    """The names in a directory; those below another one become the name of that, with a slash."""
    last = after
    for name, size in keys:
        below = name.find("/", len(prefix))
        found = name if below < 0 else name[: below + 1]
        if found != last:
            last = found
            yield found, size


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Store

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_GET  # noqa: N815

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        key, query = unquote(parts.path).removeprefix("/logs").strip("/"), parse_qs(parts.query)
        if "list-type" in query:
            time.sleep(self.server.page_s)
            self.server.seen["pages"] += 1
            self._send(200, self._page(query), {"Content-Type": "application/xml"})
            return
        time.sleep(self.server.read_s)
        self.server.seen[self.command] += 1
        names, sizes = _names()
        name = key.partition("/")[2]
        at = bisect_right(names, name) - 1
        if not key.startswith("broker.") or at < 0 or names[at] != name:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", {"Content-Type": "application/xml"})
            return
        size = sizes[at]
        given = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start, end = (0, size) if given is None else (int(given[1]), min(int(given[2] or size) + 1, size))
        headers = {"ETag": '"1"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Content-Length": str(end - start)}
        if given is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        self._send(206 if given else 200, b"" if self.command == "HEAD" else _content(key, start, end), headers)

    def _page(self, query: dict[str, list[str]]) -> bytes:
        given = {name: values[0] for name, values in query.items()}
        after = given.get("continuation-token") or given.get("start-after", "")
        prefix, delimiter = given.get("prefix", ""), given.get("delimiter")
        keys = _keys(self.server.brokers, prefix, after)
        if delimiter and not prefix:
            brokers = (f"broker.{number:04d}/" for number in range(self.server.brokers))
            keys = ((name, 0) for name in brokers if name > after)
        elif delimiter:
            keys = _first_of_each(keys, prefix, after)
        found = list(islice(keys, _PAGE_KEYS + 1))
        is_cut, found = len(found) > _PAGE_KEYS, found[:_PAGE_KEYS]
        token = f"<NextContinuationToken>{found[-1][0]}</NextContinuationToken>" if is_cut else ""
        shown = (_PREFIX % name if name.endswith("/") else _KEY % (name, size) for name, size in found)
        return (
            f"<ListBucketResult><Name>logs</Name><IsTruncated>{str(is_cut).lower()}</IsTruncated>{token}"
            + "".join(shown)
            + "</ListBucketResult>"
        ).encode()

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Store(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True

    def __init__(self, brokers: int, page_s: float, read_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.brokers, self.page_s, self.read_s = brokers, page_s, read_s
        self.seen: Counter[str] = Counter()


def _serve(brokers: int, page_s: float, read_s: float, pipe: Connection) -> None:
    import threading

    server = _Store(brokers, page_s, read_s)
    pipe.send(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while pipe.recv():
        pipe.send((dict(server.seen), time.process_time()))


# -- the scan ------------------------------------------------------------------------------------------------


class _Planned(Exception):
    """All targets are planned: what verify does after that is no part of it."""


class _PlanningCluster(SparkCluster):
    """A cluster that plans all jobs, and runs a few tasks of the first one, which only open their logs."""

    def __init__(self, where: Where, started: float, target_count: int, report: Callable[[], None]) -> None:
        super().__init__(where)
        self.report = report
        self._started = started
        self._targets_left = target_count
        self.first_s: float | None = None
        self.bytes_of_tasks: list[int] = []
        self.packed_bytes = self.jobs = 0

    def results(self, scan: UnitScan[Any, Any], units: Iterable[Any], advance: Advance) -> Iterator[Any]:
        """Plans the scan of a target; raises _Planned after the last one."""
        yield from super().results(scan, units, advance)
        self._targets_left -= 1
        if not self._targets_left:
            raise _Planned
        yield Coverage(segments=1)

    def _results_of(self, scan: UnitScan[Any, Any], advance: Advance, made: TaskPlan) -> Iterator[Any]:
        self.jobs += 1
        self.bytes_of_tasks += [sum(each.size_bytes for each in task) for task in made.tasks]
        self.packed_bytes += sum(map(len, made.tasks.contents))
        if self.first_s is None:
            few = TaskPlan(made.parallelism, PackedList(islice(made.tasks, made.parallelism)))
            times = [row[4] for row in results_frame(self.session, few, _opens).collect()]
            self.first_s = min(times) / 1000 - self._started
            print(f"first task after {self.first_s:.1f} s; its job has {len(made.tasks)} tasks", flush=True)
            self.report()
        yield from ()


def _opens(item: Item) -> Iterator[Result]:
    """The time, in ms since the epoch modulo 2**31, at which the first range of a log was found."""
    began = time.time()
    if isinstance(item, LogPart):
        source, _ = opened(item.of)
        with source:
            bounds_of(item.of, source, item.part, DEFAULT_LIMITS)
    yield Result(0, 0, 0, 0, int(began * 1000) % 2**31, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=500)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--page-ms", type=float, default=50)
    parser.add_argument("--read-ms", type=float, default=20)
    parser.add_argument("--paths", action="store_true")
    given = parser.parse_args()
    here, there = multiprocessing.Pipe()
    arguments = (given.brokers, given.page_ms / 1000, given.read_ms / 1000, there)
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=arguments, daemon=True)
    server.start()
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{here.recv()}",
    }
    opened_session = open_session(f"local[{given.cores}]")
    peaks = Peaks()
    peaks.start()
    before = cpu_s_by_kind()

    def report() -> None:
        """Print the requests and the processor time so far; the store is one of the descendants."""
        here.send(True)
        seen, store_s = here.recv()
        used = {kind: seconds - before[kind] for kind, seconds in cpu_s_by_kind().items()}
        used["workers"] -= store_s
        shown = ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in used.items())
        print(f"   requests {seen}; processor time: {shown}, the store {store_s:.1f} s", flush=True)

    session = Session()
    PROCESS.session = session
    epoch = int(time.time() * 1000) // 2**31 * 2**31 / 1000  # results have numbers of 32 bits
    started = time.time()
    with _PlanningCluster(Where("verify"), started - epoch, given.brokers if given.paths else 1, report) as cluster:
        session.cluster = cluster
        names = [f"broker.{number:04d}" for number in range(given.brokers)] if given.paths else [""]
        paths = [f"s3://logs/{name}" for name in names]
        session.stores.give(paths)
        session.stores.remember_less()
        targets = [Target(session.path(each)) for each in paths]
        terms = VerifyTerms(compacted_topics=compacted_topics_at(targets, DEFAULT_LIMITS))
        print(f"metadata logs looked for after {time.time() - started:.1f} s", flush=True)
        with contextlib.suppress(_Planned):
            list(verify_all(targets, terms))
        print(f"all {cluster.jobs} jobs planned after {time.time() - started:.1f} s")
    peaks.is_done = True
    sizes = cluster.bytes_of_tasks
    print(
        f"{given.brokers * _PARTITIONS * _SEGMENTS} segments of {given.brokers} brokers: {len(sizes)} tasks of "
        f"{min(sizes)}, {statistics.median(sizes):.0f}, {max(sizes)} bytes (min, median, max), in "
        f"{cluster.packed_bytes / max(len(sizes), 1):.0f} packed bytes each"
    )
    report()
    here.send(False)
    print(f"driver {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    for name, rss in sorted(peaks.peaks.items()):
        print(f"largest {name}: {rss / 1048576:.0f} MiB")
    close_session(opened_session)


if __name__ == "__main__":
    main()
