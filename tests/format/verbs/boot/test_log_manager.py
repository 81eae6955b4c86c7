"""Names of directories in a log directory: which a broker loads, leaves alone, or stops at."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.verbs.boot.log_manager import LogName, log_name
from format.verbs.boot.steps import StopsStart

pytestmark = pytest.mark.slow

UNIQUE = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", LogName("orders", 0, None)),
        ("a-b-12", LogName("a-b", 12, None)),
        ("orders--1", LogName("orders-", 1, None)),
        ("orders-+3", LogName("orders", 3, None)),
        ("a b-0", LogName("a b", 0, None)),
        (f"orders-0.{UNIQUE}-delete", LogName("orders", 0, "delete")),
        (f"orders-0.{UNIQUE}-future", LogName("orders", 0, "future")),
        (f"orders-0.{UNIQUE}-stray", LogName("orders", 0, "stray")),
        ("remote-log-index-cache", None),
        ("__cluster_metadata-0", None),
        ("__cluster_metadata-1", None),
    ],
)
def test_a_name_that_a_broker_takes(name: str, expected: LogName | None) -> None:
    assert log_name(Path("/d") / name) == expected


@pytest.mark.parametrize(
    "name",
    ["lost+found", "backup", "orders-", "-0", "orders-x", "orders-0.bak", "orders-0-delete", "orders-99999999999",
     f"orders.{UNIQUE}-delete", f"orders-x.{UNIQUE}-stray", "orders-0 ", ".hidden"],
)  # fmt: skip
def test_a_name_that_stops_a_broker(name: str) -> None:
    with pytest.raises(StopsStart, match="is not in the form of topic-partition"):
        log_name(Path("/d") / name)
