"""The shipped data is what brokers wrote: complete, unchanged, and the same bytes as in the shared corpus."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.corpora import DATA_DIR, REPOSITORY, corpora
from tests.running import Run

pytestmark = pytest.mark.slow


def shipped_files() -> list[Path]:
    return sorted(each for each in DATA_DIR.rglob("*") if each.is_file())


def test_every_shipped_file_is_in_the_shared_corpus(shared_corpus: Path) -> None:
    roots = tuple(each.root for each in corpora() if not each.is_shared)
    names = [each.relative_to(DATA_DIR) for each in shipped_files() if any(root in each.parents for root in roots)]
    assert len(names) > 200
    for name in names:
        file = DATA_DIR / name
        if name.name == "sent.tsv.gz":
            continue  # compressed here
        original = shared_corpus / name
        if name.parent == Path("kafka-4.3/truth") and name.suffix == ".json":
            whole = json.loads(original.read_text())
            assert json.loads(file.read_text()) == {
                "payments-0": whole["payments-0"]
            }  # cut to the partition that ships
        else:
            assert file.read_bytes() == original.read_bytes(), name


def test_files_that_a_checkout_easily_loses() -> None:
    """Empty files, hidden files and files that a pattern for logs would ignore."""
    names = {str(each.relative_to(DATA_DIR)) for each in shipped_files()}
    assert {
        "kafka-4.3/node-1/.lock",
        "kafka-4.3-single/node-1/.kafka_cleanshutdown",
        "kafka-0.8-to-2.8/data/.kafka_cleanshutdown",
        "kafka-4.3-single/node-1/__transaction_state-3/00000000000000000000.log",
        "kafka-4.3-single/node-1/sensor-0/00000000000000000075.log",
    } <= names


def test_every_kind_of_file_is_there() -> None:
    suffixes = {each.suffix for each in shipped_files()}
    assert {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint", ".properties"} <= suffixes
    assert [each.id for each in corpora() if not each.is_shared] == [
        "kafka-0.8-to-2.8",
        "kafka-4.3",
        "kafka-4.3-single",
    ]


def test_git_keeps_the_bytes() -> None:
    """No line ending is changed, and nothing is ignored."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("not a git checkout")
    names = "\0".join(str(each.relative_to(REPOSITORY)) for each in shipped_files())
    git = ["git", "-C", str(REPOSITORY)]
    attributes = subprocess.run(
        [*git, "check-attr", "-z", "--stdin", "text"], input=names.encode(), capture_output=True, check=True
    )
    values = attributes.stdout.split(b"\0")[2::3]
    assert set(values) == {b"unset"}
    ignored = subprocess.run([*git, "check-ignore", "-z", "--stdin"], input=names.encode(), capture_output=True)
    assert ignored.stdout == b""


@pytest.mark.parametrize("corpus_id", ["kafka-4.3-single", "kafka-0.8-to-2.8"])
def test_nothing_is_written_to_it(
    corpus_id: str, data_dir: Path, source_snapshot: Callable[[Path], None], run_kafkalog: Callable[..., Run]
) -> None:
    """The commands read; ``source_snapshot`` compares hashes, modes and times when this test ends."""
    source_snapshot(data_dir / corpus_id)
    (log_dir,) = next(each for each in corpora() if each.id == corpus_id).log_dirs
    for arguments in (["ls"], ["dump", "--records"], ["verify"]):
        run_kafkalog(*arguments, log_dir, "--format", "jsonl").check(0, 1, 3)
