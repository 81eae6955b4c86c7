"""Objects of Aiven's tiered-storage plugin, as the files that they were made from.

The plugin stores three objects for a segment: ``.log``, in chunks that may be compressed with zstd, one after the
other; ``.indexes``, all indexes one after the other; and ``.rsm-manifest``, a JSON text with the position of each.
This store has ``.log``, ``.index``, ``.timeindex``, ``.snapshot`` and ``.txnindex`` files in place of these objects.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import msgspec
import zstandard

from format import layout
from format.io.store import Opened, RemoteEntry, Store
from format.limits import DEFAULT_LIMITS, MIB

_MANIFEST, _INDEXES = ".rsm-manifest", ".indexes"
_NAMES = {
    layout.OFFSET_INDEX_SUFFIX: "offset",
    layout.TIME_INDEX_SUFFIX: "timestamp",
    layout.PRODUCER_SNAPSHOT_SUFFIX: "producerSnapshot",
    layout.TRANSACTION_INDEX_SUFFIX: "transaction",
}
_MOST_MANIFEST_BYTES = 16 * MIB
_MOST_CHUNK_BYTES = DEFAULT_LIMITS.max_decompressed_bytes
_KEPT_CHUNKS = 2


class SegmentManifest(msgspec.Struct, frozen=True):
    """A decoded ``.rsm-manifest``: the chunks of the log, and the indexes."""

    size_bytes: int  # of the log
    chunk_bytes: int  # of each chunk but the last, in the log
    ends: tuple[int, ...]  # of the chunks, in the object
    is_compressed: bool
    indexes: dict[str, tuple[int, int]]  # position and size in the object of indexes


def decode_manifest(content: bytes) -> SegmentManifest:
    """Decode a manifest; raises OSError for an invalid or newer manifest, and for an encrypted segment."""
    try:
        values = json.loads(content)
        if values.get("version") != "1":
            raise OSError(f"the manifest has version {values.get('version')}, not 1")
        if values.get("encryption") is not None:
            raise OSError("the segment is encrypted, with a key that only the plugin can decrypt")
        chunks = values["chunkIndex"]
        size_bytes, chunk_bytes = int(chunks["originalFileSize"]), int(chunks["originalChunkSize"])
        if size_bytes < 0 or not 0 < chunk_bytes <= 2**31:
            raise ValueError("impossible sizes")
        count = -(-size_bytes // chunk_bytes)
        sizes = _chunk_sizes(chunks, count)
        indexes = {
            name: (int(each["position"]), int(each["size"]))
            for name, each in values["segmentIndexes"].items()
            if each is not None
        }
        return SegmentManifest(size_bytes, chunk_bytes, tuple(accumulate(sizes)), bool(values["compression"]), indexes)
    except (ValueError, KeyError, TypeError, AttributeError, zstandard.ZstdError) as error:
        raise OSError(f"the manifest cannot be decoded: {error}") from error


def _chunk_sizes(chunks: dict[str, Any], count: int) -> list[int]:
    """The sizes of the chunks in the object."""
    if chunks["type"] == "fixed":
        sizes = [int(chunks["transformedChunkSize"])] * max(0, count - 1)
        sizes += [int(chunks["finalTransformedChunkSize"])] * bool(count)
    else:
        packed = b64decode(chunks["transformedChunks"], validate=True)
        sizes = decode_sizes(zstandard.ZstdDecompressor().decompress(packed, max_output_size=_MOST_MANIFEST_BYTES))
        sizes = sizes if count else []
    if len(sizes) != count or any(each < 0 for each in sizes):
        raise ValueError(f"{len(sizes)} chunks where the sizes need {count}")
    return sizes


def decode_sizes(content: bytes) -> list[int]:
    """Decode the plugin's packed sizes: count, base, width of a difference, the differences, and the last size."""
    count = int.from_bytes(content[:4], "big")
    if count == 0:
        return []
    last = int.from_bytes(content[-4:], "big")
    if count == 1:
        return [last]
    base, width = int.from_bytes(content[4:8], "big"), content[8]
    if not 1 <= width <= 4 or len(content) != 13 + (count - 1) * width:
        raise ValueError("the sizes of the chunks are cut off")
    starts = range(9, 9 + (count - 1) * width, width)
    return [*(base + int.from_bytes(content[at : at + width], "big") for at in starts), last]


