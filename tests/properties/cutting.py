"""Where the program cuts a log into chunks and tables, made smaller than any real run makes them.

A small log is one chunk, so that what depends on where chunks are cut would show in large logs alone. Here all the
sizes that decide it are set at once, and small work is shared among processes that would otherwise be done by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from format.log import read_records, walker
from format.scan import drivers, processes
from format.scan.processes import Workers
from format.verbs.dump_log import kafka_reader

#: A chunk holds a batch header at the least.
LEAST_CHUNK_BYTES = 64


@dataclass(frozen=True)
class Cuts:
    """The largest chunk in bytes, and the most rows of a table of batches and of one of records."""

    chunk_bytes: int
    batch_rows: int
    record_rows: int


def some_cuts(random: Random) -> Cuts:
    """Sizes of any order of magnitude, from one batch or record on."""
    return Cuts(
        max(LEAST_CHUNK_BYTES, int(65_536 / 2 ** random.uniform(0, 10))),
        max(1, int(100_000 / 2 ** random.uniform(4, 17))),
        max(1, int(100_000 / 2 ** random.uniform(4, 17))),
    )


@contextmanager
def cut(sizes: Cuts) -> Iterator[None]:
    """Logs are cut at these sizes meanwhile, also in processes that are forked."""
    bodies, headers, share = walker._Walker.bodies, walker._Walker.headers, processes.SharedRanges.__init__

    def cut_bodies(self: Any, start: int, chunk_bytes: int, check_crc: bool) -> Any:
        return bodies(self, start, sizes.chunk_bytes, check_crc)

    def cut_headers(self: Any, start: int, chunk_bytes: int) -> Any:
        return headers(self, start, sizes.chunk_bytes)

    def cut_shares(self: Any, logs: Any, jobs: int, chunk_bytes: int, *more: Any, **named: Any) -> None:
        share(self, logs, jobs, sizes.chunk_bytes, *more, **named)

    with ExitStack() as stack:
        for owner, name, value in (
            (walker._Walker, "bodies", cut_bodies),
            (walker._Walker, "headers", cut_headers),
            (walker, "_TABLE_ROWS", sizes.batch_rows),
            (walker, "_WRAPPER_CHUNK_BYTES", sizes.chunk_bytes // 3),
            (processes.SharedRanges, "__init__", cut_shares),
            (kafka_reader, "BODY_CHUNK_BYTES", sizes.chunk_bytes),
            (kafka_reader, "_TABLE_ROWS", sizes.batch_rows),
            (read_records, "_GROUP_BYTES", sizes.chunk_bytes),
            (read_records, "_PORTION_BYTES", sizes.chunk_bytes),
            (read_records, "MOST_ROWS", sizes.record_rows),
            (read_records, "_MOST_OPENED", sizes.batch_rows),
            (read_records, "_OPENED_BYTES", sizes.chunk_bytes),
            (read_records, "_HELD_BYTES", sizes.chunk_bytes),
        ):
            stack.enter_context(patch.object(owner, name, value))
        yield


@contextmanager
def shared(evidence: Path) -> Iterator[None]:
    """Work is shared however little it is; each set of processes adds a byte to the file ``evidence``."""
    start = Workers.__init__

    def start_and_note(self: Any, *arguments: Any, **named: Any) -> None:
        with evidence.open("ab") as file:
            file.write(b".")
        start(self, *arguments, **named)

    with (
        patch.object(drivers, "MIB", 0),
        patch.object(drivers, "_WORTH_S", -1.0),
        patch.object(Workers, "__init__", start_and_note),
    ):
        yield
