"""Decorators for dataclasses that are quick to import: ``value_class`` (values do not change) and ``state_class``."""

from __future__ import annotations

import dataclasses
import sys
from operator import attrgetter
from threading import RLock
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)

#: The attributes that the standard library computes for a dataclass and that are copied from there.
_COMPUTED = ("__init__", "__match_args__", "__dataclass_fields__", "__dataclass_params__")
if sys.version_info >= (3, 13):
    _COMPUTED += ("__replace__",)
#: The methods that are made in this module for most classes.
_QUICK = ("__init__", "__eq__", "__hash__")
_NOT_COPIED = ("__dict__", "__weakref__")

_completing = RLock()


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def value_class(cls: _Class) -> _Class:
    """Make a class a dataclass with slots, compared and hashed by its fields.

    Only the type checker rejects assignments to fields. ``dataclasses.dataclass(frozen=True, slots=True)`` compiles six
    methods of each class when its module is imported, and sets each field by a call. Here ``__init__`` is compiled when
    the first object is made, and the other attributes are computed when they are first used. A command imports more
    than a hundred such classes, makes objects of half of them, and compares objects or lists fields of a few.
    """
    made: _Class = _slotted(cls, is_hashed=True)
    return made


@dataclass_transform(field_specifiers=(dataclasses.field,))
def state_class(cls: _Class) -> _Class:
    """Make a class a dataclass with slots whose fields may change: compared by its fields, and not hashable."""
    made: _Class = _slotted(cls, is_hashed=False)
    return made


def _slotted(cls: Any, is_hashed: bool) -> Any:
    """The class with slots for its fields; ``_Completion`` computes the other attributes."""
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # otherwise dataclasses computes a signature for it
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
    """Computes the deferred attributes of a class from the class as it was written.

    ``__init__``, ``__eq__`` and ``__hash__`` of a class whose bases have no fields are made in this module, in a tenth
    of the time. The standard library computes all others.
    """

    __slots__ = ("is_done", "made", "names", "written")

    made: Any
    names: list[str]

    def __init__(self, written: Any) -> None:
        self.written = written
        self.is_done = False

    def complete(self, name: str) -> None:
        """Set a deferred attribute of the class, and the others that are computed with it."""
        with _completing:
            if self.is_done or not isinstance(self.made.__dict__[name], _Deferred):
                return
            if name in _QUICK and (plain := _plain_fields(self.written)) is not None:
                self._set(_init_method(self.written, plain) if name == "__init__" else _comparison(plain))
                return
            model: Any = dataclasses.dataclass(slots=True, eq=False, repr=False)(self.written)
            self._set({name: model.__dict__[name] for name in _COMPUTED if name in self.names})
            self._set(_comparison([(each.name, each) for each in dataclasses.fields(model)]))
            self.is_done = True

    def _set(self, computed: dict[str, Any]) -> None:
        for name, value in computed.items():
            if isinstance(self.made.__dict__.get(name), _Deferred):
                setattr(self.made, name, value)


class _Deferred:
    """An attribute of a class that is computed when it is first read."""

    __slots__ = ("completion", "name")

    def __init__(self, name: str, completion: _Completion) -> None:
        self.name = name
        self.completion = completion

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self.completion.complete(self.name)
        return getattr(owner if instance is None else instance, self.name)


def _plain_fields(written: Any) -> list[tuple[str, Any]] | None:
    """The fields of a class with their defaults, each a value, a ``field()`` or MISSING.

    None if the standard library is needed: for fields of bases, for KW_ONLY and InitVar, and for invalid defaults.
    """
    if any("__dataclass_fields__" in base.__dict__ for base in written.__mro__[1:]):
        return None
    plain = []
    has_default = False
    for name, hint in written.__annotations__.items():
        hint = str(hint)
        if "ClassVar[" in hint:
            continue
        default = written.__dict__.get(name, dataclasses.MISSING)
        if "KW_ONLY" in hint or "InitVar" in hint or getattr(default, "__hash__", None) is None:
            return None
        is_init, is_required = True, default is dataclasses.MISSING
        if isinstance(default, dataclasses.Field):
            if default.kw_only is True:
                return None
            is_init = default.init
            is_required = default.default is default.default_factory  # both MISSING
        if is_init and is_required and has_default:
            return None
        has_default = has_default or (is_init and not is_required)
        plain.append((name, default))
    return plain


class _Factory:
    """The default of a parameter whose value is made by a factory for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _init_method(written: Any, fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """``__init__`` for plain fields: parameters in the order of the fields, then ``__post_init__`` if there is one."""
    known: dict[str, Any] = {"_FACTORY": _FACTORY}
    parameters, lines = ["self"], []
    annotations = {}
    for name, default in fields:
        value = default
        factory: Any = dataclasses.MISSING
        if isinstance(default, dataclasses.Field):
            value, factory = default.default, default.default_factory
        if factory is not dataclasses.MISSING:
            known[f"_factory_{name}"], value = factory, _FACTORY
        if not isinstance(default, dataclasses.Field) or default.init:
            annotations[name] = written.__annotations__[name]
            if value is dataclasses.MISSING:
                parameters.append(name)
            else:
                known[f"_default_{name}"] = value
                parameters.append(f"{name}=_default_{name}")
            made = f"_factory_{name}() if {name} is _FACTORY else {name}" if value is _FACTORY else name
            lines.append(f"self.{name} = {made}")
        elif value is not dataclasses.MISSING:
            known[f"_default_{name}"] = value
            lines.append(f"self.{name} = " + (f"_factory_{name}()" if value is _FACTORY else f"_default_{name}"))
    if hasattr(written, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), known)
    method = known["__init__"]
    method.__qualname__ = f"{written.__qualname__}.__init__"
    method.__module__ = written.__module__
    method.__annotations__ = {**annotations, "return": None}
    return {"__init__": method}


def _comparison(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """``__eq__`` and ``__hash__`` over the fields that are compared."""
    names = [name for name, default in fields if not isinstance(default, dataclasses.Field) or default.compare]
    if not names:
        return {"__eq__": object.__eq__, "__hash__": object.__hash__}
    values_of = attrgetter(*names)

    def is_equal(self: Any, other: object) -> bool:
        return values_of(self) == values_of(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(values_of(self))

    return {"__eq__": is_equal, "__hash__": hash_of}


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
