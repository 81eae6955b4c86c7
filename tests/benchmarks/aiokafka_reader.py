"""aiokafka's compiled reader over one log, CRCs checked, every record made: seconds, without its imports.

Runs under any Python that has aiokafka and knows nothing of this project: ``python aiokafka_reader.py LOG``.
"""

import sys
import time

from aiokafka.record import MemoryRecords


def read(path: str) -> int:
    with open(path, "rb") as log:
        content = log.read()
    records = MemoryRecords(content)
    count = 0
    while records.has_next():
        batch = records.next_batch()
        if not batch.validate_crc():
            raise ValueError("a CRC is wrong")
        for _record in batch:
            count += 1
    return count


if __name__ == "__main__":
    started = time.perf_counter()
    total = read(sys.argv[1])
    print(time.perf_counter() - started, total)
