"""Every command on a terminal, with the examples of its help: exit status, widths, colours, no trace of progress."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

from format.node.target import Target
from format.verbs.scrub.scrub import ScrubTerms, plan_pass, scrub
from format.verbs.scrub.state import writing_state
from kafkalog_cli.command_table import COMMANDS
from kafkalog_cli.main import app
from tests.corpora import DATA_DIR
from tests.format.decoding.registry_log import registry_batches, schema, write_node
from tests.kafkalog_cli.terminals import Seen, Terminal, run_on_terminal

#: For each command, the number of the example that the fast lane runs, or a line with a usage error where none of the
#: examples can run in a forked child.
FAST: dict[str, int | str] = {
    "ls": 0,
    "dump": 1,
    "find": 1,
    "grep": 4,
    "sql": 0,
    "explore": 1,
    "doctor": 0,
    "txns": 0,
    "producers": 0,
    "metadata": 0,
    "quorum": 2,
    "groups": 0,
    "compaction": 0,
    "retention": 0,
    "verify": 0,
    "scrub": 0,
    "boot": 0,
    "diff": 1,
    "report": "kafkalog report kafka",
    "bundle": 3,
    "recompress": 4,
    "salvage": 0,
    "rebuild-quorum": 0,
    "rebuild-index": 0,
    "extract": 1,
    "redact": 1,
    "scan": "kafkalog scan verify no-such-path",
    "dump-log": 0,
}
#: Not run in a forked child: charts (their library has threads), Spark (it has processes), and scrub that goes on.
_NOT_HERE = re.compile(
    r"kafkalog (report .*--output|bundle (?!.*--no-report)|scan |scrub (?!.*--(once|status|compare)))"
)
#: The paths and numbers of the examples, and those that replace them.
_REPLACED = {
    "quorum node-1 node-2": "quorum broker-1 broker-2",
    "quorum node-*": "quorum broker-*",
    "--state scrub.db --once": "--state new.db --once",
    "metadata --schemas /var/kafka": "metadata --schemas registry",
    "/var/kafka": "kafka",
    "node-1.db node-2.db": "scrub.db scrub.db",
    "/copy/of/controller": "kafka",
    "/mnt/kafka": "kafka",
    "/mnt/copy": "kafka",
    "/mnt/": "",
    "/backup/": "",
    "/disk1/kafka": "disk1",
    "/disk2/kafka": "disk2",
    "00000000000000170210": "00000000000000001102",
    " 0000.": " 00000000000000000000.",
    ",0000.": ",00000000000000000000.",
    "170418": "1110",
    "orders-0:4711": "orders-0:42",
    "--group billing": "--group group-0",
    "old-0": "legacy-0",
    "node-1/orders-0 node-2/orders-0": "node-1/ledger-0 node-2/ledger-0",
    "__consumer_offsets-7": "__consumer_offsets-0",
}
#: A command in a message may be copied, so it stays in one line.
_COPIED = re.compile(r"(^| )--[a-z]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])[0-9;]*m")
_USUAL = (0, 1, 3)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the adapted examples run: nodes, partitions and files by the names that they use."""
    place = tmp_path_factory.mktemp("terminal")
    single = DATA_DIR / "kafka-4.3-single/node-1"
    for name in ("kafka", "broken", "disk1"):
        shutil.copytree(single, place / name)
    damaged = place / "broken/orders-0/00000000000000000000.log"
    damaged.write_bytes(damaged.read_bytes()[:-100] + bytes(100))
    shutil.copytree(single / "orders-1", place / "disk2/orders-1")
    for number in (1, 2, 3):
        node = DATA_DIR / f"field/4.3.1-replicas-unclean-election/node-{number}-0"
        for name in (f"node-{number}", f"nodes/node-{number}", f"backup/node-{number}"):
            shutil.copytree(node, place / name)
    for name in ("orders-0", "orders-1"):
        shutil.copytree(single / name, place / name)
    for name in ("broker-1", "broker-2", "backup/broker-1"):
        shutil.copytree(DATA_DIR / "trials/metadata/node-1", place / name)
    shutil.copytree(DATA_DIR / "kafka-0.8-to-2.8/data/legacy-0", place / "legacy-0")
    for each in (single / "orders-0").glob("0*"):
        shutil.copy(each, place)
    write_node(place / "registry", registry_batches([schema("orders-value", 1, 1, '"long"')]))
    (place / "questions.sql").write_text("SELECT count(*) FROM records; SELECT * FROM groups", encoding="utf-8")
    (place / "secret").write_bytes(bytes(range(32)))
    with writing_state(str(place / "scrub.db")) as state:
        plan = plan_pass([Target(place / "kafka")], state, ScrubTerms())
        assert list(scrub(plan, state, ScrubTerms())) == []
    return place


def adapted(line: str) -> list[str]:
    """The words of an example up to a pipe or a redirection, about the files of ``place``."""
    for old, new in _REPLACED.items():
        line = line.replace(old, new)
    return shlex.split(re.split(r" [|>] ", line)[0])[1:]


