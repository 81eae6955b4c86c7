"""The program's start, for ``kafkalog`` and ``python -m kafkalog_cli``."""

from __future__ import annotations

import sys
from typing import NoReturn

from kafkalog_cli.main import main


def start() -> NoReturn:
    """Run the program, and end the process with its exit code."""
    sys.exit(main())


if __name__ == "__main__":
    start()
