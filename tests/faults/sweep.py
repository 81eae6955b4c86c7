"""Every single-byte change and every truncation of real logs and of the files beside them: is it reported?

    python -m tests.faults.sweep                 everything, on all cores: half an hour on two
    python -m tests.faults.sweep --part 50       one case in fifty, evenly spread

What is enumerated through verify itself: all 255 other values of every byte that no CRC covers and of the CRC, one
flipped bit of every byte that a CRC covers, every truncation point, all 255 other values of every byte of every side
file. The 255 values of the covered bytes are enumerated against the CRC alone, by the reader's own function; that
verify reports every wrong CRC is what the flipped bits show.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.findings import Severity
from format.io.source import FileSource
from format.log.batch_header import checked_crcs
from format.log.batch_table import BATCH_COLUMN, HeaderTable
from format.node.partition import read_partition
from format.verbs.find.find import find_offset, find_timestamp
from format.verbs.find.lookup import LookupResult
from tests.faults.workbench import Workbench, names, scratch_root, workbench
from tests.sources import read_batch_table

#: The partition whose log directory's own files, alike around all of them, are changed.
ONE_OF_ALL = "payments-1"
SIDE_SUFFIXES = (".index", ".timeindex", ".txnindex", ".snapshot")


@dataclass
class Tally:
    """How many cases there were of each kind, and the undetected ones by what was changed."""

    cases: Counter[str] = field(default_factory=Counter)
    undetected: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, is_detected: bool, what: str, example: str) -> None:
        self.cases[kind] += 1
        if not is_detected:
            self.undetected[f"{kind}: {what}"] += 1
            self.examples.setdefault(f"{kind}: {what}", example)

    def merge(self, other: Tally) -> None:
        self.cases += other.cases
        self.undetected += other.undetected
        for what, example in other.examples.items():
            self.examples.setdefault(what, example)


class Part:
    """Takes one case in so many; a fixed step that shares no factor with 255 or with field lengths spreads them."""

    def __init__(self, one_in: int) -> None:
        self._one_in = one_in
        self._count = 0

    def takes(self) -> bool:
        self._count += 1
        return self._count % self._one_in == 0 or self._one_in == 1


# -- logs ----------------------------------------------------------------------------------------------------


def field_at(magic: int, position: int) -> str:
    """The name of the header field that a byte of a batch belongs to; ``records`` after the header."""
    header = layout.RECORD_BATCH if magic == 2 else layout.MESSAGE_V0 if magic == 0 else layout.MESSAGE_V1
    if position >= header.size_bytes:
        return "records" if magic == 2 else "key and value"
    return next(name for name in reversed(header.names) if header.offset_of(name) <= position)


def covered_from(magic: int) -> int:
    """The first byte of a batch that its CRC covers."""
    return layout.RECORD_BATCH.offset_of("attributes") if magic == 2 else layout.MESSAGE_V0.offset_of("magic")


def sweep_uncovered(bench: Workbench, part: Part, tally: Tally) -> None:
    """All other values of every byte that no CRC covers, and of the CRC itself."""
    kind = "contiguous log, byte outside the CRC" if bench.is_contiguous else "compacted log, byte outside the CRC"
    for path in bench.logs:
        content = path.read_bytes()
        for position, magic, in_batch in _batch_bytes(path, lambda magic, size: range(covered_from(magic))):
            for value in range(256):
                if value == content[position] or not part.takes():
                    continue
                with bench.changed(path, position, bytes([value])):
                    is_detected = bench.is_detected()
                what = f"v{magic} {field_at(magic, in_batch)}"
                tally.add(kind, is_detected, what, f"{bench.name}/{path.name} byte {position} := {value:#04x}")


def sweep_covered(bench: Workbench, part: Part, tally: Tally) -> None:
    """One flipped bit of every byte that a CRC covers, through verify."""
    kind = "log, flipped bit under the CRC"
    for path in bench.logs:
        content = path.read_bytes()
        for position, magic, in_batch in _batch_bytes(path, lambda magic, size: range(covered_from(magic), size)):
            if part.takes():
                with bench.changed(path, position, bytes([content[position] ^ (1 << position % 8)])):
                    is_detected = bench.is_detected(Severity.FATAL)
                what = f"v{magic} {field_at(magic, in_batch)}"
                tally.add(kind, is_detected, what, f"{bench.name}/{path.name} byte {position}")


def sweep_crc(bench: Workbench, part: Part, tally: Tally) -> None:
    """All other values of every byte that a CRC covers, against the CRC alone."""
    kind = "byte under the CRC, against the CRC"
    for path in bench.logs:
        with FileSource(path) as source:
            table = read_batch_table(source)
        content = np.frombuffer(path.read_bytes(), np.uint8)
        for row in range(len(table)):
            start, end, magic = int(table.position[row]), int(table.end_position[row]), int(table.magic[row])
            copies, of_copies = _copies(table.columns[row : row + 1], content[start:end])
            for in_batch in range(covered_from(magic), end - start):
                if not part.takes():
                    continue
                copies[:, in_batch] = np.arange(256)
                crc_valid = checked_crcs(of_copies, memoryview(copies).cast("B"), 0)
                copies[:, in_batch] = content[start + in_batch]
                (accepted,) = crc_valid.nonzero()
                assert content[start + in_batch] in accepted, "the batch as it was has a right CRC"
                for value in set(accepted.tolist()) - {int(content[start + in_batch])}:
                    what = f"v{magic} {field_at(magic, in_batch)}"
                    tally.add(kind, False, what, f"{bench.name}/{path.name} byte {start + in_batch} := {value:#04x}")
                tally.cases[kind] += 255 - (len(accepted) - 1)


def _copies(row: NDArray[np.int64], one: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], HeaderTable]:
    """A batch 256 times over, a copy a row, and their table with positions from 0 on."""
    columns = np.repeat(row, 256, axis=0)
    columns[:, BATCH_COLUMN["position"]] = np.arange(256) * len(one)
    return np.tile(one, (256, 1)), HeaderTable(columns)


def _batch_bytes(path: Path, of_batch: Callable[[int, int], range]) -> Iterator[tuple[int, int, int]]:
    with FileSource(path) as source:
        table = read_batch_table(source)
    for start, size, magic in zip(
        table.position.tolist(), table.size_bytes.tolist(), table.magic.tolist(), strict=True
    ):
        for in_batch in of_batch(magic, size):
            yield start + in_batch, magic, in_batch


def sweep_truncations(bench: Workbench, part: Part, tally: Tally) -> None:
    """Every truncation point of every segment, and what it is called: see ``expected_of_truncation``."""
    for path in bench.logs:
        content = path.read_bytes()
        with FileSource(path) as source:
            ends = {0, *read_batch_table(source).end_position.tolist()}
        is_last = path == bench.logs[-1]
        for length in reversed(range(len(content))):  # ever shorter, so that nothing is written in between
            if not part.takes():
                continue
            os.truncate(path, length)
            codes = {each.code for each in bench.new_findings() if each.severity >= Severity.WARNING}
            at_boundary = length in ends
            torn = {"tail-torn", "log-truncated"} & codes
            if at_boundary:
                is_right = bool(codes) and not torn
            else:
                is_right = torn == ({"tail-torn"} if is_last else {"log-truncated"})
            what = f"{'last' if is_last else 'closed'} segment, {'between' if at_boundary else 'inside'} batches"
            tally.add("truncation point", is_right, what, f"{bench.name}/{path.name} at {length}: {sorted(codes)}")
        path.write_bytes(content)


# -- side files ----------------------------------------------------------------------------------------------


def sweep_side_files(bench: Workbench, part: Part, tally: Tally) -> None:
    """All other values of every byte of every file beside the logs: reported, or every look-up still right."""
    right = None
    for path in side_files(bench):
        content = path.read_bytes()
        for position, old in enumerate(content):
            for value in range(256):
                if value == old or not part.takes():
                    continue
                with bench.changed(path, position, bytes([value])):
                    is_detected = bench.is_detected(Severity.INFO)
                    if not is_detected and path.suffix in (".index", ".timeindex"):
                        if right is None:
                            with bench.changed(path, position, bytes([old])):
                                right = look_ups(bench)
                        is_detected = look_ups(bench) == right
                kind = f"side file {path.suffix if path.suffix in SIDE_SUFFIXES else path.name}"
                what = what_in_side_file(path, content, position)
                tally.add(
                    kind, is_detected, what, f"{bench.name} byte {position} {bytes([old])!r} := {bytes([value])!r}"
                )


def side_files(bench: Workbench) -> list[Path]:
    """The files beside the logs; what is the same for every partition, of one of them only."""
    everywhere = (layout.META_PROPERTIES, layout.CLEAN_SHUTDOWN, layout.PARTITION_METADATA)
    found = [each for folder in (bench.directory, bench.directory.parent) for each in sorted(folder.iterdir())]
    found = [each for each in found if each.is_file() and each.suffix != ".log"]
    return [each for each in found if each.name not in everywhere or bench.name == ONE_OF_ALL]


def what_in_side_file(path: Path, content: bytes, position: int) -> str:
    """The part of the file that a byte belongs to, in words."""
    tables = {
        ".index": (0, layout.OFFSET_INDEX_ENTRY),
        ".timeindex": (0, layout.TIME_INDEX_ENTRY),
        ".txnindex": (0, layout.ABORTED_TXN),
        ".snapshot": (layout.PRODUCER_SNAPSHOT_HEADER.size_bytes, layout.PRODUCER_SNAPSHOT_ENTRY),
    }
    if path.suffix in tables:
        start, entry = tables[path.suffix]
        if position < start:
            entry = layout.PRODUCER_SNAPSHOT_HEADER
        at = (position - start) % entry.size_bytes if position >= start else position
        return next(name for name in reversed(entry.names) if entry.offset_of(name) <= at)
    line = content[:position].count(b"\n")
    text = content.split(b"\n")[line]
    if path.name.endswith("checkpoint"):
        word = content[:position].rpartition(b"\n")[2].count(b" ")
        names_of = (
            ("epoch", "start offset")
            if path.name == layout.LEADER_EPOCH_CHECKPOINT
            else ("topic", "partition", "offset")
        )
        return ("version", "count")[line] if line < 2 else names_of[word]
    return text.partition(b"=")[0].partition(b":")[0].decode("ascii", "replace") or "text"


def look_ups(bench: Workbench) -> list[tuple[int, int] | str]:
    """The answer to a look-up of every batch's first and last offset and largest timestamp."""
    partition = read_partition(bench.directory)
    answers: list[tuple[int, int] | str] = []
    for path in bench.logs:
        with FileSource(path) as source:
            table = read_batch_table(source)
        targets = {*table.base_offset.tolist(), *table.last_offset.tolist()}
        for offset in sorted(targets):
            answers.append(_answer(find_offset(partition, offset)))
        for timestamp in sorted(set(table.max_timestamp.tolist())):
            answers.append(_answer(find_timestamp(partition, timestamp)))
    return answers


