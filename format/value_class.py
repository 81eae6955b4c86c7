"""Decorators for dataclasses that are quick to import: ``value_class`` (values do not change) and ``state_class``."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import partial
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
#: The objects of a class that are made without a compiled ``__init__``; compiling it costs as much as making thirty.
_FIRST_OBJECTS = 16

_completing = RLock()


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def value_class(cls: _Class) -> _Class:
    """Make a class a dataclass with slots, compared and hashed by its fields.

    Only the type checker rejects assignments to fields. ``dataclasses.dataclass(frozen=True, slots=True)`` compiles six
    methods of each class when its module is imported, and sets each field by a call. Here ``__init__`` is compiled when
    some objects were made without it, and the other attributes are computed when they are first used. A command imports
    more than a hundred such classes, makes objects of half of them, mostly one or two, and compares objects of a few.
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
    if cls.__reduce__ is object.__reduce__ and "__getstate__" not in own:
        own["__reduce_ex__"] = _reduction(completion)
    completion.names, completion.made = deferred, type(cls)(cls.__name__, cls.__bases__, own)
    return completion.made


class _Completion:
    """Computes the deferred attributes of a class from the class as it was written.

    ``__init__``, ``__eq__`` and ``__hash__`` of a class whose bases have no fields are made in this module, in a tenth
    of the time. The standard library computes all others.
    """

    __slots__ = ("_is_planned", "_object_count", "_plain", "_values_of", "made", "names", "written")

    made: Any
    names: list[str]

    def __init__(self, written: Any) -> None:
        self.written = written
        self._is_planned = False
        self._plain: list[_PlainField] | None = None
        self._object_count = 0
        self._values_of: Callable[[Any], Any] | None = None

    @property
    def plain(self) -> list[_PlainField] | None:
        """The fields, see ``_plain_fields``; computed before the standard library changes the written class."""
        if not self._is_planned:
            self._plain, self._is_planned = _plain_fields(self.written), True
        return self._plain

    def of_first_object(self, instance: Any) -> Any:
        """The ``__init__`` of one of the first objects; None where it must be compiled."""
        if self._object_count == _FIRST_OBJECTS or self.plain is None:
            return None
        self._object_count += 1
        return partial(_set_fields, self, instance)

    @property
    def values_of(self) -> Callable[[Any], Any]:
        """A function that returns the arguments of ``__init__`` of an object; () if they do not make an equal one."""
        if self._values_of is None:
            names = [each.name for each in self.plain or () if each.is_parameter]
            is_whole = len(names) == len(self.plain or ()) > 1 and not hasattr(self.written, "__post_init__")
            self._values_of = attrgetter(*names) if is_whole else _nothing
        return self._values_of

    def complete(self, name: str) -> None:
        """Set a deferred attribute of the class, and the others that are computed with it."""
        with _completing:
            if not isinstance(self.made.__dict__[name], _Deferred):
                return
            plain = self.plain
            if plain is None:
                model: Any = dataclasses.dataclass(slots=True, eq=False, repr=False)(self.written)
                self._set(_comparison([(each.name, each.compare) for each in dataclasses.fields(model)]))
            elif name == "__init__":
                self._set(_init_method(self.written, plain))
                return
            elif name in _QUICK:
                self._set(_comparison([(each.name, each.is_compared) for each in plain]))
                return
            else:
                model = dataclasses.dataclass(init=False, eq=False, repr=False)(self.written)
            self._set({name: model.__dict__[name] for name in _COMPUTED if name in model.__dict__})

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
        if instance is not None and self.name == "__init__":
            quick = self.completion.of_first_object(instance)
            if quick is not None:
                return quick
        self.completion.complete(self.name)
        return getattr(owner if instance is None else instance, self.name)


class _PlainField:
    """A field as ``__init__`` needs it: its default is a value, made by a factory, or MISSING."""

    __slots__ = ("default", "factory", "is_compared", "is_parameter", "name")

    factory: Any

    def __init__(self, name: str, default: Any) -> None:
        self.name = name
        self.default, self.factory = default, dataclasses.MISSING
        self.is_parameter = self.is_compared = True
        if isinstance(default, dataclasses.Field):
            self.default, self.factory = default.default, default.default_factory
            self.is_parameter, self.is_compared = default.init, default.compare

    @property
    def is_required(self) -> bool:
        return self.is_parameter and self.default is self.factory  # both MISSING


def _plain_fields(written: Any) -> list[_PlainField] | None:
    """The fields of a class; None if the standard library is needed.

    It is for fields of bases, for KW_ONLY and InitVar, and for invalid defaults.
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
        if isinstance(default, dataclasses.Field) and default.kw_only is True:
            return None
        field = _PlainField(name, default)
        if field.is_required and has_default:
            return None
        has_default = has_default or (field.is_parameter and not field.is_required)
        plain.append(field)
    return plain


def _set_fields(completion: _Completion, made: Any, /, *values: Any, **named: Any) -> None:
    """What the compiled ``__init__`` does. Arguments that do not fit are passed to it, which raises the error."""
    fields: list[_PlainField] = completion.plain or []
    names = (field.name for field in fields if field.is_parameter)
    given = dict(zip(names, values, strict=False))
    left = len(values) + len(named)
    given.update(named)
    for field in fields:
        if field.is_parameter and field.name in given:
            value = given[field.name]
            left -= 1
        elif field.is_required:
            left = -1
            break
        elif field.factory is not dataclasses.MISSING:
            value = field.factory()
        elif field.default is not dataclasses.MISSING:
            value = field.default
        else:
            continue
        setattr(made, field.name, value)
    if left:
        completion.complete("__init__")
        completion.made.__init__(made, *values, **named)
    elif hasattr(completion.written, "__post_init__"):
        made.__post_init__()


class _Factory:
    """The default of a parameter whose value is made by a factory for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _init_method(written: Any, fields: list[_PlainField]) -> dict[str, Any]:
    """``__init__`` for plain fields: parameters in the order of the fields, then ``__post_init__`` if there is one."""
    known: dict[str, Any] = {"_FACTORY": _FACTORY}
    parameters, lines = ["self"], []
    annotations = {}
    for field in fields:
        name, value = field.name, field.default
        if field.factory is not dataclasses.MISSING:
            known[f"_factory_{name}"], value = field.factory, _FACTORY
        if field.is_parameter:
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


def _comparison(fields: list[tuple[str, bool]]) -> dict[str, Any]:
    """``__eq__`` and ``__hash__`` over the fields that are compared."""
    names = [name for name, is_compared in fields if is_compared]
    if not names:
        return {"__eq__": object.__eq__, "__hash__": object.__hash__}
    values_of = attrgetter(*names)

    def is_equal(self: Any, other: object) -> bool:
        return values_of(self) == values_of(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(values_of(self))

    return {"__eq__": is_equal, "__hash__": hash_of}


def _reduction(completion: _Completion) -> Callable[[Any, Any], Any]:
    """``__reduce_ex__``: a pickled object is its class and the arguments of ``__init__``.

    That takes half of the bytes and two thirds of the time of an object with the names of its fields.
    """

    def reduce_ex(self: Any, protocol: Any) -> Any:
        values = completion.values_of(self) if self.__class__ is completion.made else ()
        return (completion.made, values) if values else object.__reduce_ex__(self, protocol)

    return reduce_ex


def _nothing(_: Any) -> tuple[()]:
    return ()


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
