"""Objects as the tiered-storage plugin by Aiven writes them, made from those of Kafka's LocalTieredStorage.

Written from the plugin's documentation and the format of its manifest; its own jars are in no package registry.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import zstandard

_INDEXES = (
    ("offset", ".index"),
    ("timestamp", ".timeindex"),
    ("producerSnapshot", ".snapshot"),
    ("leaderEpoch", ".leader_epoch_checkpoint"),
    ("transaction", ".txnindex"),
)


def packed_sizes(sizes: list[int]) -> bytes:
    """The binary form of chunk sizes: the last in full, the others as differences from the least, in as few bytes."""
    if len(sizes) < 2:
        return len(sizes).to_bytes(4, "big") + b"".join(each.to_bytes(4, "big") for each in sizes)
    base = min(sizes[:-1])
    width = max(1, max((each - base).bit_length() + 7 for each in sizes[:-1]) // 8)
    differences = b"".join((each - base).to_bytes(width, "big") for each in sizes[:-1])
    return (
        len(sizes).to_bytes(4, "big") + base.to_bytes(4, "big") + bytes((width,)) + differences + sizes[-1].to_bytes(4)
    )


def write_objects(source: Path, target: Path, *, chunk_bytes: int = 500, compresses: bool = True) -> None:
    """Write the segments of LocalTieredStorage at ``source`` as the plugin has them, below a prefix at ``target``."""
    for log in sorted(source.rglob("*.log")):
        topic, number, topic_id = log.parent.name[:-25], log.parent.name[-24], log.parent.name[-22:]
        directory = target / "some" / "prefix" / f"{topic}-{topic_id}" / number
        directory.mkdir(parents=True, exist_ok=True)
        content = log.read_bytes()
        chunks = [content[at : at + chunk_bytes] for at in range(0, len(content), chunk_bytes)]
        index: dict[str, object] = {"originalChunkSize": chunk_bytes, "originalFileSize": len(content)}
        if compresses:
            chunks = [zstandard.ZstdCompressor().compress(each) for each in chunks]
            packed = zstandard.ZstdCompressor().compress(packed_sizes([len(each) for each in chunks]))
            index |= {"type": "variable", "transformedChunks": base64.b64encode(packed).decode()}
        else:
            sizes = {"transformedChunkSize": chunk_bytes, "finalTransformedChunkSize": len(chunks[-1])}
            index |= {"type": "fixed", **sizes}
        parts: dict[str, object] = {}
        joined = b""
        for name, suffix in _INDEXES:
            path = log.with_suffix(suffix)
            part = path.read_bytes() if path.exists() else b""
            parts[name] = {"position": len(joined), "size": len(part)} if path.exists() else None
            joined += part
        manifest = {"version": "1", "chunkIndex": index, "segmentIndexes": parts, "compression": compresses}
        (directory / log.name).write_bytes(b"".join(chunks))
        (directory / f"{log.stem}.indexes").write_bytes(joined)
        (directory / f"{log.stem}.rsm-manifest").write_text(json.dumps(manifest))
