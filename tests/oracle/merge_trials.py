"""Trials of ``salvage --merge``: three replicas of a real cluster are wounded at random and merged, a broker serves it.

    python -m tests.oracle.merge_trials [--sets 60] [--seed N] [--clusters DIR] [--keep DIR] [--only REGEX]

makes the clusters (``--clusters DIR`` keeps them for the next run), wounds the three replicas of each topic, merges
each topic by itself and all of a cluster at once, and holds the results against what was true before the wounds:

- every batch that is intact on a replica of the right branch is in the result; of a compacted log, the newest record of
  each key, and a key that was deleted stays deleted;
- nothing of another branch is in it but in the directory of ``--branches``, and each batch is one of a source, byte
  for byte;
- what no replica has is named by findings with these offsets, neither more nor less; the manifest's ranges are true,
  and the exit status is right;
- a broker starts on all results, and serves the records that were there before to both kinds of consumers. It takes
  writes, starts again, and cleans.

Prints a line for what is wrong, then a table; exits with 1 where something is wrong. ``--keep DIR`` keeps the replicas
and the result of each wrong set.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.merge_trials_replicas import REPLICAS, TRIMMED_BEFORE, VERSIONS, live, make, writable_copy
from tests.oracle.merge_trials_truth import (
    Frame,
    Ranges,
    Replicas,
    Truth,
    committed,
    frames,
    holds,
    joined,
    newest_by_key,
    split,
    without,
)
from tests.oracle.merge_trials_wounds import wound
from tests.oracle.record_reader import Row, Served
from tests.running import Run, run_many

Rows = dict[int, Row]
#: The finding that no replica has some offsets.
LOST = "no-intact-replica"


@dataclass
class MergeSet:
    """The replicas of one topic, wounded: what was true, what was done, what came out, and what is wrong with it."""

    topic: str
    truth: Truth
    rows: Rows
    after: Replicas
    wounds: list[str]
    result: Path  # the partition directory of the output
    merged: list[Frame] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)  # one line for each kind of wrong
    notes: Counter[str] = field(default_factory=Counter)
    is_unsure: bool = False  # nothing shows which branch is right

    @property
    def branches(self) -> Path:
        """Where batches of other branches are kept apart."""
        return self.result.parents[2] / "branches" / self.topic

    @property
    def log_start(self) -> int:
        """The log start offset, below which nothing needs to be kept."""
        return TRIMMED_BEFORE if self.kind == "trimmed" else 0

    @property
    def kind(self) -> str:
        return self.topic.rsplit("-", 1)[0]

    def fail(self, kind: str, words: str) -> None:
        self.wrong.setdefault(kind, words)

    # -- files -----------------------------------------------------------------------------------------------

    def judge(self, code: int, lost: Ranges, ranges: Iterable[Mapping[str, Any]] | None = None) -> None:
        """Hold the result against the truth: ``lost`` is what findings say, ``ranges`` where the batches come from."""
        kept = self.truth.kept(self.after)
        try:
            found = frames(self.result) if self.result.is_dir() else []
        except AssertionError as error:
            self.fail("unreadable", str(error))
            return
        if not self.truth.shows_the_branch(self.after):
            self.notes["sets that do not show which branch is right"] += 1
            self.is_unsure = True
            return
        # Behind a gap, the first offset of a message is not to be seen in the result.
        self.merged = [self.truth.right.get(each.content, each) for each in found]
        if any(b.base <= a.last for a, b in zip(self.merged, self.merged[1:], strict=False)):
            self.fail("order", "the offsets of the result do not ascend")
        has_wrong_header = self._judge_bytes(kept)
        self._judge_branches()
        if self.truth.is_compacted:
            must_be_reported = self._judge_keys(kept, lost)
        else:
            missing = kept.keys() - {each.content for each in self.merged}
            missing = {each for each in missing if kept[each].last >= self.log_start}
            if missing:
                places = joined((kept[each].base, kept[each].last) for each in missing)
                self.fail("missing", f"intact, and not in the result: {_words(places)}")
            must_be_reported = without(self.truth.everything, joined((each.base, each.last) for each in self.merged))
        self._judge_lost(lost, must_be_reported)
        if code != (1 if lost or has_wrong_header else 0):  # what is wrong with a header is damage in the result
            self.fail("exit status", f"{code}, with {len(lost)} lost ranges")
        if ranges is not None:
            self._judge_ranges(ranges)

    def _judge_bytes(self, kept: Mapping[bytes, Frame]) -> bool:
        """Each batch is one of a source; returns whether one has a wrong header, which no replica has right."""
        sources = b""
        count = 0
        for each in self.merged:
            if each.content in self.truth.foreign:
                self.fail("another branch", f"{each.base}-{each.last} is of another branch")
            elif each.content not in self.truth.right:
                if not sources:
                    logs = [path for node in self.after.values() for path in sorted(node.glob("*.log"))]
                    sources = b"".join(path.read_bytes() for path in logs)
                if each.content not in sources:
                    self.fail("bytes", f"{each.base}-{each.last} is in no source")
                elif any(other.base <= each.last and each.base <= other.last for other in kept.values()):
                    self.fail("worse", f"{each.base}-{each.last} has a wrong header, and a replica has the right one")
                else:
                    count += 1
        self.notes["batches kept with a wrong header"] += count
        return count > 0

    def _judge_branches(self) -> None:
        """What is of another branch is kept apart, all of it that is intact."""
        apart = {each.content for path in {log.parent for log in self.branches.rglob("*.log")} for each in frames(path)}
        alone = {
            frame.content
            for node, flags in self.truth.intact(self.after).items()
            for frame, is_intact in zip(self.truth.before[node], flags, strict=True)
            if is_intact and frame.content in self.truth.foreign
        }
        if alone - apart:
            self.fail("branches", f"{len(alone - apart)} batches of another branch are not kept apart")
        if apart & self.truth.right.keys():
            self.fail("branches", "batches of the right branch are kept apart")

    def _judge_keys(self, kept: Mapping[bytes, Frame], reported: Ranges) -> Ranges:
        """The newest records that are not in the result."""
        at_hand = {offset for each in kept.values() for offset in each.offsets()}
        present = {offset for each in self.merged if each.content in self.truth.right for offset in each.offsets()}
        keys = {offset: row["key"] for offset, row in self.rows.items()}
        last_present: dict[str, int] = {keys[each]: each for each in sorted(present) if each in keys}
        lost = []
        for offset in newest_by_key(keys):
            if self.rows[offset]["value"] is not None:
                if offset not in present:
                    lost.append((offset, offset))
                    if offset in at_hand:
                        self.fail("newest", f"the newest record of a key, {offset}, is intact and not in the result")
                continue
            shown = last_present.get(keys[offset])
            if shown is None or self.rows[shown]["value"] is None:
                continue
            if offset in at_hand:
                self.fail("revived", f"a deleted key has the record {shown}; the tombstone {offset} is intact")
            elif holds(reported, offset):
                self.notes["deleted keys that came back, with a finding for the tombstone's offset"] += 1
            elif (node := self._cleaned_away(shown)) is not None:
                self.fail("revived", f"a deleted key has the record {shown}, which the cleaner of node {node} removed")
            else:
                self.notes["deleted keys that came back, as no replica shows that they were deleted"] += 1
        return lost

    def _cleaned_away(self, offset: int) -> int | None:
        """A replica that is intact around an offset and does not have it."""
        for node, known in self.truth.before.items():
            alone = Truth(self.topic, {node: known}, self.truth.right)
            has = any(offset in each.offsets() for each in alone.kept(self.after).values())
            if not has and holds(alone.known(self.after), offset):
                return node
        return None

    def _judge_lost(self, lost: Ranges, must: Ranges) -> None:
        here = joined((each.base, each.last) for each in self.merged)
        may = without(without(self.truth.everything, self.truth.known(self.after)), here)
        end = self.merged[-1].last if self.merged else -1
        unseen = [(end + 1, 2**62)]  # a lost end leaves no trace, or one in a side file
        unseen.append((0, self.log_start - 1))
        if more := without(lost, joined([*may, *must])):
            self.fail("false alarm", f"reported as lost: {_words(more)}; lost: {_words(may)}")
        if less := without(without(must, lost), joined(unseen)):
            self.fail("silent loss", f"lost, and not reported: {_words(less)}; reported: {_words(lost)}")

    def _judge_ranges(self, ranges: Iterable[Mapping[str, Any]]) -> None:
        """One after the other, the ranges are the result, and each has the offsets and records that it says."""
        at = 0
        whole = b"".join(_logs(self.result).values())
        for row in ranges:
            part = Path(row["path"]).read_bytes()[row["position"] : row["position"] + row["size_bytes"]]
            if whole[at : at + len(part)] != part:
                self.fail("ranges", f"the result at {at} is not {row}")
                return
            at += len(part)
            batches = split(part, row["first_offset"])
            said = row["first_offset"], row["last_offset"], row["record_count"]
            if said != (batches[0].base, batches[-1].last, sum(each.record_count for each in batches)):
                self.fail("ranges", f"not what is there: {row}")
        if at != len(whole):
            self.fail("ranges", f"{at} bytes in ranges, {len(whole)} in the result")

    # -- a broker --------------------------------------------------------------------------------------------

    def judge_served(self, served: Served | None, written: int, *, cleaned: bool = False) -> None:
        """Hold what a broker serves against what was there before; so many records were written since."""
        if served is None or served.problem:
            self.fail("not served", "nothing" if served is None else served.problem)
        if served is None or served.problem or self.is_unsure:
            return
        if cleaned:
            if _state(served.records) != _state(self._rows_of(self.merged)) | _state(
                {offset: row for offset, row in served.records.items() if offset > self.end}
            ):
                self.fail("cleaned", "after cleaning, the newest records differ")
            return
        unsure = joined((each.base, each.last) for each in self.merged if each.content not in self.truth.right)
        expected = self._rows_of(each for each in self.merged if not each.is_control)
        got = {o: row for o, row in served.records.items() if o <= self.end and not holds(unsure, o)}
        expected = {o: row for o, row in expected.items() if o >= served.start and not holds(unsure, o)}
        if differ := [o for o in sorted(expected.keys() | got.keys()) if expected.get(o) != got.get(o)]:
            self.fail("served", f"{len(differ)} records differ, the first at {differ[0]}: {got.get(differ[0])}")
        self.notes["records that were read, by both kinds of consumers"] += len(got) + len(served.committed)
        batches, stable = committed(self.merged)
        if stable > self.end:
            stable = served.stable
        read = {o for o in self._rows_of(batches) if o >= served.start and not holds(unsure, o)}
        given = {o for o in served.committed if o <= self.end and not holds(unsure, o)}
        if served.stable != stable or read != given:
            self.fail("committed", f"stable {served.stable}, not {stable}; differ: {sorted(read ^ given)[:9]}")
        if (more := sum(o > self.end for o in served.records)) != written:
            self.fail("written", f"{more} of {written} records that were written since")

    @property
    def end(self) -> int:
        return self.merged[-1].last if self.merged else -1

    def _rows_of(self, batches: Iterable[Frame]) -> Rows:
        found: Rows = {}
        for each in batches:
            known = self.truth.right.get(each.content)
            if known is None:
                continue
            offsets = known.offsets() if self.truth.is_compacted else range(known.base, known.last + 1)
            found |= {offset: self.rows[offset] for offset in offsets if offset in self.rows}
        return found


def _state(rows: Rows) -> dict[str, Row]:
    newest = {row["key"]: row for _, row in sorted(rows.items())}
    return {key: row for key, row in newest.items() if row["value"] is not None}


def _words(ranges: Ranges) -> str:
    return ", ".join(f"{first}-{last}" for first, last in ranges[:6]) or "nothing"


# -- the program -------------------------------------------------------------------------------------------------


def lost_ranges(run: Run, topic: str | None = None) -> Ranges:
    """The offsets that a run says are lost, of all topics or of one."""
    rows = [row for row in run.rows("finding") if row["code"] == LOST and topic in (None, row.get("topic"))]
    return joined(tuple(row["lost_offsets"]) for row in rows)


def merge_words(sources: Iterable[Path], output: Path, branches: Path | None = None) -> tuple[str | Path, ...]:
    more: tuple[str | Path, ...] = () if branches is None else ("--branches", branches)
    return "salvage", "--merge", *sources, "--output", output, *more, "--format", "jsonl", "--quiet"


# -- the clusters ------------------------------------------------------------------------------------------------


class Made:
    """A cluster that was made, and what is true of it."""

    def __init__(self, lab: KafkaLab, version: str, root: Path) -> None:
        self.lab, self.version, self.root = lab, version, root / version
        if not self.root.exists():
            make(lab, version, self.root, seed=1)
        if not (self.root / "truth.json").exists():
            self._record(root / "truth-work")
        told = json.loads((self.root / "truth.json").read_text())
        self.rows: dict[str, Rows] = {topic: {row["offset"]: row for row in rows} for topic, rows in told.items()}
        self.truths = {topic: Truth.of(topic, self._replicas(topic, self.root)) for topic in self.rows}

    def _replicas(self, topic: str, root: Path) -> Replicas:
        return {node: root / f"node-{node}" / f"{topic}-0" for node in REPLICAS}

    def _record(self, work: Path) -> None:
        """What a consumer gets of the longest replica of the right branch; a test of ``committed`` too."""
        kinds = re.compile("compacted")
        names = sorted(each.name[:-2] for each in (self.root / "node-2").glob("*-[0-9][0-9]-0"))
        logs = {name: self.root / "node-3" / f"{name}-0" for name in names if kinds.match(name)}
        with live(self.lab, self.version, self.root, logs, work) as broker:
            served = broker.read(names)
        for name in names:
            each = served[f"{name}-0"]
            assert not each.problem, (name, each.problem)
            batches, stable = committed(frames(logs.get(name, self.root / "node-2" / f"{name}-0")))
            if "compacted" not in name:
                offsets = {o for frame in batches for o in range(frame.base, frame.last + 1) if o in each.records}
                assert stable == each.stable, (name, stable, each.stable)
                assert {o for o in offsets if o >= each.start} == set(each.committed), name
        told = {name: list(served[f"{name}-0"].records.values()) for name in names}
        (self.root / "truth.json").write_text(json.dumps(told))
        shutil.rmtree(work)

    def wounded(self, topics: Iterable[str], seed: int, work: Path) -> list[MergeSet]:
        """Copy the brokers' directories, and wound the replicas of some topics."""
        for node in REPLICAS:
            writable_copy(self.root / f"node-{node}", work / f"node-{node}")
        sets = []
        for topic in topics:
            after = self._replicas(topic, work)
            wounds = wound(random.Random(f"{seed} {self.version} {topic}"), after, self.truths[topic].before)
            result = work / "one-by-one" / topic / f"{topic}-0"
            sets.append(MergeSet(topic, self.truths[topic], self.rows[topic], after, wounds, result))
        return sets


