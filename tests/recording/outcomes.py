"""A recording: what each command printed, wrote and returned, kept as gzipped JSON lines."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

#: What differs from run to run: times and rates of --estimate, a state that holds inode numbers, a random secret.
CHANGING = (
    (re.compile(r'("(?:de)?compress_m(?:b_per_s|s)":)[0-9.]+'), r"\1#"),
    (re.compile(r"((?:de)?compress_m(?:b_per_s|s)=)[0-9.]+"), r"\1#"),
    (re.compile(r'("sources_state_sha256": )"[0-9a-f]+"'), r'\1"#"'),
)
#: What the libraries that decompress say of a failure; each release may say it otherwise.
WORDS_OF_LIBRARIES = re.compile(r'\b(gzip|snappy|lz4|zstd): [^"\n]*')


@dataclass(frozen=True)
class Outcome:
    """What one command did: its exit code (None where its process died), what it printed, the files that it wrote."""

    command: tuple[str, ...]
    code: int | None
    stdout: str
    stderr: str
    files: dict[str, str] = field(default_factory=dict)

    @property
    def verb(self) -> str:
        return self.command[0] if self.command else ""

    @property
    def line(self) -> str:
        """The command as a line."""
        return " ".join(("kafkalog", *self.command))


@dataclass
class Recording:
    """The outcomes of all commands, what they were made from, and the digests of the inputs by path."""

    about: dict[str, Any]
    inputs: dict[str, str]
    outcomes: list[Outcome]

    def by_line(self) -> dict[str, Outcome]:
        return {each.line: each for each in self.outcomes}


def settled(outcome: dict[str, Any]) -> Outcome:
    """An outcome of the runner without what differs from run to run."""
    return _rewritten(Outcome(**outcome | {"command": tuple(outcome["command"])}), _settled_text)


def without_words_of_libraries(outcome: Outcome) -> Outcome:
    """The outcome without what differs between the releases of the libraries that decompress."""
    return _rewritten(outcome, lambda text: WORDS_OF_LIBRARIES.sub(r"\1: #", text))


def _rewritten(outcome: Outcome, rewrite: Callable[[str], str]) -> Outcome:
    return replace(
        outcome,
        stdout=rewrite(outcome.stdout),
        stderr=rewrite(outcome.stderr),
        files={path: rewrite(content) for path, content in outcome.files.items()},
    )


def _settled_text(text: str) -> str:
    for pattern, replacement in CHANGING:
        text = pattern.sub(replacement, text)
    return text


def write_recording(path: Path, recording: Recording) -> None:
    """Write a recording; equal recordings are equal bytes."""
    rows: Iterable[object] = (
        {"about": recording.about, "inputs": recording.inputs}, *(asdict(each) for each in recording.outcomes)
    )  # fmt: skip
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(gzip.compress(content.encode("utf-8", "surrogatepass"), compresslevel=6, mtime=0))


def read_recording(path: Path) -> Recording:
    lines = gzip.decompress(path.read_bytes()).decode("utf-8", "surrogatepass").split("\n")
    header, *rows = (json.loads(line) for line in lines if line)
    outcomes = [Outcome(tuple(row.pop("command")), **row) for row in rows]
    return Recording(header["about"], header["inputs"], outcomes)
