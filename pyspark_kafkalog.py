"""The data source ``kafkalog`` for Spark, which finds it by this module's name: no code has to register it.

Spark imports every module called ``pyspark_*`` when a session first asks for a Python data source, and registers its
class ``DefaultSource``. An import that fails would stop all of them, so where pyarrow is missing there is no class.
"""

import contextlib

with contextlib.suppress(ImportError):
    from spark_jobs.data_source import KafkaLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
