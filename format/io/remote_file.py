"""A file on another file system, read by ranges: small ranges for a search, growing ranges for a scan."""

from __future__ import annotations

import time
import zlib
from collections import OrderedDict, deque
from concurrent.futures import Future, ThreadPoolExecutor

from format.errors import FileChanged, InputError, UnreadableFile
from format.io import read_policy, remote_files
from format.io.stores.store import ObjectReplaced, Ranges, error_words
from format.limits import MIB
from format.location import Location

#: A search fetches aligned blocks: a request takes tens of milliseconds, however small it is.
BLOCK_BYTES = 64 * 1024
_KEPT_BLOCKS = 16
#: Fetches grow up to this size while a file is read in order, and then run ahead of the reader.
MOST_FETCH_BYTES = 8 * MIB
#: A fetch that takes longer makes later ones smaller, so that each ends in time over a slow network.
_LONG_FETCH_S = 5.0
_FETCHES_AHEAD = 2
_AHEAD_FROM_BYTES = MIB
#: Larger reads do not use blocks.
_LARGE_BYTES = 8 * BLOCK_BYTES
#: After this many reads in order, with small gaps between them, each fetch is larger than the read that needs it.
_FIRST_READS = 2


class RemoteFile:
    """A file on another file system, which a ``FileSource`` reads when its path is an address.

    Fetches grow while reads are in order, with or without small gaps. All other reads are answered from blocks, of
    which the last few are kept.
    """

    def __init__(self, path: str) -> None:
        """Open; raises UnreadableFile if it is not a file or cannot be read, FileChanged if it is missing."""
        self.path = path
        try:
            entry = remote_files.entry_of(path)
            if entry.is_directory:
                raise UnreadableFile("cannot read: not a regular file", Location(path))
            store, inner = remote_files.store_of(path)
            self._file: Ranges | None = store.open(inner, entry)
        except FileNotFoundError as error:
            raise FileChanged("cannot open: the file does not exist, or no longer exists", Location(path)) from error
        except OSError as error:
            raise UnreadableFile(f"cannot open: {error_words(error)}", Location(path)) from error
        except UnreadableFile:
            raise
        except InputError as error:
            raise UnreadableFile(error.message, Location(path)) from error
        self.size_bytes = entry.size_bytes
        self.mtime_ns = entry.mtime_s * 10**9 or time.time_ns()  # some stores do not report it
        # A store has no inodes: time, size and tag identify a file.
        self.device_inode = (entry.mtime_s, zlib.crc32(f"{entry.size_bytes} {entry.tag}".encode()))
        self._blocks: OrderedDict[int, bytes] = OrderedDict()  # by number, the last used at the end
        self._stream, self._stream_position = b"", 0  # the last fetch for reads in order
        self._end = 0  # of the last read
        self._in_order_count = 0  # the number of reads in order up to the last one
        self._fetch_bytes = BLOCK_BYTES
        self._most_fetch_bytes = MOST_FETCH_BYTES
        self._ahead: deque[tuple[int, int, Future[bytes]]] = deque()  # positions and lengths, in order
        self._threads: ThreadPoolExecutor | None = None

    def read(self, length: int, position: int) -> tuple[bytes, int]:
        """Read up to ``length`` bytes from ``position``; also return the number of bytes that were fetched for them."""
        end = min(position + length, self.size_bytes)
        gap, self._end = position - self._end, end
        is_in_order = 0 <= gap <= max(BLOCK_BYTES, self._fetch_bytes // 2)
        self._in_order_count = self._in_order_count + 1 if is_in_order else 0
        if self._stream_position <= position and end <= self._stream_position + len(self._stream):
            return self._stream[position - self._stream_position : end - self._stream_position], 0
        if not is_in_order:
            self._drop_ahead()
            self._stream, self._fetch_bytes = b"", BLOCK_BYTES
        is_large = end - position > _LARGE_BYTES
        if is_large or (self._in_order_count > _FIRST_READS and not self._has_blocks(position, end)):
            got, fetched_bytes = self._from_stream(position, end)
        else:
            got, fetched_bytes = self._from_blocks(position, end)
        if read_policy.current is not None:
            read_policy.current.pace(fetched_bytes)
        return got, fetched_bytes

    def _has_blocks(self, position: int, end: int) -> bool:
        return all(number in self._blocks for number in range(position // BLOCK_BYTES, -(-end // BLOCK_BYTES)))

    def _from_blocks(self, position: int, end: int) -> tuple[bytes, int]:
        """Read from blocks; missing blocks are fetched with one request."""
        numbers = range(position // BLOCK_BYTES, -(-end // BLOCK_BYTES))
        missing = [number for number in numbers if number not in self._blocks]
        fetched_bytes = 0
        if missing:
            first, start = missing[0], missing[0] * BLOCK_BYTES
            content = self._fetch(start, min((missing[-1] + 1) * BLOCK_BYTES, self.size_bytes) - start)
            fetched_bytes = len(content)
            for number in range(first, missing[-1] + 1):
                at = (number - first) * BLOCK_BYTES
                self._blocks[number] = content[at : at + BLOCK_BYTES]
        for number in numbers:
            self._blocks.move_to_end(number)
        joined = b"".join(self._blocks[number] for number in numbers)
        while len(self._blocks) > _KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        start = position - numbers[0] * BLOCK_BYTES if numbers else 0
        return joined[start : start + end - position], fetched_bytes

    def _from_stream(self, position: int, end: int) -> tuple[bytes, int]:
        """Read at or after the end of the last read; what is fetched beyond it is kept for the next one."""
        if self._in_order_count:
            self._fetch_bytes = min(self._fetch_bytes * 2, self._most_bytes())
        stream_end = self._stream_position + len(self._stream)
        if self._stream and self._stream_position <= position <= stream_end:
            pieces, start = [self._stream[position - self._stream_position :]], position
        elif self._ahead and self._ahead[0][0] <= position:
            pieces, start = [], self._ahead[0][0]
        else:
            pieces, start = [self._blocks.get(position // BLOCK_BYTES, b"")[position % BLOCK_BYTES :]], position
        at, fetched_bytes = start + sum(map(len, pieces)), 0
        while at < end:
            piece = self._ahead_at(at)
            if piece is None:
                wanted = max(end - at, self._fetch_bytes if self._in_order_count else 0)
                piece = self._fetch(at, min(wanted, self._most_bytes(), self.size_bytes - at))
            if not piece:
                break
            pieces.append(piece)
            at += len(piece)
            fetched_bytes += len(piece)
        if self._fetch_bytes >= _AHEAD_FROM_BYTES:
            self._fetch_ahead(at)
        self._stream, self._stream_position = b"".join(pieces), start
        return self._stream[position - start : end - start], fetched_bytes

    def _most_bytes(self) -> int:
        policy = read_policy.current
        rate = None if policy is None else policy.max_bytes_per_s
        most_bytes = self._most_fetch_bytes
        return most_bytes if rate is None else max(BLOCK_BYTES, min(rate // 4, most_bytes))

    def _ahead_at(self, position: int) -> bytes | None:
        """Wait for the fetch ahead that begins at ``position`` and return its bytes; None if there is none."""
        if not self._ahead or self._ahead[0][0] != position:
            self._drop_ahead()
            return None
        return self._ahead.popleft()[2].result()

    def _fetch_ahead(self, position: int) -> None:
        end = self._ahead[-1][0] + self._ahead[-1][1] if self._ahead else position
        while len(self._ahead) < _FETCHES_AHEAD and end < self.size_bytes:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_FETCHES_AHEAD, "read-ahead")
            length = min(self._fetch_bytes, self._most_bytes(), self.size_bytes - end)
            self._ahead.append((end, length, self._threads.submit(self._fetch, end, length)))
            end += length

    def _drop_ahead(self) -> None:
        for _, _, future in self._ahead:
            future.cancel()
        self._ahead.clear()

    def _fetch(self, position: int, length: int) -> bytes:
        if self._file is None:
            raise UnreadableFile("the source was closed", Location(self.path))
        began = time.monotonic()
        try:
            content = self._file.read_at(length, position)
        except FileNotFoundError as error:
            raise FileChanged("read failed: the file no longer exists", Location(self.path)) from error
        except ObjectReplaced as error:
            raise FileChanged(str(error), Location(self.path)) from error
        except OSError as error:
            raise UnreadableFile(
                f"read failed: {error_words(error)}", Location(self.path, position=position, length=length)
            ) from error
        if time.monotonic() - began > _LONG_FETCH_S:
            self._most_fetch_bytes = max(BLOCK_BYTES, length // 2)
        remote_files.fetched.add(len(content))
        return content

    def current_size_bytes(self) -> int:
        """The present size of the file; raises UnreadableFile if the store does not report it."""
        try:
            return remote_files.fresh_entry_of(self.path).size_bytes
        except OSError as error:
            raise UnreadableFile(f"cannot access: {error_words(error)}", Location(self.path)) from error

    def close(self) -> None:
        """Release the connection, and end the threads."""
        self._drop_ahead()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
        if self._file is not None:
            self._file.close()
            self._file = None
        self._stream = b""
        self._blocks.clear()
