"""The Python API: log directories, partitions and segments as Arrow, look-ups and findings. See docs/python.md.

The names in ``__all__``, their parameters and attributes are stable: they change only with a changelog entry. The
packages ``format``, ``kafkalog_cli`` and ``spark_jobs`` are not part of the API.
"""

import sys
from pathlib import Path

try:
    from format.errors import (
        CorruptDataError,
        InputError,
        KafkaLogError,
        LimitExceeded,
        NotALogDir,
        UnreadableFile,
        UnsupportedError,
    )
except ImportError as error:
    _found = getattr(sys.modules.get("format"), "__file__", None)
    if _found is None or Path(_found).parent == Path(__file__).parent.parent / "format":
        raise
    raise ImportError(
        f"{_found} hides the package 'format' of kafkalog: rename it, or take its directory off the module path",
        name="format",
        path=_found,
    ) from error
from format.version import VERSION
from kafkalog.log import Answer, DamageFound, Finding, Log, Lookup, Match, Rows, open

__all__ = [
    "Answer",
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
