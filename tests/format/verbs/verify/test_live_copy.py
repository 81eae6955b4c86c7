"""verify of what a crash leaves, and copying the files of a running broker: files that end elsewhere than the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.files import offset_index, time_index, transaction_index
from format.findings import Finding, Severity
from format.verbs.verify.verify import verify
from tests.building import BASE_TIMESTAMP, batch, batches, write_segment
from tests.faults.test_transactions import ABORT, marker, sent

NAME = f"{0:020d}"
PARTS = batches(6)
END = sum(map(len, PARTS))
LATER = sent(18, 0, transactional=True) + marker(21, ABORT)

#: Files that were copied after the log, and a .txnindex that was copied before it; what each is found to be.
NEWER: dict[str, tuple[bytes, str]] = {
    ".index at the end": (offset_index.write(([5, 20], [len(PARTS[0]), END])), "offset-index-mismatch"),
    ".index past the end": (offset_index.write(([20, 30], [END, END + 900])), "offset-index-mismatch"),
    ".timeindex": (
        time_index.write(([BASE_TIMESTAMP + 5, BASE_TIMESTAMP + 20], [5, 20])), "time-index-mismatch"),
    ".txnindex": (transaction_index.write(([7], [18], [21], [22])), "transaction-index-mismatch"),
}  # fmt: skip


def directory(tmp_path: Path, log: bytes, *, is_clean: bool) -> Path:
    partition = tmp_path / "orders-0"
    write_segment(partition, 0, [log])
    for suffix in (".index", ".timeindex"):
        (partition / f"{NAME}{suffix}").write_bytes(b"")
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    if is_clean:
        (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    return partition


def accusations(partition: Path) -> list[Finding]:
    return [each for each in verify(partition) if each.severity > Severity.INFO]


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("name", NEWER)
def test_an_index_that_is_newer_than_its_log(tmp_path: Path, name: str, is_clean: bool) -> None:
    content, code = NEWER[name]
    partition = directory(tmp_path, b"".join(PARTS), is_clean=is_clean)
    (partition / f"{NAME}{name.partition(' ')[0]}").write_bytes(content)
    (found,) = accusations(partition)
    assert (found.code, found.severity) == (code, Severity.ERROR if is_clean else Severity.WARNING)
    assert ("a broker rebuilds the indexes of the last segment when it starts" in found.message) != is_clean


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_transaction_index_that_is_older_than_its_log(tmp_path: Path, is_there: bool, is_clean: bool) -> None:
    partition = directory(tmp_path, b"".join([*PARTS, LATER]), is_clean=is_clean)
    if is_there:
        (partition / f"{NAME}.txnindex").write_bytes(b"")
    (found,) = accusations(partition)
    assert found.code == "transaction-index-mismatch"
    assert found.severity is (Severity.ERROR if is_clean else Severity.WARNING)


def test_an_abort_before_the_end_of_the_index_is_missing_for_another_reason(tmp_path: Path) -> None:
    log = b"".join([*PARTS, LATER, sent(22, 3, transactional=True), marker(25, ABORT)])
    partition = directory(tmp_path, log, is_clean=False)
    (partition / f"{NAME}.txnindex").write_bytes(transaction_index.write(([7], [22], [25], [26])))
    (found,) = accusations(partition)
    assert (found.code, found.severity) == ("transaction-index-mismatch", Severity.ERROR)


def test_an_index_entry_in_the_middle_of_the_log_is_wrong_for_another_reason(tmp_path: Path) -> None:
    partition = directory(tmp_path, b"".join(PARTS), is_clean=False)
    (partition / f"{NAME}.index").write_bytes(offset_index.write(([5, 20], [7, END])))
    middle, end = accusations(partition)
    assert (middle.code, middle.severity, middle.actual) == ("offset-index-mismatch", Severity.ERROR, 7)
    assert (end.code, end.severity, end.actual) == ("offset-index-mismatch", Severity.WARNING, END)


def test_an_index_of_a_closed_segment_has_no_such_excuse(tmp_path: Path) -> None:
    partition = directory(tmp_path, b"".join(PARTS), is_clean=False)
    write_segment(partition, 18, [batch(18)])
    for suffix in (".index", ".timeindex"):
        (partition / f"{18:020d}{suffix}").write_bytes(b"")
    (partition / f"{NAME}.timeindex").write_bytes(time_index.write(([BASE_TIMESTAMP + 17], [17])))
    (partition / f"{NAME}.index").write_bytes(offset_index.write(([5, 20], [len(PARTS[0]), END])))
    (found,) = accusations(partition)
    assert (found.code, found.severity) == ("offset-index-mismatch", Severity.ERROR)


def test_snapshots_and_epochs_that_are_newer_than_the_log(tmp_path: Path) -> None:
    partition = directory(tmp_path, b"".join(PARTS), is_clean=False)
    (partition / f"{40:020d}.snapshot").write_bytes(b"\x00\x01\x48\x67\x4b\xc7\x00\x00\x00\x00")
    (partition / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n5 40\n")
    found = accusations(partition)
    assert [each.code for each in found] == ["snapshot-mismatch", "leader-epoch-checkpoint-mismatch"]
    assert {each.severity for each in found} == {Severity.WARNING}
    assert "a broker deletes the snapshot when it starts" in found[0].message
    assert "a broker removes the entry when it starts" in found[1].message


@pytest.mark.parametrize("codec", range(5))
def test_records_from_before_1970(tmp_path: Path, codec: int) -> None:
    """A broker stores -1 as their max timestamp, and other programs the largest one."""
    for stored in (-1, -4998):
        records = batch(0, codec=codec, timestamp=-5000, max_timestamp=stored)
        assert accusations(directory(tmp_path, records, is_clean=True)) == []
    records = batch(0, codec=codec, timestamp=-5000, max_timestamp=-4999)
    (found,) = accusations(directory(tmp_path, records, is_clean=True))
    assert (found.code, found.expected, found.actual) == ("max-timestamp-mismatch", -4998, -4999)
