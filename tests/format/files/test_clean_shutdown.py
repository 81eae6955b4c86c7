from __future__ import annotations

import pytest

from format.errors import LimitExceeded, UnreadableFile
from format.files import clean_shutdown
from format.files.clean_shutdown import CleanShutdown
from format.limits import Limits
from tests.format.damage import single_byte_changes, truncations
from tests.sources import BytesSource


def read(content):
    return clean_shutdown.read(BytesSource(content))


def test_every_mark_of_a_broker_is_read_and_written_back(corpus):
    for path in corpus.files(".kafka_cleanshutdown"):
        mark = clean_shutdown.read(path)
        assert mark.problems == ()
        assert (mark.broker_epoch is None) == (path.stat().st_size == 0)
        assert clean_shutdown.write(mark) == path.read_bytes()


def test_marks_of_old_and_new_brokers(data_dir):
    assert read(b"") == CleanShutdown("<memory>", None, None, ())
    assert read(b'{"version":0,"brokerEpoch":13}') == CleanShutdown("<memory>", 0, 13, ())
    assert read(b'{\n "brokerEpoch": 5, "more": 1}\n') == CleanShutdown("<memory>", 0, 5, ())
    old = clean_shutdown.read(data_dir / "kafka-0.8-to-2.8/data/.kafka_cleanshutdown")
    assert (old.version, old.broker_epoch, old.problems) == (None, None, ())


@pytest.mark.parametrize(
    "content",
    [b"x", b"\xff", b"{}", b"[]", b'{"version":0}', b'{"brokerEpoch":"5"}', b'{"brokerEpoch":9223372036854775808}'],
)
def test_content_that_a_broker_cannot_read_is_a_problem(content):
    mark = read(content)
    assert (mark.version, mark.broker_epoch) == (None, None)
    assert [(each.position, each.length, each.code) for each in mark.problems] == [
        (0, len(content), "checkpoint-invalid")
    ]


def test_another_version_is_a_problem():
    mark = read(b'{"version":1,"brokerEpoch":13}')
    assert (mark.version, mark.broker_epoch) == (1, 13)
    assert [each.code for each in mark.problems] == ["version-unknown"]


def test_every_changed_byte_and_every_truncation_is_survived():
    content = b'{"version":0,"brokerEpoch":13}'
    for damaged in (single_byte_changes, truncations):
        for changed in damaged(content):
            assert isinstance(read(changed), CleanShutdown)


def test_limits_and_a_missing_file(tmp_path):
    with pytest.raises(LimitExceeded):
        clean_shutdown.read(BytesSource(b" " * 101), Limits(max_line_bytes=100))
    with pytest.raises(UnreadableFile):
        clean_shutdown.read(tmp_path / ".kafka_cleanshutdown")
