"""The exceptions of this package, all under KafkaLogError.

Verbs catch CorruptDataError (and UnsupportedError and LimitExceeded, if they can go on) for each batch or file, and
report it as a finding. Any other exception is a bug and is not caught.
"""

from __future__ import annotations

from format.location import Location


class KafkaLogError(Exception):
    """The base of all errors that this package raises on purpose, with a message and the location of the error.

    ``code`` is the code of the finding that reports it (see ``format.findings``).
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
    """An input of the command cannot be read at all."""

    code = "input-unusable"


class NotALogDir(InputError):
    """The path contains nothing that a Kafka broker writes."""

    code = "not-a-log-dir"


class BadQuery(InputError):
    """A question in SQL that cannot be answered; ``excerpt`` shows the place in it, empty where it is not known."""

    code = "query-invalid"

    def __init__(self, message: str, excerpt: str = "") -> None:
        super().__init__(message)
        self.excerpt = excerpt


class UnreadableFile(InputError):
    """The operating system denied access to the file, or it is not a regular file."""

    code = "file-unreadable"


class FileChanged(UnreadableFile):
    """The file shrank, vanished or was replaced while it was read."""

    code = "file-changed"


class NotInBundle(UnreadableFile):
    """A bundle lists a file, but does not contain its content."""


class CorruptDataError(KafkaLogError):
    """The bytes contradict the format."""

    code = "data-corrupt"


class TruncatedData(CorruptDataError):
    """The data ends before the structure does."""

    code = "data-truncated"


class InvalidRecord(CorruptDataError):
    """A record inside a batch that cannot be decoded."""

    code = "record-invalid"


class DecompressionFailed(CorruptDataError):
    """A codec library rejects the compressed bytes, or they end too early."""

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
    """A well-formed value that this program does not support."""

    code = "unsupported"


class UnknownCodec(UnsupportedError):
    """A compression type other than none, gzip, snappy, lz4 and zstd."""

    code = "codec-unknown"


class UnknownVersion(UnsupportedError):
    """A version number of a file or record schema that is newer than the known ones."""

    code = "version-unknown"


class LimitExceeded(KafkaLogError):
    """Data over one of the limits (``format.limits``) was not processed; it may be sound."""

    code = "limit-exceeded"


class WorkerDied(KafkaLogError):
    """A worker process died or was killed; its part of the work is not done."""

    code = "worker-died"


class OutputError(KafkaLogError):
    """The result could not be written; nothing was published."""

    code = "output-failed"


class OutputExists(OutputError):
    """The target exists already."""

    code = "output-exists"


class OutputInsideSource(OutputError):
    """The target is the source, contains it, or is inside it."""

    code = "output-inside-source"


class Refused(KafkaLogError):
    """The operation would lose or falsify data; nothing was written."""

    code = "refused"


class ClusterFailed(KafkaLogError):
    """Work on a Spark cluster failed or is not possible there; there is no result for the data that it had to read."""
