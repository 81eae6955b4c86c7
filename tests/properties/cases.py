"""A log directory of one partition, damaged or not, and what commands do with it."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.corpora import DATA_DIR
from tests.recording.commands import BOTH, CSV, JSONL, LATER, LEVELS, LOGFMT, OUT, Command
from tests.recording.compare import differences
from tests.recording.damage import KINDS, Case, subject
from tests.recording.inputs import KEY_FILE, write_case
from tests.recording.outcomes import Outcome, Recording, settled
from tests.recording.runner import run_group

LOG_DIR = "logs"
OTHER_NODE = "other"
DAMAGES = 4
ADDED = ("payments-0", "__transaction_state-0", "__consumer_offsets-2", "__cluster_metadata-0")
#: How much ``find`` had to read, which depends on how much it reads at once.
_BYTES_READ = re.compile(r'; \d+ bytes were read|,"(?:visibility_)?bytes_read":\d+')


def seeds(count: int) -> range:
    """The seeds of so many cases; KAFKALOG_CASES=20 asks for twenty times as many.

    Plain random numbers and not Hypothesis: a case costs a second, a smaller seed is no simpler case, and Hypothesis
    spends most of its cases on values at the edges.
    """
    return range(count * int(os.environ.get("KAFKALOG_CASES", "1")))


def sound_case(random: Random) -> Case:
    return subject(DATA_DIR, random)


def broken_case(random: Random) -> Case:
    """A case with several damages, so that some lie where chunks are cut."""
    case = subject(DATA_DIR, random)
    for _ in range(DAMAGES):
        if any(case.files[each] for each in case.paths(".log")):
            case.steps.append(random.choice(KINDS)(case, random))
    return case


@contextmanager
def laid_out(case: Case) -> Iterator[Path]:
    """A folder with the case's files in ``LOG_DIR``; it is the working directory meanwhile."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_case(case, Path(LOG_DIR))
        Path(KEY_FILE).write_bytes(b"0123456789abcdef")
        yield Path(folder)


# -- commands ------------------------------------------------------------------------------------------------


def reading_commands(case: Case) -> Iterator[Command]:
    """What reads batches and records; every command but these leaves logs alone or writes them anew."""
    yield from (("verify", LOG_DIR, "--level", level, *JSONL) for level in LEVELS[1:])
    yield from (("dump", LOG_DIR, *form) for form in BOTH)
    yield from (("dump", LOG_DIR, "--records", *form) for form in (*BOTH, CSV))
    yield from (("grep", "7", LOG_DIR, *form) for form in BOTH)
    yield ("grep", "--all", LOG_DIR, "--count", *JSONL)
    yield ("grep", "--invert", "7", LOG_DIR, *JSONL)
    yield ("grep", "-C", "3", "7", LOG_DIR, "--with", "path", *JSONL)
    yield ("dump", LOG_DIR, "--records", "--with", "is_below_log_start", "--from-log-start", *JSONL)
    yield ("recompress", "--estimate", LOG_DIR, *JSONL)
    yield from (("extract", LOG_DIR, "--output", OUT, "--to", each, *JSONL) for each in ("jsonl", "csv", "parquet"))
    for log in _logs(case):
        yield from (("dump-log", "--files", log, *more) for more in ((), ("--print-data-log",)))
        yield ("dump-log", "--files", log, "--deep-iteration", "--emulate", "4.3.1")


def header_commands(case: Case) -> Iterator[Command]:
    """What reads the headers of batches alone, or looks records up by them."""
    yield ("verify", LOG_DIR, "--level", "headers", *JSONL)
    yield ("ls", LOG_DIR, "--segments", *JSONL)
    yield ("grep", "7", LOG_DIR, "--files-with-matches", *JSONL)
    yield ("find", f"{LOG_DIR}/{case.partition}", "--max-timestamp", "--explain", *JSONL)
    yield ("find", f"{LOG_DIR}/{case.partition}", "--offset", "30", "--explain", *JSONL)


def writing_commands(case: Case) -> Iterator[Command]:
    """What writes logs anew."""
    yield ("salvage", LOG_DIR, "--output", OUT, *JSONL)
    yield ("rebuild-index", LOG_DIR, "--output", OUT, *JSONL)
    yield ("redact", LOG_DIR, "--output", OUT, "--key-file", KEY_FILE, *JSONL)


