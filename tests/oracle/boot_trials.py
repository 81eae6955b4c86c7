"""Trials of boot: a damaged copy of a node, what boot says of it, and what a real broker then does with it.

    python -m tests.oracle.boot_trials [--kafka 4.3.1] [--only REGEX] [--work DIR]
    python -m tests.oracle.boot_trials --shuffle 1 --minutes 25
    python -m tests.oracle.boot_trials --random 100 --first 1
    python -m tests.oracle.boot_trials --kafka 3.9.1 --node DIR/node-1

The first runs all of them, one broker after the other, and prints a table: agreed of tried, for each kind of damage.
The second takes them in a random order, and as many as fit. The third damages each copy at random: one to three of the
ways combined, and wounds in any files; the number of a trial decides its damage. The last takes another release, and a
node that it wrote (``tests.oracle.trial_node``). What a node lacks cannot be damaged: such trials are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from format.verbs.boot.boot import boot
from format.verbs.boot.steps import Action, BootResult, BootTerms
from tests.corpora import SHARED_CORPUS, present
from tests.oracle.boot_mutations.node import Mutation, Node, copied_node
from tests.oracle.boot_mutations.table import mutations
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.random_damage import random_mutations
from tests.ports import free_ports

_CONFIGURATION = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={log_dirs}
log.index.size.max.bytes=131072
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
log.initial.task.delay.ms=600000
metadata.max.idle.interval.ms=0
"""
_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %m (%c)%n
"""
_MOST_SECONDS = 90.0  # on a busy machine
_STARTED = re.compile(r"Kafka Server started|started \(kafka\.server\.KafkaServer\)")
_LOADED = re.compile(
    r"Completed load of Log\(dir=(?P<dir>(?:(?!Completed load).)+?), topic(?:Id)?=(?:(?!Completed load).)*?"
    r"logStartOffset=(?P<start>-?\d+), logEndOffset=(?P<end>-?\d+)\)",
    re.DOTALL,  # a name may hold line ends
)
_PORT_TAKEN = "Unable to start acceptor"
_CUT_TO_CURRENT = re.compile(r"ReplicaAlterLogDirsThread-\d+\]: Truncating partition (\S+) with")
_UNIQUE = re.compile(r"\.[0-9a-f]{32}-stray$")
_METADATA = "__cluster_metadata-0"

Files = dict[str, tuple[int, str]]


@dataclass
class Observed:
    """What a broker did: started, or ended by itself; what it said; and the files before and after."""

    outcome: str
    log_text: str
    before: Files
    after: Files

    def offsets(self) -> dict[str, tuple[int, int]]:
        """Log start and log end offset by the directory's path, in the broker's own words."""
        return {match["dir"]: (int(match["start"]), int(match["end"])) for match in _LOADED.finditer(self.log_text)}


@dataclass
class Comparison:
    """A trial's prediction held against what happened: in which respects they differ."""

    mutation: Mutation
    predicted: str
    outcome: str
    differences: list[str] = field(default_factory=list)


class NotApplicable(Exception):
    """A node that lacks what is to be damaged, such as a file of that name."""


