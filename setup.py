"""Builds the compiled modules of ``format/kernel``. They are optional: the same files run as plain Python.

Everything else about the distribution is in pyproject.toml. KAFKALOG_NO_KERNEL=1 skips the compiled modules.
KAFKALOG_LIMITED_API=1 builds them against Python's limited API: one wheel then serves CPython 3.11 and all later ones.
"""

import os
import sys

from setuptools import Extension, setup

#: The same names as in format/kernel/compiled.py; a test compares them.
KERNEL_MODULES = (
    "avro",
    "checks",
    "directories",
    "distinct",
    "encode",
    "group_records",
    "headers",
    "kafka_lines",
    "messages",
    "partitioner",
    "records",
    "search",
    "text",
)
#: A module with the C code for memoryviews that all of them share: in each of them it took most of the time to compile.
SHARED_CODE = "format.kernel.memoryviews"
#: The C code checks no index and no divisor, as the modules do; types come from the .pxd files alone.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "annotation_typing": False,
    "freethreading_compatible": True,  # the modules keep no state but constants
}
#: Memoryviews of C types need the buffer protocol, which the limited API has from this version on.
LIMITED_API_VERSION = (3, 11)


def is_set(variable: str) -> bool:
    """Whether an environment variable is set, and not to 0."""
    return os.environ.get(variable, "") not in ("", "0")


def kernel_extensions() -> list[Extension]:
    """The compiled modules, translated by Cython with the types of the .pxd files beside them; none if that fails."""
    if is_set("KAFKALOG_NO_KERNEL"):
        return []
    sources = [f"format/kernel/{name}.py" for name in KERNEL_MODULES]
    if not all(os.path.exists(source) for source in sources):
        return []
    try:
        from Cython.Build import cythonize
        from Cython.Compiler.Errors import CompileError
    except ImportError:
        print("kafkalog: there is no Cython, so the kernel stays plain Python", file=sys.stderr)
        return []
    modules = [
        Extension(f"format.kernel.{name}", [source]) for name, source in zip(KERNEL_MODULES, sources, strict=True)
    ]
    modules.append(Extension(SHARED_CODE, [f"{SHARED_CODE.replace('.', '/')}.c"]))  # which Cython writes
    try:
        extensions = cythonize(
            modules,
            build_dir="build/cython",
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED_CODE,
        )
    except CompileError as error:
        print(f"kafkalog: Cython rejected the kernel ({error}), so it stays plain Python", file=sys.stderr)
        return []
    for extension in extensions:
        # A C compiler that is missing or fails must not fail the installation. cythonize returns new Extensions without
        # the flag, so it is set here.
        extension.optional = True
        extension.extra_compile_args = ["-g0"]  # a third less time to compile, a fifth of the size
        if is_set("KAFKALOG_LIMITED_API"):
            major, minor = LIMITED_API_VERSION
            extension.py_limited_api = True
            extension.define_macros = [("Py_LIMITED_API", f"0x{major:02X}{minor:02X}0000")]
    return extensions


found = kernel_extensions()
options: dict[str, dict[str, object]] = {"build_ext": {"parallel": True}}  # one C compiler for each processor
if any(each.py_limited_api for each in found):
    options["bdist_wheel"] = {"py_limited_api": "cp{}{}".format(*LIMITED_API_VERSION)}
setup(ext_modules=found, options=options)