class AivenStore:
    """The files that the plugin's objects in another store were made from; see the protocol Store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._manifests: dict[str, SegmentManifest] = {}

    def entry(self, inner: str) -> RemoteEntry:
        """The entry of a file, with the size that it had in the log directory."""
        stem, suffix = os.path.splitext(inner)
        manifest = self._manifest(stem)
        size_bytes = manifest.size_bytes if suffix == layout.LOG_SUFFIX else self._index(manifest, suffix)[1]
        return RemoteEntry(inner.rsplit("/", 1)[-1], False, size_bytes, 0, stem)

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """The entries of a directory in the other store, which are objects of the plugin."""
        yield from self._store.entries(inner, is_deep)

    def open(self, inner: str, entry: RemoteEntry) -> Opened:
        """Open a file."""
        stem, suffix = os.path.splitext(inner)
        manifest = self._manifest(stem)
        name = stem + (layout.LOG_SUFFIX if suffix == layout.LOG_SUFFIX else _INDEXES)
        opened = self._store.open(name, self._store.entry(name))
        if suffix == layout.LOG_SUFFIX:
            return Opened(_Chunks(opened, manifest).read_at, opened.close)
        at, size_bytes = self._index(manifest, suffix)
        return Opened(
            lambda length, position: opened.read_at(max(0, min(length, size_bytes - position)), at + position),
            opened.close,
        )

    def _manifest(self, stem: str) -> SegmentManifest:
        if stem not in self._manifests:
            name = stem + _MANIFEST
            entry = self._store.entry(name)
            if entry.size_bytes > _MOST_MANIFEST_BYTES:
                raise OSError(f"the manifest has {entry.size_bytes} bytes, over the limit of {_MOST_MANIFEST_BYTES}")
            opened = self._store.open(name, entry)
            try:
                self._manifests[stem] = decode_manifest(opened.read_at(entry.size_bytes, 0))
            finally:
                opened.close()
        return self._manifests[stem]

    def _index(self, manifest: SegmentManifest, suffix: str) -> tuple[int, int]:
        found = manifest.indexes.get(_NAMES.get(suffix, ""))
        if found is None or (found[1] == 0 and suffix == layout.TRANSACTION_INDEX_SUFFIX):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return found


class _Chunks:
    """A log whose chunks may be compressed, each by itself; the last chunks that were read are kept."""

    def __init__(self, opened: Opened, manifest: SegmentManifest) -> None:
        self._opened, self._manifest = opened, manifest
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def read_at(self, length: int, position: int) -> bytes:
        end = min(position + length, self._manifest.size_bytes)
        pieces = []
        while position < end:
            number, start = divmod(position, self._manifest.chunk_bytes)
            piece = self._chunk(number)[start : start + end - position]
            if not piece:
                raise OSError(f"chunk {number} of the log is shorter than its manifest says")
            pieces.append(piece)
            position += len(piece)
        return b"".join(pieces)

    def _chunk(self, number: int) -> bytes:
        with self._lock:
            if number not in self._kept:
                self._kept[number] = self._fetched(number)
                while len(self._kept) > _KEPT_CHUNKS:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(number)
            return self._kept[number]

    def _fetched(self, number: int) -> bytes:
        ends = self._manifest.ends
        start = ends[number - 1] if number else 0
        content = self._opened.read_at(ends[number] - start, start)
        if not self._manifest.is_compressed:
            return content
        wanted = min(self._manifest.chunk_bytes, self._manifest.size_bytes - number * self._manifest.chunk_bytes)
        if wanted > _MOST_CHUNK_BYTES:
            raise OSError(f"chunk {number} has {wanted} bytes, over the limit of {_MOST_CHUNK_BYTES}")
        try:
            return zstandard.ZstdDecompressor().decompress(content, max_output_size=wanted)
        except zstandard.ZstdError as error:
            raise OSError(f"chunk {number} of the log cannot be decompressed: {error}") from error


class LocalStore:
    """The files of this host as a store; see the protocol Store."""

    def entry(self, inner: str) -> RemoteEntry:
        """The entry of a file or directory."""
        status = os.stat(inner)
        is_directory = os.path.isdir(inner)
        return RemoteEntry(os.path.basename(inner), is_directory, status.st_size, int(status.st_mtime))

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """The entries of a directory; ``is_deep`` is ignored."""
        for name in os.listdir(inner):
            yield name, self.entry(os.path.join(inner, name))

    def open(self, inner: str, entry: RemoteEntry) -> Opened:
        """Open a file."""
        fd = os.open(inner, os.O_RDONLY | os.O_CLOEXEC)
        return Opened(lambda length, position: os.pread(fd, length, position), lambda: os.close(fd))
