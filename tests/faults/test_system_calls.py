"""What the system sees of a command: nothing opened for writing, removed, renamed or locked in the source."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import snapshot_of, unavailable
from tests.corpora import REPOSITORY

#: Calls that change a file or its name, whatever their arguments.
CHANGING = (
    "unlink", "unlinkat", "rename", "renameat", "renameat2", "rmdir", "mkdir", "mkdirat", "link", "linkat", "symlink",
    "symlinkat", "truncate", "ftruncate", "chmod", "fchmod", "fchmodat", "chown", "fchown", "fchownat", "lchown",
    "utime", "utimes", "utimensat", "futimesat", "setxattr", "fsetxattr", "removexattr", "mknod", "mknodat",
    "fallocate", "write", "pwrite64", "writev", "pwritev", "flock", "creat",
)  # fmt: skip
OPENING = ("open", "openat", "openat2")
#: Only these are traced, which is quick; a question mark passes over a call that this machine does not have.
TRACED = "trace=" + ",".join(f"?{name}" for name in (*CHANGING, *OPENING, "fcntl"))
WRITE_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND")
LOCKS = ("F_SETLK", "F_SETLKW", "F_OFD_SETLK")


def is_forbidden(line: str, source: str) -> bool:
    """Whether one line of a trace, with descriptors shown as paths, changes something under the source."""
    call = re.match(r"^(?:\d+\s+)?(\w+)\(", line)
    if call is None or source not in line:
        return False
    name = call[1]
    if name in CHANGING:
        return True
    if name in OPENING:
        return any(flag in line for flag in WRITE_FLAGS)
    return name == "fcntl" and any(lock in line for lock in LOCKS)


@pytest.fixture(scope="module")
def strace() -> str:
    found = shutil.which("strace")
    if found is None:
        unavailable("strace is not installed")
    done = subprocess.run([str(found), "-f", "true"], capture_output=True, check=False)
    if done.returncode != 0:
        unavailable(f"strace may not trace here: {done.stderr.decode(errors='replace')[:200]}")
    return str(found)


@pytest.fixture(scope="module")
def log_dir(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that is short of some files which Kafka's own tools would make, and that has a lock."""
    copy = tmp_path_factory.mktemp("traced") / "node"
    shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", copy)
    for each in copy.rglob("*"):
        each.chmod(0o755 if each.is_dir() else 0o644)
    (copy / ".lock").write_bytes(b"")
    (copy / "orders-0" / "00000000000000000000.index").unlink()
    (copy / "orders-1" / "00000000000000000000.timeindex").unlink()
    return copy


#: Stands for a new directory outside the source.
OUTPUT = "OUTPUT"
COMMANDS: dict[str, Callable[[Path], list[str | Path]]] = {
    "ls": lambda log_dir: ["ls", log_dir],
    "ls --segments": lambda log_dir: ["ls", "--segments", log_dir],
    "verify": lambda log_dir: ["verify", log_dir],
    "dump": lambda log_dir: ["dump", log_dir / "orders-0"],
    "dump --records": lambda log_dir: ["dump", "--records", log_dir / "orders-1"],
    "dump of a time index without an index": lambda log_dir: [
        "dump", log_dir / "orders-0" / "00000000000000000000.timeindex"],
    "dump of a lock": lambda log_dir: ["dump", log_dir / ".lock"],
    "find --offset": lambda log_dir: ["find", log_dir / "orders-0", "--offset", "500", "--explain"],
    "find --timestamp": lambda log_dir: ["find", log_dir / "orders-1", "--timestamp", "1763714000000"],
    "find --max-timestamp": lambda log_dir: ["find", log_dir / "orders-1", "--max-timestamp"],
    "grep": lambda log_dir: ["grep", "order", log_dir / "orders-0"],
    "dump-log": lambda log_dir: [
        "dump-log", "--deep-iteration", "--files", log_dir / "orders-0" / "00000000000000000000.timeindex"],
    "recompress --estimate": lambda log_dir: ["recompress", "--estimate", log_dir / "orders-0"],
    "extract": lambda log_dir: ["extract", "--to", "jsonl", "--output", OUTPUT, log_dir / "orders-0"],
    "recompress": lambda log_dir: ["recompress", "--codec", "zstd", "--output", OUTPUT, log_dir / "orders-0"],
    "salvage": lambda log_dir: ["salvage", "--output", OUTPUT, log_dir / "orders-0"],
    "rebuild-index": lambda log_dir: ["rebuild-index", "--output", OUTPUT, log_dir / "orders-1"],
    "redact": lambda log_dir: ["redact", "--output", OUTPUT, log_dir / "orders-1"],
}  # fmt: skip


#: Runs the command lines in standard input, each in a forked child; an attempt to open a file shows where each begins.
_PROGRAM = """
import contextlib, json, sys
from tests.running import run_many
codes = []
for number, words in enumerate(json.load(sys.stdin)):
    with contextlib.suppress(OSError):
        open(f"/dev/null/begins-{number}")
    codes.append(run_many([words])[0].code)
print(json.dumps(codes))
"""


@pytest.fixture(scope="module")
def traces(strace: str, log_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The calls of each command, from one traced program that runs them all."""
    work = tmp_path_factory.mktemp("traces")
    lines = [
        [str(work / str(number)) if each == OUTPUT else str(each) for each in make(log_dir)]
        for number, make in enumerate(COMMANDS.values())
    ]
    before = snapshot_of(log_dir)
    traced = [strace, "-f", "--seccomp-bpf", "-e", TRACED, "-y", "-s", "0", "-o", work / "trace"]
    done = subprocess.run(
        [*traced, sys.executable, "-c", _PROGRAM],
        cwd=REPOSITORY, capture_output=True, input=json.dumps(lines).encode(), check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert snapshot_of(log_dir) == before
    assert set(json.loads(done.stdout)) <= {0, 1, 3}, done.stdout
    parts = re.split(r'"/dev/null/begins-\d+"', (work / "trace").read_text(errors="replace"))[1:]
    return {name: part.splitlines() for name, part in zip(COMMANDS, parts, strict=True)}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_changes_nothing_in_its_source(name: str, traces: dict[str, list[str]], log_dir: Path) -> None:
    assert any(str(log_dir) in line for line in traces[name]), "the trace shows nothing of the source"
    assert [line for line in traces[name] if is_forbidden(line, str(log_dir))] == []


def test_the_check_sees_what_it_looks_for() -> None:
    source = "/data/kafka"
    for line in (
        '123 openat(AT_FDCWD, "/data/kafka/.lock", O_RDWR|O_CLOEXEC) = 3',
        '123 openat(AT_FDCWD, "/data/kafka/t-0/00.index", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3',
        'unlink("/data/kafka/x") = 0',
        "fcntl(3</data/kafka/.lock>, F_SETLK, {l_type=F_RDLCK}) = 0",
        "flock(3</data/kafka/.lock>, LOCK_SH) = 0",
        'write(3</data/kafka/x>, "a", 1) = 1',
    ):
        assert is_forbidden(line, source), line
    for line in (
        '123 openat(AT_FDCWD, "/data/kafka/.lock", O_RDONLY|O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC) = 3',
        "fcntl(3</data/kafka/.lock>, F_OFD_GETLK, {l_type=F_WRLCK}) = 0",
        'write(1</dev/pts/0>, "a", 1) = 1',
        'openat(AT_FDCWD, "/tmp/x", O_RDWR) = 3',
    ):
        assert not is_forbidden(line, source), line
