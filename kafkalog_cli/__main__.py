"""The program's start, for ``kafkalog`` and ``python -m kafkalog_cli``."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

from kafkalog_cli.main import main

#: Python's default of 700 searches the rows of large directories hundreds of times, for a few hundred cycles in all.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def start() -> NoReturn:
    """Run the program, and end the process with its exit code."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    sys.exit(main())


if __name__ == "__main__":
    start()
