"""kafkalog txns against kafka-dump-log and a minimal parser of its output, in turn; for docs/performance.md.

    python -m tests.benchmarks.bench_txns [--data DIR] [--rounds N] [--only WORD …] [--mib N]

The parser keeps the producers whose last transactional batch is no end marker: what is open, and nothing else. Only
with --deep-iteration does the tool print which control records commit and which abort. Ratios are of whole processes,
with a warm page cache, each the median of the rounds with their range. Nothing here asserts a time.
"""

from __future__ import annotations

import random
import shlex
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
_RECORD_BYTES = 160
_PRODUCERS = 8
_TRANSACTIONAL = layout.TRANSACTIONAL_BIT
_PARSER = """
/ isTransactional: true / {
    for (i = 1; i < NF; i++) if ($i == "producerId:") id = $(i + 1)
    if ($0 ~ / isControl: true /) delete open[id]
    else if (!(id in open)) open[id] = $2
}
/ endTxnMarker: / { if ($0 ~ /ABORT/) aborted++; else committed++ }
END { for (id in open) print id, open[id]; print committed, aborted }
"""


@dataclass(frozen=True)
class Shape:
    """A log of transactions: bytes of a batch, and batches of a transaction."""

    batch_bytes: int
    batches: int


SHAPES = {
    "batches of 16 KiB": Shape(16 * 1024, 10),
    "batches of 64 KiB": Shape(64 * 1024, 10),
    "batches of 1 KiB": Shape(1024, 10),
}


@dataclass(frozen=True)
class Row:
    """One log, and the words of kafkalog's command line."""

    name: str
    data: str
    ours: tuple[str, ...]


ROWS = tuple(
    Row(name, shape, words)
    for shape in SHAPES
    for name, words in (
        ("every transaction", ("txns", "--format", "jsonl")),
        ("open transactions", ("txns", "--open", "--format", "jsonl")),
    )
)


def transactions(shape: Shape, log_bytes: int) -> make_data.Batches:
    """Interleaved transactions of a few producers, one in ten aborted, the last ones left open."""
    chance = random.Random(22)
    count = max(1, shape.batch_bytes // _RECORD_BYTES)
    value = bytes(chance.getrandbits(8) for _ in range(_RECORD_BYTES - 20))
    records = b"".join(encode_record(NewRecord(number, 0, b"key-%07d" % number, value)) for number in range(count))
    written = [0] * _PRODUCERS
    sequences = [0] * _PRODUCERS
    offset = position = 0
    while position < log_bytes:
        producer = chance.randrange(_PRODUCERS)
        time_ms = make_data.START_MS + offset
        if written[producer] == shape.batches:
            written[producer] = 0
            content = _marker(offset, producer, chance.random() >= 0.1, time_ms)
            yield offset, content
            offset += 1
        else:
            written[producer] += 1
            header = BatchHeader(
                offset, count - 1, count, time_ms, time_ms, 0, _TRANSACTIONAL, producer, 0, sequences[producer]
            )
            sequences[producer] += count
            content = encode_batch(header, records)
            yield offset + count - 1, content
            offset += count
        position += len(content)


def _marker(offset: int, producer: int, is_commit: bool, time_ms: int) -> bytes:
    key, value = layout.CONTROL_KEY.struct.pack(0, is_commit), layout.END_TRANSACTION_MARKER.struct.pack(0, 0)
    header = BatchHeader(offset, 0, 1, time_ms, time_ms, 0, _TRANSACTIONAL | layout.CONTROL_BIT, producer, 0)
    return encode_batch(header, encode_record(NewRecord(0, 0, key, value)))


def _made(root: Path, name: str, log_bytes: int) -> Path:
    directory = root / f"{log_bytes}" / f"transactions-{SHAPES[name].batch_bytes}-0"
    if not directory.exists():
        make_data.write_segment(directory, transactions(SHAPES[name], log_bytes))
    return directory


def measured(row: Row, root: Path, rounds: int, lab: KafkaLab, *, log_bytes: int) -> list[str]:
    """The cells of a row."""
    directory = _made(root, row.data, log_bytes)
    logs = sorted(directory.glob("*.log"))
    ours = kafkalog(row.ours, [directory])
    tool = shlex.join(kafka_dump_log(lab, ("--deep-iteration", "--files"), logs))
    own, theirs = in_turn(ours, ["sh", "-c", f"{tool} | awk {shlex.quote(_PARSER)}"], rounds)
    return [row.name, row.data, *cells_of(own, theirs), f"{peak_bytes(ours) / MIB:.0f}"]


if __name__ == "__main__":
    options = sized(options_parser(__doc__))
    print_table(HEADINGS, ROWS, partial(measured, log_bytes=options.mib * MIB), options)
