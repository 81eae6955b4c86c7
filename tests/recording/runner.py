"""Runs a recording's commands with one checkout's code; a program of its own, so that the code is that checkout's.

``python -m tests.recording.runner ROOT JOB RESULTS`` in the folder of the inputs. JOB is a JSON file with groups of
command lines; to RESULTS goes a JSON line for each command.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.recording.commands import OUT, Command

if TYPE_CHECKING:
    from tests.running import Run

OUTPUTS = Path("out")
#: Files that are recorded as text, so that a difference shows what it is.
RECORDED_AS_TEXT = ("manifest.json", "_manifest.json")


def main() -> None:
    root, job, results = (Path(each) for each in sys.argv[1:])
    _import_code_of(root)
    with results.open("w", encoding="utf-8") as lines:
        for group in json.loads(job.read_text(encoding="utf-8")):
            for outcome in run_group([tuple(each) for each in group]):
                lines.write(json.dumps(outcome) + "\n")


def _import_code_of(root: Path) -> None:
    """Import the program from this checkout, whatever else the path holds, and refuse to go on with another one."""
    sys.path.insert(0, str(root))
    for name in ("format", "kafkalog_cli"):
        module = importlib.import_module(name)
        if not Path(str(module.__file__)).is_relative_to(root):
            sys.exit(f"{name} comes from {module.__file__} and not from {root}")


def run_group(commands: list[Command]) -> list[dict[str, Any]]:
    """The outcome of each command; one that kills its process is run by itself, and so are its neighbours."""
    from tests.running import run_many  # it imports the program, which must be that of the checkout

    outputs = [OUTPUTS / f"{number:03d}" for number in range(len(commands))]
    lines = [
        [each.replace(OUT, str(output / "made")) for each in command]
        for command, output in zip(commands, outputs, strict=True)
    ]
    for output in outputs:
        output.mkdir(parents=True)
    try:
        runs: list[Run | None] = list(run_many(lines))
    except AssertionError:
        runs = []
        for line, output in zip(lines, outputs, strict=True):
            shutil.rmtree(output)
            output.mkdir()
            runs.append(_run_alone(line))
    found = [_outcome(*each) for each in zip(commands, runs, outputs, strict=True)]
    shutil.rmtree(OUTPUTS)
    return found


def _run_alone(line: list[str]) -> Run | None:
    from tests.running import run_many

    try:
        return run_many([line])[0]
    except AssertionError:
        return None


def _outcome(command: Command, run: Run | None, output: Path) -> dict[str, Any]:
    if run is None:
        return {"command": command, "code": None, "stdout": "", "stderr": "the process died", "files": {}}
    written = [path for path in sorted(output.rglob("*")) if path.is_file()]
    return {
        "command": command,
        "code": run.code,
        "stdout": _relative(run.stdout, output),
        "stderr": _relative(run.stderr, output),
        "files": {str(path.relative_to(output)): _content(path, output) for path in written},
    }


def _relative(text: str, output: Path) -> str:
    """The text without the place of the folder, and with one name for every output."""
    return text.replace(f"{Path.cwd()}/", "").replace(str(output), str(OUTPUTS))


def _content(path: Path, output: Path) -> str:
    content = path.read_bytes()
    if path.name in RECORDED_AS_TEXT:
        return _relative(content.decode(), output)
    return f"{len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}"


if __name__ == "__main__":
    main()