# -- a round -----------------------------------------------------------------------------------------------------


def merged(sets: list[MergeSet], work: Path) -> None:
    """Merge set by set and all at once, and judge the files."""
    (work / "one-by-one").mkdir()
    (work / "branches").mkdir()
    commands = [merge_words(each.after.values(), each.result.parent, each.branches) for each in sets]
    commands.append(merge_words([work / f"node-{node}" for node in REPLICAS], work / "at-once"))
    *runs, at_once = run_many(commands)
    for each, run in zip(sets, runs, strict=True):
        (work / f"{each.topic}.out").write_text(run.stdout + run.stderr)
        if run.code not in (0, 1) or "Traceback" in run.stderr:
            each.fail("run", f"exit {run.code}: {(run.stderr or run.stdout).strip()[-200:]}")
            continue
        each.judge(run.code, lost_ranges(run), run.rows("merged_range"))
        if at_once.code not in (0, 1):
            continue
        whole = work / "at-once" / f"{each.topic}-0"
        if _logs(whole) != _logs(each.result):
            each.fail("at once", "the merge of whole nodes has another result")
        elif lost_ranges(at_once, each.topic) != lost_ranges(run):
            each.fail("at once", f"lost by the merge of whole nodes: {_words(lost_ranges(at_once, each.topic))}")
    (work / "at-once.out").write_text(at_once.stdout + at_once.stderr)
    if at_once.code != max(run.code for run in runs):
        print(f"WRONG: the merge of whole nodes: exit {at_once.code}: {at_once.stderr[-300:]}", flush=True)


