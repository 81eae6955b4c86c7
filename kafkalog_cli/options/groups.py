"""Option groups: frozen structs as parameters of a command, whose fields typer sees as single options.

A field is an option: ``name: Annotated[type, typer.Option(…)] = default``. A field may also be another group, or the
``Session`` of the command. The options keep the order of the parameters and fields, except those marked LAST, which
follow all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Any, get_args, get_type_hints

import msgspec
import typer

from format.io.read_policy import keep_freed_memory
from format.io.session import Session

#: Stands in the annotation of a field whose option comes after all others.
LAST = object()
#: Stands for the parameters and fields that are the session.
_CONTEXT = Parameter("typer_context", Parameter.KEYWORD_ONLY, annotation=typer.Context)


def as_command(function: Callable[..., Any], without: Collection[str] = ()) -> Callable[..., Any]:
    """A function with one parameter for each option, which makes the groups from the values and calls ``function``.

    A parameter or field of the type Session is the session of the command, which reads as its options say. Options in
    ``without`` are left out, and have their defaults. Raises TypeError when two groups have an option of the same name.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters: list[Parameter] = []
    last: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if is_group(hints[name]):
            _expand(hints[name], parameters, last)
        elif hints[name] is Session:
            parameters.append(_CONTEXT)
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
    every = [each for each in parameters + last if each.name not in without and each is not _CONTEXT]
    context = [_CONTEXT] if _CONTEXT in parameters else []
    annotations = {each.name: each.annotation for each in every}
    if len(annotations) < len(every):
        names = sorted(each.name for each in every)
        raise TypeError(f"{function.__name__} has an option twice: {', '.join(names)}")

    def command(**values: Any) -> Any:
        keep_freed_memory()
        session = session_in(values.pop(_CONTEXT.name)) if context else Session()
        session.policy.set(values.get("max_rate"), spares_cache=values.get("cache_friendly", False))
        return function(**{name: _value(name, hints[name], values, session) for name in hints if name != "return"})

    command.__name__ = function.__name__
    command.__doc__ = function.__doc__
    command.__module__ = function.__module__
    command.__annotations__ = annotations | {each.name: each.annotation for each in context}
    command.__signature__ = Signature([*context, *every])  # type: ignore[attr-defined]
    return command


def session_in(context: typer.Context) -> Session:
    """The session of a command, which is made when it is first needed."""
    found: Session = context.ensure_object(Session)
    return found


def option_names(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the options of a function's groups."""
    return frozenset(signature(as_command(function)).parameters) - {_CONTEXT.name}


@cache
def _hints(group: Any) -> dict[str, Any]:
    """The types of a group's fields, with typer's options in them."""
    return get_type_hints(group, include_extras=True)


def is_group(hint: Any) -> bool:
    """Whether a parameter or field with this type is a group."""
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _expand(group: Any, parameters: list[Parameter], last: list[Parameter]) -> None:
    hints = _hints(group)
    names: tuple[str, ...] = group.__struct_fields__
    defaults = (Parameter.empty,) * (len(names) - len(group.__struct_defaults__)) + group.__struct_defaults__
    for name, default in zip(names, defaults, strict=True):
        hint = hints[name]
        if is_group(hint):
            _expand(hint, parameters, last)
        elif hint is Session:
            parameters.append(_CONTEXT)
        else:
            made = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            (last if LAST in get_args(hint) else parameters).append(made)


def _value(name: str, hint: Any, values: dict[str, Any], session: Session) -> Any:
    """The value of a parameter or field: the option's own, the session, or the group made of its options."""
    if hint is Session:
        return session
    if not is_group(hint):
        return values[name]
    group: Any = hint
    hints = _hints(group)
    return group(
        **{
            each: _value(each, hints[each], values, session)
            for each in group.__struct_fields__
            if is_group(hints[each]) or hints[each] is Session or each in values
        }
    )
