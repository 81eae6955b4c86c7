"""Odd log directories: names, half-finished moves, what other releases write, text that only some readers accept."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.oracle.boot_mutations.node import (
    HIGH_WATERMARK,
    LOG_START,
    METADATA,
    OTHER_ID,
    RECOVERY_POINT,
    UNIQUE,
    Named,
    Node,
    cut,
    garbage,
)

_OTHER_UNIQUE = UNIQUE[::-1]


def odd_names() -> Named:
    """Names that are long, not UTF-8, or of what other releases keep in a log directory."""
    names: tuple[bytes, ...] = (
        b"caf\xe9-0", b"\xff\xfe", b"a\xff-0.%s-delete" % UNIQUE.encode(), b"orders-0\xff", "\u00e9".encode() + b"-1",
        "\U0001f600-0".encode(), b"tab\t-0", b"new\nline-0", b"\x01-0", b"a-0.-delete", b"-delete", b"-future",
        b"a-0.b.%s-delete" % UNIQUE.encode(), b"orders-0.%s-future-delete" % UNIQUE.encode(),
        b"orders-0.%s-stray.%s-delete" % (UNIQUE.encode(), UNIQUE.encode()),
        b"%s-2147483647" % (b"a" * 240), b"%s-0.%s-delete" % (b"a" * 210, UNIQUE.encode()),
        b"%s-0.%s-stray" % (b"a" * 214, UNIQUE.encode()), b"a--2147483648", b"a-2147483648", b"a-0x1", b"a-1_000",
        b"__remote_log_metadata-0", b"__share_group_state-9", b"__cluster_metadata", b"__cluster_metadata-0-0",
        b"__cluster_metadata-0.bak", b"remote_log_snapshot", b"orders-0.checkpoint", b"a.b.c-0", b"a b-0.x y-delete",
        b"_schemas-0", b"tiered-0.%s-remote" % UNIQUE.encode(), b"orders-0.%s-DELETE" % UNIQUE.encode(), b"0-0", b"--0",
    )  # fmt: skip
    for name in names:
        shown = ascii(os.fsdecode(name)) if len(name) < 80 else f"{name[-40:]!r} of {len(name)} bytes"
        yield f"dir {shown}", lambda node, name=name: os.mkdir(os.fsencode(node.first) + b"/" + name)

    def file(name: bytes, partition: str) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            with open(os.fsencode(node.first / partition) + b"/" + name, "wb") as target:
                target.write(b"x")

        return apply

    for name in (b"\xff.log", b"\xff\xfe", b"00000000000000000005\xff.log", "٠٠٠.index".encode(), b"1e3.log"):
        yield f"file {os.fsdecode(name)!a} in a partition", file(name, "orders-0")
    for name in (b"\xff-0", b"remote_log_snapshot", b"__cluster_metadata", b"%s" % (b"a" * 255), b"orders-0.log"):
        yield f"file {ascii(os.fsdecode(name))[:40]} in the log directory", file(name, ".")

    def whole_not_utf8(node: Node) -> None:
        os.rename(os.fsencode(node.partition("orders-1")), os.fsencode(node.first) + b"/orders\xe9-1")

    yield "a partition renamed to what is not UTF-8", whole_not_utf8
    for name in ("remote_log_snapshot", "remote-log-index-cache", "snapshots"):
        yield f"folder {name} in a partition", lambda node, name=name: (node.partition("orders-0") / name).mkdir()

    def share_state(node: Node) -> None:
        shutil.copytree(node.partition("__consumer_offsets-2"), node.first / "__share_group_state-0")

    yield "a log called __share_group_state-0 with another's id", share_state


def half_moves() -> Named:
    """Directories with marks, with and without their twins, in one log directory and in two."""

    def moved(node: Node, mark: str, *, keep: bool, unique: str = UNIQUE, there: Path | None = None) -> Path:
        target = (there or node.first) / f"orders-1.{unique}-{mark}"
        (shutil.copytree if keep else shutil.move)(node.partition("orders-1"), target)
        return target

    def pair(one: str, two: str, *, keep: bool) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            moved(node, one, keep=True)
            moved(node, two, keep=keep, unique=_OTHER_UNIQUE)

        return apply

    for one, two in itertools.combinations_with_replacement(("delete", "future", "stray"), 2):
        for keep in (True, False):
            words = "beside" if keep else "instead of"
            yield f"{one} and {two} {words} the partition", pair(one, two, keep=keep)

    def in_two(mark: str, *, current: str, state: str) -> Callable[[Node], None]:
        """A marked directory in the second log directory; ``current`` says where the plain one is."""

        def apply(node: Node) -> None:
            second = node.second()
            target = moved(node, mark, keep=True, there=second)
            if current == "gone":
                shutil.rmtree(node.partition("orders-1"))
            elif current == "there too":
                shutil.move(node.partition("orders-1"), second / "orders-1")
            elif current == "twice":
                shutil.copytree(node.partition("orders-1"), second / "orders-1")
            if state == "partial":
                log = sorted(target.glob("*.log"))[-1]
                cut(log, log.stat().st_size // 2)
            elif state == "empty":
                for each in target.iterdir():
                    each.unlink()
            if state != "whole":
                node.unclean()

        return apply

    for mark in ("delete", "future", "stray"):
        for current in ("here", "gone", "there too", "twice"):
            for state in ("whole", "partial", "empty"):
                yield (
                    f"{mark} in a second, the partition {current}, {state}",
                    in_two(mark, current=current, state=state),
                )

    def third_missing(node: Node) -> None:
        shutil.move(node.partition("orders-1"), node.second() / "orders-1")
        shutil.move(node.partition("orders-2"), node.second() / "orders-2")
        shutil.rmtree(node.log_dirs[2])

    yield "three directories, the last one missing", third_missing

    def second_missing(node: Node) -> None:
        shutil.move(node.partition("orders-1"), node.second() / "orders-1")
        shutil.move(node.partition("orders-2"), node.second() / "orders-2")
        shutil.rmtree(node.log_dirs[1])

    yield "three directories, the middle one missing", second_missing
    for name in ("__consumer_offsets-2", "__transaction_state-0"):
        for mark in ("future", "delete", "stray"):
            yield (
                f"{name} marked {mark}",
                lambda node, name=name, mark=mark: shutil.move(
                    node.partition(name), node.first / f"{name}.{UNIQUE}-{mark}"
                ),
            )

    def metadata_marked(node: Node, mark: str) -> None:
        shutil.copytree(node.partition(METADATA), node.first / f"{METADATA}.{UNIQUE}-{mark}")

    for mark in ("future", "stray"):
        yield f"the metadata log marked {mark}, too", lambda node, mark=mark: metadata_marked(node, mark)


def odd_properties() -> Named:
    """Text of meta.properties that Java's reader of properties takes, or does not."""

    def edit(pattern: str, replacement: str) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            text, count = re.subn(f"(?m){pattern}", lambda _: replacement, node.meta())
            assert count, pattern
            (node.first / "meta.properties").write_bytes(text.encode("latin-1"))

        return apply

    changes = {
        "blanks around the sign": ("^node.id=1$", "node.id = 1"),
        "a colon": ("^node.id=1$", "node.id:1"),
        "a blank for a sign": ("^node.id=1$", "node.id 1"),
        "an escaped digit": ("^node.id=1$", "node.id=\\u0031"),
        "a bad escape": ("^node.id=1$", "node.id=\\u00zz"),
        "a bad escape in a comment": ("^#$", "#\\u00zz"),
        "a line that goes on": ("^node.id=1$", "node.\\\n   id=1"),
        "a property twice, the last right": ("^node.id=1$", "node.id=9\nnode.id=1"),
        "a property twice, the last wrong": ("^node.id=1$", "node.id=1\nnode.id=9"),
        "a plus": ("^node.id=1$", "node.id=+1"),
        "zeros before": ("^node.id=1$", "node.id=001"),
        "a node id below zero": ("^node.id=1$", "node.id=-1"),
        "no node id, a broker id": ("^node.id=1$", "broker.id=1"),
        "both ids": ("^node.id=1$", "node.id=1\nbroker.id=1"),
        "both ids, unlike": ("^node.id=1$", "node.id=1\nbroker.id=2"),
        "a tab behind the version": ("^version=1$", "version=1\t"),
        "version 01": ("^version=1$", "version=01"),
        "an empty version": ("^version=1$", "version="),
        "an empty cluster id": ("^cluster.id=.*$", "cluster.id="),
        "a blank behind the cluster id": ("^cluster.id=(.*)$", "cluster.id=sLZZJDpNSA-KeEwGHaxFSA "),
        "an empty directory id": ("^directory.id=.*$", "directory.id="),
        "a directory id that is too long": ("^directory.id=.*$", "directory.id=qdjf3iRK0hQ-aXAzdHP3xgAAAA"),
        "a directory id with padding": ("^directory.id=.*$", "directory.id=qdjf3iRK0hQ-aXAzdHP3xg=="),
        "a directory id with other last bits": ("^directory.id=.*$", "directory.id=qdjf3iRK0hQ-aXAzdHP3xh"),
        "a directory id of zeros": ("^directory.id=.*$", "directory.id=AAAAAAAAAAAAAAAAAAAAAA"),
        "a directory id that begins with a dash": ("^directory.id=.*$", "directory.id=-djf3iRK0hQ-aXAzdHP3xg"),
        "a directory id of the other alphabet": ("^directory.id=.*$", "directory.id=qdjf3iRK0hQ+aXAzdHP3xg"),
        "a line of latin-1": ("^#$", "# caf\xe9"),
        "an unknown property of latin-1": ("^#$", "caf\xe9=\xff"),
        "a byte order mark": (r"\A", "\xef\xbb\xbf"),
    }
    for words, (pattern, replacement) in changes.items():
        yield words, edit(pattern, replacement)

    def bytes_of(change: Callable[[bytes], bytes]) -> Callable[[Node], None]:
        return lambda node: (node.first / "meta.properties").write_bytes(change(node.meta().encode())) and None

    yield "CRLF", bytes_of(lambda content: content.replace(b"\n", b"\r\n"))
    yield "only CR", bytes_of(lambda content: content.replace(b"\n", b"\r"))
    yield "UTF-16", bytes_of(lambda content: content.decode().encode("utf-16"))
    yield "no end of line", bytes_of(bytes.rstrip)
    yield "zeros behind", bytes_of(lambda content: content + bytes(100))
    yield "a zero within", bytes_of(lambda content: content.replace(b"node", b"no\0de"))
    yield "only comments", bytes_of(lambda content: b"#\n#\n")


