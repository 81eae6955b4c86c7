"""The views of the data source that scans make: listings and findings."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from format.columns import RowSchema
from format.rows.arrow_columns import findings_batch
from format.rows.record_rows import Row
from spark_jobs.scans.inventory import InventoryOptions, Listed, items
from spark_jobs.scans.verify import VerifyOptions, verified
from spark_jobs.work.planning import Unit


def listed(unit: Unit, schema: RowSchema) -> Iterator[Row]:
    """The rows of one schema in the inventory of a unit."""
    for each in items(unit, InventoryOptions()):
        if isinstance(each, Listed) and each.schema.type == schema.type:
            yield each.row


def findings(unit: Unit) -> Iterator[pa.RecordBatch]:
    """The findings of a unit, verified whole."""
    for result in verified(unit, VerifyOptions()):
        if isinstance(result.value, list):
            yield findings_batch(result.value)
