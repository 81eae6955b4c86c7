"""Directories of partitions and of a broker: names, marks, what is missing, two of one node."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable

from tests.oracle.boot_mutations.node import (
    CLEAN_MARK,
    METADATA,
    OTHER_ID,
    UNIQUE,
    Named,
    Node,
    cut,
    flip,
    garbage,
    zero,
)


def untouched() -> Named:
    yield "clean", lambda node: None
    yield "unclean", lambda node: node.unclean()
    yield "mark-of-garbage", lambda node: (node.first / CLEAN_MARK).write_bytes(b"\x00garbage")
    yield "mark-empty", lambda node: (node.first / CLEAN_MARK).write_bytes(b"")

    def mark_is_a_directory(node: Node) -> None:
        node.unclean()
        (node.first / CLEAN_MARK).mkdir()

    yield "mark-is-a-directory", mark_is_a_directory


def directory_names() -> Named:
    names = (
        "lost+found", "backup", "orders", "-0", "orders-", "orders-x", "orders--1", "orders-0.bak", "orders-0-delete",
        ".hidden", "remote-log-index-cache", "a b-0", "snapshots-old", "new-0", "orders-99999999999", "orders-00",
        "orders-7", f"orders-0.{UNIQUE}-delete", f"orders-0.{UNIQUE}-future", f"orders-0.{UNIQUE}-stray",
        f"orders.{UNIQUE}-delete", f"orders-0.{UNIQUE[:5]}-delete", f"orders-0.{UNIQUE}-deleted", "orders-0-future",
        "orders-+0", "orders-٣", "__cluster_metadata-1", f"__cluster_metadata-0.{UNIQUE}-delete", "..-0", "...-0",
        f"{'a' * 249}-0", f"{'a' * 250}-0", "é-0", f"orders-x.{UNIQUE}-stray", f"a-1-2.{UNIQUE}-future",
        "orders-0 ", f"orders-0.{UNIQUE}-delete-0",
    )  # fmt: skip
    for name in names:
        yield f"dir {ascii(name) if len(name) < 99 else len(name)}", lambda node, name=name: (node.first / name).mkdir()
    for name in ("lost+found", "orders-7", ".DS_Store", "notes.txt"):
        yield f"file {name}", lambda node, name=name: (node.first / name).write_text("x")
    yield "link to a partition", lambda node: (node.first / "orders-0b").symlink_to(node.partition("orders-0"))
    yield "link that dangles", lambda node: (node.first / "backup").symlink_to(node.work / "nowhere")
    yield "link to a file", lambda node: (node.first / "backup").symlink_to(node.first / "meta.properties")

    def moved_and_linked(node: Node) -> None:
        shutil.move(node.partition("orders-0"), node.work / "orders-0")
        node.partition("orders-0").symlink_to(node.work / "orders-0")

    yield "partition that is a link", moved_and_linked

    def unmounted(node: Node) -> None:
        shutil.rmtree(node.partition("orders-0"))
        node.partition("orders-0").symlink_to(node.work / "nowhere")

    def replaced_by_a_file(node: Node) -> None:
        shutil.rmtree(node.partition("orders-0"))
        node.partition("orders-0").touch()

    yield "partition that is a link to nothing", unmounted
    yield "partition that is a file", replaced_by_a_file


def two_directories() -> Named:
    yield "empty second", lambda node: node.second()
    yield "same partition", lambda node: shutil.copytree(node.partition("orders-1"), node.second() / "orders-1")

    def split(node: Node) -> None:
        shutil.move(node.partition("orders-1"), node.second() / "orders-1")

    yield "partition moved", split

    def same_empty(node: Node) -> None:
        (node.second() / "orders-1").mkdir()

    yield "same partition, empty there", same_empty

    def same_future(node: Node) -> None:
        for target in (node.first, node.second()):
            shutil.copytree(node.partition("orders-1"), target / f"orders-1.{UNIQUE}-future")

    yield "same future twice", same_future
    yield (
        "future there",
        lambda node: shutil.copytree(node.partition("orders-1"), node.second() / f"orders-1.{UNIQUE}-future"),
    )
    yield "same directory id", lambda node: node.second(meta=node.meta())
    yield (
        "other cluster id",
        lambda node: node.second(
            meta=re.sub(
                "(?m)^cluster.id=.*$", f"cluster.id={OTHER_ID}", re.sub("(?m)^directory.id.*\n", "", node.meta())
            )
        ),
    )
    yield (
        "other node id",
        lambda node: node.second(
            meta=re.sub("(?m)^node.id=.*$", "node.id=7", re.sub("(?m)^directory.id.*\n", "", node.meta()))
        ),
    )
    yield "no meta.properties", lambda node: node.second(meta=None)
    yield "garbage in meta.properties", lambda node: node.second(meta="version=1\nnode.id=zzz\n")
    yield "no directory id", lambda node: node.second(meta=re.sub("(?m)^directory.id.*\n", "", node.meta()))
    yield (
        "reserved directory id",
        lambda node: node.second(meta=re.sub("(?m)^directory.id=.*$", f"directory.id={OTHER_ID}", node.meta())),
    )
    yield "metadata log there too", lambda node: shutil.copytree(node.partition(METADATA), node.second() / METADATA)
    yield "lost+found there", lambda node: (node.second() / "lost+found").mkdir()

    def first_fails(node: Node) -> None:
        node.second()
        (node.partition("orders-1") / "leader-epoch-checkpoint").write_bytes(b"garbage\n")

    yield "empty second, epochs of the first garbage", first_fails

    def unreadable_partition(node: Node) -> None:
        there = node.second() / "orders-1"
        shutil.move(node.partition("orders-1"), there)
        (there / "partition.metadata").write_bytes(b"")

    yield "partition moved, its metadata empty", unreadable_partition

    def io_error_there(node: Node) -> None:
        there = node.second() / "orders-1"
        shutil.move(node.partition("orders-1"), there)
        (there / "leader-epoch-checkpoint").write_bytes(b"garbage\n")

    yield "partition moved, its epochs garbage", io_error_there

    def version_0(node: Node) -> None:
        cluster = re.search("(?m)^cluster.id=.*$", node.meta())
        assert cluster is not None
        node.second(meta=f"version=0\nbroker.id=1\n{cluster[0]}\n")

    yield "version 0 there", version_0


def partition_metadata() -> Named:
    contents: dict[str, bytes | None] = {
        "missing": None,
        "empty": b"",
        "line ends": b"\n",
        "version only": b"version: 0\n",
        "version without an end": b"version: 0",
        "torn id": b"version: 0\ntopic_id: 7jUN",
        "no id": b"version: 0\ntopic_id:",
        "zeros": bytes(43),
        "garbage": b"garbage",
        "binary": b"\xff\xfe\xfd\xfc" * 10,
        "version 1": b"version: 1\ntopic_id: %s",
        "version -1": b"version: -1\ntopic_id: %s",
        "version x": b"version: x\ntopic_id: %s",
        "crlf": b"version: 0\r\ntopic_id: %s\r\n",
        "a line after": b"version: 0\ntopic_id: %s\nmore: 1\n",
        "zero id": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        "foreign id": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg",
        "metadata id": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        "id too long": b"version: 0\ntopic_id: %sAAAA",
        "id not base64": b"version: 0\ntopic_id: !!!!!!!!!!!!!!!!!!!!!!",
        "three words": b"version: 0 1\ntopic_id: %s",
        "other names": b"a: 0\nb: %s",
        "tabs": b"version:\t0\ntopic_id:\t%s",
    }

    def write(content: bytes | None, partition: str) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            path = node.partition(partition) / "partition.metadata"
            topic_id = path.read_bytes().split()[-1]
            path.unlink()
            if content is not None:
                path.write_bytes(content.replace(b"%s", topic_id))

        return apply

    for name, content in contents.items():
        yield name, write(content, "orders-1")
    for name in ("missing", "empty", "foreign id", "garbage"):
        yield f"{name}, metadata log", write(contents[name], METADATA)

    def other_topic(node: Node) -> None:
        shutil.copy(node.partition("users-0") / "partition.metadata", node.partition("orders-1"))

    yield "id of another topic", other_topic

    def same_partition_of_another_topic(node: Node) -> None:
        shutil.copy(node.partition("users-0") / "partition.metadata", node.partition("orders-0"))

    yield "id of another topic that has this partition", same_partition_of_another_topic

    def another_partition(node: Node) -> None:
        shutil.copytree(node.partition("orders-1"), node.partition("orders-7"))

    yield "partition that is not assigned", another_partition

    def as_directory(node: Node) -> None:
        (node.partition("orders-1") / "partition.metadata").unlink()
        (node.partition("orders-1") / "partition.metadata").mkdir()

    yield "is a directory", as_directory
    yield "tmp beside it", lambda node: (node.partition("orders-1") / "partition.metadata.tmp").write_text("x")

    def unclean_missing(node: Node) -> None:
        node.unclean()
        (node.partition("orders-1") / "partition.metadata").unlink()

    yield "missing, unclean", unclean_missing


def meta_properties() -> Named:
    def edit(pattern: str, replacement: str) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            text, count = re.subn(pattern, replacement, node.meta())
            assert count, pattern
            (node.first / "meta.properties").write_text(text)

        return apply

    yield "missing", lambda node: (node.first / "meta.properties").unlink()
    yield "empty", lambda node: (node.first / "meta.properties").write_bytes(b"")
    yield "zeros", lambda node: zero(node.first / "meta.properties")
    yield "garbage", lambda node: (node.first / "meta.properties").write_bytes(garbage(100))
    yield "other cluster id", edit("(?m)^cluster.id=.*$", f"cluster.id={OTHER_ID}")
    yield "other node id", edit("(?m)^node.id=.*$", "node.id=7")
    yield "no cluster id", edit("(?m)^cluster.id=.*\n", "")
    yield "no node id", edit("(?m)^node.id=.*\n", "")
    yield "no directory id", edit("(?m)^directory.id=.*\n", "")
    yield "bad directory id", edit("(?m)^directory.id=.*$", "directory.id=x")
    yield "other directory id", edit("(?m)^directory.id=.*$", "directory.id=bbbbbbbbbbbbbbbbbbbbbQ")
    yield "reserved directory id", edit("(?m)^directory.id=.*$", f"directory.id={OTHER_ID}")
    yield "version 0", edit("(?m)^version=1$", "version=0")
    yield "version 2", edit("(?m)^version=1$", "version=2")
    yield "no version", edit("(?m)^version=1\n", "")
    yield "version x", edit("(?m)^version=1$", "version=x")
    yield "node id x", edit("(?m)^node.id=.*$", "node.id=x")
    yield "node id with a blank", edit("(?m)^node.id=.*$", "node.id=1 ")
    yield "one more property", edit(r"\Z", "more=1\n")
    yield "torn", lambda node: cut(node.first / "meta.properties", 50)

    def is_a_directory(node: Node) -> None:
        (node.first / "meta.properties").unlink()
        (node.first / "meta.properties").mkdir()

    yield "is a directory", is_a_directory
    yield (
        "version 0 of a broker",
        lambda node: (node.first / "meta.properties").write_text(
            re.sub("node.id", "broker.id", re.sub("(?m)^version=1$", "version=0", node.meta()))
        ),
    )


def missing() -> Named:
    for name in ("orders-0", "users-0", "__consumer_offsets-2", "__transaction_state-0"):
        yield f"partition {name}", lambda node, name=name: shutil.rmtree(node.partition(name))

        def emptied(node: Node, name: str = name) -> None:
            for each in node.partition(name).iterdir():
                each.unlink()

        yield f"all files of {name}", emptied

    def all_partitions(node: Node) -> None:
        for each in node.first.iterdir():
            if each.is_dir() and each.name != METADATA:
                shutil.rmtree(each)

    yield "all partitions but the metadata log", all_partitions

    def emptied_disk(node: Node) -> None:
        for each in node.first.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()

    yield "everything", emptied_disk
    yield "the log directory", lambda node: shutil.rmtree(node.first)

    def log_dir_is_a_file(node: Node) -> None:
        shutil.rmtree(node.first)
        node.first.write_text("x")

    yield "the log directory, a file in its place", log_dir_is_a_file


def marked_directories() -> Named:
    def marked(mark: str, *, keep: bool, damage: str = "") -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            target = node.first / f"orders-1.{UNIQUE}-{mark}"
            (shutil.copytree if keep else shutil.move)(node.partition("orders-1"), target)
            if damage == "log":
                flip(target / f"{0:020}.log", 100)
            elif damage == "empty":
                for each in target.iterdir():
                    each.unlink()
            elif damage == "metadata":
                (target / "partition.metadata").write_bytes(b"")
            elif damage == "no metadata":
                (target / "partition.metadata").unlink()
            elif damage == "epochs":
                (target / "leader-epoch-checkpoint").write_bytes(b"x\n")
            if damage:
                node.unclean()

        return apply

    for mark in ("delete", "future", "stray"):
        for keep in (True, False):
            for damage in ("", "log", "empty", "metadata", "no metadata", "epochs"):
                what = "beside" if keep else "instead of"
                yield f"{mark} {what} the partition, {damage or 'sound'}", marked(mark, keep=keep, damage=damage)
