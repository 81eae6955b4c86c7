"""Runs fuzz cases with the plain Python kernel, whatever was compiled: the other twin, for comparison.

python -m tests.faults.plain_kernel SEED   takes a JSON list of case numbers from standard input, prints one of digests
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

    print(json.dumps(digests(json.load(sys.stdin), int(sys.argv[1]))))


if __name__ == "__main__":
    main()
