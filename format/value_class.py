"""The decorator of classes that hold values and do not change."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def value_class(cls: _Class) -> _Class:
    """Make a class a dataclass with slots, compared and hashed by its fields. The type checker refuses assignments.

    ``dataclasses.dataclass(frozen=True, slots=True)`` compiles six methods of each class when its module is imported,
    and sets each field by a call. Here only ``__init__`` is compiled. A command imports about a hundred such classes,
    which took a seventh of the time until it starts.
    """
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else dataclasses computes a signature for it
    own = set(cls.__dict__)
    made: Any = dataclasses.dataclass(slots=True, eq=False, repr=False)(cls)
    if "__repr__" not in own:
        made.__repr__ = _repr
    compared = [field.name for field in dataclasses.fields(made) if field.compare]
    if "__eq__" not in own and compared:
        made.__eq__, made.__hash__ = _comparison(attrgetter(*compared))
    return made  # type: ignore[no-any-return]


def _comparison(values_of: Callable[[Any], Any]) -> tuple[Callable[[Any, object], bool], Callable[[Any], int]]:
    def is_equal(self: Any, other: object) -> bool:
        return values_of(self) == values_of(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(values_of(self))

    return is_equal, hash_of


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
