"""Who can see an offset: against what consumers of real brokers got, and on logs made for single cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from format.files import producer_snapshot
from format.node.partition import read_partition
from format.state.producers import ProducerState
from format.verbs.find.find import find_offset
from format.verbs.find.lookup import FoundRecord, LookupResult, Visibility
from tests.building import BASE_TIMESTAMP, batch, write_segment
from tests.corpora import Corpus
from tests.format.verbs.find.lookups import (
    batch_of,
    by_max,
    by_offset,
    by_time,
    three_segments,
    write_checkpoint,
    write_indexed,
)
from tests.format.verbs.txns.transaction_logs import data, marker
from tests.oracle.transaction_truth import visibility_of

pytestmark = pytest.mark.slow


def test_high_watermark(tmp_path: Path) -> None:
    """A broker gives no answer past the high watermark; by offset the record is shown all the same."""
    partition = three_segments(tmp_path)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 23)
    assert by_time(partition, BASE_TIMESTAMP + 22).offset == 22
    lookup = by_time(partition, BASE_TIMESTAMP + 23)
    assert "high watermark 23" in lookup.reason
    assert lookup.found.nearest is not None
    assert lookup.found.nearest.location.offset == 23
    assert by_time(partition, BASE_TIMESTAMP + 23, past_high_watermark=True).offset == 23
    assert "high watermark 23" in by_max(partition).reason
    assert by_max(partition, past_high_watermark=True).offset == 29
    lookup = by_offset(partition, 25)
    assert "high watermark 23" in lookup.match.note
    assert by_offset(partition, 22).match.note == ""


def test_another_partitions_checkpoint(tmp_path: Path) -> None:
    """A checkpoint that names other partitions bounds nothing, nor does that of a deleted directory's topic."""
    partition = three_segments(tmp_path)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 1, 3)
    assert by_max(partition).offset == 29
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 3)
    marked = partition.rename(tmp_path / f"topic-0.{'0' * 32}-delete")
    assert by_max(marked).offset == 29


def test_log_start_offset(tmp_path: Path) -> None:
    partition = three_segments(tmp_path)
    write_checkpoint(tmp_path, "log-start-offset-checkpoint", "topic", 0, 12)
    lookup = by_offset(partition, 4)
    assert "below the log start offset 12" in lookup.reason
    assert "still in the file" in lookup.reason
    assert by_offset(partition, 12).offset == 12
    assert by_time(partition, 0).offset == 12  # the first segment is about to be deleted
    assert by_time(partition, BASE_TIMESTAMP + 14).offset == 14


def test_a_broker_looks_into_one_segment_only(tmp_path: Path) -> None:
    """The first segment reaches the time, but only below the log start offset: the broker answers nothing."""
    partition = tmp_path / "topic-0"
    write_indexed(partition, 0, [batch_of([(0, 900), (1, 100)], base_offset=0, last_offset=1)])
    write_indexed(partition, 2, [batch_of([(2, 950)], base_offset=2, last_offset=2)])
    write_checkpoint(tmp_path, "log-start-offset-checkpoint", "topic", 0, 1)
    lookup = by_time(partition, 900)
    assert "looks no further than segment 0" in lookup.reason
    assert lookup.found.nearest is not None
    assert lookup.found.nearest.location.offset == 2


def test_a_broken_checkpoint_is_reported(tmp_path: Path) -> None:
    partition = three_segments(tmp_path)
    (tmp_path / "replication-offset-checkpoint").write_text("0\nmany\n")
    lookup = by_max(partition)
    assert (lookup.offset, lookup.codes) == (29, ["checkpoint-invalid"])


def found(directory: Path, offset: int) -> LookupResult:
    return find_offset(read_partition(directory), offset)


def matched(directory: Path, offset: int) -> FoundRecord:
    match = found(directory, offset).match
    assert match is not None
    return match


def seen(directory: Path, offsets: range) -> list[str]:
    partition = read_partition(directory)
    return [visibility_of(partition, offset) for offset in offsets]


def test_what_consumers_of_the_corpora_got(witnessed_corpus: Corpus) -> None:
    """A read_uncommitted consumer got what is visible, aborted, or at or past the last stable offset."""
    marks = witnessed_corpus.truth_json("watermarks")
    names = [name for name in marks if name.startswith("payments-") and witnessed_corpus.replicas(name)]
    for name in names:
        partition = read_partition(witnessed_corpus.replicas(name)[0])
        records = witnessed_corpus.true_records(name)
        assert records is not None
        got = {record["offset"] for record in records}
        stable, end = marks[name]["last_stable_offset"], marks[name]["high_watermark"]
        for offset in range(end + 2):
            visibility = visibility_of(partition, offset)
            if offset >= end:
                assert visibility == "past_end"
            elif offset not in got:
                assert visibility == "control"
            else:
                assert visibility in ({"visible", "aborted"} if offset < stable else {"read_uncommitted_only"})
    assert names


