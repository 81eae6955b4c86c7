"""The kernel with AddressSanitizer and UndefinedBehaviorSanitizer, under its own tests and part of the fuzzer.

    python -m tests.faults.sanitized [--cases N]

A copy of the checkout is built with gcc's sanitizers, and Python's objects come from malloc, so that each access to a
buffer is checked. ThreadSanitizer has nothing to look at: the kernel keeps the GIL, and has no state of its own.
Ends with 1 where anything is reported.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.corpora import REPOSITORY

_SANITIZERS = "-fsanitize=address,undefined"
_FLAGS = f"{_SANITIZERS} -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1"
_LEFT_OUT = (".git", ".venv", "build", "*.so", "__pycache__", "site", "dist")
_LIBRARIES = ("libasan.so", "libubsan.so")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=3000, help="cases of the fuzzer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "kafkalog"
        shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
        plain = {**os.environ, "PYTHONPATH": str(copy)}
        built = {**plain, "CC": "gcc", "CFLAGS": _FLAGS, "LDFLAGS": _SANITIZERS}
        checked = {
            **plain,
            "LD_PRELOAD": ":".join(_library(name) for name in _LIBRARIES),
            "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter's own
        }
        fuzz = ("-m", "tests.faults.fuzz", "--cases", str(options.cases), "--seconds", "0")
        codes = (
            _run(copy, built, ("setup.py", "-q", "build_ext", "--inplace")),
            _run(copy, checked, ("-c", "from format.kernel.compiled import KERNEL_IS_COMPILED as is_it; assert is_it")),
            _run(copy, checked, ("-m", "pytest", "-q", "-n", "0", "tests/format/kernel")),
            _run(copy, checked, fuzz),
        )
    sys.exit(any(codes))


def _run(copy: Path, environment: dict[str, str], words: Sequence[str]) -> int:
    print("python", *words, flush=True)
    return subprocess.run([sys.executable, *words], cwd=copy, env=environment, check=False).returncode


def _library(name: str) -> str:
    """Where gcc has a library of its sanitizers."""
    done = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
