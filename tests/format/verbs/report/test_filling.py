"""The first sentence of a report."""

from __future__ import annotations

from pathlib import Path

from tests.building import batches, write_segment
from tests.kafkalog_cli.page.reports import report_of


def test_partitions_that_were_given_by_themselves_are_in_no_log_directory(tmp_path: Path) -> None:
    partition = write_segment(tmp_path / "orders-0", 0, batches(2)).parent
    assert report_of(partition).sentences[0].startswith("1 partition, 1 segment, 6 records: ")
    assert report_of(tmp_path).sentences[0].startswith("1 partition in 1 log directory, 1 segment, 6 records: ")
