"""The tables of commands: names once, modules that exist, one-line helps."""

from __future__ import annotations

from importlib.util import find_spec

from kafkalog_cli.command_table import COMMANDS, SCANS


def test_names_are_there_once_and_modules_exist() -> None:
    for table in (COMMANDS, SCANS):
        names = [each.name for each in table]
        assert len(set(names)) == len(names)
        for each in table:
            assert find_spec(each.module) is not None, each.module
            assert each.help.endswith(".")
            assert "\n" not in each.help


def test_scan_offers_the_commands_that_are_scans() -> None:
    assert [each.name for each in SCANS if each.panel == "Verbs"] == [each.name for each in COMMANDS if each.is_scan]
