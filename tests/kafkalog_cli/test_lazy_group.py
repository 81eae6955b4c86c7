"""Groups of commands: each command is imported when it is asked for, and not before."""

from __future__ import annotations

import pytest

from kafkalog_cli.command_table import COMMANDS, CommandEntry, LazyGroup, load_command

FAKE = CommandEntry("fake", "Make rows.", "Test", other_module="tests.kafkalog_cli.fake_program")


class Fakes(LazyGroup):
    entries = (FAKE, CommandEntry("gone", "Nothing.", "Test", other_module="no.such.module"))


def test_names_are_known_without_an_import() -> None:
    group = Fakes()
    assert list(group.commands) == ["fake", "gone"]
    assert group.get_command(None, "other") is None
    with pytest.raises(ModuleNotFoundError):
        group.get_command(None, "gone")


def test_a_command_is_loaded_once() -> None:
    group = Fakes()
    assert group.get_command(None, "fake").name == "fake"
    assert group.get_command(None, "fake") is group.get_command(None, "fake")


def test_a_command_has_its_examples_and_its_name() -> None:
    command = load_command(FAKE)
    assert command.name == "fake"
    assert command.examples[0] == ("kafkalog fake /data", "everything")


def test_a_group_is_loaded_as_a_group() -> None:
    [entry] = [each for each in COMMANDS if each.name == "scan"]
    group = load_command(entry)
    assert group.name == "scan"
    assert "verify" in group.commands
