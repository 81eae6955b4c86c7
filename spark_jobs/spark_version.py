"""The version of the Spark that this process imports."""

from __future__ import annotations


def spark_version() -> str:
    """The version, such as ``4.0.1``.

    The package says it, not its installation: where a platform brings Spark, ``spark-submit`` puts it on the path, and
    nothing is installed.
    """
    import pyspark

    version: str = pyspark.__version__
    return version
