"""The start of the process: a command imports what it needs, and ends with its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY

# Runs the program as its entry point does, then prints what was imported.
PROBE = """
import sys
sys.argv[0] = "kafkalog"
try:
    from kafkalog_cli.__main__ import start
    start()
finally:
    print(*sys.modules, file=sys.stderr)
"""
NODE = Path("kafka-4.3-single") / "node-1"
VERBS = {
    "verify": (NODE / "orders-0",),
    "ls": (NODE / "orders-0",),
    "find": (NODE / "orders-0", "--offset", "3", "--format", "jsonl"),  # people see the record, too, as in dump
    "groups": (NODE / "__consumer_offsets-1",),
}
#: A broker's search for an offset is one for find and boot, and reads records as dump-log does.
ALSO = {"find": {"boot", "dump_log"}}
#: What a sound partition on a local disk needs none of, whatever the verb: large libraries, and what is for damage.
NEEDLESS = {
    *("jinja2", "multiprocessing", "pyarrow", "pyspark", "textual", "vl_convert"),
    *("format.log.after_damage", "format.log.damaged_batches", "format.scan.follow", "format.scan.processes"),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_command_imports_no_more_than_it_needs(verb: str, data_dir: Path) -> None:
    path, *words = VERBS[verb]
    command = [sys.executable, "-c", PROBE, verb, data_dir / path, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert f"kafkalog_cli.commands.{verb}" in loaded
    others = {name for name in loaded if name.startswith(("format.verbs.", "kafkalog_cli.commands."))}
    assert {name.split(".")[2] for name in others} == {verb, *ALSO.get(verb, ())}
    assert not loaded & NEEDLESS
