"""What ``kafkalog --version`` prints."""

from __future__ import annotations

import platform

from format.kernel.compiled import COMPILED_MODULES, plain_modules
from format.version import VERSION

__all__ = ["VERSION", "kernel_kind", "version_text"]


def kernel_kind() -> str:
    """Which kernel runs: ``compiled``, ``plain Python``, or which of its modules are not compiled."""
    plain = plain_modules()
    if not plain:
        return "compiled"
    if len(plain) == len(COMPILED_MODULES):
        return "plain Python"
    return f"compiled, but plain Python for {', '.join(plain)}"


def version_text() -> str:
    """The lines of ``--version``."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"kafkalog {VERSION}\nkernel: {kernel_kind()}\npython: {python}"