def odd_offsets() -> Named:
    """Offset checkpoints that contradict the log or each other."""
    points = (0, 1, 600, 1101, 1102, 1103, 1263, 1264, 1265, 2**31, 2**63 - 1)
    for point in points:
        for name, words in ((RECOVERY_POINT, "recovery point"), (HIGH_WATERMARK, "high watermark")):
            for clean in (True, False):

                def apply(node: Node, point: int = point, name: str = name, clean: bool = clean) -> None:
                    node.set_offset(name, "orders-0", point)
                    if not clean:
                        node.unclean()

                yield f"{words} {point}, {'clean' if clean else 'unclean'}", apply

    def marks(start: int, high: int, recovery: int, *, clean: bool) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            node.set_offset(LOG_START, "orders-0", start)
            node.set_offset(HIGH_WATERMARK, "orders-0", high)
            node.set_offset(RECOVERY_POINT, "orders-0", recovery)
            if not clean:
                node.unclean()

        return apply

    for start, high, recovery in ((1200, 1150, 1264), (1200, 1264, 1150), (1110, 1105, 1103), (1264, 1264, 0),
                                  (1102, 500, 600), (600, 500, 2000), (1264, 0, 0), (1, 0, 0)):  # fmt: skip
        for clean in (True, False):
            words = "clean" if clean else "unclean"
            yield f"start {start}, high {high}, recovery {recovery}, {words}", marks(start, high, recovery, clean=clean)
    lines: dict[str, bytes] = {
        "garbage behind": b"0\n1\norders 0 5\n\x00\x01\x02",
        "an empty line behind": b"0\n1\norders 0 5\n\n",
        "an empty line within": b"0\n2\norders 0 5\n\norders 1 5\n",
        "four words": b"0\n1\norders 0 5 6\n",
        "an offset of 20 digits": b"0\n1\norders 0 99999999999999999999\n",
        "a partition past 31 bits": b"0\n1\norders 4294967296 5\n",
        "digits of another script": "0\n1\norders 0 ٥\n".encode(),
        "a name that no topic has": "0\n1\n../x é 0 5\n".encode(),
        "a dotted number": b"0\n1\norders 0 5.0\n",
        "a count with a plus": b"0\n+1\norders 0 5\n",
        "a version with a blank": b"0 \n1\norders 0 5\n",
        "a version with a plus": b"+0\n1\norders 0 5\n",
        "a byte order mark": b"\xef\xbb\xbf0\n1\norders 0 5\n",
        "a vertical tab": b"0\n1\norders\x0b0\x0b5\n",
        "a no-break space": "0\n1\norders\u00a00 5\n".encode(),
        "a line separator": "0\n1\norders 0 5\u2028\n".encode(),
        "only a line end": b"\n",
        "an overlong zero": b"0\n1\norders 0 \xc0\xb0\n",
        "half a character": b"0\n1\norders 0 5\n\xe2\x82",
        "a count of 20 digits": b"0\n99999999999999999999\n",
        "binary": garbage(64, 7),
    }
    for name in (RECOVERY_POINT, LOG_START, HIGH_WATERMARK):
        for words, content in lines.items():
            yield (
                f"{name.partition('-offset')[0]} with {words}",
                lambda node, name=name, content=content: (node.first / name).write_bytes(content),
            )


