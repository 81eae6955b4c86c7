"""Runs of kafkalog: one in a process of its own, as a user has it, or hundreds in one forked child.

A forked child starts with everything imported, so that a run costs milliseconds, and takes its signal handlers,
its ``sys.argv`` and whatever else the program touches with it when it ends.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import pickle
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn

from tests.corpora import REPOSITORY
from tests.row_schemas import check_rows

Word = str | Path


@dataclass(frozen=True)
class Run:
    """What one run of kafkalog gave back."""

    arguments: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    def __post_init__(self) -> None:
        """Every whole line of JSON lines must be as the schema that ships says."""
        if "jsonl" in self.arguments and "--output" not in self.arguments:
            whole = self.stdout[: self.stdout.rfind("\n") + 1]
            check_rows(json.loads(line) for line in whole.split("\n") if line)

    def rows(self, row_type: str | None = None) -> list[dict[str, Any]]:
        """The rows of JSON lines output without its summary; only those of one type where it is given."""
        rows = self._lines() if row_type is None else self._lines(f'"{row_type}"')
        return [row for row in rows if row["type"] != "summary" and row_type in (None, row["type"])]

    @property
    def summary(self) -> dict[str, Any]:
        """The last line of JSON lines output, which must be a summary and the only one."""
        rows = self._lines()
        assert rows, f"no output at all; stderr: {self.stderr}"
        assert rows[-1]["type"] == "summary", "the last line is no summary: the stream died"
        assert [row["type"] for row in rows].count("summary") == 1, "more than one summary"
        return rows[-1]

    def check(self, *codes: int) -> Run:
        """Itself, after a check that the exit code is one of these and that nothing crashed."""
        words = " ".join(self.arguments)
        assert self.code in codes, f"kafkalog {words}: exit {self.code}\n{self.stdout[-2000:]}\n{self.stderr[-4000:]}"
        assert "Traceback" not in self.stderr, self.stderr
        return self

    def _lines(self, word: str = "") -> list[dict[str, Any]]:
        """The lines in which a word stands."""
        return [json.loads(line) for line in self.stdout.split("\n") if line and word in line]


def run_in_process_of_its_own(
    *arguments: Word,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout: float = 300,
) -> Run:
    """``python -m kafkalog_cli`` with these arguments; ``env`` adds variables, ``timeout`` is in seconds."""
    words = tuple(os.fspath(each) for each in arguments)
    # The checkout comes first on the path, so that another working directory runs the same code.
    paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8", **(env or {})}
    done = subprocess.run(
        [sys.executable, "-m", "kafkalog_cli", *words],
        capture_output=True,
        input=stdin,
        env=environment,
        cwd=cwd or REPOSITORY,
        timeout=timeout,
        check=False,
    )
    return Run(words, done.returncode, _text(done.stdout), done.stderr.decode(errors="backslashreplace"))


def run_many(commands: Iterable[Iterable[Word]]) -> list[Run]:
    """Each of the commands in turn, in a forked child: the results in the same order.

    Those that draw charts run in processes of their own: the library that draws has threads, and waits for ever in a
    child of a process that has used it.
    """
    lines = [tuple(os.fspath(word) for word in command) for command in commands]
    runs: list[Run] = []
    for draws, group in groupby(lines, _draws):
        some = list(group)
        runs += [run_in_process_of_its_own(*each) for each in some] if draws else _run_forked(some)
    return runs


def _draws(line: tuple[str, ...]) -> bool:
    is_page = line[:1] == ("report",) and "json" not in line
    return is_page or (line[:1] == ("bundle",) and "--no-report" not in line)


def _run_forked(lines: list[tuple[str, ...]]) -> list[Run]:
    import_everything()
    with tempfile.TemporaryFile() as results:
        child = os.fork()
        if child == 0:
            _child(lines, results)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        results.seek(0)
        content = results.read()
    assert code == 0, f"the child that ran the commands died with {code}: {content[-4000:]!r}"
    return [Run(line, *outcome) for line, outcome in zip(lines, pickle.loads(content), strict=True)]


def _child(lines: list[tuple[str, ...]], results: Any) -> NoReturn:
    code = 1
    try:
        results.write(pickle.dumps([_run_here(line) for line in lines]))
        results.flush()
        code = 0
    except BaseException as error:
        results.write(repr(error).encode())
        results.flush()
    finally:
        os._exit(code)  # neither pytest's exit handlers nor its buffered output belong to the child


def _run_here(arguments: tuple[str, ...]) -> tuple[int, str, str]:
    """One run in this very process: exit code, standard output and error."""
    from kafkalog_cli.main import main

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        for descriptor, file in ((1, out), (2, err)):
            os.dup2(file.fileno(), descriptor)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), encoding="utf-8") for descriptor in (1, 2)
        )
        sys.argv = ["kafkalog", *arguments]
        try:
            code = main()
        except SystemExit as leaving:
            code = leaving.code
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()
        out.seek(0)
        err.seek(0)
        return int(code or 0), _text(out.read()), err.read().decode(errors="backslashreplace")


def _text(content: bytes) -> str:
    return content.decode("utf-8")


@cache
def import_everything() -> None:
    """Import the program, and what typer imports at its first run: children inherit both."""
    for name in ("format", "kafkalog_cli"):
        package = importlib.import_module(name)
        for each in pkgutil.walk_packages(package.__path__, name + "."):
            if not each.name.endswith("__main__"):
                importlib.import_module(each.name)
    main = importlib.import_module("kafkalog_cli.main")
    importlib.import_module("typer.main").get_command(main.app).make_context("kafkalog", ["ls"])
