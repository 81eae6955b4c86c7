"""``python -m release.bare_tree ARCHIVE`` runs the standalone build in a bare Debian, without Python and compiler.

The tree is made by debootstrap, which needs root and Debian's package index. The program runs inside by chroot, on a
log directory of the tests.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from release.archives import unpack
from release.environment import run
from tests.corpora import REPOSITORY

_DATA = REPOSITORY / "tests/_data/kafka-4.3-single/node-1"
_COMMANDS = (
    "--version",
    "ls /data",
    "verify --jobs 2 /data",
    "find --offset 100 /data/payments-0",
    "groups /data",
    "extract --output /extracted /data/payments-0",
    "bundle --output /bundle.tar.zst /data",
    "report --output /report.html /data",
)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m release.bare_tree", description=__doc__.partition("\n")[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--suite", default="stable", help="the release of Debian, by default stable")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="kafkalog-bare-") as scratch:
        tree = Path(scratch) / "tree"
        run("debootstrap", "--variant=minbase", options.suite, str(tree))
        return _tried(options.archive, tree)


def _tried(archive: Path, tree: Path) -> int:
    for program in ("python3", "cc", "gcc"):
        assert not list(tree.glob(f"usr/bin/{program}*")), f"there is a {program} in the tree"
    folder = unpack(archive, tree / "opt")
    shutil.copytree(_DATA, tree / "data")
    release = (tree / "etc/debian_version").read_text().strip()
    for line in _COMMANDS:
        words = [shutil.which("chroot") or "/usr/sbin/chroot", str(tree), f"/opt/{folder.name}/kafkalog", *line.split()]
        done = subprocess.run(words, env={}, capture_output=True, text=True)
        print(f"Debian {release}: kafkalog {line}: exit status {done.returncode}\n{done.stderr}{done.stdout[-400:]}")
        if done.returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
