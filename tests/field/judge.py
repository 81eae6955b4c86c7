"""What kafkalog says of log directories against what clients, kafka-dump-log and a starting broker say of them."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from format.verbs.boot.boot import boot
from format.verbs.boot.steps import Action, BootTerms
from tests.oracle.kafka_lab import KafkaLab
from tests.running import Run, run_many

SUFFIXES = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")
_LOADED = re.compile(
    r"Completed load of Log\(dir=(?P<dir>.+?), topic(?:Id)?=.*?"
    r"logStartOffset=(?P<start>-?\d+), logEndOffset=(?P<end>-?\d+)\)"
)
_FILES_AT_ONCE = 150


@dataclass
class Seen:
    """What clients saw: the answers of the workbench's witness, and the records of its file, by partition.

    ``loose`` are partitions whose replicas are cleaned or end at moments of their own: what the leader had of them is
    compared in full, of other replicas only the records that the consumer got too. After a crash (``is_killed``) the
    clients looked at the brokers that were started again: their high watermarks are at the ends of their logs, and
    transactions that were open may have ended. ``shared`` are codes of findings that the broker shares. Brokers before
    3.8 may name the last record of a batch as the one with the largest timestamp (``is_last_of_batch``), later ones
    name the first record that has it.
    """

    places: dict[str, dict[str, Any]]
    records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)
    is_killed: bool = False
    shared: list[str] = field(default_factory=list)
    is_last_of_batch: bool = False

    @classmethod
    def read(cls, places: dict[str, dict[str, Any]], path: Path) -> Seen:
        seen = cls(places)
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                seen.records.setdefault(row.pop("place"), []).append(row)
        return seen

    def save(self, path: Path) -> None:
        """Keep it beside the directories that it is about."""
        content = json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)
        path.write_bytes(gzip.compress(content.encode(), mtime=0))

    @classmethod
    def load(cls, path: Path) -> Seen:
        content = json.loads(gzip.decompress(path.read_bytes()))
        return cls(**content)


@dataclass
class Verdict:
    """What was compared, and what differed; a difference begins with the partition that it is about, if any."""

    findings: list[dict[str, Any]] = field(default_factory=list)
    differences: list[tuple[str, str]] = field(default_factory=list)  # partition or "", message
    partitions: dict[str, int] = field(default_factory=dict)
    records: dict[str, int] = field(default_factory=dict)
    lookups: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    starts: int = 0

    def differ(self, place: str, message: str) -> None:
        self.differences.append((place, message[:600]))


def verified(verdict: Verdict, nodes: list[list[Path]]) -> None:
    """The findings of severity warning or above, of each node."""
    for log_dirs in nodes:
        (run,) = run_many([("verify", "--format", "jsonl", "--jobs", "1", "--quiet", *log_dirs)])
        if run.code not in (0, 1, 3) or "Traceback" in run.stderr:
            verdict.differ("", f"verify ended with {run.code}: {run.stderr[-500:]}")
            continue
        verdict.findings += [row for row in run.rows("finding") if row["severity"] != "info"]
        if not run.summary["complete"]:
            verdict.findings.append({"code": "incomplete", "severity": "warning", "topic": None, "partition": None,
                                     "path": str(log_dirs[0]), "message": str(run.summary["conditions"])})  # fmt: skip


def _content(value: Any) -> str | None:
    """A key or value of a row in base64, as the witness gives it."""
    if value is None:
        return None
    if isinstance(value, dict):
        return str(value["base64"])
    return base64.b64encode(str(value).encode()).decode()


def _ours(row: dict[str, Any]) -> dict[str, Any]:
    kind = {"CreateTime": "CreateTime", "LogAppendTime": "LogAppendTime"}.get(row["timestamp_type"], "NoTimestampType")
    return {
        "offset": row["offset"],
        "timestamp": -1 if row["timestamp"] is None else row["timestamp"],
        "timestamp_type": kind,
        "leader_epoch": -1 if row["leader_epoch"] is None else row["leader_epoch"],
        "key": _content(row["key"]),
        "value": _content(row["value"]),
        "headers": [[key, _content(value)] for key, value in row["headers"] or ()],
    }


def replicas(nodes: list[list[Path]], place: str) -> Iterator[tuple[int, Path]]:
    """The directories of a partition: the number of the node, and the path."""
    for number, log_dirs in enumerate(nodes, 1):
        for each in log_dirs:
            if (each / place).is_dir():
                yield number, each / place


def records_compared(verdict: Verdict, nodes: list[list[Path]], seen: Seen) -> None:
    """Every record of every replica against what a consumer read, within the offsets that it could read."""
    for place, answers in seen.places.items():
        expected = {row["offset"]: row for row in seen.records.get(place, [])}
        for node, path in replicas(nodes, place):
            runs = run_many([
                ("dump", "--records", "--raw", "--format", "jsonl", "--jobs", "1", "--quiet", path),
                ("dump", "--records", "--raw", "--read-committed", "--format", "jsonl", "--jobs", "1", "--quiet", path),
            ])  # fmt: skip
            everything, committed = (_rows_within(verdict, run, place, answers) for run in runs)
            found = {row["offset"]: _ours(row) for row in everything if not row["is_control"]}
            is_leader = node == answers["leader"] or answers["leader"] < 0
            if is_leader or place not in seen.loose:
                _compare_records(verdict, f"{place} of node {node}", place, expected, found)
                if "committed" in answers:
                    stable = _stable_offset(path, answers, seen)
                    ours = [row["offset"] for row in committed if row["offset"] < stable]
                    theirs = [offset for offset in answers["committed"] if offset < stable]
                    if ours != theirs:
                        wrong = sorted(set(ours) ^ set(theirs))[:10]
                        verdict.differ(place, f"{place} of node {node}: read committed differs at offsets {wrong}")
            else:
                both = expected.keys() & found.keys()
                wrong = [each for each in both if expected[each] != found[each]]
                if wrong:
                    verdict.differ(place, f"{place} of node {node}: records differ at {sorted(wrong)[:10]}")
            verdict.partitions[place] = verdict.partitions.get(place, 0) + 1
            verdict.records[place] = verdict.records.get(place, 0) + len(found)


def _stable_offset(path: Path, answers: dict[str, Any], seen: Seen) -> int:
    """The last stable offset that clients saw.

    After a crash it is that of the directory, if that is less: the high watermark that was written last, or the first
    offset of an open transaction.
    """
    stable = int(answers["stable"])
    if seen.is_killed:
        (run,) = run_many([("txns", "--open", "--format", "jsonl", "--jobs", "1", "--quiet", path)])
        topic, _, partition = path.name.rpartition("-")
        lines = (path.parent / "replication-offset-checkpoint").read_text().splitlines()
        marks = [int(line.split()[2]) for line in lines if line.split()[:2] == [topic, partition]]
        stable = min([stable, *marks, *(row["first_offset"] for row in run.rows("transaction"))])
    return stable


def _rows_within(verdict: Verdict, run: Run, place: str, answers: dict[str, Any]) -> list[dict[str, Any]]:
    if run.code not in (0, 1, 3) or "Traceback" in run.stderr:
        verdict.differ(place, f"dump ended with {run.code}: {run.stderr[-500:]}")
        return []
    return [row for row in run.rows("record") if answers["start"] <= row["offset"] < answers["end"]]


def _compare_records(
    verdict: Verdict, what: str, place: str, expected: dict[int, dict[str, Any]], found: dict[int, dict[str, Any]]
) -> None:
    missing, added = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    if missing or added:
        verdict.differ(place, f"{what}: {len(missing)} missing {missing[:5]}, {len(added)} added {added[:5]}")
    for offset in sorted(expected.keys() & found.keys()):
        if expected[offset] != found[offset]:
            wrong = [name for name in expected[offset] if expected[offset][name] != found[offset][name]]
            shown = {name: (str(expected[offset][name])[:60], str(found[offset][name])[:60]) for name in wrong}
            verdict.differ(place, f"{what}: offset {offset}: {shown}")
            return


def lookups_compared(verdict: Verdict, nodes: list[list[Path]], seen: Seen) -> None:
    """Look-ups by time in the leader's replica against the answers of ListOffsets."""
    for place, answers in seen.places.items():
        for node, path in replicas(nodes, place):
            if answers["leader"] not in (node, -1) or "lookups" not in answers:
                continue
            asked = [(("--timestamp", str(time)), offset, stamp) for time, offset, stamp in answers["lookups"]]
            if "max_timestamp" in answers and not (seen.is_killed and _was_appended_later(path, answers)):
                asked.append((("--max-timestamp",), *answers["max_timestamp"]))
            more = ["--past-high-watermark"] if seen.is_killed else []
            runs = run_many(("find", *words, *more, "--format", "jsonl", "--quiet", path) for words, _, _ in asked)
            for (words, offset, stamp), run in zip(asked, runs, strict=True):
                rows = run.rows("match") if "Traceback" not in run.stderr else []
                ours = (rows[0]["offset"], rows[0]["timestamp"]) if rows else (-1, -1)
                is_same = ours == (offset, stamp)
                if seen.is_last_of_batch and words[0] == "--max-timestamp":
                    is_same = ours[1] == stamp and ours[0] <= offset
                if not is_same:
                    verdict.differ(
                        place, f"{place} {' '.join(words)}: {ours}, broker {(offset, stamp)}; {run.stderr[-200:]}"
                    )
            verdict.lookups[place] = verdict.lookups.get(place, 0) + len(asked)


