from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.errors import InvalidIndex, LimitExceeded, UnreadableFile
from format.files import transaction_index
from format.files.index_file import encode_columns
from format.layout import ABORTED_TXN
from format.limits import Limits
from tests.format.damage import outcomes, single_byte_changes, truncations
from tests.sources import BytesSource

INT64 = st.integers(-(2**63), 2**63 - 1)


def encoded(*entries):
    return b"".join(struct.pack(">hqqqq", *entry) for entry in entries)


def rows(index):
    columns = (
        index.versions,
        index.producer_ids,
        index.first_offsets,
        index.last_offsets,
        index.last_stable_offsets,
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_every_index_of_a_broker_is_read_and_written_back(corpus):
    paths = list(corpus.files(".txnindex"))
    has_aborted_transactions = corpus.id.endswith("kafka-4.3")  # the others hold none
    assert bool(paths) == has_aborted_transactions
    for path in paths:
        index = transaction_index.read(path, int(path.name[:20]))
        assert index.entry_count > 0
        assert index.problems == ()
        assert encode_columns(ABORTED_TXN, index.columns) == path.read_bytes()


def test_entries_of_a_broker_are_what_kafka_dump_log_prints(data_dir):
    index = transaction_index.read(data_dir / "kafka-4.3/node-1/payments-0/00000000000000000000.txnindex", 0)
    assert rows(index) == [(0, 6, 9, 49, 50), (0, 1001, 227, 271, 272)]
    assert (index.entry_count, index.trailing_bytes) == (2, 0)


@given(st.lists(st.tuples(st.integers(-(2**15), 2**15 - 1), INT64, INT64, INT64, INT64), max_size=10))
def test_what_is_written_is_read_back(entries):
    content = encoded(*entries)
    index = transaction_index.read(BytesSource(content), 0)
    assert rows(index) == entries
    assert encode_columns(ABORTED_TXN, index.columns) == content


def test_columns_are_written_under_the_current_version():
    content = encoded((0, 6, 9, 49, 50), (0, 7, 10, 60, 61))
    assert transaction_index.write(([6, 7], [9, 10], [49, 60], [50, 61])) == content
    assert transaction_index.write(([], [], [], [])) == b""


@pytest.mark.parametrize(
    ("entry", "code", "message"),
    [
        ((1, 1, 30, 40, 41), "version-unknown", "entry 1: version 1, only 0 is known"),
        ((256, 1, 30, 40, 41), "version-unknown", "entry 1: version 256, only 0 is known"),
        ((0, -1, 30, 40, 41), "index-invalid", "entry 1: a negative producer id or offset"),
        ((0, 1, 30, 40, -1), "index-invalid", "entry 1: a negative producer id or offset"),
        ((0, 1, 41, 40, 41), "index-invalid", "entry 1: the first offset is above the last offset"),
        (
            (0, 1, 3, 20, 21),
            "index-invalid",
            "entry 1: the last offset is not above the last offset of the previous entry",
        ),
    ],
)
def test_damage_is_a_problem_and_hides_nothing(entry, code, message):
    entries = [(0, 6, 9, 20, 21), entry, (0, 6, 50, 60, 61)]
    index = transaction_index.read(BytesSource(encoded(*entries)), 10)
    assert [(each.position, each.length, each.code, each.message) for each in index.problems] == [
        (34, 34, code, message)
    ]
    assert rows(index) == entries


def test_an_entry_before_the_segment_is_a_problem():
    index = transaction_index.read(BytesSource(encoded((0, 6, 9, 20, 21))), 21)
    assert [each.message for each in index.problems] == ["entry 0: the last offset is below the base offset 21"]
    assert transaction_index.read(BytesSource(encoded((0, 6, 9, 20, 21))), 20).problems == ()


def test_a_size_that_is_no_multiple_is_a_problem():
    index = transaction_index.read(BytesSource(encoded((0, 6, 9, 20, 21)) + b"\0" * 33), 0)
    assert (index.entry_count, index.trailing_bytes) == (1, 33)
    assert [(each.position, each.length) for each in index.problems] == [(34, 33)]


def test_every_changed_byte_and_every_truncation_is_survived(data_dir):
    content = (data_dir / "kafka-4.3/node-1/payments-0/00000000000000000000.txnindex").read_bytes()
    for damaged in (single_byte_changes, truncations):
        for changed, index in outcomes(lambda source: transaction_index.read(source, 0), damaged(content)):
            assert isinstance(index, transaction_index.TransactionIndex)
            assert encode_columns(ABORTED_TXN, index.columns) == changed[: len(changed) // 34 * 34]
            assert bool(index.problems) >= (len(changed) % 34 != 0)


def test_limits_base_offsets_and_unreadable_files(tmp_path):
    with pytest.raises(LimitExceeded):
        transaction_index.read(BytesSource(bytes(340)), 0, Limits(max_side_file_bytes=339))
    with pytest.raises(InvalidIndex):
        transaction_index.read(BytesSource(b""), 2**63)
    with pytest.raises(UnreadableFile):
        transaction_index.read(tmp_path / "00000000000000000000.txnindex", 0)
