"""The documentation says what the code does: generated parts, links, and that nothing is left out."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from docs.generate.pages import DOCS, PARTS, RUNS_COMMANDS, pages, rewritten
from docs.generate.row_schemas import SCHEMA_PATH
from format import layout
from format.columns import SCHEMAS
from format.findings import FINDING_CODES
from kafkalog_cli.command_table import SCANS
from kafkalog_cli.exit_codes import exit_status_rows
from kafkalog_cli.main import COMMANDS, PROGRAM, app
from tests.corpora import REPOSITORY

pytestmark = pytest.mark.long

REGENERATE = "regenerate with: python -m docs.generate"

_LINK = re.compile(r"\[[^\]\n]+\]\((?!https?://)([^)\s]+)\)")
_COMMAND = re.compile(r"(?:^|(?<=`)|(?<=\$ ))kafkalog (?:[^`\n\\]|\\\n|\\.)+", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_MACHINE = re.compile(r"/(?:work|root|home|Users|tmp/venv)/")


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


# -- generated parts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_a_page_is_what_would_be_generated(page: Path) -> None:
    text = text_of(page)
    if rewritten(text) != text:
        pytest.fail(f"{name_of(page)} is out of date; {REGENERATE}", pytrace=False)


def test_a_stale_part_is_seen() -> None:
    """Bytes, tables and outputs of commands are all rebuilt."""
    words = '<!-- generated: layout "offset index entry" -->'
    assert "| 4 | i32 | `position` |" in rewritten(f"{words}\nold\n<!-- /generated -->\n")
    block = "```console\n$ kafkalog --version | head -n 1 | cut -d ' ' -f 1\nold\n```\n"
    assert rewritten(block) == block
    assert rewritten(f"{RUNS_COMMANDS}\n{block}") == f"{RUNS_COMMANDS}\n{block.replace('old', 'kafkalog')}"
    with pytest.raises(ValueError, match="no generated part"):
        rewritten("<!-- generated: nothing -->\n<!-- /generated -->\n")


def test_the_console_blocks_of_every_page_run() -> None:
    """Those of the README have a test of their own: tests/test_readme.py."""
    for page in (*pages(), REPOSITORY / "CONTRIBUTING.md"):
        text = text_of(page)
        shows = "```console\n" in text or re.search(r"^\$ kafkalog", text, re.MULTILINE) is not None
        assert RUNS_COMMANDS in text or not shows, f"{name_of(page)} shows commands that no test runs"


def help_of(*names: str) -> str:
    """What ``kafkalog --help``, or ``kafkalog COMMAND --help``, prints on a terminal of 110 columns."""
    command: Any = get_command(app)
    context = command.make_context(PROGRAM, [], resilient_parsing=True, terminal_width=110)
    for name in names:
        command = command.get_command(context, name)
        context = command.make_context(name, [], parent=context, resilient_parsing=True, terminal_width=110)
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines()).strip() + "\n"


@cache
def options_of(*names: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", help_of(*names)))


def test_every_option_of_a_command_on_a_page_exists() -> None:
    """In blocks of shell commands, in tables and in the text."""
    commands, verbs = {entry.name for entry in COMMANDS}, {entry.name for entry in SCANS}
    checked = 0
    for page in (*pages(), REPOSITORY / "README.md"):
        for line in _COMMAND.findall(text_of(page)):
            words = re.split(r"\s(?:\||\d?>|&&|;|#)(?:\s|$|&)", line.replace("\\\n", " "))[0].split()
            names = words[1:3] if words[1:2] == ["scan"] else words[1:2]
            if not names or names[0] not in commands or (len(names) == 2 and names[1] not in verbs):
                continue
            options = {word.split("=")[0] for word in words if re.fullmatch("--[a-z][a-z0-9-]*(=.*)?", word)}
            assert options <= options_of(*names), f"{name_of(page)}: {line}"
            checked += len(options)
    assert checked > 100


def test_every_part_has_its_end() -> None:
    for page in pages():
        text = text_of(page)
        starts = re.findall(r"^<!-- generated: (\S+).*-->$", text, re.MULTILINE)
        assert len(starts) == text.count("\n<!-- /generated -->\n"), name_of(page)
        assert set(starts) <= set(PARTS), name_of(page)


# -- nothing left out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [entry.name for entry in COMMANDS])
def test_every_help_page_has_examples_and_exit_status(command: str) -> None:
    page = help_of(command)
    _, examples, rest = re.split(r"^Examples:$|^EXIT STATUS:$", page, flags=re.MULTILINE)
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    comments, commands = lines[0::2], lines[1::2]
    assert lines
    assert all(each.startswith("# ") for each in comments), comments
    for each in commands:
        assert each.startswith(f"{PROGRAM} {command}"), each
        shlex.split(each)
    shown = re.sub(r"\s+", " ", rest)
    for code, meaning in exit_status_rows():
        assert f" {code} {meaning}" in shown


def test_every_finding_code_column_and_layout_has_its_place() -> None:
    codes, rows = text_of(DOCS / "finding-codes.md"), json.loads(text_of(SCHEMA_PATH))["$defs"]
    missing = [code for code in FINDING_CODES if f"\n## {code}\n" not in codes]
    missing += [schema.type for schema in SCHEMAS if schema.type not in rows]
    if missing:
        pytest.fail(f"not documented: {', '.join(missing)}; {REGENERATE}", pytrace=False)
    formats = "\n".join(text_of(page) for page in (DOCS / "formats").glob("*.md"))
    missing = [each.name for each in layout.LAYOUTS if f'<!-- generated: layout "{each.name}" -->' not in formats]
    assert not missing, f"no page in docs/formats has the byte table of: {', '.join(missing)}"


def test_every_kind_of_file_has_a_page() -> None:
    index = text_of(DOCS / "formats" / "README.md")
    names = text_of(DOCS / "formats" / "names.md")
    for suffix in (
        layout.LOG_SUFFIX,
        layout.OFFSET_INDEX_SUFFIX,
        layout.TIME_INDEX_SUFFIX,
        layout.TRANSACTION_INDEX_SUFFIX,
        layout.PRODUCER_SNAPSHOT_SUFFIX,
        layout.CHECKPOINT_SUFFIX,
    ):
        assert f"{suffix}`" in index
    for name in (
        layout.LEADER_EPOCH_CHECKPOINT,
        layout.PARTITION_METADATA,
        layout.META_PROPERTIES,
        layout.QUORUM_STATE,
        layout.BOOTSTRAP_CHECKPOINT,
        layout.CLEAN_SHUTDOWN,
        layout.LOCK,
    ):
        assert f"`{name}`" in index
    checkpoints = text_of(DOCS / "formats" / "offset-checkpoints.md")
    assert all(f"`{name}`" in checkpoints for name in layout.OFFSET_CHECKPOINTS)
    assert all(f"`{suffix}`" in names for suffix in layout.LEFTOVER_SUFFIXES)
    for page in (DOCS / "formats").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index, f"{page.name} is not in the index"


# -- links and names ---------------------------------------------------------------------------------------------


def anchors_of(page: Path) -> set[str]:
    """The anchors that a page's headings have on GitHub."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", text_of(page))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target), link


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_no_path_of_a_machine(page: Path) -> None:
    assert not _MACHINE.search(text_of(page))


def test_every_page_is_in_an_index() -> None:
    index = text_of(DOCS / "README.md")
    for page in DOCS.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index, f"{page.name} is not there; {REGENERATE}"