def _logs(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}


def served(made: Made, sets: list[MergeSet], work: Path) -> None:
    """Start a broker on the results, and judge what it does with them."""
    ready = [each for each in sets if any(each.result.glob("*.log"))]
    topics = [each.topic for each in ready]
    entries = [
        {"topic": each, "batches": [{"records": [["written", 20, int(time.time() * 1000)]], "producer": 7}]}
        for each in topics
    ]
    with live(made.lab, made.version, made.root, {each.topic: each.result for each in ready}, work / "live") as broker:
        for count in (0, 1):
            answers = broker.read(topics)
            for each in ready:
                each.judge_served(answers.get(f"{each.topic}-0"), count)
            if count == 0:
                able = {name for name, each in answers.items() if not each.problem}
                broker.cluster.write([each for each in entries if f"{each['topic']}-0" in able], node=2)
                broker.cluster.stop(2)
                broker.cluster.start(2)
        broker.cluster.clean(2)
        compacted = [each for each in ready if each.truth.is_compacted]
        answers = broker.read([each.topic for each in compacted])
        for each in compacted:
            each.judge_served(answers.get(f"{each.topic}-0"), 1, cleaned=True)
        text = broker.cluster.node(2).log_text
    for each in compacted:
        if f"leaning of log {each.topic}-0" not in text and f"leaning log {each.topic}-0" not in text:
            each.fail("cleaned", "the cleaner did not clean it")
    (work / "broker.out").write_text(text)
    for each in ready:
        lines = [line for line in text.splitlines() if f"{each.topic}-0" in line]
        lines = [line for line in lines if line.startswith(("ERROR", "FATAL"))]
        if lines:
            each.fail("broker", lines[0][:300])


