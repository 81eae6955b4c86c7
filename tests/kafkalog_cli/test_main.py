"""The program without its commands: help, version, completion, start-up imports, the table of commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module

import pytest
from typer.main import get_command

from format.kernel.compiled import COMPILED_MODULES
from kafkalog_cli.command_table import COMMANDS, SCANS
from kafkalog_cli.exit_codes import ExitCode
from kafkalog_cli.main import app, main, version_text
from tests.corpora import REPOSITORY

HEAVY = {
    "numpy",
    "rich",
    "pyspark",
    "pyarrow",
    "zstandard",
    "lz4",
    "snappy",
    "cramjam",
    "isal",
    "crc32c",
    "xxhash",
    "pygments",
}

# Runs the program, then says which modules it has imported.
PROBE = """
import sys
sys.argv[0] = "kafkalog"
from kafkalog_cli import main as program
if "--fake" in sys.argv:
    sys.argv.remove("--fake")
    from kafkalog_cli.command_table import CommandEntry
    fake = CommandEntry("fake", "Make rows.", "Test", other_module="tests.kafkalog_cli.fake_program")
    program.KafkalogGroup.entries = (fake,)
try:
    program.main()
finally:
    loaded = sorted(name for name, module in sys.modules.items() if module is not None)
    print("\\nMODULES", *loaded, file=sys.stderr)
"""


def run(*arguments: str, env: dict[str, str] | None = None) -> tuple[str, str, set[str]]:
    """Standard output, standard error, and the modules that were imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, **(env or {})},
        check=True,
    )
    stderr, _marker, modules = done.stderr.partition("\nMODULES ")
    return done.stdout, stderr, set(modules.split())


# Shows the help of each command in turn, then says which modules each of them was the first to import.
HELP_PROBE = """
import contextlib, io, json, sys
from kafkalog_cli.main import main
known, found = set(), []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()):
        code = main([*words, "--help"])
    loaded = {name for name, module in sys.modules.items() if module is not None}
    found.append([code, sorted(loaded - known)])
    known |= loaded
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def help_modules() -> dict[tuple[str, ...], set[str]]:
    """By command, the modules that its help imports and no help before it has; one process for all commands."""
    commands = [(entry.name,) for entry in COMMANDS] + [("scan", entry.name) for entry in SCANS]
    done = subprocess.run(
        [sys.executable, "-c", HELP_PROBE, json.dumps(commands)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=True,
    )
    found = json.loads(done.stdout)
    assert [code for code, _modules in found] == [0] * len(commands)
    assert "typer" in found[0][1]
    return {words: set(modules) for words, (_code, modules) in zip(commands, found, strict=True)}


def heavy(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] in HEAVY or name.startswith("kafkalog_cli.commands.")}


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("-h",), ("no-such-command",)])
def test_the_program_itself_imports_nothing_heavy(arguments):
    _stdout, _stderr, modules = run(*arguments)
    assert "kafkalog_cli.main" in modules
    assert not heavy(modules)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [("fake", "--help"), ("fake", "/nowhere"), ("fake", "/", "--format", "jsonl"), ("fake", "/", "--format", "text")],
)
def test_a_command_imports_only_what_itself_needs(arguments):
    _stdout, _stderr, modules = run("--fake", *arguments)
    assert not heavy(modules)


COMPLETIONS = {
    "bash": {"COMP_WORDS": "kafkalog {}", "COMP_CWORD": "{n}"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "kafkalog {}"},
    "fish": {"_TYPER_COMPLETE_ARGS": "kafkalog {}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


def completion(shell: str, typed: str, *arguments: str) -> tuple[str, set[str]]:
    values = {name: text.format(typed, n=len(typed.split(" "))) for name, text in COMPLETIONS[shell].items()}
    stdout, _stderr, modules = run(*arguments, env={"_KAFKALOG_COMPLETE": f"complete_{shell}", **values})
    return stdout, modules


@pytest.mark.slow
@pytest.mark.parametrize("shell", COMPLETIONS)
def test_completion_of_commands_imports_none_of_them(shell):
    stdout, modules = completion(shell, "")
    for entry in COMMANDS:
        assert entry.name in stdout
        assert shell == "bash" or entry.help.split(":")[0] in stdout
    assert not heavy(modules)


@pytest.mark.slow
@pytest.mark.parametrize("shell", COMPLETIONS)
def test_completion_of_options_and_their_words(shell):
    stdout, modules = completion(shell, "fake --for", "--fake")
    assert "--format" in stdout
    stdout, modules = completion(shell, "fake --format j", "--fake")
    assert "jsonl" in stdout
    assert not heavy(modules)


def test_help_shows_every_command_with_its_line():
    stdout, stderr, _modules = run("--help", env={"COLUMNS": "200"})
    assert stderr == ""
    for entry in COMMANDS:
        assert f"  {entry.name} " in stdout
        assert entry.help in stdout
    assert "--version" in stdout
    assert "\x1b" not in stdout


def test_help_of_a_command_shows_examples_and_exit_status():
    stdout, _stderr, _modules = run("--fake", "fake", "--help", env={"COLUMNS": "200"})
    assert stdout.startswith("Usage: kafkalog fake [OPTIONS] PATH...\n")
    assert "\nExamples:\n  # everything\n  kafkalog fake /data\n" in stdout
    table = stdout.partition("\nEXIT STATUS:\n")[2]
    rows = [line.split(maxsplit=1)[0] for line in table.splitlines() if line[:5].strip()]
    assert rows == [str(int(code)) for code in sorted(ExitCode)]
    assert "[default: 3]" in stdout
    assert "--max-zstd-window" in stdout.partition("\nCommon options (kafkalog help common):\n")[2]


def test_a_mistyped_command_is_a_usage_error_with_a_suggestion(capsys):
    assert main(["verfy"]) == 2
    assert "Did you mean 'verify'?" in capsys.readouterr().err


def test_no_arguments_show_the_help_as_an_error(capsys):
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Usage: kafkalog")


@pytest.mark.parametrize("arguments", [["--no\x1b[2Jsuch"], ["no\x1b[2Jsuch"], ["--version=\x9b"]])
def test_what_was_typed_is_shown_screen_safe(capsys, arguments):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert not {"\x1b", "\x9b"} & set(captured.out + captured.err)


def test_python_dash_m_is_the_same_program():
    done = subprocess.run(
        [sys.executable, "-m", "kafkalog_cli", "--version"], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    assert done.stdout == version_text() + "\n"


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_of_the_table_keeps_its_promises(entry, help_modules):
    command = get_command(app).get_command(None, entry.name)
    check_promises(import_module(entry.module).EXAMPLES, command, help_modules, entry.name)


@pytest.mark.parametrize("entry", SCANS, ids=lambda entry: entry.name)
def test_every_verb_of_scan_keeps_its_promises(entry, help_modules):
    verb = get_command(app).get_command(None, "scan").get_command(None, entry.name)
    check_promises(verb.examples, verb, help_modules, "scan", entry.name)


def check_promises(examples, command, help_modules, *words):
    assert command.help
    assert examples
    for line, meaning in examples:
        assert line.startswith(f"kafkalog {words[0]}")
        assert meaning
    for parameter in command.params:
        assert parameter.help, f"{' '.join(words)}: {parameter.name} has no help"
    assert not {name for name in help_modules[words] if name.split(".")[0] in HEAVY}


def test_version():
    stdout, _stderr, modules = run("--version")
    assert stdout == version_text() + "\n"
    assert not modules & {f"format.kernel.{each}" for each in COMPILED_MODULES}
