"""The functions that SQL has here besides those of the engine."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow")

from format.errors import BadQuery  # noqa: E402
from format.verbs.sql.functions import json_values, sizes, steps_of, texts  # noqa: E402

TEXT = '{"user": {"id": "x", "tags": ["a", {"b": 1.5}], "a b": null, "n": 12345678901234567890}}'


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.user.id", "x"),
        ("$.user.tags[0]", "a"),
        ("$.user.tags[1].b", "1.5"),
        ("$['user']['tags']", '["a",{"b":1.5}]'),
        ('$."user"."a b"', None),
        ("$.user.n", "12345678901234567890"),
        ("$.user.tags[9]", None),
        ("$.user.id.x", None),
        ("$.nope", None),
    ],
)
def test_json_values(path: str, expected: str | None) -> None:
    assert json_values(pa.array([TEXT]), pa.array([path])).to_pylist() == [expected]


@pytest.mark.parametrize("text", [None, "", "no json", "[" * 100_000, '{"a": 1} x'])
def test_what_is_no_json_has_no_values(text: str | None) -> None:
    assert json_values(pa.array([text], pa.string()), pa.array(["$.a"])).to_pylist() == [None]


@pytest.mark.parametrize("path", ["", "a", "$a", "$.", "$[x]", "$.a[", "$..a", "$.a[*]"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(BadQuery, match="is not a path"):
        steps_of(path)


def test_bytes_as_text() -> None:
    assert texts(pa.array([b"a", None, "é".encode(), b"a\xff"], pa.binary())).to_pylist() == ["a", None, "é", "a�"]


def test_sizes_are_of_bytes() -> None:
    assert sizes(pa.array([b"", None, "é".encode(), b"a\xff"], pa.binary())).to_pylist() == [0, None, 2, 2]