class Trials:
    """Runs brokers one after the other on copies of a node under a working directory."""

    settling_seconds = 0.0  # after a start, in which a broker may still end

    def __init__(self, lab: KafkaLab, version: str, source: Path, work: Path) -> None:
        self._lab = lab
        self.version = version
        self._source = source
        self._work = work
        self.most_seconds = _MOST_SECONDS
        work.mkdir(parents=True, exist_ok=True)
        (work / "log4j.properties").write_text(_LOG4J)
        self._options = ["-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                         f"-Dlog4j.configuration=file:{work / 'log4j.properties'}"]  # fmt: skip

    def configuration(self, log_dirs: str, port: int, controller_port: int) -> str:
        """The properties of the next broker."""
        return _CONFIGURATION.format(log_dirs=log_dirs, port=port, controller_port=controller_port)

    def warm_up(self) -> None:
        """Start once to write an archive of classes, with which the other starts take a second."""
        node = copied_node(self._source, self._work / "node")
        archive = self._work / "classes.jsa"
        self._run(node, [f"-XX:ArchiveClassesAtExit={archive}"], end=signal.SIGTERM)
        if archive.exists():
            self._options.append(f"-XX:SharedArchiveFile={archive}")

    def compared(self, mutation: Mutation) -> Comparison:
        """One trial: damage a copy, predict, start a broker, compare."""
        for _ in range(3):
            node = copied_node(self._source, self._work / "node")
            try:
                mutation.apply(node)
            except (OSError, LookupError, ValueError, AssertionError) as error:
                raise NotApplicable(f"{mutation}: {error}") from error
            before = files_of(node)
            predicted = predict(node, self.version)
            assert files_of(node) == before, "boot changed a file"
            outcome, text = self._run(node, [])
            if _PORT_TAKEN not in text:
                break  # else another process of the machine was faster
        return compare(mutation, node, predicted, Observed(outcome, text, before, files_of(node)))

    def _run(
        self,
        node: Node,
        options: list[str],
        end: signal.Signals = signal.SIGKILL,
        settings: str = "",
        while_up: Callable[[str], None] = lambda _: None,
    ) -> tuple[str, str]:
        """Start a broker, call ``while_up`` with its address once it serves, and end it. Its end, and its output."""
        properties = self._work / "server.properties"
        log_dirs = ",".join(map(str, node.log_dirs))
        if not (node.log_dirs[0] / _METADATA).exists():
            settings += "".join(f"metadata.log.dir={each}\n" for each in node.log_dirs if (each / _METADATA).exists())
        port, controller_port = free_ports(2)
        properties.write_text(self.configuration(log_dirs, port, controller_port) + settings)
        command = self._lab.java_command(self.version, [*self._options, *options], extra=self._lab.logging_jars())
        output = self._work / "broker.log"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [*command, "kafka.Kafka", str(properties)], stdout=file, stderr=file, stdin=subprocess.DEVNULL
            )
        try:
            outcome = _waited(process, output, self.most_seconds)
            if outcome == "started":
                time.sleep(self.settling_seconds)
                outcome = "started" if process.poll() is None else "refused"
            if outcome == "started":
                while_up(f"127.0.0.1:{port}")
        finally:
            process.send_signal(end)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        return outcome, output.read_text(errors="backslashreplace")


def last_words(text: str) -> str:
    """The errors that a broker printed."""
    lines = [line for line in text.splitlines() if line.startswith(("ERROR", "FATAL"))]
    return " / ".join(lines[:3])


def _waited(process: subprocess.Popen[bytes], output: Path, most_seconds: float) -> str:
    deadline = time.monotonic() + most_seconds
    while time.monotonic() < deadline:
        if _STARTED.search(output.read_text(errors="replace")):
            return "started"
        if process.poll() is not None:
            return "refused"
        time.sleep(0.05)
    return "hung"


def files_of(node: Node) -> Files:
    """Size and hash of every file by its path below the working directory; folders end with a slash."""
    found: Files = {}
    for log_dir in node.log_dirs:
        if not log_dir.is_dir():
            continue
        for path in sorted(log_dir.rglob("*")):
            name = str(path.relative_to(node.work))
            if path.is_dir():
                found[name + "/"] = (0, "")
            elif path.is_file():
                content = path.read_bytes()
                found[name] = (len(content), hashlib.sha256(content).hexdigest())
    return found


def predict(node: Node, version: str) -> BootResult:
    """What boot says of a node; the node id is that of the configuration."""
    major, minor = (int(each) for each in version.split(".")[:2])
    return boot(node.log_dirs, BootTerms(version=(major, minor), every_file=True), node_id=1)


def compare(mutation: Mutation, node: Node, predicted: BootResult, observed: Observed) -> Comparison:
    """Where prediction and observation differ: the outcome, its message, the offsets, the files."""
    said = "refused" if predicted.is_refused else "unknown" if predicted.is_unknown else "started"
    refusals = [step.broker_message for step in predicted.having(Action.REFUSE)]
    if None in refusals and observed.outcome == "hung":
        said = "hung"  # as predicted: it neither starts nor exits
    result = Comparison(mutation, said, observed.outcome)
    if said == "unknown":
        return result
    if said != observed.outcome:
        words = last_words(observed.log_text)
        result.differences.append(f"outcome: predicted {said}, was {observed.outcome}: {words}")
        return result
    if said == "refused" and not any(message is not None and message in observed.log_text for message in refusals):
        result.differences.append(f"message: none of {refusals} was printed")
    if said != "started":
        return result
    result.differences += _offset_differences(node, predicted, observed)
    result.differences += _file_differences(node, predicted, observed)
    return result