def _was_appended_later(path: Path, answers: dict[str, Any]) -> bool:
    """Whether the record of the largest timestamp is not in the copy of the log.

    A broker that was killed ends the transactions that it had prepared when it starts again: their markers follow.
    """
    (run,) = run_many([("ls", "--format", "jsonl", "--quiet", path)])
    (row,) = run.rows("partition")
    return bool(answers["max_timestamp"][0] >= row["log_end_offset"])


def dump_log_compared(verdict: Verdict, nodes: list[list[Path]], lab: KafkaLab, version: str, scratch: Path) -> None:
    """All files of the directories: kafkalog dump-log against kafka-dump-log of a release, byte for byte."""
    shutil.rmtree(scratch, ignore_errors=True)
    for number, log_dirs in enumerate(nodes, 1):
        for order, log_dir in enumerate(log_dirs):
            shutil.copytree(log_dir, scratch / f"{number}-{order}", symlinks=True)
    files = [each for each in sorted(scratch.rglob("*")) if each.is_file() and each.name.endswith(SUFFIXES)]
    files = [each for each in files if not _kills_the_tool(each)]
    ours = scratch.with_name(scratch.name + "-ours")
    shutil.rmtree(ours, ignore_errors=True)
    shutil.copytree(scratch, ours, symlinks=True)
    for flags in (("--deep-iteration", "--print-data-log"), ()):
        for at in range(0, len(files), _FILES_AT_ONCE):
            part = files[at : at + _FILES_AT_ONCE]
            names = ",".join(str(each.relative_to(scratch)) for each in part)
            kafkas = lab.dump_log(version, *flags, "--files", names, cwd=scratch)
            words = ["dump-log", "--emulate", version, *flags, "--files", names]
            run = _run_in(ours, words)
            if run.stdout.encode() != kafkas.stdout or run.code != kafkas.returncode:
                _describe(verdict, version, flags, run.stdout.encode(), kafkas.stdout, part)
    for each in files:
        place = each.parent.name
        verdict.files[place] = verdict.files.get(place, 0) + 1
    shutil.rmtree(scratch)
    shutil.rmtree(ours)


