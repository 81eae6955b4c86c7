"""Builds the one compiled module, which is optional: ``format/kernel.py`` is plain Python and runs as it is.

Everything else about the distribution stands in pyproject.toml. KAFKALOG_NO_KERNEL=1 skips the compiled module.
KAFKALOG_LIMITED_API=1 builds it against Python's limited API: one wheel then serves CPython 3.11 and all that follow.
"""

import os
import sys

from setuptools import Extension, setup

#: Memoryviews of C types need the buffer protocol, which the limited API has from this version on.
LIMITED_API_VERSION = (3, 11)


def is_asked_for(variable: str) -> bool:
    """Whether an environment variable is set to anything but nothing and 0."""
    return os.environ.get(variable, "") not in ("", "0")


def kernel_extensions() -> list[Extension]:
    """format/kernel.py compiled by Cython with the types of format/kernel.pxd; nothing where that cannot work."""
    if is_asked_for("KAFKALOG_NO_KERNEL"):
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
        if is_asked_for("KAFKALOG_LIMITED_API"):
            major, minor = LIMITED_API_VERSION
            extension.py_limited_api = True
            extension.define_macros = [("Py_LIMITED_API", f"0x{major:02X}{minor:02X}0000")]
    return extensions


found = kernel_extensions()
is_limited = any(each.py_limited_api for each in found)
setup(
    ext_modules=found,
    options={"bdist_wheel": {"py_limited_api": "cp{}{}".format(*LIMITED_API_VERSION)}} if is_limited else {},
)
