"""The two twins of the kernel's modules, as installed and as plain Python, and what tests of both need."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from format.findings import Finding
from format.kernel.compiled import COMPILED_MODULES
from format.limits import MIB, Limits
from format.location import Location
from tests.faults.plain_kernel import plain_module

WHERE = Location("x.log", "topic", 7, 0)
LIMITS = Limits(max_decompressed_bytes=16 * MIB, max_record_bytes=5000)
Twin = dict[str, ModuleType]  # the kernel's modules by name

#: The modules as they are installed, and the plain ones.
INSTALLED: Twin = {name: import_module(f"format.kernel.{name}") for name in COMPILED_MODULES}
PLAIN: Twin = {name: plain_module(name) for name in COMPILED_MODULES}


def shown(findings: Iterator[Finding]) -> list[tuple[str, str, str]]:
    return [(each.code, str(each.location), each.message) for each in findings]
