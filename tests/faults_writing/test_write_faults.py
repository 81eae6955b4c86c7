"""A fault at a step of writing: the target is absent or whole, the source untouched, a resumed run gives the same.

Each test runs the program once under strace to see which system calls make the output, then once for each of them
with that call failing, or with the process killed in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.building import batches, write_segment
from tests.conftest import snapshot_of, unavailable
from tests.faults_writing.tracing import WRITING_CALLS, Step, fault, missing, run_traced, writing_steps
from tests.running import Run

Traced = tuple[list[Step], dict[str, bytes]]

COMMANDS = {
    "recompress": ("--codec", "lz4", "--jobs", "1"),
    "salvage": (),
    "rebuild-index": ("--with-log",),
    "extract": ("--to", "jsonl"),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small log directory: two segments, an aborted transaction's index aside, checkpoints."""
    directory = tmp_path_factory.mktemp("source") / "logs"
    write_segment(directory / "t-0", 0, batches(2, values=5))
    write_segment(directory / "t-0", 10, batches(2, 10, values=5))
    (directory / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    (directory / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 20\n")
    return directory


def words(command: str, source: Path, target: Path, *more: str) -> list[str | Path]:
    return [command, source, "--output", target, *COMMANDS[command], "--quiet", *more]


def content_of(directory: Path) -> dict[str, bytes]:
    return {str(each.relative_to(directory)): each.read_bytes() for each in directory.rglob("*") if each.is_file()}


@pytest.fixture(scope="module")
def traced(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Traced]:
    """For a command its steps, and the output that it has when nothing fails."""
    reason = missing()
    if reason is not None:
        unavailable(reason)
    known: dict[str, Traced] = {}

    def trace(command: str) -> Traced:
        if command not in known:
            work = tmp_path_factory.mktemp("whole")
            steps = writing_steps(words(command, source, work / "out"), work)
            known[command] = steps, content_of(work / "out")
            assert {"mkdir", "write", "fsync", "unlink", "rename"} <= {step.name for step in steps}
            assert sum(step.name == "fsync" for step in steps) >= len(content_of(work / "out")) + 2
        return known[command]

    return trace


#: The commands that rewrite segments write in the same way, so that for the others than the first the last step of each
#: kind is enough.
@pytest.mark.parametrize(
    ("command", "what", "takes_all"),
    [
        ("recompress", "ENOSPC", True),
        ("recompress", "EIO", True),
        ("recompress", "KILL", True),
        ("recompress", "LIE", True),
        ("salvage", "KILL", False),
        ("rebuild-index", "ENOSPC", False),
        ("extract", "KILL", True),
    ],
)
def test_a_fault_at_every_step(
    traced: Callable[[str], Traced],
    command: str,
    what: str,
    takes_all: bool,
    source: Path,
    tmp_path: Path,
    run_kafkalog_many: Callable[..., list[Run]],
) -> None:
    steps, whole = traced(command)
    before = snapshot_of(source)
    names = {"LIE": ("write",), "EIO": ("fsync", "rename")}.get(what, WRITING_CALLS)
    chosen = [step for step in steps if step.name in names]
    if not takes_all:
        chosen = list({step.name: step for step in chosen}.values())
    codes = []
    for number, step in enumerate(chosen):
        target = tmp_path / str(number) / "out"
        target.parent.mkdir()
        done = run_traced(words(command, source, target, "--keep-partial"), *fault(step, what))
        codes.append(done.returncode)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        # A lie is found out when the file is read back; the journal, which is not part of the output, is not.
        expected = {"KILL": (-9, 137), "LIE": (0, 4)}.get(what, (4,))
        assert done.returncode in expected, (step, done.returncode, done.stderr.decode())
        assert target.exists() == (done.returncode == 0), step
        if target.exists():
            assert content_of(target) == whole, step
    again = [number for number, code in enumerate(codes) if code != 0]
    assert again
    lines = [words(command, source, tmp_path / str(number) / "out", "--resume") for number in again]
    for number, run in zip(again, run_kafkalog_many(lines), strict=True):
        run.check(0)
        assert content_of(tmp_path / str(number) / "out") == whole, chosen[number]
    assert snapshot_of(source) == before
    shutil.rmtree(tmp_path)
