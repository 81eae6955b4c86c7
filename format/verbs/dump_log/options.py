"""Options of dump-log: Kafka's flags, the release that is emulated; and what ends Kafka's own tool."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import msgspec

from format.errors import CorruptDataError
from format.io.session import Session, is_remote
from format.limits import DEFAULT_LIMITS, Limits

INT32_MAX = 2**31 - 1


class Release(Enum):
    """A release whose output is reproduced byte for byte, defects included."""

    V4_3_1 = "4.3.1"
    V3_9_1 = "3.9.1"


class Contents(Enum):
    """How keys and values are printed: through decoder classes, or through an internal topic's decoder."""

    CLASSES = ""
    OFFSETS = "__consumer_offsets"
    TRANSACTION_LOG = "__transaction_state"
    CLUSTER_METADATA = "__cluster_metadata"
    REMOTE_LOG_METADATA = "__remote_log_metadata"
    SHARE_GROUP_STATE = "__share_group_state"


class DumpLogOptions(msgspec.Struct, frozen=True):
    """The flags of kafka-dump-log; ``emulate`` None means correct output wherever Kafka has a known defect.

    ``max_bytes`` and ``max_message_size`` are int32, as Kafka's are; ``prints_contents`` is --print-data-log or
    anything that implies it.
    """

    prints_contents: bool = False
    is_deep: bool = False
    skips_record_metadata: bool = False
    max_bytes: int = INT32_MAX
    max_message_size: int = 5 * 1024 * 1024
    checks_sanity_only: bool = False
    verifies_only: bool = False
    contents: Contents = Contents.CLASSES
    key_decoder: str = "org.apache.kafka.tools.api.StringDecoder"
    value_decoder: str = "org.apache.kafka.tools.api.StringDecoder"
    emulate: Release | None = None
    session: Session = msgspec.field(default_factory=Session)
    limits: Limits = DEFAULT_LIMITS

    @property
    def reads_records(self) -> bool:
        return self.is_deep or self.prints_contents

    def place(self, path: str) -> str | Path:
        """The path to open: of an address that of the session, else the text as it was given, which messages name."""
        return self.session.path(path) if is_remote(path) else path


class KafkaStops(CorruptDataError):
    """Kafka's tool ends here with an exception; the message says why, in words of this program.

    While a release is emulated this ends the run; otherwise only the record, batch or file that it is about.
    """

    code = "record-invalid"


class ErrorLine(msgspec.Struct, frozen=True):
    """A line that Kafka's tool writes to standard error."""

    text: str
