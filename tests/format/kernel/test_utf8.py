"""What is UTF-8, and one character: the plain functions against Python's own decoder."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from format.kernel.utf8 import is_utf8, read_character

BYTES = st.one_of(st.binary(max_size=8), st.text(max_size=5).map(lambda text: text.encode("utf-8", "surrogatepass")))


@given(BYTES, st.integers(0, 4))
def test_agrees_with_the_decoder(content: bytes, start: int) -> None:
    part = content[start:]
    try:
        part.decode()
        well_formed = True
    except UnicodeDecodeError:
        well_formed = False
    assert is_utf8(memoryview(content), start, len(content)) == well_formed


@given(st.characters(min_codepoint=0x80, exclude_categories=["Cs"]), st.binary(max_size=3))
def test_one_character(character: str, after: bytes) -> None:
    content = character.encode()
    assert read_character(memoryview(content + after), 0, len(content + after)) == (ord(character), len(content))
    assert read_character(memoryview(content), 0, len(content) - 1) == (-1, 0), "it is cut off"
