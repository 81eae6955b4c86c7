"""What an incident is: how it comes about, what is asked, and what is true."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.oracle.incidents.cluster import Lab
from tests.oracle.incidents.judging import Cause, Fact

Truth = dict[str, Any]


class Incident:
    """A question of the night, with one command that answers it. Paths of commands are relative to its folder."""

    number = 0
    name = ""
    question = ""
    #: What the disks do not show, so that no diagnosis can name it unasked; None where they show it.
    unseen: str | None = None
    statuses: tuple[int, ...] = ()

    def build(self, lab: Lab, folder: Path) -> Truth:
        """Let it happen with real brokers, leave the log directories in FOLDER/node-N, and return what is true."""
        raise NotImplementedError

    def making(self, truth: Truth) -> Sequence[str] | None:
        """A command that comes before the question."""
        return None

    def command(self, truth: Truth) -> Sequence[str]:
        """The one command that answers the question."""
        raise NotImplementedError

    def facts(self, truth: Truth) -> list[Fact]:
        """What its answer must say."""
        raise NotImplementedError

    def false(self, truth: Truth) -> list[str]:
        """Expressions of sentences that are not true."""
        return []

    def checked(self, truth: Truth, folder: Path) -> list[str]:
        """What is wrong with the files that the command wrote."""
        return []

    def paths(self, truth: Truth, folder: Path) -> list[str]:
        """What doctor is asked of."""
        return sorted(path.name for path in folder.glob("node-*"))

    def cause(self, truth: Truth) -> Cause | None:
        """What the first diagnosis must name."""
        return None
