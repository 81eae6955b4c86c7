"""The state of a log directory from its own files: offset checkpoints, clean-shutdown mark, broker's lock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.files import offset_checkpoint
from format.files.side_file import problem_findings
from format.findings import Finding, finding_of
from format.io.live_broker import BrokerLock
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location

TopicPartition = tuple[str, int]


class Checkpoints(msgspec.Struct, frozen=True):
    """The checkpoints and other state of one log directory.

    ``by_name`` maps the name of a checkpoint file to its offsets; missing and unreadable files are not in it.
    ``is_clean_shutdown`` is None without a log directory. ``has_remote_storage`` is whether a broker keeps indexes of
    remote segments here. ``findings`` report the problems of the checkpoint files.
    """

    by_name: Mapping[str, Mapping[TopicPartition, int]] = msgspec.field(default_factory=dict)
    is_clean_shutdown: bool | None = None
    has_remote_storage: bool = False
    lock: BrokerLock | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def is_lock_held(self) -> bool | None:
        """Whether a broker runs on the directory; None if unknown."""
        return None if self.lock is None else self.lock.is_held

    def offset(self, name: str, key: TopicPartition | None) -> int | None:
        """The offset of a partition in the checkpoint file ``name``, None if it has none."""
        return None if key is None else self.by_name.get(name, {}).get(key)

    def of_partition(self, key: TopicPartition | None) -> Checkpoints:
        """The checkpoints of one partition only, which are small enough for another process; without findings."""
        only = {
            name: {key: offsets[key]} for name, offsets in self.by_name.items() if key is not None and key in offsets
        }
        return Checkpoints(only, self.is_clean_shutdown, self.has_remote_storage, self.lock)


def read_checkpoints(
    paths: Mapping[str, Path],
    limits: Limits = DEFAULT_LIMITS,
    *,
    is_clean_shutdown: bool | None = None,
    has_remote_storage: bool = False,
    lock: BrokerLock | None = None,
) -> Checkpoints:
    """Read the checkpoint files at ``paths`` (by file name); errors become findings."""
    by_name: dict[str, Mapping[TopicPartition, int]] = {}
    findings: list[Finding] = []
    for name, path in sorted(paths.items()):
        location = Location(str(path))
        try:
            checkpoint = offset_checkpoint.read(path, limits)
        except KafkaLogError as error:
            findings.append(finding_of(error, location))
            continue
        findings.extend(problem_findings(checkpoint.problems, location))
        by_name[name] = checkpoint.by_partition()
    return Checkpoints(by_name, is_clean_shutdown, has_remote_storage, lock, tuple(findings))
