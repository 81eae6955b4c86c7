"""A value class behaves as a frozen dataclass with slots does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass, field
from typing import Any

import pytest

from format.value_class import value_class


@value_class
class Made:
    """A class made by the decorator under test."""

    a: int
    b: list[int] = field(default_factory=list)
    c: str = field(default="c", repr=False, compare=False)

    @property
    def double(self) -> int:
        """A property, as any class may have."""
        return 2 * self.a


@dataclass(frozen=True, slots=True)
class Expected:
    """The same class, made by the standard library."""

    a: int
    b: list[int] = field(default_factory=list)
    c: str = field(default="c", repr=False, compare=False)


@value_class
class Single:
    """One field: its values are compared without a tuple."""

    only: tuple[int, ...]


@value_class
class Derived(Single):
    """A class with the fields of another, and one more."""

    more: int = 0


def _repr_without_class(made: object) -> str:
    return repr(made).partition("(")[2]


@pytest.mark.parametrize("arguments", [(1,), (1, [2]), (1, [2], "x")])
def test_it_is_built_compared_and_shown_as_a_dataclass(arguments: tuple[Any, ...]) -> None:
    made, expected = Made(*arguments), Expected(*arguments)
    assert dataclasses.asdict(made) == dataclasses.asdict(expected)
    assert _repr_without_class(made) == _repr_without_class(expected)
    assert repr(made).startswith("Made(")
    assert made == Made(*arguments)
    assert made != expected
    assert made != Made(2, *arguments[1:])
    assert Made.__match_args__ == Expected.__match_args__


def test_fields_that_are_not_compared_make_no_difference() -> None:
    assert Made(1, [], "x") == Made(1, [], "y")
    assert Made(1).double == 2


def test_equal_values_have_equal_hashes() -> None:
    assert hash(Single((1, 2))) == hash(Single((1, 2)))
    assert {Single((1,)): "found"}[Single((1,))] == "found"
    with pytest.raises(TypeError):
        hash(Made(1, [2]))  # as a tuple with a list


def test_a_derived_class_is_another_class() -> None:
    assert Derived((1,)) != Single((1,))
    assert Derived((1,), 2) == Derived((1,), 2)
    assert Derived((1,), 2) != Derived((1,), 3)


def test_it_has_slots() -> None:
    with pytest.raises(AttributeError):
        object.__setattr__(Made(1), "other", 2)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_it_is_copied_and_pickled(protocol: int) -> None:
    made = Made(1, [2], "x")
    for copied in (pickle.loads(pickle.dumps(made, protocol)), copy.deepcopy(made), dataclasses.replace(made)):
        assert copied == made
        assert copied.c == "x"
    assert dataclasses.replace(made, a=5) == Made(5, [2])


def test_its_own_methods_are_kept() -> None:
    @value_class
    class Own:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

        def __repr__(self) -> str:
            return "own"

    assert Own(1) == 2
    assert hash(Own(1)) == 1
    assert repr(Own(1)) == "own"
