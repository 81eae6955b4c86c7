"""One reading of the metadata log for a whole report: the cluster's image, and the last changes that led to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from format.errors import InputError, KafkaLogError
from format.limits import Limits
from format.node.target import Target
from format.rows.record_rows import Row
from format.state.metadata_log import MetadataState
from format.verbs.metadata.metadata import MetadataResult, MetadataTerms, metadata

_MOST_CHANGES = 1_000


class MetadataReading(msgspec.Struct):
    """The metadata at some paths; ``error`` says why there is none. ``change_count`` includes dropped changes."""

    result: MetadataResult | None = None
    error: InputError | KafkaLogError | None = None
    changes: deque[Row] = msgspec.field(default_factory=lambda: deque(maxlen=_MOST_CHANGES))
    change_count: int = 0

    def take(self, change: Row) -> None:
        """Add a row of columns.METADATA_CHANGE."""
        self.change_count += 1
        self.changes.append(change)

    @property
    def sound_state(self) -> MetadataState | None:
        """The state at the end of a log that was read without findings; None otherwise.

        Changes are read from the oldest snapshot on. From the newest one, as others read a state, the image of a
        damaged log may be more complete.
        """
        return None if self.result is None or self.result.state.findings else self.result.state


def read_changes(targets: Sequence[Target], limits: Limits) -> MetadataReading:
    """Read the metadata log at some paths, from the oldest snapshot on."""
    found = MetadataReading()
    try:
        found.result = metadata(list(targets), MetadataTerms(limits=limits), found.take)
    except (InputError, KafkaLogError) as error:
        found.error = error
    return found
