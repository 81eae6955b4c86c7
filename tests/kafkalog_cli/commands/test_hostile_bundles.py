"""Bundles that lie: each is refused with a sentence, and nothing of it is written anywhere."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import resource
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from format.errors import InputError
from format.io.bundles.schemas import MANIFEST
from format.io.bundles.unpacking import open_bundle
from kafkalog_cli.main import main
from tests.building import batch, write_segment
from tests.kafkalog_cli.commands.test_bundle import members
from tests.running import Run

pq = pytest.importorskip("pyarrow.parquet")

Members = dict[str, bytes]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Members:
    """The members of a small bundle, with a whole file in it."""
    from format.node.target import Target
    from format.verbs.bundle.bundle import BundleRun, BundleTerms

    node = tmp_path_factory.mktemp("node")
    write_segment(node / "orders-0", 0, [batch(number * 3, [b"value"] * 3) for number in range(9)])
    (node / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    made = BundleRun([Target(node)], BundleTerms())
    assert list(made.findings())
    parts: list[bytes] = []
    made.finish(parts.append)
    path = node.parent / "sound.tar.zst"
    path.write_bytes(b"".join(parts))
    return members(path)


def archive(found: Members, *, seal: bool = True, infos: list[tarfile.TarInfo] | None = None) -> bytes:
    """A bundle with these members; ``seal`` makes the manifest fit them. ``infos`` follow, without content."""
    if seal:
        manifest = json.loads(found[MANIFEST])
        manifest["members"] = [
            {"name": name, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in sorted(found.items())
            if name != MANIFEST
        ]
        found = {**found, MANIFEST: json.dumps(manifest).encode()}
    names = [MANIFEST, *sorted(set(found) - {MANIFEST})]
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w|") as packed:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(found[name])
            packed.addfile(info, io.BytesIO(found[name]))
        for each in infos or ():
            packed.addfile(each)
    return zstandard.ZstdCompressor(write_checksum=True).compress(content.getvalue())


def info(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def changed(found: Members, name: str, change: Callable[[Any], Any]) -> Members:
    """The members with one JSON member changed; of lines each."""
    if name == MANIFEST:
        return {**found, name: json.dumps(change(json.loads(found[name]))).encode()}
    lines = [json.dumps(change(json.loads(line))).encode() + b"\n" for line in found[name].splitlines()]
    return {**found, name: b"".join(lines)}


def with_headers(found: Members, **columns: Any) -> Members:
    """The members with columns of the batch headers replaced."""
    import pyarrow as pa

    table = pq.read_table(io.BytesIO(found["batches.parquet"]))
    for name, values in columns.items():
        number = table.column_names.index(name)
        table = table.set_column(number, table.schema.field(number), pa.array(values, table.schema.field(number).type))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return {**found, "batches.parquet": sink.getvalue()}


def edited(name: str, change: dict[str, Any], *, seal: bool = True) -> Callable[[Members], bytes]:
    """A bundle with values of a JSON member replaced; in the file list those of one file."""

    def apply(values: dict[str, Any]) -> dict[str, Any]:
        return {**values, **change} if name == MANIFEST or values["path"].endswith("checkpoint") else values

    return lambda found: archive(changed(found, name, apply), seal=seal)


def headed(**columns: Any) -> Callable[[Members], bytes]:
    """A bundle with columns of the batch headers replaced."""
    return lambda found: archive(with_headers(found, **columns))


def outlined(found: Members, count: int) -> bytes:
    """A bundle with an outline of so many records, which take few bytes."""
    import pyarrow as pa

    schema = pq.read_schema(io.BytesIO(found["outlines.parquet"]))
    numbers = pa.array(np.zeros(count, np.int64))
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), numbers)
    sink = io.BytesIO()
    pq.write_table(pa.table([pa.array(["x"]), pa.array([0]), lists, lists], schema=schema), sink, compression="zstd")
    return archive({**found, "outlines.parquet": sink.getvalue()})


def enlarged(found: Members) -> bytes:
    """A bundle whose log has 2^62 bytes in the file list."""

    def apply(values: dict[str, Any]) -> dict[str, Any]:
        return {**values, "size_bytes": 2**62} if values["path"].endswith(".log") else values

    return archive(changed(found, "files.jsonl", apply))


HUGE = {"name": "files/x", "size_bytes": 10**15, "sha256": "0" * 64}
CASES: dict[str, tuple[str, Callable[[Members], bytes]]] = {
    "a link": ("not a regular file", lambda m: archive(m, infos=[info("x", tarfile.SYMTYPE, "/etc/passwd")])),
    "a hard link": ("not a regular file", lambda m: archive(m, infos=[info("x", tarfile.LNKTYPE, "manifest.json")])),
    "a device": ("not a regular file", lambda m: archive(m, infos=[info("x", tarfile.CHRTYPE)])),
    "a directory": ("not a regular file", lambda m: archive(m, infos=[info("x", tarfile.DIRTYPE)])),
    "one more": ("not in the manifest", lambda m: archive(m, infos=[info("files/x")])),
    "a name twice": ("not in the manifest", lambda m: archive(m, infos=[info("files.jsonl")])),
    "an absolute path": ("no bundle has", lambda m: archive({**m, "/etc/passwd": b"x"})),
    "a path that leads up": ("no bundle has", lambda m: archive({**m, "files/../../x": b"x"})),
    "a file not listed": ("its file list does not list", lambda m: archive({**m, "files/x": b"x"})),
    "a member changed": ("SHA-256", lambda m: archive({**m, "findings.jsonl": m["findings.jsonl"][::-1]}, seal=False)),
    "a size that lies": ("should be", lambda m: archive({**m, "findings.jsonl": b"{}\n"}, seal=False)),
    "a member missing": ("is missing", lambda m: archive({n: c for n, c in m.items() if n != "files.jsonl"})),
    "no manifest": ("first member", lambda m: zstandard.compress(info("x").tobuf() + bytes(1024))),
    "no archive": ("this is not a tar archive", lambda m: zstandard.compress(os.urandom(4096))),
    "no zstd": ("damaged", lambda m: b"plain text, and no archive"),
    "cut off": ("too early|damaged", lambda m: archive(m)[:-200]),
    "a bomb": ("more than the", edited(MANIFEST, {"members": [HUGE]}, seal=False)),
    "a manifest of nonsense": ("its manifest", lambda m: archive({**m, MANIFEST: b"[" * 9000}, seal=False)),
    "another kind": ("not the manifest of a bundle", edited(MANIFEST, {"kind": "x"})),
    "a newer format": ("format 2", edited(MANIFEST, {"format": 2})),
    "a source elsewhere": ("leads elsewhere", edited(MANIFEST, {"sources": [{"path": "../x"}]})),
    "a listed path that leads up": ("an impossible path", edited("files.jsonl", {"path": "a/../b"})),
    "a listed size that lies": ("more bytes", edited("files.jsonl", {"size_bytes": 1})),
    "a listed type": ("line 4 of its files.jsonl.*size_bytes", edited("files.jsonl", {"size_bytes": "9"})),
    "a huge number": ("size_bytes", edited("files.jsonl", {"size_bytes": 2**80})),
    "a log of 2^62 bytes": ("neither a batch header nor damage", enlarged),
    "many directories": ("more than fits into the 224 MiB", edited("files.jsonl", {"path": "a/" * 20_000 + "a"})),
    "many sources": ("sources", edited(MANIFEST, {"sources": [{"path": "a"}] * 10_001})),
    "many records": ("would unpack to more", lambda m: outlined(m, 8 * 1024 * 1024 + 1)),
    "no Parquet": ("cannot be read", lambda m: archive({**m, "batches.parquet": os.urandom(500)})),
    "other columns": ("other columns", lambda m: archive({**m, "batches.parquet": m["outlines.parquet"]})),
    "headers that go back": ("do not fit", headed(position=[0] * 9)),
    "headers past the end": ("do not fit", headed(length=[2**31 - 1] * 9)),
    "a negative length": ("do not fit", headed(length=[-5] * 9)),
    "an unknown magic": ("magic", headed(magic=[7] * 9)),
    "content of another size": ("does not fit its header", headed(content=[b"x"] * 9)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", ["a bomb", "a log of 2^62 bytes", "many directories", "many sources", "many records"])
def test_much_in_few_bytes_takes_little_memory(
    sound: Members, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    words, make = CASES[case]
    path = tmp_path / "hostile.tar.zst"
    path.write_bytes(make(sound))
    assert path.stat().st_size < 200_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert main(["verify", str(path)]) == 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024
    assert re.search(words, capsys.readouterr().err)


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused(sound: Members, tmp_path: Path, case: str) -> None:
    words, make = CASES[case]
    path = tmp_path / "hostile.tar.zst"
    path.write_bytes(make(sound))
    with pytest.raises(InputError, match=words) as refused:
        open_bundle(str(path))
    assert "not a sound bundle" in refused.value.message
    assert [each.name for each in tmp_path.iterdir()] == ["hostile.tar.zst"]


def test_a_sound_one_is_not(sound: Members, tmp_path: Path) -> None:
    """The cases above are wrong in one thing each."""
    path = tmp_path / "sound.tar.zst"
    path.write_bytes(archive(sound))
    bundle = open_bundle(str(path))
    assert sum(entry.kept is not None for entry in bundle.entries.values()) == 2
    assert with_headers(sound)["batches.parquet"]


def test_the_checksum_at_the_end_is_compared(sound: Members, tmp_path: Path) -> None:
    """It lies behind the zeros that end the archive, which were not read: the manifest had no other guard."""
    content = bytearray(archive(sound))
    content[-1] ^= 1
    path = tmp_path / "damaged.tar.zst"
    path.write_bytes(content)
    with pytest.raises(InputError, match="the archive is damaged"):
        open_bundle(str(path))
    path.write_bytes(content[:-4])
    with pytest.raises(InputError, match="the archive"):
        open_bundle(str(path))


def test_damaged_bytes_give_no_traceback(
    sound: Members, tmp_path: Path, run_kafkalog_many: Callable[..., list[Run]]
) -> None:
    """A bundle with a wrong byte is refused, wherever it is.

    Some wrong bytes change nothing (a copy of zeros from elsewhere): those are left out.
    """
    whole = archive(sound)
    paths = []
    for number in range(12):
        content = bytearray(whole)
        content[(number * 97 + 60) % len(content)] ^= 0x55
        with contextlib.suppress(zstandard.ZstdError):
            if zstandard.decompress(content) == zstandard.decompress(whole):
                continue
        paths.append(tmp_path / f"{number}.tar.zst")
        paths[-1].write_bytes(content)
    assert len(paths) > 6
    for run in run_kafkalog_many([(verb, path) for path in paths for verb in ("ls", "verify")]):
        assert run.code == 2, run.stderr
        assert "Traceback" not in run.stderr
