from __future__ import annotations

import pytest

from format.errors import InvalidCheckpoint, UnknownVersion, UnreadableFile
from format.files import meta_properties
from format.files.meta_properties import MetaProperties
from tests.format.damage import outcomes, single_byte_changes, truncations
from tests.sources import BytesSource

DIRECTORY_ID = "qdjf3iRK0hQ-aXAzdHP3xg"


def read(text):
    return meta_properties.read(BytesSource(text.encode("latin-1")))


def test_every_file_of_a_broker_is_read_and_written_back(corpus):
    for path in (log_dir / "meta.properties" for log_dir in corpus.log_dirs):
        properties = meta_properties.read(path)
        assert properties.problems == ()
        assert len(properties.cluster_id) == 22
        assert meta_properties.write(properties) == path.read_bytes()


def test_both_versions_as_brokers_wrote_them(data_dir):
    newer = meta_properties.read(data_dir / "kafka-4.3-single/node-1/meta.properties")
    assert (newer.version, newer.cluster_id, newer.node_id) == (1, "sLZZJDpNSA-KeEwGHaxFSA", 1)
    assert newer.directory_id == DIRECTORY_ID
    assert ("directory.id", DIRECTORY_ID) in newer.properties
    older = meta_properties.read(data_dir / "kafka-0.8-to-2.8/data/meta.properties")
    assert (older.version, older.cluster_id, older.node_id) == (0, "ziaFLfFkRGKtZl_VLb2jQQ", 0)
    assert older.directory_id is None
    assert older.comments[0] == "#"


def test_version_0_needs_nothing_and_is_what_no_version_means():
    for text in ("", "version=0\n", "# nothing\n\n"):
        properties = read(text)
        assert (properties.version, properties.cluster_id, properties.node_id) == (0, None, None)
        (problem,) = properties.problems
        assert problem.message.startswith("it names no node, which every broker writes into it")
    assert read("broker.id=3\nnode.id=x").node_id == 3
    assert read("version= 1 \nnode.id=3\nbroker.id=x\ncluster.id=c").node_id == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version=1\ncluster.id=c\n", "the property node.id, which version 1 must have, is missing"),
        ("version=1\nnode.id=1\n", "the property cluster.id, which version 1 must have, is missing"),
        ("cluster.id=c\nversion=one\n", "line 2: expected a version number, found 'one'"),
        ("broker.id=1x\n", "line 1: expected a 32-bit integer as broker.id, found '1x'"),
        ("broker.id=2147483648\n", "line 1: expected a 32-bit integer as broker.id, found '2147483648'"),
        ("directory.id=x\n", "line 1: expected 16 bytes in URL-safe base64 as directory.id, found 'x'"),
        ("#\nodd=\\u12x4\n", r"line 2: expected four hexadecimal digits after \u, found '\\u12x4'"),
    ],
)
def test_what_stops_a_broker_is_refused(text, message):
    with pytest.raises(InvalidCheckpoint) as caught:
        read(text)
    assert caught.value.message == message


@pytest.mark.parametrize("version", ["2", "-1"])
def test_another_version_is_unknown(version):
    with pytest.raises(UnknownVersion, match=f"line 2: version {version}, only 0 and 1 are known"):
        read(f"# x\nversion={version}\n")


def test_of_a_repeated_property_the_last_counts_and_it_is_a_problem():
    properties = read("broker.id=1\nbroker.id=2\n")
    assert properties.node_id == 2
    assert properties.properties == (("broker.id", "1"), ("broker.id", "2"))
    assert [each.message for each in properties.problems] == [
        "line 2: 'broker.id' has an earlier line; a broker uses the last one"
    ]


def test_pairs_are_written_one_a_line():
    assert meta_properties.write([("version", "0"), ("broker.id", "7")]) == b"version=0\nbroker.id=7\n"


def test_every_changed_byte_and_every_truncation_is_survived(data_dir):
    content = (data_dir / "kafka-4.3-single/node-1/meta.properties").read_bytes()
    for damaged in (single_byte_changes, truncations):
        for _, properties in outcomes(meta_properties.read, damaged(content)):
            if isinstance(properties, MetaProperties):
                assert read(meta_properties.write(properties).decode("latin-1")).properties == properties.properties


def test_a_missing_file_is_unreadable(tmp_path):
    with pytest.raises(UnreadableFile):
        meta_properties.read(tmp_path / "meta.properties")
