"""kafkalog groups against kafka-dump-log --offsets-decoder and a minimal parser of its output; for docs/performance.md.

    python -m tests.benchmarks.bench_groups [--data DIR] [--rounds N] [--only WORD …] [--mib N]

The parser keeps the last line of each key, and nothing else: no transactions, no members, no lag. Ratios are of whole
processes, with a warm page cache, each the median of the rounds with their range. Nothing here asserts a time.
"""

from __future__ import annotations

import random
import shlex
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from format import layout
from format.log.encode_batches import BatchHeader, encode_batch
from tests.benchmarks import make_data
from tests.benchmarks.__main__ import cells_of, kafka_dump_log, options_parser, print_table, sized
from tests.benchmarks.measure import MIB, in_turn, kafkalog, peak_bytes
from tests.oracle.kafka_lab import KafkaLab
from tests.record_encoder import NewRecord, encode_record

HEADINGS = ("what", "on", "kafkalog s", "CPU s", "peer s", "peer CPU s", "times as fast", "by CPU", "peak MiB")
_TOPICS = 40
_PARSER = "match($0, / key: .* payload: /) { last[substr($0, RSTART, RLENGTH)] = $0 } END { print length(last) }"


@dataclass(frozen=True)
class Shape:
    """A log of commits: its groups, the partitions that each commits at once, and whether in transactions."""

    groups: int
    partitions: int
    is_long: bool = True
    in_transactions: bool = False


SHAPES = {
    "2,000 groups of 25 partitions": Shape(2000, 25),
    "commits in transactions": Shape(2000, 25, in_transactions=True),
    "commits of one partition": Shape(5000, 1),
    "100,000 groups, 1,000,000 partitions": Shape(100_000, 10, is_long=False),
}


@dataclass(frozen=True)
class Row:
    """One log, and the words of kafkalog's command line; one without a peer is for its memory."""

    name: str
    data: str
    ours: tuple[str, ...]
    has_peer: bool = True


ROWS = (
    *(
        Row(f"groups --jobs {jobs}", shape, ("groups", "--jobs", jobs, "--format", "jsonl"))
        for shape in tuple(SHAPES)[:3]
        for jobs in ("1", "2")
    ),
    Row("groups --jobs 1", tuple(SHAPES)[3], ("groups", "--jobs", "1", "--format", "jsonl"), has_peer=False),
    Row("groups --jobs 2", tuple(SHAPES)[3], ("groups", "--jobs", "2", "--format", "jsonl"), has_peer=False),
)


def commits(shape: Shape, log_bytes: int) -> make_data.Batches:
    """The commits of all groups in turn, until the log is long enough; a group commits all its partitions at once."""
    chance = random.Random(16)
    records = [_commit(group, shape.partitions, chance) for group in range(shape.groups)]
    count, offset, position = shape.partitions, 0, 0
    while offset < count * shape.groups or (shape.is_long and position < log_bytes):
        group = chance.randrange(shape.groups) if offset >= count * shape.groups else offset // count % shape.groups
        time_ms = make_data.START_MS + offset
        transaction = (layout.TRANSACTIONAL_BIT, group, 0, 0) if shape.in_transactions else ()
        content = encode_batch(BatchHeader(offset, count - 1, count, time_ms, time_ms, 0, *transaction), records[group])
        yield offset + count - 1, content
        offset += count
        position += len(content)
        if shape.in_transactions and offset >= count * shape.groups:
            content = _marker(offset, group, chance.random() >= 0.1, time_ms)
            yield offset, content
            offset += 1
            position += len(content)


def _commit(group: int, partitions: int, chance: random.Random) -> bytes:
    """The records of a group's commit."""
    name = b"service-%06d-consumers" % group
    made = []
    for number in range(partitions):
        topic = b"events.topic-%03d" % ((group + number // 5) % _TOPICS)
        key = struct.pack(">hh", 1, len(name)) + name + struct.pack(">h", len(topic)) + topic
        value = struct.pack(">hqihq", 3, chance.randrange(10**9), 4, 0, make_data.START_MS + group)
        made.append(encode_record(NewRecord(number, 0, key + struct.pack(">i", number), value)))
    return b"".join(made)


def _marker(offset: int, producer: int, is_commit: bool, time_ms: int) -> bytes:
    key, value = layout.CONTROL_KEY.struct.pack(0, is_commit), layout.END_TRANSACTION_MARKER.struct.pack(0, 0)
    header = BatchHeader(offset, 0, 1, time_ms, time_ms, 0, layout.TRANSACTIONAL_BIT | layout.CONTROL_BIT, producer, 0)
    return encode_batch(header, encode_record(NewRecord(0, 0, key, value)))


def _made(root: Path, name: str, log_bytes: int) -> Path:
    shape = SHAPES[name]
    kind = "transactions" if shape.in_transactions else "commits"
    directory = root / f"groups-{kind}-{shape.groups}-{log_bytes}" / "__consumer_offsets-0"
    if not directory.exists():
        make_data.write_segment(directory, commits(shape, log_bytes))
    return directory


def measured(row: Row, root: Path, rounds: int, lab: KafkaLab, *, log_bytes: int) -> list[str]:
    """The cells of a row."""
    directory = _made(root, row.data, log_bytes)
    logs: Sequence[Path] = sorted(directory.glob("*.log"))
    ours = kafkalog(row.ours, [directory])
    tool = shlex.join(kafka_dump_log(lab, ("--offsets-decoder", "--files"), logs))
    peers = ["sh", "-c", f"{tool} | awk {shlex.quote(_PARSER)}"] if row.has_peer else ["true"]
    own, theirs = in_turn(ours, peers, rounds)
    compared = cells_of(own, theirs if row.has_peer else None)
    return [row.name, row.data, *compared, f"{peak_bytes(ours) / MIB:.0f}"]


if __name__ == "__main__":
    options = sized(options_parser(__doc__))
    print_table(HEADINGS, ROWS, partial(measured, log_bytes=options.mib * MIB), options)