def test_a_log_of_transactions(tmp_path: Path) -> None:
    directory = tmp_path / "payments-0"
    write_segment(
        directory, 0, [data(0, 7), data(2, 8), marker(4, 7, commit=False), marker(5, 8, commit=True), batch(6)]
    )
    write_segment(directory, 9, [data(9, 9), data(11, 7), marker(13, 7, commit=True), batch(14)])
    aborted, only, visible, control = "aborted", "read_uncommitted_only", "visible", "control"
    assert seen(directory, range(18)) == [
        *(aborted, aborted, visible, visible, control, control, visible, visible, visible),
        *(only, only, only, only, control, only, only, only, "past_end"),
    ]
    states = {offset: matched(directory, offset).transaction_state for offset in (0, 2, 4, 6, 9, 11)}
    assert states == {0: "aborted", 2: "committed", 4: "aborted", 6: None, 9: "open", 11: "committed"}
    assert matched(directory, 14).note.startswith("behind the open transaction of producer 9, which began at offset 9")


def test_a_snapshot_saves_reading(tmp_path: Path) -> None:
    directory = tmp_path / "payments-0"
    write_segment(directory, 0, [data(0, 7), batch(2)])
    write_segment(directory, 5, [marker(5, 7, commit=True), batch(6)])
    without = matched(directory, 0)
    (directory / f"{9:020d}.snapshot").write_bytes(producer_snapshot.write(ProducerState().snapshot_columns()))
    with_snapshot = matched(directory, 0)
    assert without.visibility is with_snapshot.visibility is Visibility.VISIBLE
    assert without.visibility_bytes_read > with_snapshot.visibility_bytes_read


def test_what_a_snapshot_settles_is_not_read_for(tmp_path: Path) -> None:
    directory = tmp_path / "payments-0"
    write_segment(directory, 0, [batch(0, [b"a", b"b"]), batch(2, [b"a", b"b"]), data(4, 7)])
    write_segment(directory, 6, [batch(6, [b"a", b"b"]), marker(8, 7, commit=True), data(9, 7)])
    opened = tuple(np.array([value]) for value in (7, 0, -1, 4, 1, 1_700_000_000_000, -1, 4))
    (directory / f"{6:020d}.snapshot").write_bytes(producer_snapshot.write(opened))
    before, behind, after = (matched(directory, offset) for offset in (2, 4, 6))
    for match, is_read in ((before, False), (behind, True), (after, True)):
        assert match.visibility is Visibility.VISIBLE
        assert (match.visibility_bytes_read > 0) is is_read


@pytest.mark.parametrize(("offset", "expected"), [(0, "below_log_start"), (2, "visible"), (3, "not_replicated")])
def test_bounds_of_checkpoints(tmp_path: Path, offset: int, expected: str) -> None:
    write_segment(tmp_path / "payments-0", 0, [batch(0), batch(3)])
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\npayments 0 2\n")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\npayments 0 3\n")
    result = found(tmp_path / "payments-0", offset)
    assert result.visibility == expected
    if result.match is None:
        assert result.answer is not None
        assert result.answer.timestamp is not None


def test_a_marker_that_is_not_replicated_ends_nothing(tmp_path: Path) -> None:
    write_segment(tmp_path / "payments-0", 0, [data(0, 7), batch(2), marker(5, 7, commit=True)])
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\npayments 0 5\n")
    assert seen(tmp_path / "payments-0", range(6)) == ["read_uncommitted_only"] * 5 + ["control"]


def test_gaps_and_damage(tmp_path: Path) -> None:
    directory = tmp_path / "payments-0"
    log = write_segment(directory, 0, [batch(0), batch(6), batch(9), batch(12)])
    assert seen(directory, range(2, 7)) == ["visible", "compacted", "compacted", "compacted", "visible"]
    content = bytearray(log.read_bytes())
    size = len(batch(0))
    content[size + 70] ^= 1  # a record of the batch at 6
    content[2 * size : 2 * size + 20] = bytes(20)  # the header of the batch at 9
    log.write_bytes(content)
    assert seen(directory, range(6, 13)) == ["damaged"] * 7  # a broker's search for 12 does not pass that header


def test_an_empty_partition(tmp_path: Path) -> None:
    (tmp_path / "payments-0").mkdir()
    assert seen(tmp_path / "payments-0", range(1)) == ["past_end"]
