"""Calls into libraries that block: given up after a while, and not made again."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from format.io import store
from format.io.store import Calls
from tests.corpora import REPOSITORY

pytestmark = pytest.mark.slow

_PROGRAM = """
import sys, threading
import fsspec
from fsspec.spec import AbstractFileSystem
from format.io import store
from kafkalog_cli.main import main

class Slow(AbstractFileSystem):
    protocol = "slow"

    def info(self, path, **options):
        threading.Event().wait()

fsspec.register_implementation("slow", Slow)
store.LONGEST_CALL_S = 0.5
sys.exit(main(["verify", "slow://host/logs"]))
"""


def test_results_and_errors_are_passed_on() -> None:
    bounded = Calls().bounded
    assert bounded(lambda: 5, "x://a") == 5
    with pytest.raises(KeyError):
        bounded(lambda: {}["a"], "x://a")


def test_a_call_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LONGEST_CALL_S", 0.05)
    bounded = Calls().bounded
    release = threading.Event()
    with pytest.raises(TimeoutError, match=r"^x://a did not answer within 0 seconds"):
        bounded(release.wait, "x://a")
    with pytest.raises(TimeoutError, match="did not answer"):
        bounded(lambda: 5, "x://a")  # at once: the store is known to be silent
    assert bounded(lambda: 5, "x://b") == 5
    release.set()


def test_a_program_ends_although_a_call_goes_on() -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'kafkalog[remote]'")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, cwd=REPOSITORY, timeout=300, check=False
    )
    assert done.returncode == 3
    assert "slow://host/logs: cannot access: slow://host did not answer within 0 seconds" in done.stderr
    assert "Exit status 3." in done.stdout
