"""The exceptions of this package, all under KafkaLogError.

Operations catch CorruptDataError (and, where they go on past it, UnsupportedError and LimitExceeded) per
batch or per file and turn it into a finding. Anything else that is raised is a bug and is left to show.
"""

from __future__ import annotations

from format.location import Location


class KafkaLogError(Exception):
    """The base of every error that this package raises on purpose; carries where it happened.

    ``code`` is the finding code that an operation reports for it (see ``format.findings``).
    """

    code = "internal-error"

    def __init__(self, message: str, location: Location | None = None, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return self.message if self.location is None else f"{self.location}: {self.message}"


class InputError(KafkaLogError):
    """What the user pointed at cannot be read at all."""

    code = "input-unusable"


class NotALogDir(InputError):
    """The path holds nothing that a Kafka broker writes."""

    code = "not-a-log-dir"


class UnreadableFile(InputError):
    """The operating system refused the file, or it is not a regular file."""

    code = "file-unreadable"


class FileChanged(UnreadableFile):
    """The file shrank, vanished or was replaced while it was read."""

    code = "file-changed"


class NotInBundle(UnreadableFile):
    """A bundle lists what is asked for, and does not hold it."""


class CorruptDataError(KafkaLogError):
    """The bytes contradict the format."""

    code = "data-corrupt"


class TruncatedData(CorruptDataError):
    """The data ends before the structure does."""

    code = "data-truncated"


class InvalidBatch(CorruptDataError):
    """A record batch or message whose fields contradict each other."""

    code = "batch-invalid"


class InvalidRecord(CorruptDataError):
    """A record inside a batch that cannot be decoded."""

    code = "record-invalid"


class ChecksumMismatch(CorruptDataError):
    """The stored CRC does not match the bytes."""

    code = "batch-crc-mismatch"


class DecompressionFailed(CorruptDataError):
    """A codec library rejected the compressed bytes, or they end too early."""

    code = "decompression-failed"


class InvalidIndex(CorruptDataError):
    """An .index, .timeindex or .txnindex file whose bytes contradict the format."""

    code = "index-invalid"


class InvalidSnapshot(CorruptDataError):
    """A producer snapshot whose bytes contradict the format."""

    code = "snapshot-invalid"


class InvalidCheckpoint(CorruptDataError):
    """A checkpoint or properties file whose text contradicts the format."""

    code = "checkpoint-invalid"


class UnsupportedError(KafkaLogError):
    """A well-formed value that this program does not know."""

    code = "unsupported"


class UnknownMagic(UnsupportedError):
    """A magic byte other than 0, 1 and 2."""

    code = "magic-unknown"


class UnknownCodec(UnsupportedError):
    """A compression type other than none, gzip, snappy, lz4 and zstd."""

    code = "codec-unknown"


class UnknownVersion(UnsupportedError):
    """A version number of a file or of a record schema that is newer than what is known."""

    code = "version-unknown"


class LimitExceeded(KafkaLogError):
    """A guard against hostile or outsized data stopped the work; the data may be sound."""

    code = "limit-exceeded"


class WorkerDied(KafkaLogError):
    """A process that did part of the work died or was killed; what it had to do is not done."""

    code = "worker-died"


class OutputError(KafkaLogError):
    """The result could not be written; nothing was published."""

    code = "output-failed"


class OutputExists(OutputError):
    """The target is there already."""

    code = "output-exists"


class OutputInsideSource(OutputError):
    """The target equals, contains or lies inside the source."""

    code = "output-inside-source"


class Refused(KafkaLogError):
    """What was asked for would lose or falsify something; nothing was written."""

    code = "refused"


class ClusterFailed(KafkaLogError):
    """Work on a cluster failed, or cannot be done there; nothing is known of what it had to read."""
