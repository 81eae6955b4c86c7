"""What both kinds of checkpoint have in common, tested through the simpler one."""

from __future__ import annotations

import pytest

from format.errors import InvalidCheckpoint, LimitExceeded, UnknownVersion
from format.files import leader_epoch_checkpoint
from format.files.side_file import MAX_PROBLEMS
from format.io.source import FileSource
from format.limits import Limits
from tests.sources import BytesSource


def read(content, limits=None):
    return leader_epoch_checkpoint.read(BytesSource(content, "the/path"), limits or Limits())


@pytest.mark.parametrize(
    ("content", "line", "position", "message"),
    [
        (b"x\n0\n", 1, 0, "line 1: expected the version, 0, found 'x'"),
        (b"\n0\n", 1, 0, "line 1: expected the version, 0, found ''"),
        (b"0\nmany\n", 2, 2, "line 2: expected the number of entries, found 'many'"),
        (b"0\n-1\n", 2, 2, "line 2: expected the number of entries, found '-1'"),
        (b"0\n2147483648\n", 2, 2, "line 2: expected the number of entries, found '2147483648'"),
        (b"0\n2\n0 0\n", 2, 2, "line 2: expected the number of entries, which is 1, found 2"),
        (b"0\n2147483647\n0 0\n", 2, 2, "line 2: expected the number of entries, which is 1, found 2147483647"),
        (b"0\n1\n0 0\n1 5\n", 4, 8, "line 4: expected the end of the file after 1 entry, as line 2 says, found '1 5'"),
        (b"0\n1\n0 0\n\n", 4, 8, "line 4: expected the end of the file after 1 entry, as line 2 says, found ''"),
        (b"0\n1\n\n", 3, 4, "line 3: expected a leader epoch and a start offset, found ''"),
        (b"0\n1\n 0 0\n", 3, 4, "line 3: expected a leader epoch and a start offset, found ' 0 0'"),
        (b"0\n1\n0 0 0\n", 3, 4, "line 3: expected a leader epoch and a start offset, found '0 0 0'"),
        (b"0\n1\n0 \xff\n", 3, 4, "line 3: expected UTF-8 text, found byte 0xff"),
        (b"\xef\xbb\xbf0\n0\n", 1, 0, r"line 1: expected the version, 0, found '\ufeff0'"),
    ],
)
def test_malformed_text_is_refused_with_path_line_and_position(content, line, position, message):
    with pytest.raises(InvalidCheckpoint) as caught:
        read(content)
    assert caught.value.message == message
    assert (caught.value.location.path, caught.value.location.position) == ("the/path", position)
    assert message.startswith(f"line {line}:")
    assert str(caught.value).startswith(f"the/path position {position} ")


@pytest.mark.parametrize("version", [b"1", b"-1", b"2147483647"])
def test_another_version_is_unknown(version):
    with pytest.raises(UnknownVersion, match=f"line 1: version {version.decode()}, only 0 is known"):
        read(version + b"\n0\n")


@pytest.mark.parametrize(
    "content", [b"0\n2\n0 0\n1 5\n", b"0\r\n2\r\n0 0\r\n1 5\r\n", b"0\n2\n0\t0 \n1  5", b"+0\r2\r00 0\r1 +5"]
)
def test_what_a_broker_reads_is_read(content):
    checkpoint = read(content)
    assert [(entry.leader_epoch, entry.start_offset) for entry in checkpoint.entries] == [(0, 0), (1, 5)]
    assert checkpoint.problems == ()
    assert leader_epoch_checkpoint.write(checkpoint) == b"0\n2\n0 0\n1 5\n"


def test_an_empty_file_has_no_entries_and_stays_empty():
    checkpoint = read(b"")
    assert (checkpoint.version, checkpoint.entries, checkpoint.problems) == (None, (), ())
    assert leader_epoch_checkpoint.write(checkpoint) == b""


@pytest.mark.parametrize("content", [b"0", b"0\n"])
def test_a_file_that_ends_after_its_version_has_no_entries_to_a_broker(content):
    checkpoint = read(content)
    assert checkpoint.entries == ()
    assert [(each.position, each.length, each.code) for each in checkpoint.problems] == [(0, 1, "checkpoint-invalid")]


def test_a_huge_line_and_a_huge_file_are_over_a_limit_not_corrupt(tmp_path):
    with pytest.raises(LimitExceeded, match="line 3 is longer"):
        read(b"0\n1\n" + b"1" * 101, Limits(max_line_bytes=100))
    path = tmp_path / "leader-epoch-checkpoint"
    with path.open("wb") as file:
        file.truncate(2**30)
    with FileSource(path) as source, pytest.raises(LimitExceeded):
        leader_epoch_checkpoint.read(source)
    assert source.bytes_read == 0


def test_the_number_of_problems_is_bounded():
    count = 10 * MAX_PROBLEMS
    checkpoint = read(b"0\n%d\n" % count + b"5 7\n" * count)
    assert len(checkpoint.entries) == count
    assert len(checkpoint.problems) == MAX_PROBLEMS + 1
    assert (
        checkpoint.problems[-1].message
        == f"{2 * (count - 1) - MAX_PROBLEMS} more problems, the last on line {count + 2}"
    )
