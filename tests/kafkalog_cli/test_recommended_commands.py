"""Every command and option that a message, a finding or a page recommends exists: the real parser takes it."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from format.findings import FINDING_CODES
from kafkalog_cli.command_table import COMMANDS
from kafkalog_cli.main import app
from tests.corpora import REPOSITORY
from tests.running import Run

NAMES = {each.name for each in COMMANDS}
#: A command in a text: up to the end of its sentence or clause, of a quotation or of a cell.
_COMMAND = re.compile(r"(?<![\w/.-])kafkalog ((?:scan )?[a-z][a-z-]*(?:(?! kafkalog)[^\n;,`\"|<>&#()]|'[^']*')*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@pytest.fixture(scope="module")
def program() -> Any:
    from typer.main import get_command

    return get_command(app)


def strings(path: Path) -> Iterator[str]:
    """The texts of a module that are no docstrings; each placeholder of an f-string is an X."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(each) for each in ast.walk(node) if each is not node)
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "X" for each in node.values)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def commands_in(text: str) -> Iterator[list[str]]:
    """The commands in a text, as words; what is no command of the program is left out."""
    for found in _COMMAND.finditer(text):
        line = re.split(r"[.:] |[.:]$|'(?=[ ,.;)]|$)", found[1])[0]
        try:
            words = shlex.split(line)
        except ValueError:
            words = line.split()
        name = words[1] if words[0] == "scan" and len(words) > 1 else words[0]
        if name in NAMES or "--" in line:
            yield words


def complaint(program: Any, words: list[str]) -> str:
    """What the parser says against a command, of which paths and values may be left out; empty for nothing."""
    context = program.make_context("kafkalog", [], resilient_parsing=True)
    command = program
    while isinstance(command, click.Group) or hasattr(command, "commands"):
        if not words or words[0].startswith(("-", "…")):
            break
        found = command.get_command(context, words[0])
        if found is None:
            return f"no command {words[0]}"
        command, words = found, words[1:]
    known = {option for each in command.get_params(context) for option in (*each.opts, *each.secondary_opts)}
    for word in words:
        if word in ("--", "…"):
            break
        option = word.partition("=")[0].rstrip(".,")
        if option.startswith("--") and option not in known:
            return f"{command.name} has no option {option}"
    return ""


def wrong_in(program: Any, texts: Iterator[str]) -> list[str]:
    return [
        f"{words}: {wrong}" for text in texts for words in commands_in(text) if (wrong := complaint(program, words))
    ]


def test_the_parser_would_say_so(program: Any) -> None:
    texts = iter(
        ["run kafkalog verify --levle crc /var/kafka.", "Use 'kafkalog scan bundle'.", "kafkalog find P --offset 3"]
    )
    assert wrong_in(program, texts) == [
        "['verify', '--levle', 'crc', '/var/kafka']: verify has no option --levle",
        "['scan', 'bundle']: no command bundle",
    ]


@pytest.mark.slow
def test_commands_in_messages(program: Any) -> None:
    modules = [path for name in ("format", "kafkalog_cli", "spark_jobs") for path in (REPOSITORY / name).rglob("*.py")]
    named = [path for path in modules if _COMMAND.search(path.read_text(encoding="utf-8"))]
    texts = [text for path in named for text in strings(path) if "kafkalog " in text]
    assert len(texts) > 100
    assert not wrong_in(program, iter(texts))


def test_commands_of_findings(program: Any) -> None:
    texts = [f"{each.next_step} {each.broker} {each.meaning}" for each in FINDING_CODES.values()]
    assert any("kafkalog " in text for text in texts)
    assert not wrong_in(program, iter(texts))


def test_commands_on_pages(program: Any) -> None:
    pages = [*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"]
    pages += (REPOSITORY / "kafkalog_cli" / "page" / "templates").glob("*.j2")
    texts = [re.sub(r"</?code>", "`", path.read_text(encoding="utf-8")) for path in pages]
    assert not wrong_in(program, iter(texts))


#: Runs whose sentences and notes are read; the paths are those of the data that is shipped with the tests.
_RUNS = [
    ("report", "kafka-4.3/node-1", "kafka-4.3/node-2", "--format", "json"),
    ("diff", "kafka-4.3/node-1", "kafka-4.3/node-2", "--format", "jsonl"),
    ("find", "kafka-4.3/node-1/ledger-0", "--offset", "3", "--visibility-limit", "1", "--format", "jsonl"),
    ("find", "kafka-4.3/node-1/ledger-0", "--offset", "3", "--format", "jsonl"),
    ("groups", "kafka-4.3/node-1", "--format", "jsonl"),
    ("txns", "kafka-4.3/node-1", "--format", "jsonl"),
    ("producers", "kafka-4.3/node-1", "--format", "jsonl"),
    ("retention", "kafka-4.3/node-1", "--format", "jsonl"),
    ("compaction", "kafka-4.3/node-1", "--format", "jsonl"),
    ("metadata", "kafka-4.3-single/node-1", "--format", "jsonl"),
    ("quorum", "kafka-4.3/node-1", "--format", "jsonl"),
    ("boot", "kafka-4.3/node-1", "--format", "jsonl"),
    ("verify", "kafka-4.3/node-1", "--format", "jsonl"),
    ("ls", "kafka-4.3/node-1", "--no-scan", "--format", "jsonl"),
]


def test_options_that_a_run_recommends_are_its_own(
    program: Any, run_kafkalog_many: Callable[..., list[Run]], data_dir: Path
) -> None:
    """An option that is named without a command is one of the command that names it."""
    runs = run_kafkalog_many(
        [(word, *(data_dir / each if "/" in each else each for each in rest)) for word, *rest in _RUNS]
    )
    wrong = []
    for (name, *_), run in zip(_RUNS, runs, strict=True):
        texts = [run.stderr]
        if name == "report":
            document = json.loads(run.stdout)
            texts += [*document["sentences"], *document["not_checked"]]
        else:
            texts += run.summary["not_checked"]
        wrong += wrong_in(program, iter(texts))
        for text in texts:
            bare = _COMMAND.sub("", text)
            wrong += filter(None, (complaint(program, [name, option]) for option in _OPTION.findall(bare)))
    assert not wrong
