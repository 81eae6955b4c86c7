"""kafkalog grep against ``kafka-dump-log --print-data-log | grep``, in turn; prints the table of docs/performance.md.

    python -m tests.benchmarks.bench_grep [--data DIR] [--rounds N] [--only WORD …]

Ratios are of whole processes, with a warm page cache, on the clock and in time of processors; each is the median of
the rounds, with their range. What is found goes through a pipe, as GNU grep stops at its first line where its output is
/dev/null. Nothing here asserts a time.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from format import layout
from tests.benchmarks import make_data
from tests.benchmarks.__main__ import kafka_dump_log, median_of, options_parser, print_table
from tests.benchmarks.measure import in_turn, kafkalog, ratio
from tests.oracle.kafka_lab import KafkaLab
from tests.record_encoder import NewRecord, encode_record

HEADINGS = ("what", "on", "kafkalog s", "CPU s", "peer s", "peer CPU s", "times as fast", "by CPU")
PEER = ("--print-data-log", "--files")
_HEADER_RECORD_COUNT = 750_000
_HEADER_NAMES = 1000


@dataclass(frozen=True)
class Row:
    """One comparison: the words of kafkalog's command line, and of GNU grep's."""

    name: str
    data: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


ROWS = (
    Row("text in no record", "zstd", ("nothing-like-it",), ("-F", "nothing-like-it")),
    Row("text in 148 records", "zstd", ("user-04711",), ("-F", "user-04711")),
    Row("text in 148 records", "none", ("user-04711",), ("-F", "user-04711")),
    Row("text in every record", "zstd", ("Mozilla",), ("-F", "Mozilla")),
    Row("text in 148 records, case ignored", "zstd", ("-i", "USER-04711"), ("-iF", "USER-04711")),
    Row("text in 5 % of the keys", "zstd", ("--in", "key", "user-000"), (" key: user-000",)),
    Row("bytes in a quarter of the records", "zstd", ("--bytes", "3a31"), ("-F", ":1")),
    Row("expression with a literal", "zstd", ("--regex", "user-0*471"), ("-E", "user-0*471")),
    Row("expression without one", "zstd", ("--regex", "[0-9]{9}"), ("-E", "[0-9]{9}")),
    Row("alternatives", "zstd", ("--regex", "(timeout|refused)[0-9]"), ("-E", "(timeout|refused)[0-9]")),
    Row("expression in every record", "zstd", ("--regex", "user-[0-9]+"), ("-E", "user-[0-9]+")),
    Row("expression that requires little", "zstd", ("--regex", "e.{20}f.{20}9"), ("-E", "e.{20}f.{20}9")),
    Row("header name in 750 records", "headers", ("--in", "header", "trace-471"), ("-F", "[trace-471")),
)


def header_batches(record_count: int) -> make_data.Batches:
    """v2 batches of 1000 records with a header each, whose name is one of many, uncompressed."""
    records: list[bytes] = []
    for offset, (key, value) in enumerate(make_data.keys_and_values(record_count)):
        delta = offset % 1000
        header = (b"trace-%d" % (offset % _HEADER_NAMES), b"01234567")
        records.append(encode_record(NewRecord(delta, delta, key, value, (header,))))
        if delta == 999 or offset == record_count - 1:
            timestamp = make_data.START_MS + (offset - delta) // 10
            yield offset, make_data.batch(offset - delta, timestamp, timestamp + delta, 0, records)
            records = []


def logs_of(root: Path, name: str) -> list[Path]:
    """The segments of that name, made unless they are there."""
    if name != "headers":
        return sorted(make_data.make(root, name).glob(f"*{layout.LOG_SUFFIX}"))
    directory = root / "headers-0"
    if not directory.exists():
        make_data.write_segment(directory, header_batches(_HEADER_RECORD_COUNT))
    return sorted(directory.glob(f"*{layout.LOG_SUFFIX}"))


def through_a_pipe(commands: Sequence[Sequence[str]]) -> list[str]:
    """A command line of commands, one behind the other, that succeeds whether something is found or not."""
    words = " | ".join(shlex.join(each) for each in commands)
    return ["sh", "-c", f"{words} | cat >/dev/null"]


def measured(row: Row, root: Path, rounds: int, lab: KafkaLab) -> list[str]:
    """The cells of a row."""
    logs = logs_of(root, row.data)
    ours = through_a_pipe([kafkalog(("grep", *row.ours), logs)])
    peers = through_a_pipe([kafka_dump_log(lab, PEER, logs), ("grep", *row.theirs)])
    own, theirs = in_turn(ours, peers, rounds)
    return [
        row.name,
        row.data,
        *(median_of(costs, name) for costs in (own, theirs) for name in ("wall_s", "cpu_s")),
        str(ratio(own, theirs, "wall_s")),
        str(ratio(own, theirs, "cpu_s")),
    ]


def main() -> None:
    print_table(HEADINGS, ROWS, measured, options_parser(__doc__).parse_args())


if __name__ == "__main__":
    main()
