"""Who can see an offset: against what consumers of real brokers got, and on logs made for single cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from format.files import producer_snapshot
from format.node.partition import read_partition
from format.state.producers import ProducerState
from format.verbs.find.find import find_offset
from format.verbs.find.lookup import Lookup, Match, Visibility
from tests.building import batch, write_segment
from tests.corpora import Corpus
from tests.format.verbs.txns.transaction_logs import data, marker
from tests.oracle.transaction_truth import visibility_of

pytestmark = pytest.mark.slow


def found(directory: Path, offset: int) -> Lookup:
    return find_offset(read_partition(directory), offset)


def matched(directory: Path, offset: int) -> Match:
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
    write_segment(directory, 0, [batch(0), batch(2), data(4, 7)])
    write_segment(directory, 6, [batch(6), marker(8, 7, commit=True), data(9, 7)])
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
    assert seen(directory, range(6, 13)) == [*["damaged"] * 6, "visible"]


def test_an_empty_partition(tmp_path: Path) -> None:
    (tmp_path / "payments-0").mkdir()
    assert seen(tmp_path / "payments-0", range(1)) == ["past_end"]
