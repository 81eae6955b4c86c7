"""The log end offset of a partition, from the batch headers behind the last entry of its last index."""

from __future__ import annotations

from format.errors import KafkaLogError
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.log.walker import batch_chunks
from format.node.partition import Partition
from format.scan.selection import Selection, start_position

_LAST = Selection(from_offset=2**63 - 1)


def log_end_of(partition: Partition, limits: Limits = DEFAULT_LIMITS) -> int | None:
    """The offset after the last batch of a partition; None where there is no segment, or none that can be read.

    CRCs are not computed: what verify finds damaged counts here as long as its header is plausible.
    """
    logs = [(segment, segment.log) for segment in partition.segments if segment.log is not None]
    if not logs:
        return None
    last, path = logs[-1]
    log_end = last.base_offset
    try:
        with FileSource(path) as source:
            start = start_position(last, source, _LAST)
            for chunk in batch_chunks(source, start, None, with_bodies=False, check_crc=False, limits=limits):
                if len(chunk.table):
                    log_end = max(log_end, int(chunk.table.last_offset[-1]) + 1)
    except KafkaLogError:
        return None
    return log_end
