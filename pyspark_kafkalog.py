"""The data source ``kafkalog`` for Spark, which finds it by this module's name: no code has to register it.

Spark imports every module called ``pyspark_*`` when a session first asks for a Python data source, and registers its
class ``DefaultSource``. An import that fails would stop all of them, so where pyarrow is missing there is no class.

``read_view`` reads a view as a frame, and its large partitions by several tasks.
"""

import contextlib
from typing import Any

with contextlib.suppress(ImportError):
    from spark_jobs.data_source import KafkaLogDataSource as DefaultSource

__all__ = ["DefaultSource", "read_view"]


def read_view(spark: Any, view: str, path: Any, **options: Any) -> Any:
    """The DataFrame of a view of the data source, with its options. ``path`` is a path, or a list of paths.

    Large partitions are read by several tasks, also in the views ``findings`` and ``transactions``.
    """
    from spark_jobs import frames

    return frames.read_view(spark, view, path, **options)
