"""The end of Kafka's own tool by an exception, and its lines on standard error."""

from __future__ import annotations

import msgspec

from format.errors import CorruptDataError


class KafkaStops(CorruptDataError):
    """Kafka's tool ends here with an exception. The message starts with the exception's class and resembles its text.

    While a release is emulated this ends the run; otherwise only the record, batch or file that it is about.
    """

    code = "record-invalid"


class ErrorLine(msgspec.Struct, frozen=True):
    """A line that Kafka's tool writes to standard error."""

    text: str
