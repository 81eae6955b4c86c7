"""What ``kafkalog --version`` says, found out without importing what it speaks about."""

from __future__ import annotations

import platform
from importlib.util import find_spec

VERSION = "0.1.0"  # the same as in pyproject.toml; a test compares them


def kernel_kind() -> str:
    """``compiled``, ``plain Python`` or ``missing``: which kernel an import would find; imports no kernel."""
    spec = find_spec("format.kernel")
    if spec is None or spec.origin is None:
        return "missing"
    return "plain Python" if spec.origin.endswith((".py", ".pyc")) else "compiled"


def version_text() -> str:
    """The lines of ``--version``."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"kafkalog {VERSION}\nkernel: {kernel_kind()}\npython: {python}"