def _run_in(folder: Path, words: list[str]) -> Run:
    from tests.running import run_in_process_of_its_own

    return run_in_process_of_its_own(*words, cwd=folder)


def _describe(
    verdict: Verdict, version: str, flags: Iterable[str], ours: bytes, kafkas: bytes, files: list[Path]
) -> None:
    """The first line that differs, and the file that it is about."""
    name = ""
    what = f"kafka-dump-log {version} {' '.join(flags)}"
    for our_line, kafka_line in zip(ours.split(b"\n"), kafkas.split(b"\n"), strict=False):
        if kafka_line.startswith(b"Dumping "):
            name = kafka_line.decode(errors="replace")[8:]
        if our_line != kafka_line:
            place = next((each.parent.name for each in files if name.endswith(f"{each.parent.name}/{each.name}")), "")
            verdict.differ(place, f"{what} of {name}: {our_line[:200]!r}, Kafka {kafka_line[:200]!r}")
            return
    verdict.differ("", f"{what}: {len(ours)} bytes, Kafka {len(kafkas)}, last of {name}: {kafkas[-300:]!r}")


def _kills_the_tool(file: Path) -> bool:
    """Side files of which kafka-dump-log dies with an exception: an index of zeros beside an empty log."""
    log = file.with_suffix(".log")
    if file.suffix in (".index", ".timeindex"):
        return not log.exists() or (file.stat().st_size > 0 and log.stat().st_size == 0)
    return False


def boot_predicted(
    verdict: Verdict, nodes: list[list[Path]], version: str
) -> list[dict[str, tuple[int | None, int | None]]]:
    """What boot says of each node: it must predict a start; the offsets of each partition that it expects."""
    major, minor = (int(each) for each in version.split(".")[:2])
    expected = []
    for number, log_dirs in enumerate(nodes, 1):
        result = boot(log_dirs, BootTerms(version=(major, minor), every_file=True), node_id=number)
        if result.is_refused or result.is_unknown:
            steps = [
                step.reason for step in result.steps if step.action in (Action.REFUSE, Action.UNKNOWN, Action.OFFLINE)
            ]
            verdict.differ("", f"boot of node {number}: {steps[:3]}")
        offsets: dict[str, tuple[int | None, int | None]] = {}
        for step in result.steps:
            if step.log_end_offset is not None and step.action is not Action.CREATE:
                offsets[step.path.name] = (step.log_start_offset, step.log_end_offset)
        expected.append(offsets)
        verdict.starts += 1
    return expected


def starts_compared(
    verdict: Verdict, expected: list[dict[str, tuple[int | None, int | None]]], log_texts: list[str]
) -> None:
    """The log start and end offsets that brokers loaded against those that boot predicted."""
    for number, (offsets, text) in enumerate(zip(expected, log_texts, strict=True), 1):
        loaded = {Path(match["dir"]).name: (int(match["start"]), int(match["end"])) for match in _LOADED.finditer(text)}
        loaded.pop("__cluster_metadata-0", None)
        for name, got in loaded.items():
            if name not in offsets:
                if not name.endswith(("-stray", "-delete")):  # of a deleted one boot says no offsets
                    verdict.differ(name, f"start of node {number}: {name} was loaded {got}, boot does not know it")
            elif offsets[name] != got:
                verdict.differ(name, f"start of node {number}: {name} was loaded {got}, boot predicted {offsets[name]}")
        for name in offsets.keys() - loaded.keys() - {"__cluster_metadata-0"}:
            verdict.differ(name, f"start of node {number}: boot predicted {name} {offsets[name]}, it was not loaded")
