"""The files of KRaft: quorum states, metadata logs, bootstrap files."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.oracle.boot_mutations.node import METADATA, Named, Node, batch_positions, cut, flip, garbage, zero


def quorum_states() -> Named:
    sound = (
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
        '"data_version":0}'
    )
    contents: dict[str, bytes | None] = {
        "missing": None,
        "empty": b"",
        "zeros": bytes(125),
        "garbage": b"garbage",
        "torn": sound[:60].encode(),
        "array": b"[]",
        "no version": sound.replace(',"data_version":0', "").encode(),
        "version 2": sound.replace('"data_version":0', '"data_version":2').encode(),
        "version 1": b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
        b'"data_version":1}',
        "low epoch": sound.replace('"leaderEpoch":1', '"leaderEpoch":0').encode(),
        "high epoch": sound.replace('"leaderEpoch":1', '"leaderEpoch":9').encode(),
        "other voters": sound.replace('"voterId":1', '"voterId":7').encode(),
        "other leader": sound.replace('"leaderId":1', '"leaderId":7').encode(),
        "no leader": sound.replace('"leaderId":1', '"leaderId":-1').encode(),
        "no leader epoch": sound.replace('"leaderEpoch":1,', "").encode(),
        "words": sound.replace('"leaderEpoch":1', '"leaderEpoch":"x"').encode(),
        "voted for another": sound.replace('"votedId":-1', '"votedId":7')
        .replace('"leaderId":1', '"leaderId":-1')
        .encode(),
        "an unknown field": sound.replace("{", '{"more":1,', 1).encode(),
        "a line after": sound.encode() + b"\nmore\n",
        "negative epoch": sound.replace('"leaderEpoch":1', '"leaderEpoch":-2').encode(),
    }
    for name, content in contents.items():

        def apply(node: Node, content: bytes | None = content) -> None:
            path = node.partition(METADATA) / "quorum-state"
            path.unlink()
            if content is not None:
                path.write_bytes(content)

        yield name, apply


def metadata_logs() -> Named:
    def newest(node: Node) -> Path:
        return sorted(node.partition(METADATA).glob("*.checkpoint"))[-1]

    def log(node: Node) -> Path:
        return node.segments(METADATA)[0]

    yield "newest snapshot zeroed", lambda node: zero(newest(node))
    yield "newest snapshot empty", lambda node: newest(node).write_bytes(b"")
    yield "newest snapshot cut", lambda node: cut(newest(node), newest(node).stat().st_size // 2)
    yield (
        "newest snapshot with the content of the oldest",
        lambda node: shutil.copy(min(node.partition(METADATA).glob("*.checkpoint")), newest(node)),
    )
    yield "newest snapshot garbage", lambda node: newest(node).write_bytes(garbage(500))
    yield "newest snapshot flipped", lambda node: flip(newest(node), newest(node).stat().st_size // 2)
    yield "newest snapshot flipped late", lambda node: flip(newest(node), newest(node).stat().st_size - 20)
    yield "newest snapshot without its footer", lambda node: cut(newest(node), newest(node).stat().st_size - 80)
    yield "newest snapshot missing", lambda node: newest(node).unlink()
    yield "oldest snapshot zeroed", lambda node: zero(sorted(node.partition(METADATA).glob("*.checkpoint"))[0])
    yield "all snapshots missing", lambda node: [p.unlink() for p in node.partition(METADATA).glob("*.checkpoint")]
    yield "all snapshots zeroed", lambda node: [zero(p) for p in node.partition(METADATA).glob("*.checkpoint")]
    yield "part snapshot", lambda node: shutil.copy(newest(node), f"{newest(node)}.part")
    yield "deleted snapshot", lambda node: newest(node).rename(f"{newest(node)}.deleted")
    yield (
        "snapshot past the end",
        lambda node: shutil.copy(newest(node), newest(node).with_name(f"{5000:020}-{1:010}.checkpoint")),
    )
    yield (
        "snapshot of a later epoch",
        lambda node: shutil.copy(newest(node), newest(node).with_name(f"{1020:020}-{7:010}.checkpoint")),
    )
    yield "log missing", lambda node: log(node).unlink()
    yield (
        "log missing, no snapshots",
        lambda node: [p.unlink() for p in node.partition(METADATA).iterdir() if p.suffix in (".log", ".checkpoint")],
    )
    yield "log empty", lambda node: log(node).write_bytes(b"")
    yield "log zeroed", lambda node: zero(log(node))
    yield "directory missing", lambda node: shutil.rmtree(node.partition(METADATA))
    yield "directory empty", lambda node: [p.unlink() for p in node.partition(METADATA).iterdir()]
    yield "index missing", lambda node: [p.unlink() for p in node.partition(METADATA).glob("*index")]
    yield "epochs garbage", lambda node: (node.partition(METADATA) / "leader-epoch-checkpoint").write_bytes(b"x\n")
    yield "epochs missing", lambda node: (node.partition(METADATA) / "leader-epoch-checkpoint").unlink()
    yield (
        "producer snapshot garbage",
        lambda node: [p.write_bytes(b"x") for p in node.partition(METADATA).glob("*.snapshot")],
    )
    for share in (0.1, 0.5, 0.9, 0.985, 0.999):
        yield f"log cut at {share}", lambda node, share=share: cut(log(node), int(log(node).stat().st_size * share))
        yield (
            f"log flipped at {share}",
            lambda node, share=share: flip(log(node), int(log(node).stat().st_size * share)),
        )
    yield "log with garbage behind", lambda node: log(node).write_bytes(log(node).read_bytes() + garbage(77))
    yield "log with zeros behind", lambda node: log(node).write_bytes(log(node).read_bytes() + bytes(77))

    def head_gone(node: Node, *, with_snapshot: bool) -> None:
        """The log as it is once segments before a snapshot were deleted."""
        snapshot = next(p for p in sorted(node.partition(METADATA).glob("*.checkpoint")) if int(p.name[:20]) > 600)
        start = int(snapshot.name[:20])
        data = log(node).read_bytes()
        at = next(position for position, _, base, _ in batch_positions(log(node)) if base >= start)
        base = next(base for _, _, base, _ in batch_positions(log(node)) if base >= start)
        for path in node.partition(METADATA).glob(f"{0:020}.*"):
            path.unlink()
        (node.partition(METADATA) / f"{base:020}.log").write_bytes(data[at:])
        for path in node.partition(METADATA).glob("*.checkpoint"):
            if int(path.name[:20]) < base or not with_snapshot:
                path.unlink()

    yield "head deleted, snapshots kept", lambda node: head_gone(node, with_snapshot=True)
    yield "head deleted, no snapshots", lambda node: head_gone(node, with_snapshot=False)


def bootstraps() -> Named:
    def path(node: Node) -> Path:
        return node.first / "bootstrap.checkpoint"

    yield "missing", lambda node: path(node).unlink()
    yield "empty", lambda node: path(node).write_bytes(b"")
    yield "zeros", lambda node: zero(path(node))
    yield "garbage", lambda node: path(node).write_bytes(garbage(300))
    yield "flipped", lambda node: flip(path(node), 150)
    yield "flipped early", lambda node: flip(path(node), 40)
    yield "flipped in the base offset", lambda node: flip(path(node), 3)
    for size in (30, 61, 90, 150, 250):
        yield f"cut at {size}", lambda node, size=size: cut(path(node), size)

    def new_cluster(node: Node) -> None:
        for each in node.partition(METADATA).iterdir():
            each.unlink()
        zero(path(node))

    yield "zeros, metadata log empty", new_cluster
