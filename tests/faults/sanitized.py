"""The kernel with AddressSanitizer and UndefinedBehaviorSanitizer, under its own tests and part of the fuzzer.

    python -m tests.faults.sanitized [--cases N]
    python -m tests.faults.sanitized --threads

A copy of the checkout is built with gcc's sanitizers, and Python's objects come from malloc, so that each access to a
buffer is checked. With ``--threads`` ThreadSanitizer watches ``tests.faults.threaded`` instead: the kernel keeps the
GIL and has no state of its own, so that it may find nothing. Ends with 1 where anything is reported.
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
_THREAD_SANITIZER = "-fsanitize=thread"
_FLAGS = "-fno-omit-frame-pointer -O1"
_LEFT_OUT = (".git", ".venv", "build", "*.so", "__pycache__", "site", "dist")
_LIBRARIES = ("libasan.so", "libubsan.so")
#: The tests of the kernel, with those that give random bytes to the one for Avro.
_TESTS = ("tests/format/kernel", *(f"tests/format/decoding/test_{name}.py" for name in ("avro", "recorded")))
#: ThreadSanitizer needs the memory where it expects it.
_SAME_ADDRESSES = ("setarch", "-R")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=3000, help="cases of the fuzzer")
    parser.add_argument("--threads", action="store_true", help="several threads, under ThreadSanitizer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "kafkalog"
        shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
        codes = _threads(copy) if options.threads else _addresses(copy, options.cases)
    sys.exit(any(codes))


def _addresses(copy: Path, cases: int) -> Sequence[int]:
    """The kernel's tests and the fuzzer."""
    sanitizers = f"{_SANITIZERS} -fno-sanitize-recover=undefined"
    checked = {
        "LD_PRELOAD": ":".join(_library(name) for name in _LIBRARIES),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter's own
    }
    fuzz = ("-m", "tests.faults.fuzz", "--cases", str(cases), "--seconds", "0")
    return (
        *_built(copy, sanitizers, checked),
        _run(copy, checked, ("-m", "pytest", "-q", "-n", "0", *_TESTS)),
        _run(copy, checked, fuzz),
    )


def _threads(copy: Path) -> Sequence[int]:
    """Several threads at once."""
    checked = {"LD_PRELOAD": _library("libtsan.so"), "TSAN_OPTIONS": "exitcode=1"}
    return (
        *_built(copy, _THREAD_SANITIZER, checked, _SAME_ADDRESSES),
        _run(copy, checked, ("-m", "tests.faults.threaded"), _SAME_ADDRESSES),
    )


def _built(copy: Path, sanitizers: str, checked: dict[str, str], before: Sequence[str] = ()) -> Sequence[int]:
    """Compile the kernel with sanitizers, and import it."""
    flags = {"CC": "gcc", "CFLAGS": f"{sanitizers} {_FLAGS}", "LDFLAGS": sanitizers}
    probe = "from format.kernel.compiled import KERNEL_IS_COMPILED as is_it; assert is_it"
    return (
        _run(copy, flags, ("setup.py", "-q", "build_ext", "--inplace")),
        _run(copy, checked, ("-c", probe), before),
    )


def _run(copy: Path, environment: dict[str, str], words: Sequence[str], before: Sequence[str] = ()) -> int:
    print("python", *words, flush=True)
    variables = {**os.environ, "PYTHONPATH": str(copy), **environment}
    return subprocess.run([*before, sys.executable, *words], cwd=copy, env=variables, check=False).returncode


def _library(name: str) -> str:
    """Where gcc has a library of its sanitizers."""
    done = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
