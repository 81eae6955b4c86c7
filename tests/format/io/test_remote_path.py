"""Paths on other file systems are put together as any path is, and their files are read as others are."""

from __future__ import annotations

import pickle
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.errors import FileChanged, UnreadableFile
from format.io import remote_files
from format.io.obstore_store import ObjectStore
from format.io.session import Description, RemotePath, Session, entries_of, is_remote, is_there, path_of
from format.io.source import FileSource
from format.node.log_dir import Kind, read_log_dir
from format.node.target import kind_of
from tests.building import batches, write_segment

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'kafkalog[remote]'")


def test_a_path_keeps_its_address() -> None:
    path = path_of("s3://bucket/kafka/orders-0") / "1.log"
    assert isinstance(path, RemotePath)
    assert str(path) == "s3://bucket/kafka/orders-0/1.log"
    assert (path.name, path.suffix, path.parent.name) == ("1.log", ".log", "orders-0")
    assert str(path.with_suffix(".index")) == "s3://bucket/kafka/orders-0/1.index"
    assert pickle.loads(pickle.dumps(path)) == path
    assert path.absolute() == path
    top = path.parent.parent.parent
    assert str(top) == str(top.parent) == "s3://bucket"
    assert str(path_of("local:///mnt/copy") / "a") == "local:///mnt/copy/a"


def test_what_is_remote() -> None:
    assert is_remote("s3://b/c")
    assert is_remote("gs://b/c")
    assert not is_remote("/a/s3://b")
    assert not is_remote("orders-0")
    assert path_of("file:///a%20b") == Path("/a b")
    assert path_of("file:/a?b#c") == path_of("File://host/a?b#c") == path_of("file:///a%3Fb%23c") == Path("/a?b#c")
    assert type(path_of("/a")) is type(Path("/a"))


def test_options_behind_an_address_are_no_part_of_it() -> None:
    session = Session()
    address = "s3://b/c?endpoint_override=host:9000&scheme=http"
    assert str(session.path(address)) == "s3://b/c"
    for other in ("/local", "s3://other/d"):
        session.path(other)
    assert session.description.addresses == ("s3://b/?endpoint_override=host%3A9000&scheme=http",)
    assert Session().description == Description()


def test_keys_in_an_address_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert str(path_of("s3://key:a%2Fsecret@bucket/c?scheme=http")) == "s3://bucket/c"
    assert str(path_of("abfs://box:key@account.dfs.core.windows.net/c")) == "abfs://box@account.dfs.core.windows.net/c"
    assert str(path_of("hdfs://user@host:8020/c")) == "hdfs://user@host:8020/c"
    session = Session()
    session.path("s3://key:secret@bucket/c")
    assert session.description.addresses == ("s3://key:secret@bucket/?",)
    store, _ = session.stores.store_of("s3://bucket/c")
    assert isinstance(store, ObjectStore)
    found = store._settings["credential_provider"]()
    assert (found["access_key_id"], found["secret_access_key"], found["token"]) == ("key", "secret", None)


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    write_segment(tmp_path / "t-0", 0, batches(2000))
    (tmp_path / "meta.properties").write_text("version=1\n")
    return tmp_path


def test_listings_and_kinds(log_dir: Path) -> None:
    address = path_of(f"local://{log_dir}")
    assert kind_of(address) is Kind.LOG_DIR
    assert kind_of(address / "t-0") is Kind.PARTITION
    found = read_log_dir(address)
    assert list(map(str, found.partitions)) == [f"local://{log_dir}/t-0"]
    assert str(found.meta_properties) == f"local://{log_dir}/meta.properties"
    with entries_of(address) as entries:
        assert sorted((each.name, each.is_dir()) for each in entries) == [("meta.properties", False), ("t-0", True)]
    assert is_there(address / "t-0")
    assert not is_there(address / "u-0")


