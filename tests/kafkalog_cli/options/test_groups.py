"""Groups become single options: their order, their defaults, and the objects that a command receives."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
import typer
from typer.main import get_command

from format.io.session import Session, session_of
from kafkalog_cli.options.groups import LAST, as_command, option
from kafkalog_cli.options.reading import Reading
from kafkalog_cli.options.work import Work


class Inner(msgspec.Struct, frozen=True):
    """A group in a group."""

    depth: Annotated[int, option("How deep.")] = 7


class Outer(msgspec.Struct, frozen=True):
    """A group whose second option comes after all others."""

    path: Annotated[str, typer.Argument()]
    quiet: Annotated[bool, option("No words.", "-q"), LAST] = False
    inner: Inner = msgspec.field(default_factory=Inner)
    name: Annotated[str | None, option("A name.")] = None


class Again(msgspec.Struct, frozen=True):
    """A group with an option that another group has."""

    name: Annotated[str | None, option("Another name.", "--other")] = None


SEEN: list[object] = []


def sample(outer: Outer, more: Annotated[str, option("More.")] = "x") -> None:
    """A command."""
    SEEN[:] = [outer, more]


def named_otherwise(again: Again) -> None:
    """A command with an option that is not called as its field."""


def paced(session: Session, reading: Reading, work: Work) -> None:
    """A command that reads."""
    SEEN[:] = [session, reading.session, work.session, *(session_of(each.path) for each in reading.targets())]


def run(*words: str, function: Callable[..., None] = sample) -> list[object]:
    app = typer.Typer(add_completion=False)
    app.command()(as_command(function))
    get_command(app).main(list(words), standalone_mode=False)
    return SEEN


def test_options_keep_their_order_and_the_last_ones_follow() -> None:
    parameters = signature(as_command(sample)).parameters
    assert list(parameters) == ["path", "depth", "name", "more", "quiet"]
    defaults = [each.default for each in parameters.values()]
    assert defaults == [Parameter.empty, 7, None, "x", False]


def test_an_option_is_called_as_its_field_unless_it_has_a_long_name() -> None:
    def names_of(function: Callable[..., None]) -> dict[str, list[str]]:
        app = typer.Typer(add_completion=False)
        app.command()(as_command(function))
        command: Any = get_command(app)
        return {each.name: each.opts for each in command.params if each.param_type_name == "option"}

    assert names_of(sample) == {
        "depth": ["--depth"],
        "name": ["--name"],
        "more": ["--more"],
        "quiet": ["--quiet", "-q"],
    }
    assert names_of(named_otherwise) == {"name": ["--other"]}


def test_a_command_has_one_session_which_reads_as_its_options_say(tmp_path: Path) -> None:
    first, *others = run(str(tmp_path), "--max-rate", "5", "--cache-friendly", function=paced)
    assert isinstance(first, Session)
    assert len(others) == 3
    assert all(each is first for each in others)
    assert (first.policy.max_bytes_per_s, first.policy.spares_cache) == (5_000_000, True)
    again = run(str(tmp_path), function=paced)[0]
    assert isinstance(again, Session)
    assert again is not first
    assert again.policy.is_plain


def test_a_command_receives_its_groups() -> None:
    assert run("a") == [Outer("a"), "x"]
    words = ("--quiet", "--more", "y", "--depth", "3", "a", "--name", "n")
    assert run(*words) == [Outer("a", True, Inner(3), "n"), "y"]


def test_its_name_and_help_stay() -> None:
    command = as_command(sample)
    assert (command.__name__, command.__doc__) == ("sample", "A command.")


def test_an_option_of_two_groups_is_refused() -> None:
    def twice(outer: Outer, again: Again) -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="an option twice"):
        as_command(twice)
