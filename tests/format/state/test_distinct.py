"""Distinct values, as numpy finds them."""

from __future__ import annotations

import numpy as np
import pytest

from format.state.distinct import distinct_values


@pytest.mark.parametrize("values", [[], [5], [3, 1, 3, 2, 1], [-1, -1]])
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_distinct_values_are_those_of_numpy(values: list[int], kind: type[np.signedinteger]) -> None:
    column = np.array(values, kind)
    found = distinct_values(column)
    assert found.dtype == column.dtype
    assert found.tolist() == np.unique(column).tolist()
    assert column.tolist() == values
