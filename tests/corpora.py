"""Where the corpora lie and what is in each: log directories that real brokers wrote, and what real clients saw."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
DATA_DIR = REPOSITORY / "tests" / "_data"
SHARED = Path(os.environ.get("KAFKALOG_SHARED") or REPOSITORY.parent / "shared")
SHARED_CORPUS = SHARED / "corpus"


def present(path: Path) -> Path:
    """A path that a trial needs. Ends the program with the reason where it is absent."""
    if not path.exists():
        raise SystemExit(f"{path} is absent; the environment variable KAFKALOG_SHARED names the shared folder")
    return path


PARTITION_NAME = re.compile(r"^(?P<topic>.+)-(?P<partition>\d+)$")


@dataclass(frozen=True)
class Corpus:
    """Log directories of one cluster, and the folder with what its clients saw, None where nobody looked."""

    id: str
    root: Path
    log_dirs: tuple[Path, ...]
    truth: Path | None
    is_shared: bool

    def partitions(self) -> Iterator[Path]:
        """The partition directories of every log directory, in order."""
        for log_dir in self.log_dirs:
            yield from sorted(each for each in log_dir.iterdir() if each.is_dir() and PARTITION_NAME.match(each.name))

    def files(self, *suffixes: str) -> Iterator[Path]:
        """The files below the log directories whose name ends in one of the suffixes, in order."""
        for log_dir in self.log_dirs:
            yield from sorted(each for each in log_dir.rglob("*") if each.is_file() and each.name.endswith(suffixes))

    def replicas(self, name: str) -> list[Path]:
        """The directories of one topic-partition: one for each log directory that holds it."""
        return [each for each in self.partitions() if each.name == name]

    def true_records(self, name: str) -> list[dict[str, Any]] | None:
        """What a read_uncommitted consumer got from a topic-partition; None where nobody looked."""
        path = None if self.truth is None else self.truth / f"records-{name}.jsonl.gz"
        if path is None or not path.exists():
            return None
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def truth_json(self, name: str) -> dict[str, Any]:
        """lookups, watermarks or groups; empty where nobody looked."""
        path = None if self.truth is None else self.truth / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}


def _corpora_below(root: Path, is_shared: bool) -> Iterator[Corpus]:
    for folder in sorted(each for each in root.iterdir() if each.is_dir()):
        log_dirs = tuple(sorted(each.parent for each in folder.glob("*/meta.properties")))
        if log_dirs:
            truth = folder / "truth"
            prefix = "shared-" if is_shared else ""
            yield Corpus(prefix + folder.name, folder, log_dirs, truth if truth.is_dir() else None, is_shared)


@cache
def corpora() -> tuple[Corpus, ...]:
    """Every corpus: those that ship, then the shared ones where they are present, but for those that ship whole."""
    found = list(_corpora_below(DATA_DIR, is_shared=False))
    if SHARED_CORPUS.is_dir():
        shipped = {(each.root.name, _names_below(each.root)) for each in found}
        shared = _corpora_below(SHARED_CORPUS, is_shared=True)
        found += [each for each in shared if (each.root.name, _names_below(each.root)) not in shipped]
    return tuple(found)


def _names_below(root: Path) -> frozenset[Path]:
    return frozenset(each.relative_to(root) for each in root.rglob("*"))


def sent_to_legacy(corpus: Corpus) -> list[tuple[str, str, bytes, bytes]]:
    """What was sent to the topic that lived through every format, in order: version, codec, key, value."""
    packed, plain = corpus.root / "sent.tsv.gz", corpus.root / "sent.tsv"
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
    rows = [line.split(b"\t") for line in content.split(b"\n") if line]
    return [(version.decode(), codec.decode(), key, value) for version, codec, key, value in rows]
