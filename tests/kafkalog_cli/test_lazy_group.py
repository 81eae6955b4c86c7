"""Groups of commands: each command is imported when it is asked for, and not before."""

from __future__ import annotations

import pytest

from kafkalog_cli.command_table import COMMANDS, CommandEntry, LazyCommands, load_command

FAKE = CommandEntry("fake", "Make rows.", "Test", other_module="tests.kafkalog_cli.fake_program")


def test_names_are_known_without_an_import() -> None:
    commands = LazyCommands((FAKE, CommandEntry("gone", "Nothing.", "Test", other_module="no.such.module")))
    assert list(commands) == ["fake", "gone"]
    assert len(commands) == 2
    assert "gone" in commands
    assert "other" not in commands
    with pytest.raises(ModuleNotFoundError):
        commands["gone"]


def test_a_command_is_loaded_once() -> None:
    commands = LazyCommands((FAKE,))
    assert commands["fake"] is commands["fake"]
    del commands["fake"]
    assert "fake" not in commands


def test_a_command_has_its_examples_and_its_name() -> None:
    command = load_command(FAKE)
    assert command.name == "fake"
    assert command.examples[0] == ("kafkalog fake /data", "everything")


def test_a_group_is_loaded_as_a_group() -> None:
    [entry] = [each for each in COMMANDS if each.name == "scan"]
    group = load_command(entry)
    assert group.name == "scan"
    assert "verify" in group.commands
