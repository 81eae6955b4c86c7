"""Decorators of classes that hold values: ``value_class`` for those that do not change, ``state_class`` for others."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from operator import attrgetter
from threading import RLock
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)

#: What the standard library computes for a dataclass, and what is taken over from it.
_COMPUTED = ("__init__", "__match_args__", "__dataclass_fields__", "__dataclass_params__")
if sys.version_info >= (3, 13):
    _COMPUTED += ("__replace__",)
_NOT_COPIED = ("__dict__", "__weakref__")

_completing = RLock()


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def value_class(cls: _Class) -> _Class:
    """Make a class a dataclass with slots, compared and hashed by its fields. The type checker refuses assignments.

    ``dataclasses.dataclass(frozen=True, slots=True)`` compiles six methods of each class when its module is imported,
    and sets each field by a call. Here ``__init__`` is compiled, and all else computed, when a class is used for the
    first time: a command imports more than a hundred such classes and uses a third of them.
    """
    made: _Class = _slotted(cls, is_hashed=True)
    return made


@dataclass_transform(field_specifiers=(dataclasses.field,))
def state_class(cls: _Class) -> _Class:
    """Make a class a dataclass with slots, whose fields change; compared by them, and not hashed."""
    made: _Class = _slotted(cls, is_hashed=False)
    return made


def _slotted(cls: Any, is_hashed: bool) -> Any:
    """The class with slots for its fields; the rest is computed by ``_Deferred``."""
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else dataclasses computes a signature for it
    names = [name for name, hint in cls.__annotations__.items() if "ClassVar[" not in str(hint)]
    inherited = {slot for base in cls.__mro__[1:] for slot in base.__dict__.get("__slots__", ())}
    own = {name: value for name, value in cls.__dict__.items() if name not in names and name not in _NOT_COPIED}
    own["__slots__"] = tuple(name for name in names if name not in inherited)
    own["__qualname__"] = cls.__qualname__
    own.setdefault("__repr__", _repr)
    deferred = [name for name in _COMPUTED if name not in own]
    if "__eq__" not in cls.__dict__:
        deferred.append("__eq__")
        if is_hashed:
            deferred.append("__hash__")
    completion = _Completion(cls)
    own.update((name, _Deferred(name, completion)) for name in deferred)
    completion.names, completion.made = deferred, type(cls)(cls.__name__, cls.__bases__, own)
    return completion.made


class _Completion:
    """What remains to be computed for a class: by the standard library, from the class as it was written."""

    __slots__ = ("is_done", "made", "names", "written")

    made: Any
    names: list[str]

    def __init__(self, written: Any) -> None:
        self.written = written
        self.is_done = False

    def complete(self) -> None:
        """Set the attributes of the class that are still deferred."""
        with _completing:
            if self.is_done:
                return
            model: Any = dataclasses.dataclass(slots=True, eq=False, repr=False)(self.written)
            computed = {name: model.__dict__[name] for name in _COMPUTED if name in self.names}
            if "__eq__" in self.names:
                compared = [field.name for field in dataclasses.fields(model) if field.compare]
                computed["__eq__"], computed["__hash__"] = _comparison(compared)
            for name in self.names:
                setattr(self.made, name, computed[name])
            self.is_done = True


class _Deferred:
    """An attribute of a class that is computed, with all others of its kind, when it is asked for."""

    __slots__ = ("completion", "name")

    def __init__(self, name: str, completion: _Completion) -> None:
        self.name = name
        self.completion = completion

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self.completion.complete()
        return getattr(owner if instance is None else instance, self.name)


def _comparison(names: list[str]) -> tuple[Callable[[Any, object], bool], Callable[[Any], int]]:
    if not names:
        return object.__eq__, object.__hash__
    values_of = attrgetter(*names)

    def is_equal(self: Any, other: object) -> bool:
        return values_of(self) == values_of(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(values_of(self))

    return is_equal, hash_of


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