def _answer(found: LookupResult) -> tuple[int, int] | str:
    if found.error is not None:
        raise found.error
    if found.match is not None:
        where = found.match.location
        return where.offset or 0, where.position or 0
    return "not found"


# -- the command ---------------------------------------------------------------------------------------------

SWEEPS = (sweep_uncovered, sweep_covered, sweep_crc, sweep_truncations, sweep_side_files)


def run_one(job: tuple[str, str, int]) -> Tally:
    """One sweep over one partition, in a folder of its own."""
    name, sweep_name, one_in = job
    tally = Tally()
    with tempfile.TemporaryDirectory(dir=scratch_root()) as folder:
        sweep = next(each for each in SWEEPS if each.__name__ == sweep_name)
        sweep(workbench(Path(folder), name), Part(one_in), tally)
    return tally


def run(one_in: int = 1, processes: int | None = None, sweeps: tuple[str, ...] = ()) -> Tally:
    """All sweeps over all partitions."""
    chosen = [each.__name__ for each in SWEEPS if not sweeps or each.__name__ in sweeps]
    jobs = [(name, sweep, one_in) for sweep in chosen for name in names()]
    total = Tally()
    with multiprocessing.Pool(processes) as pool:
        for tally in pool.imap_unordered(run_one, jobs, chunksize=1):
            total.merge(tally)
    return total


def report(tally: Tally) -> str:
    lines = []
    for kind, count in sorted(tally.cases.items()):
        missed = {what: number for what, number in tally.undetected.items() if what.startswith(kind + ": ")}
        lines.append(f"{kind}: {count} cases, {count - sum(missed.values())} reported")
        for what, number in sorted(missed.items()):
            lines.append(f"    {number} not reported: {what.removeprefix(kind + ': ')}, such as {tally.examples[what]}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=int, default=1, metavar="N", help="one case in N")
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--sweep", action="append", default=[], choices=[each.__name__ for each in SWEEPS])
    options = parser.parse_args()
    print(report(run(options.part, options.processes, tuple(options.sweep))))


if __name__ == "__main__":
    main()
