"""Fast conversion of option values, by this package's parsers and without the validation library that typer loads.

typer converts strings with pydantic, whose import takes longer than the rest of a short command. Values that need only
a parser of this package, or none, are converted here, all others by typer. A later typer that works in another way is
only slower: nothing but ``process_value(context, value)`` is overridden, a method that click and typer have always had.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer


def quick(parameters: list[Any], function: Callable[..., Any] | None = None) -> list[Any]:
    """The parameters of the typer command made from ``function``, each with the fast conversion."""
    new = [each for each in parameters if "process_value" not in vars(each)]
    hints = get_type_hints(function, include_extras=True) if new and function is not None else {}
    for parameter in new:
        convert = _converter(hints.get(parameter.name))
        parameter.process_value = partial(_process, parameter, parameter.process_value, convert)
    return parameters


def _converter(hint: Any) -> Callable[[str], Any] | None:
    """The function that converts one string; None if typer converts it."""
    if get_origin(hint) is not Annotated:
        return None
    kind, *metadata = get_args(hint)
    parser = next((each.parser for each in metadata if getattr(each, "parser", None) is not None), None)
    if parser is not None:
        return parser  # type: ignore[no-any-return]
    is_plain = kind in (str, str | None, list[str], list[str] | None)
    return str if is_plain else None


def _process(
    parameter: Any,
    convert_by_typer: Callable[[Any, Any], Any],
    convert: Callable[[str], Any] | None,
    context: Any,
    value: Any,
) -> Any:
    is_multiple = parameter.multiple or parameter.nargs != 1
    if value is None and parameter.required and context.resilient_parsing:
        return None  # shell completion: the command line is not complete yet
    try:
        if value is None and not parameter.required and (not is_multiple or parameter.nargs in (1, -1)):
            result: Any = () if is_multiple else None
        elif convert is None or not value:
            return convert_by_typer(context, value)
        elif isinstance(value, str) and not is_multiple:
            result = convert(value)
        elif (
            isinstance(value, (list, tuple))
            and parameter.nargs in (1, -1)
            and all(isinstance(each, str) for each in value)
        ):
            result = tuple(convert(each) for each in value)
        elif not isinstance(value, (str, list, tuple)):
            result = value  # a default, which is converted already
        else:
            return convert_by_typer(context, value)
    except typer.BadParameter as error:
        error.ctx = error.ctx or context
        error.param = error.param or parameter
        raise
    return result if parameter.callback is None else parameter.callback(context, parameter, result)
