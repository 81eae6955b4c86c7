"""Requests and bytes of look-ups in a segment of 1 GiB, in a store and on the disk.

``python -m tests.benchmarks.object_store DIR make`` writes the segments below DIR/logs, for a server that serves DIR
with ``logs`` as a bucket, such as s3proxy with its filesystem backend; ``python -m tests.benchmarks.object_store DIR``
measures against the server at AWS_ENDPOINT_URL. With ``moto`` behind DIR it starts moto's server, uploads DIR/logs and
measures against that; it takes 3 GiB of memory.
"""

from __future__ import annotations

import json
import logging
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from format.log.encode_batches import BatchHeader, encode_batch
from tests.front_server import front_server
from tests.record_encoder import NewRecord, encode_record

_SIZE_BYTES = 1 << 30
_START_MS = 1_700_000_000_000
_INDEX_INTERVAL_BYTES = 4096
_LOOKUPS = (
    ("--offset", "0"), ("--offset", "700001"), ("--offset", "1046000"), ("--timestamp", str(_START_MS)),
    ("--timestamp", str(_START_MS + 700_001)), ("--timestamp", str(_START_MS + 1_046_000)), ("--max-timestamp",),
)  # fmt: skip


def write_partition(directory: Path, batch_bytes: int, record_count: int) -> int:
    """A segment with its indexes; returns the log end offset. A record's timestamp is its offset after the start."""
    directory.mkdir(parents=True)
    value_bytes = batch_bytes // record_count - 12
    offset = position = since_entry = 0
    entries, times = [], []
    with (directory / f"{0:020d}.log").open("wb") as log:
        while position < _SIZE_BYTES - 2 * batch_bytes:
            records = b"".join(
                encode_record(NewRecord(number, number, b"k", os.urandom(8).ljust(value_bytes, b"x"), ()))
                for number in range(record_count)
            )
            first, last = _START_MS + offset, offset + record_count - 1
            header = BatchHeader(
                offset, record_count - 1, record_count, base_timestamp=first, max_timestamp=_START_MS + last
            )
            if since_entry > _INDEX_INTERVAL_BYTES:
                entries.append(struct.pack(">ii", last, position))
                times.append(struct.pack(">qi", _START_MS + last, last))
                since_entry = 0
            content = encode_batch(header, records, codec=0)
            log.write(content)
            position += len(content)
            since_entry += len(content)
            offset = last + 1
    times.append(struct.pack(">qi", _START_MS + offset - 1, offset - 1))
    (directory / f"{0:020d}.index").write_bytes(b"".join(entries))
    (directory / f"{0:020d}.timeindex").write_bytes(b"".join(times))
    return offset


def make(root: Path) -> None:
    """A log directory with two partitions: batches of 16 KiB, and of 1 KiB."""
    ends = {
        "large": write_partition(root / "large-0", 16 * 1024, 16),
        "small": write_partition(root / "small-0", 1024, 4),
    }
    lines = "".join(f"{topic} 0 {end}\n" for topic, end in ends.items())
    (root / "replication-offset-checkpoint").write_text(f"0\n{len(ends)}\n{lines}")
    (root / "log-start-offset-checkpoint").write_text("0\n0\n")
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=benchmark\n")


def counts(path: str, lookup: tuple[str, ...]) -> dict[str, int]:
    """The counts in the summary of a look-up."""
    words = [sys.executable, "-m", "kafkalog_cli", "find", path, *lookup, "--format", "jsonl"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])["counts"]
    return found


@contextmanager
def moto_server(logs: Path) -> Iterator[None]:
    """The context in which moto's server has the files below a directory in the bucket ``logs``."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": address}
        client = boto3.client("s3", region_name="us-east-1", endpoint_url=address)
        client.create_bucket(Bucket="logs")
        for path in sorted(logs.rglob("*")):
            if path.is_file():
                client.upload_file(str(path), "logs", str(path.relative_to(logs)))
        yield
    finally:
        server.stop()


def main() -> None:
    """Make the segments, or measure."""
    root = Path(sys.argv[1]) / "logs" / "benchmark"
    if sys.argv[2:] == ["make"]:
        make(root)
    elif sys.argv[2:] == ["moto"]:
        with moto_server(root.parent):
            measure(root)
    else:
        measure(root)


def measure(root: Path) -> None:
    """Print the requests and bytes of each look-up, there and here. A server in between counts the requests."""
    with front_server(os.environ["AWS_ENDPOINT_URL"]) as front:
        for name in ("large-0", "small-0"):
            for lookup in _LOOKUPS:
                front.seen.clear()
                there = counts(f"s3://logs/benchmark/{name}?{front.options}", lookup)
                here = counts(str(root / name), lookup)
                print(f"{name} {' '.join(lookup)}: {len(front.seen)} requests, {there['fetched_bytes']} bytes", end="")
                print(f"; on the disk {here['bytes_read']} bytes")


if __name__ == "__main__":
    main()
