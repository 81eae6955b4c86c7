"""What a broker accepts of a transaction index: tried with 4.3.1 and 4.4.0 (boot_trials, transaction-indexes)."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.layout import ABORTED_TXN
from format.verbs.boot.one_log.log_load import wrong_transaction_index
from format.verbs.boot.steps import StopsStart

pytestmark = pytest.mark.slow


def _index(path: Path, *entries: tuple[int, int]) -> Path:
    """An index with entries of a version and a last offset."""
    path.write_bytes(b"".join(ABORTED_TXN.struct.pack(version, 1, 10, last, last + 1) for version, last in entries))
    return path


@pytest.mark.parametrize(
    ("version", "of_4_3", "of_4_4"),
    [
        (0, None, None),
        (9, None, "version 9 "),
        (0x0900, "version 9 ", "version 2304 "),
        (0x7FFF, "version 127 ", "version 32767 "),
        (-1, None, "version -1 "),
    ],
)
def test_the_version_of_an_entry(tmp_path: Path, version: int, of_4_3: str | None, of_4_4: str | None) -> None:
    path = _index(tmp_path / "0.txnindex", (0, 20), (version, 30))
    for release, words in (((4, 3), of_4_3), ((3, 9), of_4_3), ((4, 4), of_4_4)):
        if words is None:
            assert wrong_transaction_index(path, 0, release) is None
            continue
        with pytest.raises(StopsStart, match=f"Unexpected aborted transaction {words}in transaction index") as stopped:
            wrong_transaction_index(path, 0, release)
        assert stopped.value.position == ABORTED_TXN.size_bytes


def test_the_first_wrong_entry_counts(tmp_path: Path) -> None:
    wrong = wrong_transaction_index(_index(tmp_path / "0.txnindex", (0, -5), (9, 30)), 0, (4, 4))
    assert wrong is not None
    assert "less than start offset 0" in wrong
    with pytest.raises(StopsStart):
        wrong_transaction_index(_index(tmp_path / "1.txnindex", (9, 30), (0, -5)), 0, (4, 4))
