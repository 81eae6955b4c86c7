from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.errors import InvalidCheckpoint, LimitExceeded
from format.files.side_file import decode_properties, encode_property
from format.limits import DEFAULT_LIMITS, Limits
from tests.sources import BytesSource


def decoded(content, limits=DEFAULT_LIMITS):
    return [(each.name, each.value) for each in decode_properties(BytesSource(content), limits).properties]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a=b", [("a", "b")]),
        (b"a:b\r\nc d\re\tf", [("a", "b"), ("c", "d"), ("e", "f")]),
        (b"  a  =  b  \n", [("a", "b  ")]),
        (b"a = = b", [("a", "= b")]),
        (b"a  : =b", [("a", "=b")]),
        (b"a", [("a", "")]),
        (b"=b", [("", "b")]),
        (b"\n \t\f\n# no\n  ! no\na=#yes\n", [("a", "#yes")]),
        (rb"a\=b\:c\ d=e", [("a=b:c d", "e")]),
        (rb"a=\t\n\r\f\\\q\"", [("a", '\t\n\r\f\\q"')]),
        (rb"a=\u00e9\u20AC\ud83d\ude00\u000a", [("a", "é€😀\n")]),
        (rb"a=\ud83d", [("a", "\ud83d")]),
        (b"a=\xe9\xc3\xa9", [("a", "é\xc3\xa9")]),
        (b"a=b\\\n   c\\\r\n\t d\n", [("a", "bcd")]),
        (b"a=b\\\\\nc=d", [("a", "b\\"), ("c", "d")]),
        (b"a=b\\\n# no comment\n", [("a", "b# no comment")]),
        (b"a=b\\\n\nc=d", [("a", "b"), ("c", "d")]),
        (b"a\\\n=b", [("a", "b")]),
        (b"a=b\\", [("a", "b")]),
        (b"a=1\na=2", [("a", "1"), ("a", "2")]),
    ],
)
def test_properties_are_read_as_java_reads_them(content, expected):
    assert decoded(content) == expected


def test_comments_and_lines_are_kept():
    found = decode_properties(BytesSource(b"#one\n a=1\\\n2\n! two\nb=3"), DEFAULT_LIMITS)
    assert found.comments == ("#one", "! two")
    assert [(each.name, each.line.number, each.line.position) for each in found.properties] == [
        ("a", 2, 5),
        ("b", 5, 19),
    ]
    assert found.last("a").value == "12"
    assert found.last("c") is None


@pytest.mark.parametrize("content", [rb"a=\u", rb"a=\u123", rb"a=\u12g4", rb"a\u00=b", rb"a=\u+123"])
def test_a_malformed_escape_is_refused(content):
    with pytest.raises(InvalidCheckpoint, match="line 2: expected four hexadecimal digits"):
        decoded(b"b=1\n" + content)


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=5))
def test_what_is_written_is_read_back(pairs):
    content = "".join(encode_property(*pair) + "\n" for pair in pairs).encode("ascii")
    assert decoded(content) == pairs


def test_a_property_that_goes_on_for_ever_is_over_a_limit():
    with pytest.raises(LimitExceeded):
        decoded(b"a=" + b"bbbbbbbb\\\n" * 100, Limits(max_line_bytes=50))
