"""The recording that the tests compare with: what a few commands do, one file for each verb."""

from __future__ import annotations

from pathlib import Path

from tests.corpora import REPOSITORY
from tests.recording.outcomes import Recording, read_recording, write_recording

GOLDEN_DIR = REPOSITORY / "tests" / "golden" / "recording"
SUFFIX = ".jsonl.gz"


def of_verb(recording: Recording, verb: str) -> Recording:
    """The part of a recording that is about one verb."""
    return Recording(recording.about, recording.inputs, [each for each in recording.outcomes if each.verb == verb])


def verbs_of(recording: Recording) -> list[str]:
    return sorted({each.verb for each in recording.outcomes})


def golden_verbs() -> list[str]:
    """The verbs that have a golden."""
    return sorted(each.name.removesuffix(SUFFIX) for each in GOLDEN_DIR.glob(f"*{SUFFIX}"))


def read_golden(verb: str) -> Recording:
    return read_recording(_path(verb))


def write_goldens(recording: Recording) -> list[Path]:
    """Write the goldens of all verbs; those that hold the same already stay as they are."""
    GOLDEN_DIR.mkdir(parents=True, exist_ok=True)
    verbs = verbs_of(recording)
    for gone in set(golden_verbs()) - set(verbs):
        _path(gone).unlink()
    written = []
    for verb in verbs:
        part = of_verb(recording, verb)
        if not _path(verb).exists() or read_golden(verb) != part:
            write_recording(_path(verb), part)
            written.append(_path(verb))
    return written


def _path(verb: str) -> Path:
    return GOLDEN_DIR / f"{verb}{SUFFIX}"
