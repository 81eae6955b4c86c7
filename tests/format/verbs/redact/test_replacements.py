"""What stands in the place of redacted bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.verbs.redact.replacements import LEAST_KEY_BYTES, Mode, Redactor

pytestmark = pytest.mark.slow

KEY = bytes(range(32))


@given(st.binary(max_size=3000))
def test_the_length_stays(content: bytes) -> None:
    for redactor in (Redactor(Mode.HASH, KEY), Redactor(Mode.FILL)):
        assert len(redactor.replaced(content)) == len(content)
        text = redactor.replaced_text(content)
        assert len(text) == len(content)
        assert text.decode("ascii").replace("-", "").replace("_", "").isalnum() or not text.strip(b"-_")


@given(st.lists(st.binary(min_size=12, max_size=80), unique=True, max_size=20))
def test_equal_for_equal_and_other_for_other(contents: list[bytes]) -> None:
    first, second = Redactor(Mode.HASH, KEY), Redactor(Mode.HASH, KEY)
    replaced = [first.replaced(each) for each in contents]
    assert replaced == [second.replaced(each) for each in contents]
    assert len(set(replaced)) == len(contents)
    assert not set(replaced) & set(contents)


def test_another_key_gives_other_hashes() -> None:
    other = Redactor(Mode.HASH, bytes(32))
    for length in (8, 64, 65, 255, 1000):
        content = b"a" * length
        assert Redactor(Mode.HASH, KEY).replaced(content) != other.replaced(content)
    assert Redactor(Mode.HASH, KEY).key_fingerprint != other.key_fingerprint
    assert Redactor(Mode.HASH, KEY).key_fingerprint == Redactor(Mode.HASH, KEY).key_fingerprint


def test_long_content_differs_by_its_last_byte() -> None:
    redactor = Redactor(Mode.HASH, KEY)
    assert redactor.replaced(b"a" * 999 + b"b")[:64] != redactor.replaced(b"a" * 1000)[:64]


def test_filler_tells_nothing_but_the_length() -> None:
    redactor = Redactor(Mode.FILL)
    assert redactor.replaced(b"secret") == redactor.replaced(b"public") == b"xxxxxx"
    assert redactor.key_fingerprint is None


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="16"):
        Redactor(Mode.HASH, b"x" * (LEAST_KEY_BYTES - 1))
