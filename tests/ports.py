"""Ports of this machine for the servers of tests, which several test processes start at once."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The ports of a cluster of one node that ``kafka-lab/cluster.sh`` starts; they cannot be chosen.
LAB_PORTS = (29091, 29191)
#: Below the ports of outgoing connections: one of those may take a port between its choice and its use.
_RANGE = range(12_000, 28_000)


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens. No test process is given one of them again before all others of the range."""
    found: list[int] = []
    with (Path(tempfile.gettempdir()) / f"kafkalog-test-ports-{os.getuid()}").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        given = int(file.read() or 0)
        while len(found) < count:
            given = (given + 1) % len(_RANGE)
            if not _is_taken(_RANGE[given]):
                found.append(_RANGE[given])
        file.truncate(0)
        file.write(str(given))
    return found


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do after a connection was closed
        try:
            probe.bind(("", port))
        except OSError:
            return True
        return False


@contextmanager
def lab_ports() -> Iterator[None]:
    """Reserves LAB_PORTS for this one of several test processes. Raises TimeoutError where another program has them."""
    with (Path(tempfile.gettempdir()) / "kafkalog-lab-ports.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the test process that has them is done
        end = time.monotonic() + 120
        while any(map(is_open, LAB_PORTS)):
            if time.monotonic() > end:
                raise TimeoutError(f"something listens on one of the ports {LAB_PORTS} that a fresh cluster needs")
            time.sleep(0.5)
        yield


def is_open(port: int) -> bool:
    """Whether a server of this machine accepts connections on ``port``."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