def test_one_listing_answers_for_all_below(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    path = session.path(f"local://{log_dir}")
    with session.stores.listed_at_once(str(path)):
        monkeypatch.setattr(session.stores, "store_of", None)  # nothing may be asked for now
        found = read_log_dir(path)
        assert len(found.partition(found.partitions[0]).segments) == 1
        assert not is_there(path / "t-0" / "nothing")
    monkeypatch.undo()
    (log_dir / "t-0" / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert is_there(path / "t-0" / "leader-epoch-checkpoint")


def test_a_command_that_leaves_partitions_to_others_remembers_few_names(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not everything below its address, if that is much, and no partition; but the names in log directories."""
    for number in range(1, 30):
        write_segment(log_dir / f"t-{number}", 0, [])
    for most, expected in ((20_000, 31), (10, 1)):
        monkeypatch.setattr(remote_files, "FEW_NAMES", most)
        session = Session()
        session.stores.give([f"local://{log_dir}"])
        session.stores.remember_less()
        found = read_log_dir(session.path(f"local://{log_dir}"))
        assert len([found.partition(each) for each in found.partitions]) == 30
        assert len(session.stores._remembered) == expected


def test_a_source_reads_what_a_file_holds(log_dir: Path) -> None:
    path = log_dir / "t-0" / f"{0:020d}.log"
    content = path.read_bytes()
    with FileSource(f"local://{path}") as source:
        assert source._stored is not None
        assert source.size_bytes == len(content)
        assert source.mtime_ns == int(path.stat().st_mtime) * 10**9
        for position, length in ((0, 61), (100, 5), (len(content) - 7, 100), (len(content), 5), (3, 0), (0, 10**7)):
            assert source.read_at(position, length) == content[position : position + length]
        few = source.bytes_read
        assert source.read_at(10, 10) == content[10:20]
        assert source.bytes_read <= few + len(content)
        assert source.current_size_bytes() == len(content)
        state = source.state
    with FileSource(f"local://{path}", state) as again:
        assert again.read_at(0, 9) == content[:9]
    path.write_bytes(content[:-5])
    with pytest.raises(FileChanged, match="replaced by another"):
        FileSource(f"local://{path}", state)


def test_small_reads_beside_each_other_are_one_request(log_dir: Path) -> None:
    path = log_dir / "t-0" / f"{0:020d}.log"
    with FileSource(f"local://{path}") as source:
        for position in range(0, 60_000, 610):
            source.read_at(position, 61)
        assert source.bytes_read == remote_files.BLOCK_BYTES


def test_a_reader_in_order_fetches_more_and_more(tmp_path: Path) -> None:
    path = tmp_path / "large"
    content = bytes(range(256)) * 100_000
    path.write_bytes(content)
    fetched = []
    with FileSource(f"local://{path}") as source:
        before = 0
        for position in range(0, len(content), 50_000):
            assert source.read_at(position, 50_000) == content[position : position + 50_000]
            if source.bytes_read > before:
                fetched.append(source.bytes_read - before)
                before = source.bytes_read
        assert source.bytes_read == len(content)
    assert len(fetched) < 15
    assert max(fetched) <= remote_files.MOST_FETCH_BYTES


@given(reads=st.lists(st.tuples(st.integers(0, 1_500_000), st.integers(0, 400_000)), max_size=12))
@settings(max_examples=30)
def test_reads_in_any_order_give_the_bytes_of_the_file(reads: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        content = random.Random(1).randbytes(1_400_000)
        path.write_bytes(content)
        with FileSource(f"local://{path}") as source:
            end = 0
            for position, length in reads:
                for at in (position, end):  # anywhere, and then on from there
                    got = source.read_at(at, length)
                    assert got == content[at : at + length]
                    end = at + len(got)


def test_what_cannot_be_read_says_why(log_dir: Path) -> None:
    with pytest.raises(FileChanged, match="does not exist"):
        FileSource(f"local://{log_dir}/nothing.log")
    with pytest.raises(UnreadableFile, match="not a regular file"):
        FileSource(f"local://{log_dir}/t-0")
    with pytest.raises(UnreadableFile, match="strange"):
        FileSource("strange://host/a")
    memory = pytest.importorskip("fsspec", reason="fsspec is not installed").filesystem("memory")
    memory.pipe_file("/gone/a.log", b"x" * 100)
    with FileSource("memory:///gone/a.log") as source:
        memory.rm("/gone/a.log")
        with pytest.raises(FileChanged, match="no longer exists"):
            source.read_at(0, 10)


def test_a_file_that_is_cut_while_it_is_read(log_dir: Path) -> None:
    path = log_dir / "t-0" / f"{0:020d}.log"
    with FileSource(f"local://{path}") as source:
        path.write_bytes(path.read_bytes()[:100])
        with pytest.raises(FileChanged, match="ended at byte 100"):
            source.read_at(0, 200)
