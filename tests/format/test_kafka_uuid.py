from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.kafka_uuid import ZERO_UUID, canonical_uuid, is_uuid


@given(st.binary(min_size=16, max_size=16))
def test_sixteen_bytes_have_one_canonical_text(content):
    text = base64.urlsafe_b64encode(content).decode().rstrip("=")
    assert canonical_uuid(text) == text
    assert canonical_uuid(text + "==") == text


def test_the_unused_bits_of_the_last_character_do_not_count():
    assert canonical_uuid("7jUNgAJLTqSkOyjMSfdIhA") == "7jUNgAJLTqSkOyjMSfdIhA"
    assert canonical_uuid("7jUNgAJLTqSkOyjMSfdIhF") == "7jUNgAJLTqSkOyjMSfdIhA"
    assert canonical_uuid("AAAAAAAAAAAAAAAAAAAAAP") == ZERO_UUID


@pytest.mark.parametrize(
    "text", ["", "7jUNgAJLTqSkOyjMSfdIh", "7jUNgAJLTqSkOyjMSfdIhAA", "7jUNgAJLTqSkOyjMSfdI+A", "é" * 22]
)
def test_anything_else_is_no_uuid(text):
    assert not is_uuid(text)
    with pytest.raises(ValueError):
        canonical_uuid(text)
