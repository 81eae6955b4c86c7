"""Builds the one compiled module, which is optional: ``format/kernel.py`` is plain Python and runs as it is.

Everything else about the distribution stands in pyproject.toml. KAFKALOG_NO_KERNEL=1 skips the compiled module.
"""

import os
import sys

from setuptools import Extension, setup


def kernel_extensions() -> list[Extension]:
    """format/kernel.py compiled by Cython with the types of format/kernel.pxd; nothing where that cannot work."""
    if os.environ.get("KAFKALOG_NO_KERNEL", "") not in ("", "0"):
        return []
    if not os.path.exists("format/kernel.py"):
        return []
    try:
        from Cython.Build import cythonize
        from Cython.Compiler.Errors import CompileError
    except ImportError:
        print("kafkalog: no Cython, so the plain Python kernel will serve", file=sys.stderr)
        return []
    try:
        extensions = cythonize([Extension("format.kernel", ["format/kernel.py"])], build_dir="build/cython")
    except CompileError as error:
        print(f"kafkalog: Cython refused the kernel ({error}), so the plain Python one will serve", file=sys.stderr)
        return []
    for extension in extensions:
        # A C compiler that is missing or fails must not fail the installation. cythonize makes Extensions anew,
        # without the flag, so it is set here.
        extension.optional = True
    return extensions


setup(ext_modules=kernel_extensions())