def run(words: list[str], terminal: Terminal, place: Path) -> Seen:
    """A run in ``place``, whose new files are removed."""
    before = set(place.iterdir())
    paths = [str(each.relative_to(place)) for word in words if word.endswith("*") for each in sorted(place.glob(word))]
    words = [word for word in words if not word.endswith("*")] + paths
    seen = run_on_terminal(words, terminal, place, typed=b"q" if words[0] == "explore" else b"")
    for each in set(place.iterdir()) - before:
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    return seen


def _compared(seen: Seen, words: list[str], terminal: Terminal) -> list[str]:
    """The screen, without the numbers where they are measured, or sizes of files with random hashes."""
    screen = seen.screen(terminal.columns)
    varies = "--estimate" in words or (words[0] == "redact" and "--key-file" not in words)
    return [re.sub(r"\d[\d.,]*|\s+", " ", line) for line in screen] if varies else screen


def check(words: list[str], terminal: Terminal, place: Path, codes: tuple[int, ...] = _USUAL) -> None:
    """Run the words on a terminal, and assert what holds for every run."""
    seen = run(words, terminal, place)
    assert seen.code in codes, f"{words}: exit status {seen.code}\n{seen.text[-3000:]}"
    assert "Traceback" not in seen.text
    assert "internal error" not in seen.text
    assert not (terminal.term == "dumb" and "\x1b" in seen.text), seen.text
    if words[0] == "explore":
        return  # it fills the screen, and has tests of its own
    assert not (terminal.no_color and _COLOUR.search(seen.text)), seen.text
    if terminal.shows_progress:
        still = run(words, replace(terminal, shows_progress=False), place)
        assert _compared(seen, words, terminal) == _compared(still, words, terminal), words
        seen = still
    if words[0] != "dump-log" and "--format" not in words:
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.text)
        wide = [each for each in plain.split("\n") if len(each) > terminal.columns and not _COPIED.search(each)]
        assert not [each for each in wide if " " in each.strip()], f"{words}: {wide}"


@pytest.mark.slow
@pytest.mark.parametrize("words", [["ls", "kafka"], ["verify", "kafka"], ["verify", "broken"]])
def test_a_pager_on_the_terminal_gets_columns_that_fit_and_no_progress(words: list[str], place: Path) -> None:
    for columns in (80, 120):
        paged = Terminal(columns=columns, is_paged=True)
        seen = run(words, paged, place)
        still = run(words, replace(paged, shows_progress=False), place)
        assert seen.screen(columns) == still.screen(columns)
        assert "\x1b" not in still.text
        assert ("━" in seen.text) == (words[0] == "verify")
        first_row = still.text.splitlines()[0]
        assert "━" not in seen.text.partition(first_row)[2], "the bar is gone before the first row"
        if words[0] == "ls":
            assert ("max_timestamp" in still.text) == (columns == 120)


def test_every_command_has_a_line() -> None:
    """A new command is run on a terminal, too."""
    assert list(FAST) == [each.name for each in COMMANDS]


#: Those of the others are slow tests.
_QUICK = ("ls", "verify", "doctor", "find")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in _QUICK else pytest.mark.slow) for each in FAST]
)
def test_a_command_on_a_small_terminal(name: str, place: Path) -> None:
    [module] = [each.module for each in COMMANDS if each.name == name]
    chosen = FAST[name]
    line = chosen if isinstance(chosen, str) else import_module(module).EXAMPLES[chosen][0]
    check(adapted(line), Terminal(), place, (2,) if isinstance(chosen, str) else _USUAL)


TERMINALS = {
    "progress": Terminal(120, 40),
    "quiet": Terminal(80, 24),
    "without colours": Terminal(80, 24, no_color=True, shows_progress=False),
    "dumb": Terminal(120, 40, term="dumb", shows_progress=False),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", TERMINALS)
@pytest.mark.parametrize("name", FAST)
def test_all_examples_on_terminals(name: str, kind: str, place: Path) -> None:
    [module] = [each.module for each in COMMANDS if each.name == name]
    quiet = any("--quiet" in each.opts for each in get_command(app).get_command(None, name).params) and kind == "quiet"
    for line, _meaning in import_module(module).EXAMPLES:
        if _NOT_HERE.match(line):
            continue
        words = adapted(line)
        if quiet and "--follow" not in words:  # what follows is ended when it says so
            words.append("--quiet")
        codes = (2,) if (name, kind) == ("explore", "dumb") or name == "report" else _USUAL
        check(words, TERMINALS[kind], place, codes)


@pytest.mark.parametrize(("words", "name"), [([], "incident.html"), (["--format", "json"], "incident.json")])
def test_a_report_is_not_written_to_a_terminal(words: list[str], name: str, place: Path) -> None:
    seen = run(["report", "kafka/orders-0", *words], Terminal(), place)
    assert seen.code == 2
    assert seen.text.startswith("kafkalog: --output: the document is too long for a terminal")
    assert f"--output {name}\n" in seen.text
    assert len(seen.text) < 1000
