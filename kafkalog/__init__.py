"""The Python API: log directories, partitions and segments as Arrow, look-ups and findings. See docs/python.md.

The names in ``__all__``, their parameters and attributes are stable: they change only with a changelog entry. The
packages ``format``, ``kafkalog_cli`` and ``spark_jobs`` are not part of the API.
"""

from format.errors import (
    CorruptDataError,
    InputError,
    KafkaLogError,
    LimitExceeded,
    NotALogDir,
    UnreadableFile,
    UnsupportedError,
)
from format.version import VERSION
from kafkalog.log import DamageFound, Finding, Log, Lookup, Match, Rows, open

__all__ = [
    "CorruptDataError",
    "DamageFound",
    "Finding",
    "InputError",
    "KafkaLogError",
    "LimitExceeded",
    "Log",
    "Lookup",
    "Match",
    "NotALogDir",
    "Rows",
    "UnreadableFile",
    "UnsupportedError",
    "__version__",
    "open",
]

__version__ = VERSION
