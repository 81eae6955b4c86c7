"""A session and its paths: what is made from a path keeps its session, and sessions beside each other share nothing."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from format.findings import Finding
from format.io.session import (
    BundlePath,
    Description,
    RemotePath,
    Session,
    SessionPath,
    absolute,
    is_in_bundle,
    is_on_disk,
    map_near,
    path_of,
    session_of,
)
from format.io.source import FileSource
from format.node.log_dir import with_checkpoints
from format.node.partition import read_partition
from format.node.target import Target
from format.scan.selected_logs import partitions_below
from tests.building import batches, write_segment


@pytest.mark.parametrize("text", ["/kafka/orders-0/0.log", "orders-0/0.log", "s3://bucket/orders-0/0.log"])
def test_what_is_made_from_a_path_keeps_its_session(text: str) -> None:
    session = Session()
    path = session.path(text)
    for made in (
        path / "a", path.parent, path.parent.parent, path.joinpath("a", "b"), path.with_name("1.log"),
        path.with_suffix(".index"), path.absolute(), path.resolve(), absolute(path),
    ):  # fmt: skip
        assert session_of(made) is session, made
        assert type(made) is type(path)
    assert str(path) == text


def test_a_path_of_a_session_equals_the_plain_path() -> None:
    path = Session().path("/kafka/orders-0")
    assert type(path) is SessionPath
    assert path == Path("/kafka/orders-0")
    assert {path: 1}[Path("/kafka/orders-0")] == 1
    assert session_of(Path("/kafka")) is None
    assert session_of("/kafka") is None


def test_everything_that_is_read_from_a_path_is_in_its_session(tmp_path: Path) -> None:
    write_segment(tmp_path / "data" / "orders-0", 0, batches(3))
    (tmp_path / "data" / "meta.properties").write_text("version=1\n")
    session = Session()
    (log_dir,) = Target(session.path(tmp_path / "data")).log_dirs
    assert log_dir.meta_properties is not None
    partition = log_dir.partition(log_dir.partitions[0])
    assert partition.segments[0].log is not None
    for each in (log_dir.path, log_dir.meta_properties, partition.path, partition.segments[0].log):
        assert session_of(each) is session
    with FileSource(partition.segments[0].log) as source:
        assert session_of(source.place) is session


def test_sessions_beside_each_other_know_different_addresses() -> None:
    one, other = Session(), Session()
    assert str(one.path("s3://key:secret@bucket/a?region=eu-west-1")) == "s3://bucket/a"
    assert one.description.addresses == ("s3://key:secret@bucket/?region=eu-west-1",)
    assert other.description == Description()
    assert not one.reads_addresses  # only a command gives addresses
    one.stores.give(["s3://bucket/a"])
    assert one.reads_addresses
    assert not other.reads_addresses


def test_another_process_gets_a_description() -> None:
    session = Session(Description(max_bytes_per_s=1000, spares_cache=True))
    session.tier, session.cluster = object(), object()  # type: ignore[assignment]
    session.path("s3://bucket/a?region=eu-west-1")
    first, second = pickle.loads(pickle.dumps([session.path("s3://bucket/a"), session.path("/kafka")]))
    assert (type(first), type(second)) == (RemotePath, SessionPath)
    found = session_of(first)
    assert found is not None
    assert found is session_of(second)
    assert found.description == session.description
    assert (found.tier, found.cluster) == (None, None)


def test_a_tier_is_joined_with_the_partitions_of_its_session_only(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", 10, batches(3))

    class Tier:
        def joined(self, key: object, local: list[object]) -> list[object]:
            return [*local, *local]

    session = Session()
    session.tier = Tier()
    assert len(read_partition(session.path(tmp_path / "orders-0")).segments) == 2
    assert len(read_partition(tmp_path / "orders-0").segments) == 1


def test_what_is_not_on_this_host() -> None:
    session = Session()
    session.bundles["/a.tar.zst"] = object()
    bundled = session.path("/a.tar.zst/kafka")
    assert type(bundled) is BundlePath
    assert is_in_bundle(bundled)
    assert not is_in_bundle(Session().path("/a.tar.zst/kafka"))
    assert type(session.path("/a.tar.zstd")) is SessionPath
    assert not is_on_disk(bundled)
    assert not is_on_disk("s3://bucket/a")
    assert is_on_disk(path_of("file:///a"))
    with pytest.raises(OSError, match="use FileSource"):
        bundled.open()


def test_paths_that_other_hosts_read_are_absolute() -> None:
    session = Session()
    session.makes_absolute = True
    assert session.path("orders-0") == Path("orders-0").absolute()
    assert str(session.path("s3://bucket/a")) == "s3://bucket/a"


class _Cluster:
    """A cluster that says what it was given."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def mapped(self, call: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.given.append(item)
            yield call(item)


def test_calls_near_a_path_run_here_in_threads_or_on_the_cluster(tmp_path: Path) -> None:
    session = Session()
    here, stored = session.path(tmp_path), session.path("local:///some/place")
    assert list(map_near(lambda each: (each, threading.get_ident()), range(40), here)) == [
        (each, threading.get_ident()) for each in range(40)
    ]
    in_threads = list(map_near(lambda each: (each, threading.get_ident()), range(40), stored))
    assert [each for each, _ in in_threads] == [*range(40)]
    assert threading.get_ident() not in {ident for _, ident in in_threads}
    session.cluster = cluster = _Cluster()
    assert list(map_near(abs, range(-40, 0), stored)) == [*range(40, 0, -1)]
    assert cluster.given == [*range(-40, 0)]
    assert list(map_near(abs, range(-3, 0), stored)) == [3, 2, 1]
    assert len(cluster.given) == 40


def test_many_brokers_in_a_store_are_found_as_on_a_disk(tmp_path: Path) -> None:
    """By threads, and by a cluster that looks at them in other processes: with the same checkpoints and partitions."""
    for number in range(40):
        place = tmp_path / f"broker.{number:02d}"
        write_segment(place / "t-0", 0, batches(2))
        (place / "meta.properties").write_text(f"version=1\nnode.id={number}\n")
        (place / "replication-offset-checkpoint").write_text(f"0\n1\nt 0 {number}\n")
    expected = [(f"broker.{number:02d}", number) for number in range(40)]
    for cluster in (None, _Pickling()):
        session = Session()
        session.cluster = cluster
        target = Target(session.path(f"local://{tmp_path}"))
        found = [
            (each.path.name, each.checkpoints().offset("replication-offset-checkpoint", ("t", 0)))
            for each in with_checkpoints(target.log_dirs)
        ]
        assert found == expected
        listed = [each[0] for each in partitions_below(target) if not isinstance(each, Finding)]
        assert [str(each.segments[0].log) for each in listed] == [
            f"local://{tmp_path}/{name}/t-0/{0:020d}.log" for name, _ in expected
        ]


class _Pickling(_Cluster):
    """A cluster to whose processes all is sent."""

    def mapped(self, call: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            there = pickle.loads(pickle.dumps((call, item)))
            yield pickle.loads(pickle.dumps(there[0](there[1])))
