"""Rows as Arrow: read batch by batch, once or as often as wanted, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from format.findings import Finding as _Finding
from format.findings import Severity
from format.rows.record_rows import RowBlock
from kafkalog.results import DamageFound, Finding, public_finding

if TYPE_CHECKING:
    import pyarrow as pa

    from format.columns import RowSchema

#: So many findings are kept of one pass; all of them are counted.
MOST_FINDINGS = 1000


class Rows:
    """Batches or records of a log as Arrow. Nothing is read before it is asked for; each pass reads the log anew.

    Iterating gives ``pyarrow.RecordBatch`` objects of at most about 16 MiB of keys and values. The object has
    ``__arrow_c_stream__``, so that libraries that know Arrow's C stream take it as it is.

    ``findings`` are those of the last pass, at most 1,000 of ``finding_count``. ``is_complete`` says whether the last
    pass came to the end and missed nothing.
    """

    def __init__(
        self,
        schema: RowSchema,
        blocks: Callable[[], Iterator[RowBlock | _Finding]],
        columns: Sequence[str] | None,
        raises: bool,
    ) -> None:
        _require_arrow()
        from format.rows.arrow_columns import schema_with_times

        try:
            self.schema: pa.Schema = schema_with_times(schema, columns)
        except KeyError as error:
            raise ValueError(f"{error} is not a column of {schema.type}; there are {', '.join(schema.names)}") from None
        self.findings: list[Finding] = []
        self.finding_count = 0
        self.is_complete = False
        self._blocks = blocks
        self._raises = raises

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """One pass over the rows. Raises DamageFound where that was asked for."""
        from format.rows.arrow_columns import batch_with_times, block_batches

        self.findings, self.finding_count, self.is_complete = [], 0, False
        is_whole = True
        for block in self._blocks():
            if isinstance(block, _Finding):
                is_whole = is_whole and block.severity < Severity.ERROR and not block.is_incomplete
                self._note(block)
            elif block.location is not None and (block.records is not None or block.batches is not None):
                for batch in block_batches(block, self.schema.names):
                    yield batch_with_times(batch, self.schema)
        self.is_complete = is_whole

    def reader(self) -> pa.RecordBatchReader:
        """One pass as a ``pyarrow.RecordBatchReader``, for DuckDB and others."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def table(self) -> pa.Table:
        """All rows as one ``pyarrow.Table``, in memory."""
        return self.reader().read_all()

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """One pass as a stream of Arrow's C data interface."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def _note(self, found: _Finding) -> None:
        finding = public_finding(found)
        self.finding_count += 1
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)
        if self._raises and found.severity >= Severity.ERROR:
            raise DamageFound(finding)


def _require_arrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(f"rows as Arrow need pyarrow ({error}): pip install 'kafkalog[arrow]'") from error
