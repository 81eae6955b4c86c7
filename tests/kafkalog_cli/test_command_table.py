"""The tables of commands: names once, modules that exist, one-line helps."""

from __future__ import annotations

import re
from importlib.util import find_spec

from typer.testing import CliRunner

from kafkalog_cli.command_table import COMMANDS, COMMON_OPTIONS, SCANS, load_command
from kafkalog_cli.main import app


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


def test_common_options_are_described_on_a_page_of_their_own() -> None:
    runner = CliRunner()
    page = runner.invoke(app, ["help", "common"], prog_name="kafkalog").output
    assert set(re.findall(r"^  (--[a-z-]+)", page, re.MULTILINE)) == COMMON_OPTIONS
    for entry in COMMANDS:
        if entry.name == "scan":
            continue
        taken = {each.opts[0] for each in load_command(entry).params} & COMMON_OPTIONS
        text = runner.invoke(app, [entry.name, "--help"], prog_name="kafkalog").output
        options, _, common = text.partition("Common options (kafkalog help common):")
        assert not [each for each in COMMON_OPTIONS if f"  {each} " in options]
        assert set(re.findall(r"--[a-z-]+", common.partition("\n\n")[0])) == taken