def keep(each: MergeSet, work: Path, target: Path) -> None:
    """Keep the replicas and the result of a set."""
    shutil.rmtree(target, ignore_errors=True)
    for node, directory in each.after.items():
        shutil.copytree(directory, target / f"node-{node}" / directory.name)
    if each.result.is_dir():
        shutil.copytree(each.result.parent, target / "result")
    shutil.copyfile(work / f"{each.topic}.out", target / "findings.jsonl")
    (target / "wrong.json").write_text(json.dumps({"wrong": each.wrong, "wounds": each.wounds}, indent=1))


def table(sets: list[MergeSet]) -> str:
    """The figures, as a Markdown table."""
    lines = ["| kind | sets | wounds | batches | right | wrong |", "| --- | --- | --- | --- | --- | --- |"]
    for kind in [*dict.fromkeys(each.kind for each in sets), "all"]:
        some = [each for each in sets if kind in (each.kind, "all")]
        wrong = Counter(name for each in some for name in each.wrong)
        wounds, batches = (sum(map(len, lists)) for lists in (
            (each.wounds for each in some), (each.merged for each in some)))  # fmt: skip
        words = ", ".join(f"{name}: {count}" for name, count in wrong.most_common()) or "-"
        lines.append(f"| {kind} | {len(some)} | {wounds} | {batches:,} | {sum(not e.wrong for e in some)} | {words} |")
    notes: Counter[str] = sum((each.notes for each in sets), Counter())
    return "\n".join([*lines, "", *(f"{name}: {count}" for name, count in notes.items())])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1, help="decides the wounds, with the release and the topic")
    parser.add_argument("--clusters", type=Path, help="where the clusters are, or are to be kept")
    parser.add_argument("--keep", type=Path, help="where to keep the sets with which something is wrong")
    parser.add_argument("--only", default="", help="topics, a regular expression")
    parser.add_argument("--kafka", choices=VERSIONS, help="one release alone")
    parser.add_argument("--no-broker", action="store_true", help="judge files alone")
    options = parser.parse_args()
    lab = KafkaLab()
    versions = [options.kafka] if options.kafka else VERSIONS
    for version in versions:
        if (missing := lab.missing(version)) is not None:
            print(missing, file=sys.stderr)
            return 2
    everything: list[MergeSet] = []
    with tempfile.TemporaryDirectory(prefix="merge-trials-") as scratch:
        root = options.clusters or Path(scratch) / "clusters"
        root.mkdir(parents=True, exist_ok=True)
        clusters = [Made(lab, version, root) for version in versions]
        seed = options.seed
        while len(everything) < options.sets:
            for made in clusters:
                topics = [each for each in made.truths if re.search(options.only, each)]
                topics = topics[: options.sets - len(everything)]
                if not topics:
                    continue
                work = Path(scratch) / "round"
                work.mkdir()
                sets = made.wounded(topics, seed, work)
                merged(sets, work)
                if not options.no_broker:
                    served(made, sets, work)
                for each in sets:
                    for kind, words in each.wrong.items():
                        print(f"WRONG: seed {seed}, {made.version}, {each.topic}: {kind}: {words}", flush=True)
                    if each.wrong and options.keep is not None:
                        keep(each, work, options.keep / f"{seed}-{made.version}-{each.topic}")
                everything += sets
                shutil.rmtree(work)
            seed += 1
    print(table(everything))
    return int(any(each.wrong for each in everything))


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