def odd_kraft() -> Named:
    """Snapshots, votes and topic ids of the metadata log that are doubled, torn or of another time."""

    def snapshots(node: Node) -> list[Path]:
        return sorted(node.partition(METADATA).glob("*.checkpoint"))

    def copied(node: Node, offset: int, epoch: int, *, size: int | None = None, end: str = "") -> None:
        target = node.partition(METADATA) / f"{offset:020}-{epoch:010}.checkpoint{end}"
        shutil.copy(snapshots(node)[-1], target)
        if size is not None:
            cut(target, size)

    places = {
        "of the same offset and an older epoch": (1010, 0),
        "of the same offset and a later epoch": (1010, 2),
        "at the end of the log": (1048, 1),
        "one past the end of the log": (1049, 1),
        "at offset 0": (0, 0),
        "at offset 1": (1, 0),
        "of an older epoch in the middle": (500, 0),
        "at the largest offset": (2**63 - 1, 1),
        "of the largest epoch": (1011, 2**31 - 1),
    }
    for words, (offset, epoch) in places.items():
        yield f"a snapshot {words}", lambda node, o=offset, e=epoch: copied(node, o, e)
        yield f"an empty snapshot {words}", lambda node, o=offset, e=epoch: copied(node, o, e, size=0)
        yield f"a torn snapshot {words}", lambda node, o=offset, e=epoch: copied(node, o, e, size=1000)
    for end in (".deleted", ".part", ".tmp", ".part123", ".deleted.part"):
        yield f"a later snapshot under {end}", lambda node, end=end: copied(node, 1030, 1, end=end)
        yield (
            f"all snapshots under {end}",
            lambda node, end=end: [each.rename(f"{each}{end}") for each in snapshots(node)] and None,
        )
    for name in ("5-1.checkpoint", "x.checkpoint", f"{5:020}.checkpoint", f"{5:020}-1.checkpoint", ".checkpoint"):
        yield f"a file {name}", lambda node, name=name: (node.partition(METADATA) / name).write_bytes(b"x")
    yield (
        "a folder that ends in .checkpoint",
        lambda node: (node.partition(METADATA) / f"{1040:020}-{1:010}.checkpoint").mkdir(),
    )
    sound = (
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
    )
    texts = {
        "a version as text": sound + '"data_version":"0"}',
        "a version as a fraction": sound + '"data_version":0.0}',
        "a version as true": sound + '"data_version":true}',
        "a version of null": sound + '"data_version":null}',
        "an epoch as text": sound.replace('"leaderEpoch":1', '"leaderEpoch":"1"') + '"data_version":0}',
        "an epoch as a fraction": sound.replace('"leaderEpoch":1', '"leaderEpoch":1.0') + '"data_version":0}',
        "an epoch past 31 bits": sound.replace('"leaderEpoch":1', '"leaderEpoch":4294967296') + '"data_version":0}',
        "an epoch twice": sound.replace('"leaderEpoch":1', '"leaderEpoch":9,"leaderEpoch":1') + '"data_version":0}',
        "the largest epoch": sound.replace('"leaderEpoch":1', '"leaderEpoch":2147483647') + '"data_version":0}',
        "a byte order mark": "\ufeff" + sound + '"data_version":0}',
        "an empty line before": "\n" + sound + '"data_version":0}',
        "a blank before": " \t" + sound + '"data_version":0}',
        "bytes behind": sound + '"data_version":0}xyz',
        "two lines": (sound + '"data_version":0}').replace(",", ",\n", 1),
        "a thousand brackets": "[" * 1000,
        "no voters": sound.replace('"currentVoters":[{"voterId":1}],', "") + '"data_version":0}',
        "voters of null": sound.replace('[{"voterId":1}]', "null") + '"data_version":0}',
        "a voter without an id": sound.replace('{"voterId":1}', "{}") + '"data_version":0}',
        "single quotes": (sound + '"data_version":0}').replace('"', "'"),
        "a comma at the end": sound + '"data_version":0,}',
        "null": "null",
        "version 1 of a voter": '{"leaderId":-1,"leaderEpoch":2,"votedId":1,'
        '"votedDirectoryId":"qdjf3iRK0hQ-aXAzdHP3xg","data_version":1}',
        "version 1 with a torn directory id": '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAA",'
        '"data_version":1}',
        "version 1 without a directory id": '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":1}',
        "version 1 with fields of version 0": sound + '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
    }
    for words, text in texts.items():
        yield (
            f"quorum-state with {words}",
            lambda node, text=text: (node.partition(METADATA) / "quorum-state").write_text(text),
        )
    yield "quorum-state.tmp is torn", lambda node: (node.partition(METADATA) / "quorum-state.tmp").write_text(sound)
    yield "quorum-state.tmp is a folder", lambda node: (node.partition(METADATA) / "quorum-state.tmp").mkdir()
    for mark in ("swap", "cleaned", "deleted"):
        yield (
            f"the metadata log's .log under .{mark}, too",
            lambda node, mark=mark: shutil.copy(node.segments(METADATA)[0], f"{node.segments(METADATA)[0]}.{mark}"),
        )

    def topic_ids_exchanged(node: Node) -> None:
        one, two = (node.partition(name) / "partition.metadata" for name in ("orders-0", "users-0"))
        first, second = one.read_bytes(), two.read_bytes()
        one.write_bytes(second)
        two.write_bytes(first)

    yield "topic ids of two partitions exchanged", topic_ids_exchanged
    for words, change in {
        "with padding": lambda text: text.rstrip() + "==",
        "with other last bits": lambda text: text.rstrip()[:-1] + chr(ord(text.rstrip()[-1]) + 1),
        "with blanks behind": lambda text: text.rstrip() + "  \n",
        "with a byte order mark": lambda text: "\ufeff" + text,
        "with an empty line before": lambda text: "\n" + text,
        "with an empty line behind": lambda text: text.rstrip() + "\n\n",
        "with version +0": lambda text: text.replace(": 0", ": +0"),
        "with version 00": lambda text: text.replace(": 0", ": 00"),
        "with no blanks": lambda text: text.replace(": ", ":"),
        "with two blanks": lambda text: text.replace(": ", ":  "),
        "reserved": lambda text: f"version: 0\ntopic_id: {OTHER_ID}\n",
        "twice": lambda text: text.rstrip() + "\n" + text.splitlines()[1] + "\n",
    }.items():

        def rewritten(node: Node, change: Callable[[str], str] = change) -> None:
            path = node.partition("orders-1") / "partition.metadata"
            path.write_text(change(path.read_text()))

        yield f"a topic id {words}", rewritten
