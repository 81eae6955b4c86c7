"""Checkpoints: offsets of a log directory, leader epochs of a partition."""

from __future__ import annotations

from tests.oracle.boot_mutations.node import CLEANER, HIGH_WATERMARK, LOG_START, RECOVERY_POINT, Named, Node, put


def offset_checkpoints() -> Named:
    contents: dict[str, bytes | None] = {
        "missing": None,
        "empty": b"",
        "version only": b"0\n",
        "garbage": b"\x00\xffgarbage\n",
        "words": b"hello\nworld\n",
        "version 1": b"1\n0\n",
        "wrong count": b"0\n3\norders 0 5\n",
        "negative count": b"0\n-1\n",
        "huge count": b"0\n2000000000\n",
        "none": b"0\n0\n",
        "word for an offset": b"0\n1\norders 0 x\n",
        "two words": b"0\n1\norders 0\n",
        "negative offset": b"0\n1\norders 0 -5\n",
        "high offset": b"0\n1\norders 0 99999999\n",
        "middle offset": b"0\n1\norders 0 500\n",
        "unknown partitions": b"0\n2\nnowhere 0 5\nnowhere 1 6\n",
        "repeated": b"0\n2\norders 0 5\norders 0 600\n",
    }
    for checkpoint in (RECOVERY_POINT, LOG_START, HIGH_WATERMARK, CLEANER):
        short = checkpoint.removesuffix("-checkpoint").removesuffix("-offset")
        for name, content in contents.items():
            for clean in (True, False):
                if not clean and checkpoint != RECOVERY_POINT and name not in ("garbage", "middle offset"):
                    continue

                def apply(
                    node: Node, checkpoint: str = checkpoint, content: bytes | None = content, clean: bool = clean
                ) -> None:
                    put(node.first / checkpoint, content)
                    if not clean:
                        node.unclean()

                yield f"{short} {name} {'clean' if clean else 'unclean'}", apply


def leader_epochs() -> Named:
    contents: dict[str, bytes | None] = {
        "missing": None,
        "empty": b"",
        "version only": b"0\n",
        "none": b"0\n0\n",
        "garbage": b"garbage\n",
        "zeros": bytes(8),
        "not utf-8": b"\xff\xfe\n",
        "version 1": b"1\n1\n0 0\n",
        "wrong count": b"0\n3\n0 0\n",
        "word": b"0\n1\n0 x\n",
        "three words": b"0\n1\n0 0 0\n",
        "past the end": b"0\n2\n0 0\n5 99999\n",
        "at the end": b"0\n2\n0 0\n5 1264\n",
        "falling": b"0\n2\n5 0\n3 100\n",
        "below start": b"0\n2\n0 50\n1 100\n",
        "negative": b"0\n1\n-1 0\n",
        "blank line after": b"0\n1\n0 0\n\n",
        "two epochs": b"0\n2\n0 0\n1 500\n",
    }
    for name, content in contents.items():
        for clean in (True, False):

            def apply(node: Node, content: bytes | None = content, clean: bool = clean) -> None:
                put(node.partition("orders-0") / "leader-epoch-checkpoint", content)
                if not clean:
                    node.unclean()
                    node.set_offset(RECOVERY_POINT, "orders-0", 0)

            yield f"{name} {'clean' if clean else 'unclean'}", apply
