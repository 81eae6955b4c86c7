"""What recovery makes of offsets that fall, and what a broker accepts of a transaction index.

Tried with 4.3.1, and the index with 4.4.0 too (boot_trials, transaction-indexes).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from format.layout import ABORTED_TXN
from format.verbs.boot.one_log.log_load import LoadedSegment, recovered_segment, wrong_transaction_index
from format.verbs.boot.steps import BootTerms, StopsStart
from tests.building import batch, wrapper

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("timestamp", [0, 2**40])
def test_the_greatest_timestamp_is_appended_when_all_is_read(tmp_path: Path, timestamp: int) -> None:
    """A broker refuses it if its batch has a lower offset than the last entry of the time index."""
    log = tmp_path / f"{0:020}.log"
    large = [batch(offset, [bytes(5000)], timestamp=100 + offset) for offset in range(2)]
    log.write_bytes(b"".join((*large, batch(2, [b"a"], timestamp=102), batch(0, [b"b"], timestamp=timestamp))))
    found = recovered_segment(LoadedSegment(0, log, log, log.stat().st_size, None, BootTerms()), log, BootTerms())
    assert found.is_emptied == (timestamp > 102)
    assert found.is_emptied == ("append an offset (0) to slot" in (found.message or ""))


@pytest.mark.parametrize(("release", "is_read"), [((3, 9), False), ((4, 0), True), ((4, 4), True)])
def test_a_compressed_message_that_cannot_be_read(tmp_path: Path, release: tuple[int, int], is_read: bool) -> None:
    """From 4.0 on, the search for the log's end takes the first offset, which is in the content (old_formats)."""
    log = tmp_path / f"{0:020}.log"
    message = bytearray(wrapper(1, 0))
    message[40:60] = bytes(20)
    log.write_bytes(bytes(message))
    segment = LoadedSegment(0, log, log, len(message), None, BootTerms(version=release))
    if not is_read:
        assert segment.end().next_offset == 3
        return
    with pytest.raises(StopsStart, match="one of the threads during logs loading") as stopped:
        segment.end()
    assert "stops at a compressed message that it cannot read" in stopped.value.reason


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
