"""The start and the end of the process: what is imported, what is deferred, and how it exits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY

# Runs the program as its entry point does; prints what was imported, deferred modules that were not needed aside.
PROBE = """
import os, sys
def leave(code):
    print(*(name for name, module in sys.modules.items() if "_deferred_loader" not in vars(module)), file=sys.stderr)
    sys.stderr.flush()
    ended(code)
ended, os._exit = os._exit, leave
sys.argv[0] = "kafkalog"
from kafkalog_cli.__main__ import start
start()
"""
NODE = Path("kafka-4.3-single") / "node-1"
VERBS = {
    "verify": (NODE / "orders-0",),
    "ls": (NODE / "orders-0",),
    "find": (NODE / "orders-0", "--offset", "3"),
    "groups": (NODE / "__consumer_offsets-1",),
}
#: What a sound partition on a local disk needs none of, whatever the verb.
NEEDLESS = {
    "concurrent",
    "ctypes",
    "difflib",
    "gettext",
    "http",
    "multiprocessing",
    "numpy._core._add_newdocs",
    "numpy._typing",
    "numpy._typing._array_like",
    "numpy.fft",
    "numpy.linalg",
    "numpy.ma",
    "numpy.polynomial",
    "numpy.random",
    "pickle",
    "pyarrow",
    "pydantic",
    "rich",
    "shlex",
    "shutil",
    "subprocess",
    "traceback",
    "uuid",
    "format.internal_topics.schemas.consumer_groups",
    "format.log.after_damage.survey",
    "format.scan.following.driver",
    "format.scan.forked",
}
#: What one verb needs of it: groups checks each record against its schema.
NEEDED = {"groups": {"format.internal_topics.schemas.consumer_groups"}}


def run(script: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=120)


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_imports_no_more_than_it_needs(verb: str, data_dir: Path) -> None:
    path, *words = VERBS[verb]
    done = run(PROBE, verb, data_dir / path, *words)
    assert done.returncode in (0, 1), done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert f"kafkalog_cli.commands.{verb}" in loaded
    assert "numpy" in loaded
    others = {name for name in loaded if name.startswith(("format.verbs.", "kafkalog_cli.commands."))}
    others = {name.split(".")[2] for name in others} - {verb}
    assert others == set()
    assert loaded & NEEDLESS == NEEDED.get(verb, set())


def test_a_page_loads_neither_openssl_nor_the_charts_package_once_their_results_are_kept(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for number in range(2):
        done = run(PROBE, "report", "--quiet", data_dir / NODE / "orders-0", "--output", tmp_path / f"{number}.html")
        assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "kafkalog_cli.page.page" in loaded
    assert loaded & {"_hashlib", "hashlib", "vl_convert", "vl_convert.vl_convert", "jinja2.compiler"} == set()
    assert (tmp_path / "0.html").stat().st_size == (tmp_path / "1.html").stat().st_size


DEFERRED = """
import sys, threading
from kafkalog_cli import __main__ as process
sys.meta_path.insert(0, process._DeferringFinder)
for name in process._DEFERRED:
    sys.modules.pop(name, None)
import lzma, pickle, textwrap
print(type(lzma).__name__, hasattr(lzma, "nothing"), type(lzma).__name__, lzma.__spec__.loader is lzma.__loader__)
found = []
threads = [threading.Thread(target=lambda: found.append(pickle.dumps(1))) for _ in range(8)]
[each.start() for each in threads], [each.join() for each in threads]
print(len(found), pickle.loads(found[0]), type(pickle).__name__)
from textwrap import dedent
print(dedent("  a"), type(textwrap).__name__)
"""


def test_a_deferred_module_is_an_ordinary_one_once_it_is_used() -> None:
    done = run(DEFERRED)
    assert done.stdout.splitlines() == ["DeferredModule False module True", "8 1 module", "a module"], done.stderr


STAND_INS = """
import sys
from kafkalog_cli import __main__ as process
sys.meta_path.insert(0, process._DeferringFinder)
import numpy as np
from numpy.typing import NDArray
print(NDArray is process.Annotation, NDArray[np.int64] | None, "numpy._typing._array_like" in sys.modules)
from numpy.typing import NBitBase
from numpy.typing import NDArray
print(NDArray[np.int64], "numpy._typing._array_like" in sys.modules)
"""


def test_types_of_arrays_are_not_loaded_for_annotations() -> None:
    done = run(STAND_INS)
    assert done.stdout.splitlines() == [
        "True kafkalog_cli.__main__.Annotation | None False",
        "numpy.ndarray[tuple[typing.Any, ...], numpy.dtype[numpy.int64]] True",
    ], done.stderr


LATE_FUNCTIONS = """
import sys
from kafkalog_cli import __main__ as process
sys.meta_path.insert(0, process._DeferringFinder)
for name in ("difflib", "shutil"):
    sys.modules.pop(name, None)
from difflib import get_close_matches
import numpy as np
print(*(type(each).__name__ for each in (get_close_matches, sys.modules["difflib"], sys.modules["numpy.linalg"])))
print(get_close_matches("grap", ["grep", "find"]), type(sys.modules["difflib"]).__name__)
from difflib import get_close_matches, SequenceMatcher
print(type(get_close_matches).__name__, get_close_matches.__module__)
print(np.linalg.norm([3.0, 4.0]), np.polyfit([0.0, 1.0], [0.0, 2.0], 1).round(6).tolist())
"""


def test_functions_of_a_deferred_module_load_it_when_they_are_called() -> None:
    done = run(LATE_FUNCTIONS)
    assert done.stdout.splitlines() == [
        "LateFunction DeferredModule DeferredModule",
        "['grep'] module",
        "function difflib",
        "5.0 [2.0, 0.0]",
    ], done.stderr


def test_every_name_in_the_list_is_one_of_a_module() -> None:
    from importlib.util import find_spec

    from kafkalog_cli.__main__ import _DEFERRED

    assert [name for name in _DEFERRED if find_spec(name) is None] == []


ENDING = """
import atexit, sys, threading, time
from kafkalog_cli import main as program
from kafkalog_cli.__main__ import start
def main():
    atexit.register(print, "atexit", flush=True)
    if "--thread" in sys.argv:
        threading.Thread(target=lambda: (time.sleep(0.2), print("thread", flush=True))).start()
    return 3
program.main = main
start()
"""


@pytest.mark.parametrize(("words", "expected"), [((), ["atexit"]), (("--thread",), ["thread", "atexit"])])
def test_the_process_ends_with_the_code_and_calls_what_waits_for_its_end(words: tuple[str, ...], expected: list[str]):
    done = run(ENDING, *words)
    assert (done.returncode, done.stdout.split()) == (3, expected), done.stderr
