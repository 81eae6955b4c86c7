"""Several threads that verify and print the same logs at once: each must get what one thread alone gets.

``python -m tests.faults.threaded`` ends with 1 where one does not. ``tests.faults.sanitized --threads`` runs it, too.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.verbs.verify.verify import verify
from tests.corpora import DATA_DIR

THREADS = 4
_SWITCH_S = 1e-5  # so that threads alternate within a batch


def threaded(node: Path) -> bool:
    """Whether all threads got the same as one."""
    partitions = sorted(path for path in node.iterdir() if path.is_dir())
    alone = _observed(partitions)
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append(_observed(partitions))) for _ in range(THREADS)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return len(results) == THREADS and all(each == alone for each in results)


def _observed(partitions: list[Path]) -> list[str]:
    """Findings and records of the partitions."""
    seen = [repr(found) for path in partitions for found in verify(path)]
    for log in (log for path in partitions for log in sorted(path.glob("*.log"))):
        with FileSource(log) as source:
            for chunk in batch_chunks(source):
                tables = record_tables(chunk, which=chunk.table.crc_valid == 1, limits=DEFAULT_LIMITS)
                seen += [f"{table.offset.sum()} {table.size_bytes.sum()}" for table in tables]
    return seen


if __name__ == "__main__":
    sys.exit(not threaded(DATA_DIR / "kafka-4.3-single" / "node-1"))