def sharing_commands(case: Case) -> Iterator[Command]:
    """What can share its work among processes."""
    yield from (("verify", LOG_DIR, "--level", level, *JSONL) for level in LEVELS)
    yield ("verify", LOG_DIR, *LOGFMT)
    yield from (("dump", LOG_DIR, *form) for form in BOTH)
    yield from (("dump", LOG_DIR, "--records", *form) for form in (*BOTH, CSV))
    yield ("dump", LOG_DIR, "--records", "--limit", "70", *JSONL)
    yield ("dump", LOG_DIR, "--records", "--with", "path", "--with", "is_below_log_start", *JSONL)
    yield from (("grep", "7", LOG_DIR, *form) for form in BOTH)
    yield ("grep", "--all", LOG_DIR, "--count", *JSONL)
    yield ("grep", "7", LOG_DIR, "--files-with-matches", *JSONL)
    yield ("recompress", LOG_DIR, "--output", OUT, "--codec", "zstd", *JSONL)
    yield ("recompress", LOG_DIR, "--output", OUT, "--codec", "lz4", "--skip-damaged", *JSONL)
    for log in _logs(case):
        yield from (("dump-log", "--files", log, *more) for more in ((), ("--print-data-log",)))


def unit_commands() -> Iterator[Command]:
    """What reads each partition as a whole, of the partitions that ``add_partitions`` adds, too."""
    for verb in ("txns", "producers", "retention", "compaction"):
        yield from ((verb, LOG_DIR, OTHER_NODE, "--at", LATER, *form) for form in BOTH)
    yield ("compaction", LOG_DIR, "--every-log", "--at", LATER, *JSONL)
    yield from (("diff", LOG_DIR, OTHER_NODE, *form) for form in BOTH)
    yield from (("groups", LOG_DIR, OTHER_NODE, *form) for form in BOTH)
    yield ("groups", LOG_DIR, OTHER_NODE, "--history", *JSONL)


def commands_of_one_process(case: Case) -> Iterator[Command]:
    """What has no ``--jobs``: it reads a metadata log, follows indexes, or takes the steps of a broker's start."""
    yield from (("metadata", LOG_DIR, *form) for form in BOTH)
    yield ("metadata", LOG_DIR, "--history", *JSONL)
    yield from (("boot", LOG_DIR, *form) for form in BOTH)
    yield ("find", f"{LOG_DIR}/{case.partition}", "--offset", "40", *JSONL)


def add_partitions() -> None:
    """Sound partitions beside the case's, and a second node with the same."""
    node = DATA_DIR / "kafka-4.3-single" / "node-1"
    for name in ADDED:
        shutil.copytree(node / name, Path(LOG_DIR) / name, dirs_exist_ok=True)
    shutil.copy(node / "meta.properties", LOG_DIR)
    other = Path(OTHER_NODE)
    for source in sorted(Path(LOG_DIR).iterdir()):
        if source.is_dir():
            shutil.copytree(source, other / source.name)


def _logs(case: Case) -> list[str]:
    return [f"{LOG_DIR}/{path}" for path in case.paths(".log")]


# -- outcomes ------------------------------------------------------------------------------------------------


def outcomes(commands: Iterable[Command]) -> list[Outcome]:
    """What these commands do in the working directory, times left out."""
    return [settled(each) for each in run_group(list(commands))]


def rows_and_findings(outcome: Outcome) -> Outcome:
    """The outcome with its rows in their order, then its findings in any, then the summary's counts by name.

    A chunk's findings come before its rows, check by check: where they stand among other lines is no promise.
    """
    lines = _BYTES_READ.sub("", outcome.stdout).splitlines(keepends=True)
    starts = ('{"type":"finding"', "finding ")
    rows = [each for each in lines if not each.startswith((*starts, '{"type":"summary"', "summary "))]
    findings = sorted(each for each in lines if each.startswith(starts))
    summaries = [_by_name(each) for each in lines if each.startswith('{"type":"summary"')]
    stderr = "".join(sorted(outcome.stderr.splitlines(keepends=True)))
    return replace(outcome, stdout="".join((*rows, *findings, *summaries)), stderr=stderr)


def _by_name(summary: str) -> str:
    return json.dumps(json.loads(summary), sort_keys=True) + "\n"


def check_same(expected: Iterable[Outcome], found: Iterable[Outcome], what: object) -> None:
    """Fail with the differences where the commands did not do the same."""
    unlike = differences(Recording({}, {}, list(expected)), Recording({}, {}, list(found)))
    assert not (shown := "\n".join(map(str, unlike))), f"{what}\n{shown}"