def _offset_differences(node: Node, predicted: BootResult, observed: Observed) -> list[str]:
    expected = {
        str(step.path): (step.log_start_offset, step.log_end_offset)
        for step in predicted.steps
        if step.log_end_offset is not None and step.action is not Action.CREATE and step.topic != _METADATA[:-2]
    }
    seen = {}
    for directory, offsets in observed.offsets().items():
        seen[_before_rename(directory, node, predicted)] = offsets
    deleted = {str(step.path) for step in predicted.having(Action.DELETE)}
    return [
        f"offsets of {Path(path).name}: predicted {expected.get(path)}, were {seen.get(path)}"
        for path in sorted((expected.keys() | seen.keys()) - deleted)
        if expected.get(path) != seen.get(path)
    ]


def _before_rename(directory: str, node: Node, predicted: BootResult) -> str:
    """A stray log's directory as it was before the start; the broker speaks of it under its new name."""
    stem = _UNIQUE.sub(".UNIQUE-stray", directory)
    renamed = [str(step.path) for step in predicted.having(Action.RENAME) if str(step.new_path) == stem]
    return renamed[0] if renamed else directory


def _file_differences(node: Node, predicted: BootResult, observed: Observed) -> list[str]:
    """Files of partitions that are there, or have a size, other than predicted; indexes by their names only."""
    expected = {name: size for name, (size, _) in observed.before.items() if _is_compared(name)}
    ordered = sorted(predicted.steps, key=lambda step: step.action is not Action.DELETE)
    for step in ordered:
        name = str(step.path.relative_to(node.work))
        if step.topic == _METADATA[:-2] or "/" not in name:
            continue
        if step.action is Action.DELETE and name + "/" not in observed.before:
            expected.pop(name, None)
            if step.new_path is not None:
                expected[str(step.new_path.relative_to(node.work))] = step.bytes or 0
        elif step.action is Action.RENAME and step.new_path is not None and name + "/" not in observed.before:
            expected[str(step.new_path.relative_to(node.work))] = expected.pop(name, 0)
        elif step.action is Action.TRUNCATE and name in expected:
            expected[name] = step.position or 0
        elif step.action in (Action.REBUILD_SNAPSHOT, Action.REBUILD_INDEX) and _is_compared(name):
            expected[name] = -1
    moved = {
        str(step.path.relative_to(node.work)): str(step.new_path.relative_to(node.work))
        for step in predicted.having(Action.RENAME)
        if step.new_path is not None and f"{step.path.relative_to(node.work)}/" in observed.before
    }
    expected = {_moved(name, moved): size for name, size in expected.items() if _is_compared(name)}
    created = {str(step.path.relative_to(node.work)) for step in predicted.having(Action.CREATE)}
    actual = {
        name if name.rpartition("/")[0] + "/" in observed.before else _UNIQUE_DIR.sub(".UNIQUE-stray/", name): size
        for name, (size, _) in observed.after.items()
        if _is_compared(name)
    }
    differences = []
    settled = _ended_moves(observed)
    for name in sorted(expected.keys() | actual.keys()):
        folder = name.rpartition("/")[0]
        if _partition_of(folder) in settled:
            continue
        if folder in created or name in created or (folder in moved.values() and name not in expected):
            continue
        if name not in actual:
            differences.append(f"file {name} was predicted and is gone")
        elif name not in expected:
            if not _comes_by_itself(name):
                differences.append(f"file {name} was not predicted and is there")
        elif folder.endswith("-future") and actual[name] > expected[name]:
            continue  # a broker goes on copying it
        elif name.endswith(".log") and expected[name] >= 0 and expected[name] != actual[name]:
            differences.append(f"file {name}: predicted {expected[name]} bytes, has {actual[name]}")
    return differences


def _ended_moves(observed: Observed) -> set[str]:
    """The partitions whose future replica took the place of the current one, or was cut to it, after the start."""
    gone = observed.before.keys() - observed.after.keys()
    moved = {_partition_of(name.rstrip("/")) for name in gone if name.endswith("-future/")}
    return moved | set(_CUT_TO_CURRENT.findall(observed.log_text))


