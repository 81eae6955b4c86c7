"""Bundles whose members hold garbage, and are sealed anew: every verb refuses them, or answers; none crashes."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from format.io.bundles.schemas import BATCHES, DAMAGE, FILE_LIST, FINDINGS, MANIFEST, OUTLINES
from tests.building import batch, wrapper, write_segment
from tests.kafkalog_cli.commands.test_bundle import members
from tests.kafkalog_cli.commands.test_hostile_bundles import Members, archive
from tests.running import Run, Word

pytestmark = pytest.mark.slow

pytest.importorskip("pyarrow.parquet")

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
JSON = ("--format", "jsonl")
VERBS: tuple[tuple[str, ...], ...] = (
    ("verify",), ("ls",), ("txns",), ("producers",), ("metadata",), ("groups",), ("retention",), ("compaction",),
    ("boot", "--every-file"), ("diff",),
)  # fmt: skip
#: How many garbled bundles a run tries; each runs every verb.
CASES = int(os.environ.get("KAFKALOG_GARBLED_BUNDLES", "24"))
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63), 10**30, 1.5, "", "x", "a/b", "../x", "\udcff",
    "log-framing-broken", [], [1, 2], [1, 2, 3], [[]], {}, {"x": 1}, {"code": "x", "path": "y"},
)  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Members:
    """The members of a bundle with damage, findings, outlines, side files and a metadata log."""
    from format.node.target import Target
    from format.verbs.bundle.bundle import BundleRun, BundleTerms

    node = tmp_path_factory.mktemp("node")
    parts = [batch(number * 3, [b"value"] * 3) for number in range(9)]
    parts[3] = parts[3][:-1] + b"!"
    parts[6] = b"no batch at all" * 9
    write_segment(node / "orders-0", 0, parts)
    write_segment(node / "orders-0", 27, [batch(27), batch(30)[:-3]])
    write_segment(node / "old-0", 0, [wrapper(1, 0), wrapper(0, 3)])
    config = b"\x01\x04\x00\x02\x07orders\x0fcleanup.policy\x08compact\x00"
    write_segment(node / "__cluster_metadata-0", 0, [batch(0, [config], key=None)])
    (node / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (node / "orders-0" / f"{0:020d}.index").write_bytes(bytes(80))
    (node / "replication-offset-checkpoint").write_text("0\n1\norders 0 9\n")
    (node / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    (node / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    made = BundleRun([Target(node)], BundleTerms())
    assert list(made.findings())
    content: list[bytes] = []
    made.finish(content.append)
    path = node.parent / "sound.tar.zst"
    path.write_bytes(b"".join(content))
    return members(path)


def garbled(sound: Members, chance: Random) -> Members:
    """The members with one to three changes."""
    found = dict(sound)
    for _ in range(chance.randint(1, 3)):
        name = chance.choice([FILE_LIST, DAMAGE, FINDINGS, MANIFEST, BATCHES, OUTLINES, *found])
        if name.endswith(".parquet"):
            found[name] = _other_numbers(found[name], chance)
        elif name.startswith("files/"):
            found[name] = bytes(chance.randrange(256) for _ in found[name])
        else:
            found[name] = _other_lines(found[name], chance)
    return found


def _other_lines(content: bytes, chance: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    number = chance.randrange(len(lines))
    values = json.loads(lines[number])
    what = chance.random()
    if what < 0.1:
        lines.append(lines[number])
    elif what < 0.2 and len(lines) > 1:
        del lines[number]
    elif what < 0.3:
        lines[number] = json.dumps(chance.choice(VALUES)).encode() + b"\n"
    else:
        where = values
        while True:
            key = chance.choice([*where] if isinstance(where, dict) else range(len(where)))
            if not (where[key] and isinstance(where[key], (dict, list)) and chance.random() < 0.7):
                break
            where = where[key]
        where[key] = chance.choice(VALUES)
        lines[number] = json.dumps(values).encode() + b"\n"
    return b"".join(lines)


def _other_numbers(content: bytes, chance: Random) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(content))
    number = chance.randrange(table.num_columns)
    column = table.schema.field(number)
    values = table.column(number).to_pylist()
    row = chance.randrange(len(values))
    if pa.types.is_integer(column.type):
        bits = column.type.bit_width
        values[row] = chance.choice([0, 1, -1, values[row - 1], 2 ** (bits - 1) - 1, -(2 ** (bits - 1))])
    elif pa.types.is_list(column.type):
        values[row] = chance.choice([[], [2**63 - 1] * len(values[row]), [1], [None]])
    else:
        values[row] = values[row - 1]
    try:
        table = table.set_column(number, column, pa.array(values, column.type))
    except (pa.ArrowInvalid, OverflowError, ValueError):
        return content
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def test_no_verb_crashes(sound: Members, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    chance = Random(int(os.environ.get("KAFKALOG_SEED", "1")))
    commands: list[tuple[Word, ...]] = []
    for number in range(CASES):
        path = tmp_path / f"{number}.tar.zst"
        found = garbled(sound, chance)
        try:
            path.write_bytes(archive(found))
        except (TypeError, AttributeError, ValueError):  # the manifest is no object any more
            path.write_bytes(archive(found, seal=False))
        commands += [(*verb, *JSON, path) for verb in VERBS]
        inside = json.loads(sound[MANIFEST])["sources"][0]["path"]
        commands.append(("find", *JSON, "--offset", "4", f"{path}/{inside}/orders-0"))
    codes = [run.check(0, 1, 2, 3).code for run in run_kafkalog_many(commands)]
    assert {1, 2} <= set(codes)
