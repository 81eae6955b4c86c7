"""Runs fuzz cases with the plain Python kernel, whatever was compiled: the other twin, for comparison.

python -m tests.faults.plain_kernel SEED NUMBER…   prints a JSON list of digests
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path


def use_plain_kernel() -> None:
    """Make ``format.kernel`` the Python file; to be called before anything imports it."""
    package = importlib.import_module("format")
    path = Path(str(package.__file__)).with_name("kernel.py")
    spec = importlib.util.spec_from_file_location("format.kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["format.kernel"] = module
    spec.loader.exec_module(module)
    package.kernel = module  # type: ignore[attr-defined]


def main() -> None:
    use_plain_kernel()
    from tests.faults.fuzz import digests

    seed, *numbers = (int(word) for word in sys.argv[1:])
    print(json.dumps(digests(numbers, seed)))


if __name__ == "__main__":
    main()
