"""Batch headers as Parquet columns, and the conversion of both into each other.

Each field of the three header layouts is a column, with the value on disk; it is null in formats without the field.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import InputError

#: The layouts of headers, by magic.
LAYOUTS = (layout.MESSAGE_V0, layout.MESSAGE_V1, layout.RECORD_BATCH)
MOST_HEADER_BYTES = max(each.size_bytes for each in LAYOUTS)
_FIELDS = {each.name: each.type for one in LAYOUTS for each in one.fields}
_IN_EVERY = frozenset.intersection(*(frozenset(one.names) for one in LAYOUTS))
_WIDEST = {**_FIELDS, "attributes": "i16"}  # 8 bits in messages, 16 in batches


def batch_schema() -> Any:
    """The Arrow schema of batch headers: the place of a batch, its header's fields, and a control batch's bytes.

    The header of a compressed v0/v1 message has neither the offset of its first record nor their number:
    ``inner_first_offset`` and ``inner_count`` have them, null for all others and for those that cannot be opened.
    """
    import pyarrow as pa

    columns = [
        pa.field("path", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("topic", pa.dictionary(pa.int32(), pa.string())),
        pa.field("partition", pa.int32()),
        pa.field("position", pa.int64(), nullable=False),
    ]
    for name, kind in _WIDEST.items():
        arrow_type = getattr(pa, ("uint" if kind[0] == "u" else "int") + kind[1:])()
        columns.append(pa.field(name, arrow_type, nullable=name not in _IN_EVERY))
    columns.append(pa.field("inner_first_offset", pa.int64()))
    columns.append(pa.field("inner_count", pa.int64()))
    columns.append(pa.field("content", pa.binary()))
    return pa.schema(columns)


def outline_schema() -> Any:
    """The Arrow schema of outlines: the offsets and timestamps of the records of some batches."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("path", pa.string(), nullable=False),
            pa.field("position", pa.int64(), nullable=False),
            pa.field("offsets", pa.list_(pa.int64()), nullable=False),
            pa.field("timestamps", pa.list_(pa.int64()), nullable=False),
        ]
    )


def columns_of(headers: NDArray[np.uint8], magic: NDArray[np.int64]) -> dict[str, Any]:
    """The header fields of batches as Arrow arrays, by name.

    ``headers`` (uint8, batches x MOST_HEADER_BYTES) has the header of each batch; ``magic`` (int64) has its magic.
    """
    import pyarrow as pa

    columns: dict[str, Any] = {}
    views = []
    for number, one in enumerate(LAYOUTS):
        rows = np.flatnonzero(magic == number)
        part = np.ascontiguousarray(headers[rows, : one.size_bytes])
        views.append((rows, part.view(np.dtype(one.numpy_dtype())).reshape(-1)))
    for name, kind in _WIDEST.items():
        values = np.zeros(len(headers), np.dtype(kind[0] + str(int(kind[1:]) // 8)))
        is_there = np.zeros(len(headers), np.bool_)
        for (rows, view), one in zip(views, LAYOUTS, strict=True):
            if name in one.names:
                values[rows] = view[name]
                is_there[rows] = True
        columns[name] = pa.array(values, mask=None if is_there.all() else ~is_there)
    return columns


def bytes_of(batch: Any) -> tuple[bytearray, NDArray[np.int64]]:
    """The header bytes in an Arrow record batch, joined, and the size of each header. Raises InputError."""
    fields = {name: _numbers(batch, name) for name in _WIDEST}
    magic = fields["magic"]
    if not np.isin(magic, (0, 1, 2)).all():
        raise InputError("the batch headers have a magic byte other than 0, 1 and 2")
    sizes = np.array([one.size_bytes for one in LAYOUTS], np.int64)[magic]
    ends = np.cumsum(sizes)
    content = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for number, one in enumerate(LAYOUTS):
        rows = np.flatnonzero(magic == number)
        records = np.zeros(len(rows), np.dtype(one.numpy_dtype()))
        for name in one.names:
            records[name] = fields[name][rows]
        places = (ends - sizes)[rows][:, None] + np.arange(one.size_bytes)
        content[places] = records.view(np.uint8).reshape(len(rows), one.size_bytes)
    return bytearray(content.tobytes()), sizes


def _numbers(batch: Any, name: str) -> NDArray[Any]:
    column = batch.column(name)
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False))
