from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.errors import InvalidCheckpoint, LimitExceeded, UnknownVersion, UnreadableFile
from format.files import quorum_state
from format.files.quorum_state import QuorumState
from format.limits import Limits
from tests.format.damage import outcomes, single_byte_changes, truncations
from tests.sources import BytesSource

VERSION_0 = (
    b'{"clusterId":"","leaderId":2,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
)
VERSION_1 = b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}'
NODE_IDS = st.integers(-1, 2**31 - 1)


def read(content):
    return quorum_state.read(BytesSource(content))


def changed(content, **fields):
    state = json.loads(content)
    for name, value in fields.items():
        if value is ...:
            del state[name]
        else:
            state[name] = value
    return json.dumps(state).encode()


def test_every_file_of_a_node_is_read_and_written_back(corpus):
    paths = list(corpus.files("quorum-state"))
    if not paths:
        pytest.skip("this corpus has no quorum state")
    for path in paths:
        state = quorum_state.read(path)
        assert (state.data_version, state.problems) == (0, ())
        assert state.leader_id in state.current_voters
        assert quorum_state.write(state) == path.read_bytes()


def test_both_versions():
    first, second = read(VERSION_0), read(VERSION_1)
    assert first == QuorumState("<memory>", 0, 2, 1, -1, None, "", 0, (1, 2), ())
    assert second == QuorumState("<memory>", 1, -1, 2, 1, "J8aAPcfLQt2bqs1JT_rMgQ", None, None, None, ())
    assert quorum_state.write(first) == VERSION_0
    assert quorum_state.write(second) == VERSION_1
    assert read(changed(VERSION_1, currentVoters=[], clusterId="", appliedOffset=7)).current_voters is None


@pytest.mark.slow
@given(NODE_IDS, NODE_IDS, NODE_IDS, st.text(max_size=5), st.lists(st.integers(0, 2**31 - 1), max_size=5))
def test_what_is_written_is_read_back(leader_id, leader_epoch, voted_id, cluster_id, voters):
    state = QuorumState("<memory>", 0, leader_id, leader_epoch, voted_id, None, cluster_id, 7, tuple(voters), ())
    assert read(quorum_state.write(state)) == state


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a line of JSON, found an empty file"),
        (b"{", "line 1: expected JSON, found '{'"),
        (b"[]", "line 1: expected a JSON object, found '[]'"),
        (b"7", "line 1: expected a JSON object, found '7'"),
        (b"\xff", "line 1: expected UTF-8 text, found byte 0xff"),
        (b'{"a":NaN}', "line 1: expected JSON, found '{\"a\":NaN}'"),
        (
            changed(VERSION_0, data_version=...),
            "line 1: expected data_version to be an integer from -2147483648 to 2147483647, found no such field",
        ),
        (
            changed(VERSION_0, leaderId="2"),
            "line 1: expected leaderId to be an integer from -1 to 2147483647, found '2'",
        ),
        (
            changed(VERSION_0, leaderId=True),
            "line 1: expected leaderId to be an integer from -1 to 2147483647, found True",
        ),
        (changed(VERSION_0, votedId=-2), "line 1: expected votedId to be an integer from -1 to 2147483647, found -2"),
        (
            changed(VERSION_0, leaderEpoch=1.0),
            "line 1: expected leaderEpoch to be an integer from -1 to 2147483647, found 1.0",
        ),
        (changed(VERSION_0, clusterId=None), "line 1: expected clusterId to be a string, found None"),
        (
            changed(VERSION_0, currentVoters=...),
            "line 1: expected currentVoters to be a list of objects, found no such field",
        ),
        (changed(VERSION_0, currentVoters=None), "line 1: expected currentVoters to be a list of objects, found None"),
        (
            changed(VERSION_1, currentVoters=[{"voterId": 1}]),
            "line 1: expected currentVoters to be empty in version 1, found a list",
        ),
        (changed(VERSION_1, currentVoters=1), "line 1: expected currentVoters to be a list of objects, found 1"),
        (changed(VERSION_1, clusterId=7), "line 1: expected clusterId to be a string, found 7"),
        (
            changed(VERSION_1, appliedOffset="7"),
            f"line 1: expected appliedOffset to be an integer from {-(2**63)} to {2**63 - 1}, found '7'",
        ),
        (
            changed(VERSION_0, votedDirectoryId="x"),
            "line 1: expected votedDirectoryId to be 16 bytes in URL-safe base64, found 'x'",
        ),
        (changed(VERSION_0, currentVoters=[1]), "line 1: expected currentVoters to be a list of objects, found a list"),
        (
            changed(VERSION_0, currentVoters=[{}]),
            "line 1: expected voterId to be an integer from 0 to 2147483647, found no such field",
        ),
        (
            changed(VERSION_1, votedDirectoryId="x"),
            "line 1: expected votedDirectoryId to be 16 bytes in URL-safe base64, found 'x'",
        ),
    ],
)
def test_what_stops_a_node_is_refused(content, message):
    with pytest.raises(InvalidCheckpoint) as caught:
        read(content)
    assert caught.value.message == message


@pytest.mark.parametrize("version", [2, -1])
def test_another_version_is_unknown(version):
    with pytest.raises(UnknownVersion, match=f"line 1: data_version {version}, only 0 and 1 are known"):
        read(changed(VERSION_1, data_version=version))


def test_deep_nesting_and_huge_numbers_are_refused_like_other_text():
    for hostile in (b"[" * 60_000, b'{"a":' * 10_000, b'{"data_version":' + b"9" * 60_000 + b"}"):
        with pytest.raises(InvalidCheckpoint):
            read(hostile)
    with pytest.raises(LimitExceeded):
        quorum_state.read(BytesSource(VERSION_0), Limits(max_line_bytes=10))


def test_other_fields_repeated_fields_and_more_lines_are_problems():
    state = read(VERSION_1[:-1] + b',"leaderId":5,"more":1}\nnext\n')
    assert state.leader_id == 5
    assert [each.message for each in state.problems] == [
        "line 1: 'leaderId' occurs more than once; the last one counts",
        "line 1: 'more' is not a field of version 1",
        "line 2: expected the end of the file, found 'next'",
    ]


def test_every_changed_byte_and_every_truncation_is_survived():
    for content in (VERSION_0, VERSION_1):
        for damaged in (single_byte_changes, truncations):
            for _, state in outcomes(quorum_state.read, damaged(content)):
                if isinstance(state, QuorumState):
                    assert read(quorum_state.write(state)).leader_id == state.leader_id


def test_a_missing_file_is_unreadable(tmp_path):
    with pytest.raises(UnreadableFile):
        quorum_state.read(tmp_path / "quorum-state")