def _partition_of(folder: str) -> str:
    return folder.rpartition("/")[2].partition(".")[0]


_UNIQUE_DIR = re.compile(r"\.[0-9a-f]{32}-stray/")


def _moved(name: str, moved: dict[str, str]) -> str:
    folder, _, file = name.rpartition("/")
    return f"{moved[folder]}/{file}" if folder in moved else name


def _is_compared(name: str) -> bool:
    """Whether a file is one of a partition's, the metadata log's aside, which the broker goes on writing."""
    parts = name.split("/")
    if len(parts) != 3 or parts[1] == _METADATA or not parts[2]:
        return False
    return not (parts[2].endswith((".tmp", ".txnindex")) or parts[1].endswith("-delete"))


def _comes_by_itself(name: str) -> bool:
    """Files that a start makes without a word: indexes of active segments, checkpoints of epochs, topic ids."""
    return name.endswith((".index", ".timeindex", "leader-epoch-checkpoint", "partition.metadata"))


def run_all(trials: Trials, chosen: list[Mutation], minutes: float = 0) -> list[Comparison]:
    """Run the trials in order, for so many minutes if any, and say on standard error how they go."""
    results = []
    deadline = time.monotonic() + minutes * 60
    for number, mutation in enumerate(chosen, 1):
        if minutes and time.monotonic() > deadline:
            break
        try:
            result = trials.compared(mutation)
        except NotApplicable as error:
            print(f"{number}/{len(chosen)} left out: {error!a}", file=sys.stderr, flush=True)
            continue
        results.append(result)
        if number % 25 == 0:
            print(f"{number}/{len(chosen)}", file=sys.stderr, flush=True)
        if result.differences or result.predicted == "unknown":
            words = f"{mutation}: {result.predicted}, {result.outcome}; {result.differences}"
            print(f"{number}/{len(chosen)} {words!a}", file=sys.stderr, flush=True)
    return results


def table(results: list[Comparison]) -> str:
    """Agreed of tried by kind, refusals apart, as lines of a Markdown table."""
    lines = [
        "| kind of damage | agreed / tried | refusals predicted / refusals | said to be unknown |",
        "| --- | --- | --- | --- |",
    ]
    for kind in dict.fromkeys(each.mutation.kind for each in results):
        lines.append(_table_line(kind, [each for each in results if each.mutation.kind == kind]))
    return "\n".join([*lines, _table_line("all", results)])


def _table_line(name: str, results: list[Comparison]) -> str:
    unknown = sum(each.predicted == "unknown" for each in results)
    agreed = sum(not each.differences for each in results) - unknown
    refused = [each for each in results if each.outcome != "started"]
    predicted = sum(each.predicted == each.outcome for each in refused)
    return f"| {name} | {agreed} / {len(results)} | {predicted} / {len(refused)} | {unknown} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--only", default="")
    parser.add_argument("--first", type=int, default=1, help="the number of the first one, to go on after a break")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="take them in a random order")
    parser.add_argument("--random", type=int, metavar="COUNT", help="so many copies that are damaged at random")
    parser.add_argument("--minutes", type=float, default=0, help="begin no trial after so many; 0 for all")
    parser.add_argument("--seconds", type=float, default=_MOST_SECONDS, help="after which a start counts as hung")
    parser.add_argument("--work", type=Path)
    node = SHARED_CORPUS / "kafka-4.3-single" / "node-1"
    parser.add_argument("--node", type=Path, default=node, help="the log directory of which copies are damaged")
    options = parser.parse_args()
    chosen = [each for each in mutations() if re.search(options.only, str(each))]
    if options.shuffle is not None:
        random.Random(options.shuffle).shuffle(chosen)
    chosen = chosen[options.first - 1 :]
    if options.random is not None:
        chosen = random_mutations(range(options.first, options.first + options.random))
    with tempfile.TemporaryDirectory(prefix="boot-trials-") as scratch:
        trials = Trials(KafkaLab(), options.kafka, present(options.node), options.work or Path(scratch))
        trials.most_seconds = options.seconds
        trials.warm_up()
        results = run_all(trials, chosen, options.minutes)
    print(table(results))
    return 0 if not any(each.differences for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
