"""Runs fuzz cases with the plain Python kernel, even where it is compiled: the other twin, for comparison.

python -m tests.faults.plain_kernel SEED UNITS   reads a JSON list of case numbers from standard input, and prints a
list of digests; UNITS is 0 for small cases
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import format.kernel as kernel
from format.kernel.compiled import COMPILED_MODULES


def plain_module(name: str) -> ModuleType:
    """The Python file of one of the kernel's modules, loaded anew under the same name; sys.modules stays as it is."""
    path = Path(str(kernel.__file__)).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"{kernel.__name__}.{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def use_plain_kernel() -> None:
    """Make every module of the kernel its Python file; call it before anything imports one."""
    for name in COMPILED_MODULES:
        assert f"{kernel.__name__}.{name}" not in sys.modules, name
        module = plain_module(name)
        sys.modules[module.__name__] = module
        setattr(kernel, name, module)
    sys.modules.pop(f"{kernel.__name__}.compiled")  # to find out anew what is compiled
    compiled = importlib.import_module(f"{kernel.__name__}.compiled")
    assert compiled.plain_modules() == list(COMPILED_MODULES)


def main() -> None:
    use_plain_kernel()
    from tests.faults.fuzz import Cases, digests

    which = Cases(int(sys.argv[1]), int(sys.argv[2]) or None)
    print(json.dumps(digests(json.load(sys.stdin), which)))


if __name__ == "__main__":
    main()
