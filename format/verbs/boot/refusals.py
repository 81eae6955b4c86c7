"""Findings from a simulated start on one log directory, for verify: refusals, stray logs, missing partitions.

The directory may be one of several of its node. Logs that a broker would recover are not read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from format.findings import Finding, Severity, finding
from format.io import live_broker
from format.io.session import is_there
from format.layout import LOCK
from format.limits import Limits
from format.location import Location
from format.verbs.boot.boot import boot
from format.verbs.boot.identity import METADATA_PARTITION
from format.verbs.boot.steps import Action, BootTerms, KeptStart, Step

#: Without a metadata log the directory may belong to a broker with ZooKeeper, which 3.9 is the last to support.
_NEWEST, _LAST_WITH_ZOOKEEPER = (4, 4), (3, 9)


def refusal_findings(
    log_dir: Path,
    limits: Limits,
    elsewhere: frozenset[tuple[str, int]] = frozenset(),
    kept: KeptStart | None = None,
) -> Iterator[Finding]:
    """Findings about what would keep a broker from starting on a log directory, or from serving its logs.

    There are none for a directory that a running broker uses. ``elsewhere``: what other directories of its node hold.
    ``kept`` takes what another simulated start of the same command need not read again.
    """
    if live_broker.probe(log_dir / LOCK).is_held:
        return
    version = _NEWEST if is_there(log_dir / METADATA_PARTITION) else _LAST_WITH_ZOOKEEPER
    result = boot([log_dir], BootTerms(version=version, is_one_of_several=True, limits=limits, kept=kept))
    for step in result.steps:
        if step.action is Action.REFUSE:
            yield _finding("boot-refused", step, f"a broker would not start: {_words(step)}")
        elif step.action is Action.OFFLINE:
            yield _finding("boot-unserved", step, f"a broker would not serve this: {_words(step)}")
        elif step.action is Action.RENAME and str(step.new_path).endswith("-stray"):
            yield _finding("replica-stray", step, f"a broker would rename this log to -stray: {step.reason}")
        elif step.action is Action.KEEP and _has_lost_head(step):
            yield replace(_finding("checkpoint-mismatch", step, step.reason), severity=Severity.ERROR)
        elif step.action is Action.CREATE and (step.topic, step.partition) in elsewhere:
            continue  # a broker finds the log in another log directory, and notes that it lies there
        elif step.action is Action.CREATE and step.lost_offsets is not None:
            yield _finding("replica-missing", step, step.reason)


def _has_lost_head(step: Step) -> bool:
    start = step.log_start_offset
    return step.lost_offsets is not None and start is not None and step.lost_offsets[0] < start


def _words(step: Step) -> str:
    """The broker's message, with the reason in brackets; without a message, the reason."""
    if step.broker_message is None:
        return step.reason
    message = step.broker_message.rstrip(".")
    return f"{message} ({step.reason.rstrip('.')})" if step.reason else message


def _finding(code: str, step: Step, message: str) -> Finding:
    location = Location(str(step.path), step.topic, step.partition, position=step.position)
    return finding(code, location, message, lost_offsets=step.lost_offsets)
