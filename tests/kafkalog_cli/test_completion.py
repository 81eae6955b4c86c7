"""Completion: whatever words are on the line, the program prints completions of the last one and nothing else.

The script for zsh that ``--install-completion`` writes executes what comes, and the other shells offer it as words.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from kafkalog_cli.command_table import COMMANDS
from kafkalog_cli.main import app, main

#: What typer's completion answers zsh with: names of files, or a list of words in quotes, with their helps.
_FOR_ZSH = re.compile(r"""_files|_arguments '\*: :\(\(("[^"'`$]*"(:"([^"'`$]|""|''|\\[$`])*")?\n?)+\)\)'""")


def _lines() -> Iterator[tuple[str, str]]:
    """Lines as they are typed, each with the first letters of the word that is completed."""
    yield "", ""
    for start in (
        "help ",
        "help help ",
        "--version ",
        "--help ",
        "-h ",
        "--show-completion ",
        "nosuch ",
        "'unfinished ",
    ):
        yield start, ""
        yield f"{start}ver", "ver"
    for name in (*(each.name for each in COMMANDS), "help", "scan verify", "scan help", "scan --pack x"):
        yield f"{name} --help --version /nowhere --format nosuch --", "--"
    yield "help verify ", ""
    yield "--version dump-log --emulate 3.9.1 --nosuch --", "--"


def _words_of(command: Any) -> set[str]:
    """Every word that a command and those below it complete: names, options and the values of options."""
    found = {"help", "common", "schema"}
    with command.make_context("x", [], resilient_parsing=True) as context:
        for each in command.get_params(context):
            found |= {*each.opts, *each.secondary_opts, *(item.value for item in each.shell_complete(context, ""))}
    for name in getattr(command, "commands", ()):
        found |= {name} | _words_of(command.get_command(None, name))
    return found


@pytest.fixture(scope="module")
def words() -> set[str]:
    return _words_of(get_command(app))


@pytest.mark.slow
def test_a_shell_gets_completions_and_nothing_else(
    words: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.delitem(sys.modules, "rich", raising=False)  # a process that completes has not loaded it
    for line, incomplete in _lines():
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"kafkalog {line}")
        monkeypatch.setenv("_KAFKALOG_COMPLETE", "complete_fish")
        assert main([]) == 0, line
        shown = [each.split("\t")[0] for each in capsys.readouterr().out.splitlines() if each]
        assert not [each for each in shown if each not in words or not each.startswith(incomplete)], line
        monkeypatch.setenv("_KAFKALOG_COMPLETE", "complete_zsh")
        assert main([]) == 0, line
        assert _FOR_ZSH.fullmatch(capsys.readouterr().out.strip()), line
    assert not list(tmp_path.iterdir()), "a line that is completed makes nothing"


@pytest.mark.parametrize("line", ["help ", "help ver", "help sc", "--version ver", "--version help ver"])
def test_commands_follow_help_and_options_that_print(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMP_WORDS", f"kafkalog {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" "))))
    monkeypatch.setenv("_KAFKALOG_COMPLETE", "complete_bash")
    assert main([]) == 0
    names = [each.name for each in COMMANDS] + (["common", "schema"] if "help" in line else [])
    wanted = [each for each in names if each.startswith(line.split(" ")[-1])]
    assert capsys.readouterr().out.split() == wanted


@pytest.mark.parametrize(
    ("shell", "mark"), [("bash", "complete -o"), ("zsh", "#compdef kafkalog"), ("fish", "--command kafkalog")]
)
def test_completion_is_set_up_for_the_shell_that_is_named(
    shell: str, mark: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert main(["--show-completion", shell]) == 0
    shown = capsys.readouterr().out
    assert mark in shown
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--install-completion", shell]) == 0
    assert mark in "".join(each.read_text() for each in tmp_path.rglob("*") if each.is_file())
    for words in ([f"{shell}x"], [shell, "ls"]):
        assert main(["--show-completion", *words]) == 2
        assert "give bash, zsh, fish, powershell, pwsh, or nothing for the shell" in capsys.readouterr().err
