"""A check of the executors of a cluster before the first job: version, Python and kernel are those of this process.

The function that runs on executors is pickled by value, so that it also runs where this package is missing.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from format.errors import ClusterFailed
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.version import VERSION
from spark_jobs.session import is_remote_session, one_line_reason, parallelism_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMEDY = "give executors this environment with --archive FILE, which kafkalog scan --pack FILE makes"
_REMEDY_OF_CONNECT = (
    f"install kafkalog {VERSION} with its extra spark-provided for the Python of the Connect server and its executors"
)
_PACKAGES = {"format": "kafkalog", "spark_jobs": "kafkalog"}  # of modules with another name
_MOST_TASKS = 32
#: Spark refuses tasks for another minor version of Python before it runs anything of them.
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\]?\D*(?P<there>[0-9.]+\d)\D+(?P<here>[0-9.]+\d)")


_PYTHON = f"{platform.python_implementation()} {'.'.join(platform.python_version_tuple()[:2])}"


class WrongExecutor(ClusterFailed):
    """An executor that cannot run the tasks of this process."""


def check_executors(session: SparkSession) -> None:
    """Raise WrongExecutor where executors lack packages, or have another version of kafkalog or Python.

    Executors without the compiled kernel are only slow: one warning names them.
    """
    from pyspark import cloudpickle

    remedy = _REMEDY_OF_CONNECT if is_remote_session(session) else _REMEDY
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    count = min(2 * parallelism_of(session), _MOST_TASKS)
    try:
        rows = session.range(0, count, 1, count).mapInArrow(_seen, "seen STRING").collect()
    except Exception as error:
        other = _OTHER_PYTHON.search(str(error))
        if other is not None:
            raise WrongExecutor(
                f"the executors have Python {other['there']}, and this is {other['here']}: {remedy}"
            ) from error
        raise WrongExecutor(f"the executors cannot run Python as here: {one_line_reason(error)}; {remedy}") from error
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    check_seen([json.loads(text) for text in dict.fromkeys(row[0] for row in rows)], remedy)


def check_seen(executors: list[dict[str, Any]], remedy: str = _REMEDY) -> None:
    """Raise WrongExecutor, or warn, as ``check_executors`` does, for the answers of ``_seen``."""
    for each in executors:
        if each["missing"]:
            lacks = ", ".join(dict.fromkeys(_PACKAGES.get(name, name) for name in each["missing"]))
            raise WrongExecutor(f"the executor on {each['host']} lacks {lacks}: {remedy}")
        if each["version"] != VERSION:
            raise WrongExecutor(
                f"the executor on {each['host']} has kafkalog {each['version']}, and this is {VERSION}: {remedy}"
            )
        if each["python"] != _PYTHON:
            raise WrongExecutor(f"the executor on {each['host']} has {each['python']}, and this is {_PYTHON}: {remedy}")
    plain = sorted({each["host"] for each in executors if not each["has_kernel"]})
    if plain and KERNEL_IS_COMPILED:
        sys.stderr.write(
            f"kafkalog: executors without the compiled kernel, some ten times slower: {', '.join(plain)}; {remedy}\n"
        )


def _seen(batches: Iterator[Any]) -> Iterator[Any]:
    """One row with the packages and versions of this executor. The function uses only its own imports."""
    import importlib.util
    import json
    import platform
    import socket

    import pyarrow as pa

    for _ in batches:
        pass
    missing = [name for name in ("numpy", "format", "spark_jobs") if importlib.util.find_spec(name) is None]
    python = f"{platform.python_implementation()} {'.'.join(platform.python_version_tuple()[:2])}"
    seen: dict[str, Any] = {"host": socket.gethostname(), "missing": missing, "python": python}
    if not missing:
        from format.kernel.compiled import KERNEL_IS_COMPILED
        from format.version import VERSION

        seen |= {"version": VERSION, "has_kernel": KERNEL_IS_COMPILED}
    yield pa.RecordBatch.from_pydict({"seen": [json.dumps(seen)]})
