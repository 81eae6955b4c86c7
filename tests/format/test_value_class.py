"""A value class behaves as a frozen dataclass with slots does."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from format.value_class import state_class, value_class


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


@value_class
class Named:
    """A class of several fields."""

    field_with_a_name: int
    another: str = ""


class Larger(Named):
    """A class that adds an attribute, and is no value class."""

    added: str


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


def test_a_pickle_has_the_values_and_no_names_of_fields() -> None:
    assert b"field_with_a_name" not in pickle.dumps(Named(1))
    assert pickle.loads(pickle.dumps(Named(1, "other"))) == Named(1, "other")


def test_what_its_arguments_do_not_say_is_pickled_too() -> None:
    counter, larger = Counter(2), Larger(1)
    counter.total = 5
    counter.seen.append(3)
    object.__setattr__(larger, "added", "more")
    copied = pickle.loads(pickle.dumps(counter))
    assert (copied.step, copied.total, copied.seen) == (2, 5, [2, 3])
    assert pickle.loads(pickle.dumps(larger)).added == "more"
    assert pickle.loads(pickle.dumps(Derived((1,), 2))) == Derived((1,), 2)


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


@state_class
class Counter:
    """A class whose fields change."""

    step: int = 1
    total: int = field(init=False, default=0)
    seen: list[int] = field(init=False, default_factory=list)
    UNIT: ClassVar[str] = "bytes"

    def __post_init__(self) -> None:
        self.seen.append(self.step)


def test_the_fields_of_a_state_class_change() -> None:
    counter = Counter(2)
    counter.total += counter.step
    assert (counter.total, counter.seen, counter.UNIT) == (2, [2], "bytes")
    assert counter != Counter(2)
    assert Counter(2) == Counter(2)
    assert Counter.__slots__ == ("step", "total", "seen")
    with pytest.raises(TypeError):
        hash(counter)
    with pytest.raises(TypeError, match="unexpected keyword argument 'total'"):
        Counter(total=1)  # type: ignore[call-arg]


def test_a_class_is_completed_by_whatever_asks_for_it_first() -> None:
    def made() -> Any:
        @value_class
        class Fresh:
            a: int
            b: int = 2

        return Fresh

    assert made()(1).b == 2
    assert [each.name for each in dataclasses.fields(made())] == ["a", "b"]
    assert str(inspect.signature(made())) == "(a: 'int', b: 'int' = 2) -> None"
    assert made().__match_args__ == ("a", "b")
    fresh = made()
    empty = fresh.__new__(fresh)
    with pytest.raises(AttributeError):
        hash(empty)
    assert fresh(1) == fresh(1)


@value_class
class Checked:
    """A class that changes its fields after they are set, and has one that is no parameter."""

    low: int
    high: int = 9
    seen: list[int] = field(default_factory=list)
    span: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.span = self.high - self.low


def test_the_first_objects_are_made_like_later_ones() -> None:
    shown = []
    for number in range(40):
        made = Checked(1, seen=[number])
        shown.append((made.low, made.high, made.seen, made.span))
        assert Checked(low=1).seen is not Checked(low=1).seen
    assert shown == [(1, 9, [number], 8) for number in range(40)]


@pytest.mark.parametrize(
    ("values", "named", "words"),
    [
        ((), {}, "missing 1 required positional argument: 'low'"),
        ((1, 2, [], 4), {}, "takes from 2 to 4 positional arguments but 5 were given"),
        ((1,), {"low": 1}, "multiple values for argument 'low'"),
        ((1,), {"other": 1}, "unexpected keyword argument 'other'"),
        ((1,), {"span": 1}, "unexpected keyword argument 'span'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_the_first_object_too(
    values: tuple[Any, ...], named: dict[str, Any], words: str
) -> None:
    @value_class
    class Fresh:
        low: int
        high: int = 9
        seen: list[int] = field(default_factory=list)
        span: int = field(init=False, default=0)

    made: Any = Fresh
    with pytest.raises(TypeError, match=words):
        made(*values, **named)


def test_threads_may_use_a_class_for_the_first_time_together() -> None:
    for _ in range(20):

        @value_class
        class Fresh:
            a: list[int] = field(default_factory=list)

        with ThreadPoolExecutor(8) as pool:
            assert all(made.a == [] for made in pool.map(lambda _: Fresh(), range(8)))
