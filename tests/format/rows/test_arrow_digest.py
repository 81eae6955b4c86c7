"""The digest of Arrow columns: the same for the same values, however they are cut; another one for any change."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")

from format.rows.arrow_columns import ColumnsDigest  # noqa: E402

HEADERS = pa.list_(pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())]))
TYPES = {"offset": pa.int64(), "codec": pa.string(), "value": pa.binary(), "headers": HEADERS, "control": pa.bool_()}
ROWS = [
    {"offset": 5, "codec": "zstd", "value": b"ab", "headers": [{"key": b"h", "value": None}], "control": None},
    {"offset": None, "codec": None, "value": None, "headers": None, "control": False},
    {"offset": 0, "codec": "", "value": b"", "headers": [], "control": True},
    {"offset": -1, "codec": "none", "value": b"c", "headers": [{"key": b"", "value": b"v"}] * 2, "control": False},
]


def batch_of(rows: list[dict[str, object]]) -> object:
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema(TYPES))


def digest_of(*batches: object) -> ColumnsDigest:
    digest = ColumnsDigest()
    for each in batches:
        digest.update(each)
    return digest


def test_cuts_do_not_matter() -> None:
    whole = batch_of(ROWS)
    assert digest_of(whole) == digest_of(batch_of(ROWS[:1]), batch_of(ROWS[1:]))
    assert digest_of(whole) == digest_of(whole.slice(0, 3), whole.slice(3))  # type: ignore[attr-defined]


OTHERS = {
    "offset": (6, None, 0),
    "codec": ("zst", "", None),
    "value": (b"a", b"abc", b"", None),
    "headers": ([], None, [{"key": b"h", "value": b""}], [{"key": b"i", "value": None}], [{"key": b"", "value": b"h"}]),
    "control": (True, False),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in OTHERS.items() for value in values])
def test_every_change_counts(name: str, value: object) -> None:
    assert digest_of(batch_of([{**ROWS[0], name: value}, *ROWS[1:]])) != digest_of(batch_of(ROWS))


def test_order_and_count_matter() -> None:
    assert digest_of(batch_of(ROWS[::-1])) != digest_of(batch_of(ROWS))
    assert digest_of(batch_of(ROWS[:3])) != digest_of(batch_of(ROWS))


def test_bytes_that_move_between_rows_count() -> None:
    one, other = ([{**ROWS[0], "value": value} for value in values] for values in ((b"a", b"bc"), (b"ab", b"c")))
    assert digest_of(batch_of(one)) != digest_of(batch_of(other))


def test_unknown_types_are_refused() -> None:
    with pytest.raises(ValueError, match="type"):
        digest_of(pa.RecordBatch.from_pylist([{"a": 1.5}]))
