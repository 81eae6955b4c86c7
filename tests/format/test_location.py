"""Where something was found, in words and as another place of the same file."""

from __future__ import annotations

from format.location import Location

SEGMENT = Location("/kafka/orders-0/x.log", "orders", 0, 40, position=8, length=9, offset=41)


def test_another_place_is_in_the_same_segment() -> None:
    assert SEGMENT.at(61) == Location("/kafka/orders-0/x.log", "orders", 0, 40, position=61)
    assert SEGMENT.position == 8


def test_in_words() -> None:
    assert str(SEGMENT) == "/kafka/orders-0/x.log position 8 length 9 offset 41"
    assert str(SEGMENT.at(offset=41)) == "/kafka/orders-0/x.log offset 41"
    assert str(SEGMENT.at(length=9)) == "/kafka/orders-0/x.log", "a length says nothing without a position"
