"""Which modules of the kernel are compiled in this installation. Importing this module imports none of them."""

from __future__ import annotations

from importlib.util import find_spec

#: The modules that setup.py compiles, if it can.
COMPILED_MODULES = (
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


def plain_modules() -> list[str]:
    """The COMPILED_MODULES that an import would run as plain Python."""
    return [name for name in COMPILED_MODULES if _origin(name).endswith((".py", ".pyc"))]


def _origin(name: str) -> str:
    spec = find_spec(f"{__package__}.{name}")
    return spec.origin if spec is not None and spec.origin is not None else ""


#: Whether all modules are compiled. Plain modules return the same results, but are slower than numpy or a library.
KERNEL_IS_COMPILED = not plain_modules()
