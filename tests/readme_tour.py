"""The README's tour: every command in it is run on a terminal of 110 columns, and its output must be what stands there.

    python -m tests.readme_tour

writes the outputs anew. The tour runs in a copy of ``tests/_data``; what goes to standard error is left out.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from tests.corpora import DATA_DIR, REPOSITORY

README = REPOSITORY / "README.md"
COLUMNS = 110
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def rewritten(readme: str) -> str:
    """The README with the output below each ``$ command`` of its console blocks replaced by what the command prints."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch, "data")
        shutil.copytree(DATA_DIR, place)
        programs = Path(scratch, "bin")
        programs.mkdir()
        program = programs / "kafkalog"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kafkalog_cli "$@"\n')
        program.chmod(0o755)

        def run_block(block: re.Match[str]) -> str:
            lines = [line for line in block[1].splitlines() if line.startswith("$ ")]
            return (
                "```console\n" + "".join(f"{line}\n{_on_terminal(line[2:], place, programs)}" for line in lines) + "```"
            )

        return _BLOCK.sub(run_block, readme)


def _on_terminal(command: str, place: Path, programs: Path) -> str:
    """What a shell command prints to a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    shell = subprocess.Popen(
        ["bash", "-c", command],
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux says EIO when the other side is closed
            break
        if not part:
            break
        printed += part
    os.close(ours)
    if shell.wait() not in (0, 1):
        raise RuntimeError(f"{command}: exit {shell.returncode}")
    lines = printed.decode().replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n" * bool(printed)


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
