"""Distinct values and membership, as numpy finds them."""

from __future__ import annotations

import numpy as np
import pytest

from format.sorted_values import are_among, distinct_values


@pytest.mark.parametrize("values", [[], [5], [3, 1, 3, 2, 1], [-1, -1]])
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_distinct_values_are_those_of_numpy(values: list[int], kind: type[np.signedinteger]) -> None:
    column = np.array(values, kind)
    found = distinct_values(column)
    assert found.dtype == column.dtype
    assert found.tolist() == np.unique(column).tolist()
    assert column.tolist() == values


@pytest.mark.parametrize("values", [[], [5], [3, 1, 3, 2, 9], [-1, -(2**63), 2**63 - 1]])
@pytest.mark.parametrize("wanted", [[], [3], [9, 3, 3, -1], [2**63 - 1]])
def test_membership_is_that_of_numpy(values: list[int], wanted: list[int]) -> None:
    column, among = np.array(values, np.int64), np.array(wanted, np.int64)
    assert are_among(column, among).tolist() == np.isin(column, among).tolist()
