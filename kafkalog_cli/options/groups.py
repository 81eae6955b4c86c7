"""Option groups: frozen dataclasses as parameters of a command, whose fields typer sees as single options.

A field is an option: ``name: Annotated[type, typer.Option(…)] = default``. A field may also be another group. The
options keep the order of the parameters and fields, except those marked LAST, which follow all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

#: Metadata of a field whose option comes after all others.
LAST = {"is_last": True}


def as_command(function: Callable[..., Any], without: Collection[str] = ()) -> Callable[..., Any]:
    """A function with one parameter for each option, which makes the groups from the values and calls ``function``.

    Options in ``without`` are left out, and have their defaults. Raises TypeError when two groups have an option of the
    same name.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters: list[Parameter] = []
    last: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if is_dataclass(hints[name]):
            _expand(hints[name], parameters, last)
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
    every = [each for each in parameters + last if each.name not in without]
    annotations = {each.name: each.annotation for each in every}
    if len(annotations) < len(every):
        names = sorted(each.name for each in every)
        raise TypeError(f"{function.__name__} has an option twice: {', '.join(names)}")

    def command(**values: Any) -> Any:
        return function(**{name: _value(name, hints[name], values) for name in hints if name != "return"})

    command.__name__ = function.__name__
    command.__doc__ = function.__doc__
    command.__module__ = function.__module__
    command.__annotations__ = annotations
    command.__signature__ = Signature(every)  # type: ignore[attr-defined]
    return command


def option_names(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the options of a function's groups."""
    return frozenset(signature(as_command(function)).parameters)


@cache
def _hints(group: Any) -> dict[str, Any]:
    """The types of a group's fields, with typer's options in them."""
    return get_type_hints(group, include_extras=True)


def _expand(group: Any, parameters: list[Parameter], last: list[Parameter]) -> None:
    hints = _hints(group)
    for field in fields(group):
        hint = hints[field.name]
        if is_dataclass(hint):
            _expand(hint, parameters, last)
        else:
            made = Parameter(field.name, Parameter.KEYWORD_ONLY, default=_default(field), annotation=hint)
            (last if field.metadata.get("is_last") else parameters).append(made)


def _default(field: Field[Any]) -> Any:
    return Parameter.empty if field.default is MISSING else field.default


def _value(name: str, hint: Any, values: dict[str, Any]) -> Any:
    """The value of a parameter or field: the option's own, or the group made of the values of its options."""
    if not is_dataclass(hint):
        return values[name]
    group: Any = hint
    hints = _hints(group)
    return group(
        **{
            field.name: _value(field.name, hints[field.name], values)
            for field in fields(group)
            if is_dataclass(hints[field.name]) or field.name in values
        }
    )
