from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.errors import InvalidCheckpoint, LimitExceeded, UnreadableFile
from format.files import side_file
from format.files.side_file import Line, decode_integer, decode_text, lines, opened, shown
from format.io.source import FileSource
from format.limits import Limits
from tests.sources import BytesSource


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"\x0b", b"\xc2\x85"])), st.integers(1, 5))
def test_lines_end_as_java_ends_them_wherever_a_chunk_ends(pieces, chunk_bytes):
    content = b"".join(pieces)
    expected = re.split(rb"\r\n|\n|\r", content)
    if expected[-1] == b"":
        expected.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(side_file, "_CHUNK_BYTES", chunk_bytes)
        found = list(lines(BytesSource(content)))
    assert [line.content for line in found] == expected
    assert [line.number for line in found] == list(range(1, len(expected) + 1))
    assert all(content[line.position :].startswith(line.content) for line in found)
    assert all(line.position == 0 or content[line.position - 1] in b"\r\n" for line in found)


@pytest.mark.parametrize("is_ended", [True, False])
def test_a_line_of_exactly_the_limit_passes_and_one_more_byte_does_not(is_ended):
    end = b"\r\n" if is_ended else b""
    limits = Limits(max_line_bytes=1000)
    assert [len(line.content) for line in lines(BytesSource(b"x" * 1000 + end), limits)] == [1000]
    with pytest.raises(LimitExceeded, match="line 2 is longer than the limit of 1000 bytes"):
        list(lines(BytesSource(b"0\n" + b"x" * 1001 + end), limits))


def test_a_huge_line_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "recovery-point-offset-checkpoint"
    with path.open("wb") as file:
        file.write(b"0\n1\n" + b"t" * 100_000)
        file.truncate(2**30)
    with FileSource(path) as source, pytest.raises(LimitExceeded):
        list(lines(source, Limits(max_side_file_bytes=2**31)))
    assert source.bytes_read < 1_000_000
    with FileSource(path) as source, pytest.raises(LimitExceeded, match="over the limit of"):
        list(lines(source))
    assert source.bytes_read == 0


def test_more_lines_than_the_limit_are_refused():
    limits = Limits(max_lines=3)
    assert len(list(lines(BytesSource(b"a\nb\nc"), limits))) == 3
    with pytest.raises(LimitExceeded, match="more lines than the limit of 3"):
        list(lines(BytesSource(b"a\nb\nc\n\n"), limits))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-1", -1),
        ("+7", 7),
        ("-0", 0),
        ("0" * 5000 + "9", 9),
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
        ("2147483648", None),
        ("9" * 5000, None),
        ("", None),
        ("-", None),
        ("1_000", None),
        (" 1", None),
        ("1\n", None),
        ("٣", 3),
        ("-০৭", -7),
        ("\U0001d7d1", None),  # two chars to Java, neither of them a digit
        ("1.0", None),
        ("0x1", None),
    ],
)
def test_integers_are_read_as_java_reads_them(text, value):
    assert decode_integer(text, *side_file.INT32_RANGE) == value


def test_text_that_is_not_utf8_is_refused_with_its_line():
    with pytest.raises(InvalidCheckpoint, match="line 3: expected UTF-8 text, found byte 0xff") as caught:
        decode_text(BytesSource(b"", "file"), Line(3, 17, b"ab\xff"))
    assert caught.value.location.position == 17


def test_shown_text_is_ascii_and_short():
    assert shown("a\x1b[31mé\u202e") == r"'a\x1b[31m\xe9\u202e'"
    assert shown(b"\xff") == r"'\udcff'"
    assert shown("x" * 61) == f"'{'x' * 60}' and 1 more characters"


def test_a_path_is_opened_and_closed_and_a_source_is_left_open(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with opened(str(path)) as source:
        assert source.read_at(0, 3) == b"abc"
    with pytest.raises(UnreadableFile):
        source.read_at(0, 3)
    with FileSource(path) as given_source:
        with opened(given_source) as source:
            assert source is given_source
        assert given_source.read_at(0, 3) == b"abc"
    with pytest.raises(UnreadableFile), opened(tmp_path / "missing"):
        pass
    with pytest.raises(UnreadableFile), opened(tmp_path):
        pass
