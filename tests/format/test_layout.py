"""The table of structures: each struct is as long as its fields, and begins where Kafka's own size says."""

from __future__ import annotations

import numpy as np
import pytest

from format import layout

LAYOUTS = {name: each for name, each in vars(layout).items() if isinstance(each, layout.Layout)}


@pytest.mark.parametrize("name", LAYOUTS)
def test_fields_follow_each_other_without_gaps(name: str) -> None:
    found, at = LAYOUTS[name], 0
    for field in found.fields:
        assert found.offset_of(field.name) == at, field.name
        at += int(field.type[1:]) // 8
    assert found.size_bytes == found.struct.size == at
    assert len({field.name for field in found.fields}) == len(found.fields)
    assert np.dtype(found.numpy_dtype()).itemsize == at


def test_sizes_that_kafka_documents() -> None:
    assert layout.RECORD_BATCH.size_bytes == 61
    assert layout.RECORD_BATCH.offset_of("magic") == 16
    assert layout.RECORD_BATCH.offset_of("crc") == 17
    assert layout.LOG_ENTRY.size_bytes == 12
