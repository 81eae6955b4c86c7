"""The session of a process of Spark: the driver, or a Python worker, which Spark keeps for many tasks."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from format.io.read_policy import keep_freed_memory
from format.io.session import Session, Tier


class Process(msgspec.Struct):
    """What outlives the tasks of a process; Spark gives them no other place."""

    session: Session


PROCESS = Process(Session())


class Surroundings(msgspec.Struct, frozen=True):
    """State of the planning process that its tasks need: its session, which is sent as a description, and its tier."""

    session: Session = msgspec.field(default_factory=lambda: PROCESS.session)
    tier: Tier | None = msgspec.field(default_factory=lambda: PROCESS.session.tier)


def begin_task(surroundings: Surroundings) -> None:
    """Prepare this process for a task."""
    keep_freed_memory()
    PROCESS.session = surroundings.session
    PROCESS.session.tier = surroundings.tier


def path_of(path: str | os.PathLike[str]) -> Path:
    """The path for a text of a plan, in the session of this process."""
    return path if isinstance(path, Path) else PROCESS.session.path(path)
