from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from format.io import live_broker
from format.io.live_broker import probe

#: Takes the lock as Java's FileChannel.lock does, says so, and holds it until its input ends.
HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, getattr(fcntl, sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by_another_process(path, kind="LOCK_EX"):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        yield holder.pid
        holder.stdin.close()


@pytest.fixture
def lock(tmp_path):
    path = tmp_path / ".lock"
    path.touch()
    return path


def test_a_held_lock_is_seen_with_its_holder_and_not_after(lock):
    before = lock.stat()
    with held_by_another_process(lock) as pid:
        found = probe(lock)
        assert (found.is_held, found.pid, found.reason) == (True, pid, "")
        assert probe(str(lock)) == found
    assert (probe(lock).is_held, probe(lock).pid) == (False, None)
    assert (lock.stat().st_mtime_ns, lock.stat().st_size) == (before.st_mtime_ns, before.st_size)


def test_a_shared_lock_would_stop_a_broker_too(lock):
    with held_by_another_process(lock, "LOCK_SH") as pid:
        assert (probe(lock).is_held, probe(lock).pid) == (True, pid)


def test_a_probe_takes_nothing(lock):
    assert probe(lock).is_held is False
    with held_by_another_process(lock):  # would wait for ever if the probe had taken the lock
        assert probe(lock).is_held is True


def test_locks_that_killed_brokers_left_are_not_held(corpus):
    paths = list(corpus.files(".lock"))
    if not paths:
        pytest.skip("this corpus has no locks")
    for path in paths:
        assert probe(path).is_held is False


def test_a_missing_lock_is_not_held(tmp_path):
    found = probe(tmp_path / ".lock")
    assert (found.is_held, found.pid) == (False, None)


def test_an_unknown_holder_is_none_with_a_reason(tmp_path, lock, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(lock)
    assert probe(link).is_held is None
    assert probe(link).reason.startswith("cannot open: ")
    assert probe("a\0b").is_held is None
    assert probe(lock / "below").is_held is None

    def refuse(*arguments):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(live_broker.fcntl, "fcntl", refuse)
    assert probe(lock).is_held is None
    assert probe(lock).reason == f"the file system does not report locks: {os.strerror(37)}"
    monkeypatch.setattr(live_broker, "_FLOCK", None)
    assert probe(lock).is_held is None


def test_a_fifo_does_not_block(tmp_path):
    path = tmp_path / ".lock"
    os.mkfifo(path)
    assert probe(path).is_held in (False, None)
