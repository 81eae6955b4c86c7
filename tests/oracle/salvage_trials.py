"""Trials of salvage: a node damaged at random, what salvage makes of it, and a real broker that is started on that.

    python -m tests.oracle.salvage_trials [--count 200] [--first 0] [--kafka 4.3.1] [--work DIR]
    python -m tests.oracle.salvage_trials --only "^odd-batches/"
    python -m tests.oracle.salvage_trials --fields --count 20

runs them, one broker after the other, and prints a table: started of tried, and whether a consumer gets all records,
field by field, and of transactions those that are committed. With ``--fields`` the damage is one wrong header field,
outside the CRC, in a batch of each log, and salvage runs with ``--repair``.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from format.errors import InputError
from format.findings import Finding, Severity
from format.io.source import FileSource
from format.layout import META_PROPERTIES
from format.node.partition import parse_partition_dir
from format.rewriting.publication import Publication
from format.rewriting.sources import read_write_sources
from format.verbs.salvage import salvage
from tests.corpora import SHARED_CORPUS, present
from tests.oracle.boot_mutations.node import LOG_START, METADATA, Mutation, Node, copied_node
from tests.oracle.boot_mutations.table import mutations
from tests.oracle.boot_trials import Observed, Trials, files_of, last_words
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.random_damage import damage
from tests.oracle.record_reader import Kept, ReadingFailed, RecordReader, Row, Served, differences, kept_records
from tests.running import run_many
from tests.sources import read_batch_table

#: Nothing is to change while the consumer reads: no cleaner, and no end of a transaction that was open too long.
_SETTINGS = """\
log.cleaner.enable=false
log.retention.ms=-1
auto.create.topics.enable=false
transaction.abort.timed.out.transaction.cleanup.interval.ms=3600000
broker.session.timeout.ms=9000
broker.heartbeat.interval.ms=1000
transaction.remove.expired.transaction.cleanup.interval.ms=3600000
"""
#: The numbers of PrepareCommit and PrepareAbort.
_BEING_ENDED = (2, 3)
#: Families of mutations that keep the node in one log directory.
_CHOSEN = [each for each in mutations() if each.kind not in ("untouched", "two-directories", "several-directories")]


@dataclass
class SalvageTrial:
    """One trial: what was done to the node, how it ended, and what is not as it should be."""

    number: int
    damages: list[str] = field(default_factory=list)
    outcome: str = ""
    predicted: list[str] = field(default_factory=list)  # the refusals and unserved logs that salvage reported
    differences: list[str] = field(default_factory=list)
    strays: int = 0
    identity_given: bool = False  # cluster and node id were lost, and written by hand before the start
    partitions: int = 0  # those that a consumer read
    records: int = 0
    wounded: int = 0  # logs with a wrong header field
    restored: int = 0  # of them, those that came out as they were

    @property
    def is_right(self) -> bool:
        """Whether the broker started, or salvage said that it would not; and it serves all that was kept."""
        return not self.differences and (self.outcome == "started" or bool(self.predicted))


class SalvageTrials(Trials):
    """Runs them under a working directory; the records of every broker are read by ``reader``."""

    def __init__(self, lab: KafkaLab, version: str, source: Path, work: Path, reader: RecordReader) -> None:
        super().__init__(lab, version, source, work)
        self._reader = reader

    def trial(self, number: int, mutation: Mutation | None = None, *, fields: bool = False) -> SalvageTrial:
        """Damage a copy as the number or the mutation says, salvage it, start a broker on the output, and compare."""
        rng = random.Random(number)
        node = copied_node(self._source, self._work / "node")
        result = SalvageTrial(number)
        originals: dict[str, bytes] = {}
        if fields:
            originals, result.damages = wrong_fields(node.first, rng)
        elif mutation is None:
            result.damages = damage(node, rng, _CHOSEN)
        else:
            mutation.apply(node)
            result.damages = [str(mutation)]
        saved = self._work / "saved" / "node-1"
        shutil.rmtree(saved.parent, ignore_errors=True)
        saved.parent.mkdir()
        try:
            sources = read_write_sources([node.first])
            with Publication(saved, [node.first], job=sources.job("salvage")) as publication:
                items = list(salvage(sources, publication, repairs=fields))
        except InputError as error:
            result.outcome, result.predicted = "no source", [error.message]
            return result
        found = [each for each in items if isinstance(each, Finding) and each.severity >= Severity.ERROR]
        found = [each for each in found if each.location.path.startswith(str(saved))]
        result.predicted = [each.message for each in found]
        unserved = {Path(each.location.path).name for each in found if each.code == "boot-unserved"}
        copy = Node(saved.parent, [saved])
        if not (saved / META_PROPERTIES).exists():
            # As the finding says: nothing but the operator knows what the cluster is called.
            (saved / META_PROPERTIES).write_bytes((self._source / META_PROPERTIES).read_bytes())
            result.identity_given = True
        result.wounded = len(originals)
        result.restored = sum((saved / name).read_bytes() == content for name, content in originals.items())
        before = files_of(copy)
        expected = _log_ends(saved)
        kept = kept_records(saved)
        starts = _log_starts(saved)
        completed = _completed_at_start(saved)
        served: dict[str, Served] = {}

        def read(address: str) -> None:
            served.update(self._reader.read(address, sorted(expected)))

        try:
            result.outcome, text = self._run(copy, [], settings=_SETTINGS, while_up=read)
        except ReadingFailed as error:
            result.outcome = "started"
            result.differences.append(f"the consumer failed: {error}")
            return result
        if result.outcome == "started":
            observed = Observed(result.outcome, text, before, files_of(copy))
            unread = _compare(result, copy, expected, observed, completed)
            for place in sorted(unserved & served.keys()):
                if not served[place].problem:
                    result.differences.append(f"{place} is served, though salvage said that it would not be")
            if any("others of which the broker becomes the leader" in each.message for each in found):
                unserved |= {place for place, each in served.items() if each.problem == "no answer"}
            read_places = {place: each for place, each in served.items() if place not in unread | unserved}
            for place in completed & read_places.keys():
                _forget_after(read_places[place], kept.setdefault(place, Kept()), expected[place])
            _compare_records(result, starts, kept, read_places)
        elif not result.predicted:
            result.differences.append(f"the broker did not start: {last_words(text)}")
        return result


#: The places of the header fields outside the CRC of a v2 batch, and their sizes.
_FIELDS = {"length": (8, 4), "base offset": (0, 8), "leader epoch": (12, 4), "magic": (16, 1)}


def wrong_fields(log_dir: Path, rng: random.Random) -> tuple[dict[str, bytes], list[str]]:
    """Give one batch of each log of a node a wrong header field; returns the old logs, and what was done."""
    originals, done = {}, []
    for path in sorted(log_dir.glob("*-*/*.log")):
        content = bytearray(path.read_bytes())
        with FileSource(path) as source:
            table = read_batch_table(source)
        if not len(table) or path.parent.name == METADATA:
            continue
        row = rng.randrange(len(table))
        name = rng.choice(list(_FIELDS))
        at, width = _FIELDS[name]
        at += int(table.position[row])
        old = int.from_bytes(content[at : at + width], "big")
        new = old ^ (1 << rng.randrange(8 * width)) if rng.random() < 0.7 else (old + rng.randrange(1, 9)) % 256**width
        originals[f"{path.parent.name}/{path.name}"] = bytes(content)
        content[at : at + width] = new.to_bytes(width, "big")
        path.write_bytes(content)
        done.append(f"{path.parent.name}/{path.name}: {name} of batch {row} of {len(table)}: {new} for {old}")
    return originals, done


def _log_ends(saved: Path) -> dict[str, int]:
    """The log end offset of each partition of the output, as its last segment says."""
    ends = {}
    for directory in sorted(saved.iterdir()):
        parsed = parse_partition_dir(directory.name) if directory.is_dir() else None
        logs = sorted(directory.glob("*.log")) if parsed is not None and parsed[2] is None else []
        if not logs or directory.name == METADATA:
            continue
        with FileSource(logs[-1]) as source:
            table = read_batch_table(source)
        ends[directory.name] = int(table.last_offset[-1]) + 1 if len(table) else int(logs[-1].stem)
    return ends


def _log_starts(saved: Path) -> dict[str, int]:
    """The log start offset of each partition: that of the checkpoint, if the log does not begin behind it."""
    starts = {each.name: int(min(each.glob("*.log")).stem) for each in saved.iterdir() if any(each.glob("*.log"))}
    if (saved / LOG_START).exists():
        for name, offset in Node(saved.parent, [saved]).checkpoint(LOG_START).items():
            place = name.replace(" ", "-")
            starts[place] = max(starts.get(place, 0), offset)
    return starts


def _completed_at_start(saved: Path) -> set[str]:
    """The logs to which a coordinator appends when it starts: it completes the transactions that were being ended.

    They are the partitions of each transactional id whose last record says PrepareCommit or PrepareAbort, and the
    partition of __transaction_state with that record.
    """
    logs = sorted(saved.glob("__transaction_state-*"))
    last: dict[tuple[str, str], tuple[int, list[Row]]] = {}
    if logs:
        dumped = run_many([("dump", "--records", "--format", "jsonl", "--quiet", *logs)])[0]
        for row in dumped.check(0, 1, 3).rows("record"):
            value = (row["value"] or {}).get("data") if isinstance(row["value"], dict) else None
            transactional_id = row["key"]["data"]["transactionalId"]
            place = f"{row['topic']}-{row['partition']}"
            status = value["transactionStatus"] if value else -1
            last[place, transactional_id] = status, value["transactionPartitions"] or [] if value else []
    completed = set()
    for (place, _), (status, partitions) in last.items():
        if status in _BEING_ENDED:
            completed |= {place, *(f"{each['topic']}-{n}" for each in partitions for n in each["partitionIds"])}
    return completed


def _forget_after(served: Served, kept: Kept, end: int) -> None:
    """Drop what the broker wrote at its start, and what read_committed gives because of it."""
    served.records = {offset: row for offset, row in served.records.items() if offset < end}
    served.committed, kept.committed = [], []


def _compare(
    result: SalvageTrial, node: Node, expected: dict[str, int], observed: Observed, completed: set[str]
) -> set[str]:
    """Every log is loaded to its end, and recovery has changed none. Returns the partitions that are strays."""
    offsets = {Path(directory).name: ends for directory, ends in observed.offsets().items()}
    strays = {name.split("/")[1] for name in observed.after if "-stray/" in name and name not in observed.before}
    result.strays = len(strays)
    stray_names = {name for name in expected if any(each.startswith(f"{name}.") for each in strays)}
    for name, end in expected.items():
        if name in stray_names:
            continue
        if name not in offsets:
            result.differences.append(f"{name} was not loaded")
        elif offsets[name][1] != end:
            result.differences.append(f"{name}: the log ends at {end}, the broker at {offsets[name][1]}")
        for path, size_and_hash in observed.before.items():
            is_log = path.endswith(".log") and path.split("/")[1] == name and name not in completed
            if is_log and observed.after.get(path) != size_and_hash:
                result.differences.append(f"{path} was changed")
    return stray_names


def _compare_records(
    result: SalvageTrial, starts: dict[str, int], kept: dict[str, Kept], served: dict[str, Served]
) -> None:
    """A consumer gets every record that salvage kept, and no other."""
    for place in sorted(served):
        if not served[place].problem and served[place].start != starts[place]:
            result.differences.append(f"{place} starts at {served[place].start}, not at {starts[place]}")
        result.differences += differences(place, kept.get(place, Kept()), served[place])
        result.partitions += 1
        result.records += len(served[place].records)


def table(trials: list[SalvageTrial]) -> str:
    """The sums, as a Markdown table."""
    outcomes = Counter(each.outcome for each in trials)
    served = sum(each.outcome == "started" and not each.differences for each in trials)
    predicted = sum(each.outcome != "started" and bool(each.predicted) for each in trials)
    return "\n".join(
        [
            (
                "| salvages | started | of them with ids that were written by hand | all kept records served "
                "| partitions read | records read | not started, as salvage said | strays, by the metadata |"
            ),
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            (
                f"| {len(trials)} | {outcomes['started']} | {sum(each.identity_given for each in trials)} | {served} "
                f"| {sum(each.partitions for each in trials):,} | {sum(each.records for each in trials):,} "
                f"| {predicted} | {sum(each.strays for each in trials)} |"
            ),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the number of the first trial, which decides its damage")
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--minutes", type=float, default=0, help="begin no trial after so many; 0 for all")
    parser.add_argument("--only", help="damage of these kinds and names, one in each trial: a regular expression")
    parser.add_argument("--fields", action="store_true", help="one wrong header field in each log, and --repair")
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    lab = KafkaLab()
    with tempfile.TemporaryDirectory(prefix="salvage-trials-") as scratch:
        source = present(SHARED_CORPUS / "kafka-4.3-single" / "node-1")
        work = options.work or Path(scratch)
        done = []
        with RecordReader(lab, options.kafka, work) as reader:
            trials = SalvageTrials(lab, options.kafka, source, work, reader)
            trials.warm_up()
            deadline = time.monotonic() + options.minutes * 60
            only = [each for each in _CHOSEN if options.only and re.search(options.only, str(each))]
            numbers = range(len(only)) if only else range(options.first, options.first + options.count)
            for number in numbers:
                if options.minutes and time.monotonic() > deadline:
                    break
                done.append(trials.trial(number, only[number] if only else None, fields=options.fields))
                if not done[-1].is_right or done[-1].outcome != "started":
                    print(done[-1], file=sys.stderr, flush=True)
                if len(done) % 10 == 0:
                    print(f"{len(done)}/{len(numbers)}", file=sys.stderr, flush=True)
    print(table(done))
    if options.fields:
        restored, wounded = sum(each.restored for each in done), sum(each.wounded for each in done)
        print(f"\n{restored} of {wounded} logs came out as they were")
    return 0 if all(each.is_right for each in done) else 1


if __name__ == "__main__":
    sys.exit(main())
