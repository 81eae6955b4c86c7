"""Option groups: frozen structs as parameters of a command, whose fields typer sees as single options.

A field is an option: ``name: Annotated[type, option(help, …)] = default``. A field may also be another group, or the
``Session`` of the command. The options keep the order of the parameters and fields, except those marked LAST, which
follow all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
import typer
from typer.models import OptionInfo

from format.io.read_policy import keep_freed_memory
from format.io.session import Session

#: Stands in the annotation of a field whose option comes after all others.
LAST = object()
#: Stands for the parameters and fields that are the session.
_CONTEXT = Parameter("typer_context", Parameter.KEYWORD_ONLY, annotation=typer.Context)


def option(help: str, *names: str, **keywords: Any) -> Any:
    """An option, which has the name of its field unless ``names`` have a long one; the keywords are typer's.

    A parser gets the text that was given; a default that is no text stays as it is.
    """
    parser = keywords.get("parser")
    if parser is not None:
        keywords["parser"] = wraps(parser)(lambda value: parser(value) if isinstance(value, str) else value)
    return typer.Option(..., *names, help=help, **keywords)  # the first one is no name, but the default


def first_given(options: Mapping[str, Any]) -> str | None:
    """The name of the first option that was given: whose value is neither None nor False."""
    return next((name for name, value in options.items() if value is not None and value is not False), None)


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
            parameters.append(parameter.replace(annotation=_named(name, hints[name]), kind=Parameter.KEYWORD_ONLY))
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
            made = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=_named(name, hint))
            (last if LAST in get_args(hint) else parameters).append(made)


def _named(name: str, hint: Any) -> Any:
    """The type of a parameter or field, with the name of its option."""
    described: list[Any] = list(get_args(hint))
    for at, each in enumerate(described):
        if isinstance(each, OptionInfo) and not any(known.startswith("--") for known in each.param_decls or ()):
            described[at] = copy(each)
            described[at].param_decls = (f"--{name.replace('_', '-')}", *(each.param_decls or ()))
            return Annotated[tuple(described)]
    return hint


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
