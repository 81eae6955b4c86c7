"""A disk that takes part of what it is given, then nothing: a limit on the size of files, and a file system that fills.

The system itself cuts the writes short here, and then says EFBIG or ENOSPC: the source is untouched, nothing is at the
target, and with room enough a resumed run gives what a run without a fault gives.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.building import batch, write_segment
from tests.conftest import snapshot_of, unavailable
from tests.corpora import REPOSITORY
from tests.running import Run, Word

_BATCH_BYTES = 10_000
COMMANDS = {
    "recompress": ("--codec", "lz4", "--jobs", "1"),
    "salvage": (),
    "rebuild-index": ("--with-log",),
    "extract": ("--to", "jsonl"),
    "redact": ("--key-file", "KEY"),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition with a small log, and one with a small segment and one of 600 kB."""
    logs = tmp_path_factory.mktemp("source") / "logs"
    rng = random.Random(7)

    def log(count: int, first: int = 0) -> list[bytes]:
        return [batch(first + 20 * number, [rng.randbytes(500) for _ in range(20)]) for number in range(count)]

    write_segment(logs / "a-0", 0, log(1))
    write_segment(logs / "b-0", 0, log(1))
    write_segment(logs / "b-0", 20, log(60, 20))
    (logs / "a-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    (logs.parent / "key").write_bytes(b"sixteen bytes or more")
    return logs


def words(command: str, source: Path, target: Path, *more: str) -> list[Word]:
    options = [str(source.parent / "key") if each == "KEY" else each for each in COMMANDS[command]]
    return [command, source, "--output", target, *options, "--quiet", *more]


def content_of(directory: Path) -> dict[str, bytes]:
    return {str(each.relative_to(directory)): each.read_bytes() for each in directory.rglob("*") if each.is_file()}


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> str:
    return str(request.param)


RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]


@pytest.mark.parametrize("limit", [30_011, 262_147, 400_001])
def test_a_limit_on_the_size_of_files(
    command: str, limit: int, source: Path, tmp_path: Path, run_kafkalog_many: RunMany
) -> None:
    """A write that reaches over the limit is cut off at it; the next one is EFBIG, for Python ignores SIGXFSZ."""
    before = snapshot_of(source)
    target = tmp_path / "out"
    (whole,) = run_kafkalog_many([words(command, source, tmp_path / "whole")])
    whole.check(0)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-m", "kafkalog_cli", *map(str, words(command, source, target, "--keep-partial"))],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        preexec_fn=limited,
        timeout=120,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "File too large" in done.stderr
    assert not target.exists()
    (partial,) = tmp_path.glob(".out.partial-*")
    sizes = [path.stat().st_size for path in partial.rglob("*") if path.is_file()]
    assert max(sizes) <= limit
    (resumed,) = run_kafkalog_many([words(command, source, target, "--resume")])
    resumed.check(0)
    assert content_of(target) == content_of(tmp_path / "whole")
    assert not partial.exists()
    assert snapshot_of(source) == before


#: In a mount namespace of its own: a small file system, one run on it, then more room and the run that goes on.
_ON_A_SMALL_DISK = """
import json, pathlib, shutil, subprocess, sys
place, kept, size, first, second = sys.argv[1], sys.argv[2], sys.argv[3], *map(json.loads, sys.argv[4:])
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
runs = []
for command in (first, second):
    done = subprocess.run([sys.executable, "-m", "kafkalog_cli", *command], capture_output=True, text=True)
    target = pathlib.Path(place, "out")
    partial = [each for each in pathlib.Path(place).rglob("*") if each.is_file()]
    runs.append((done.returncode, done.stderr, target.exists(), sum(each.stat().st_size for each in partial)))
    subprocess.run(["mount", "-o", "remount,size=64m", place], check=True)
if target.exists():
    shutil.copytree(target, kept)
print(json.dumps(runs))
"""


def test_a_file_system_that_fills(command: str, source: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """tmpfs takes what still fits of a write; the next one is ENOSPC."""
    alone = ["unshare", "--map-root-user", "--mount"]
    probe = [*alone, "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        unavailable("no file system may be mounted here")
    before = snapshot_of(source)
    place = tmp_path / "disk"
    place.mkdir()
    (whole,) = run_kafkalog_many([words(command, source, tmp_path / "whole")])
    whole.check(0)
    lines = [
        json.dumps([str(each) for each in words(command, source, place / "out", option)])
        for option in ("--keep-partial", "--resume")
    ]
    done = subprocess.run(
        [*alone, sys.executable, "-c", _ON_A_SMALL_DISK, str(place), str(tmp_path / "kept"), "300k", *lines],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (first, said, is_there, held), (second, said_then, _, _) = json.loads(done.stdout)
    assert (first, is_there) == (4, False), said
    assert "No space left" in said
    assert held > _BATCH_BYTES  # the finished steps are still there
    assert second == 0, said_then
    assert content_of(tmp_path / "kept") == content_of(tmp_path / "whole")
    assert snapshot_of(source) == before
