"""What a start does with ``.deleted``, ``.cleaned`` and ``.swap`` files before it loads any segment.

Source: storage LogLoader.removeTempFilesAndCollectSwapFiles, LogLoader.load.
"""

from __future__ import annotations

from format.files.side_file import INT64_RANGE, decode_integer
from format.layout import LOG_SUFFIX, OFFSET_INDEX_SUFFIX
from format.verbs.boot.followed import opened
from format.verbs.boot.one_log.file_batches import CorruptRecords
from format.verbs.boot.one_log.index_lookups import log_end, read_index
from format.verbs.boot.one_log.partition_files import PartitionFiles, file_name
from format.verbs.boot.one_log.producer_files import offset_of_name
from format.verbs.boot.steps import StopsStart

_DELETED, _CLEANED, _SWAP = ".deleted", ".cleaned", ".swap"
_SNAPSHOT_DELETED = ".checkpoint.deleted"
_CLASS = "LogLoader.removeTempFilesAndCollectSwapFiles"


def settle_leftovers(files: PartitionFiles) -> None:
    """Delete files that were marked for deletion or half cleaned, and complete swaps."""
    swaps = _removed_temporary(files)
    bounds = _swapped_range(files, swaps)
    if bounds is not None:
        for name in [name for name in files.present if not name.endswith(_SWAP)]:
            head, point, _ = name.partition(".")
            offset = decode_integer(head, *INT64_RANGE) if point else None
            if offset is not None and bounds[0] <= offset < bounds[1]:
                reason = f"offsets {bounds[0]} to {bounds[1] - 1} come from .swap files, which replace it"
                files.delete(name, reason, kafka_class="LogLoader.load")
    for name in [name for name in files.present if name.endswith(_SWAP)]:
        files.rename(name, name.removesuffix(_SWAP), "an interrupted swap is completed", kafka_class="LogLoader.load")


def _removed_temporary(files: PartitionFiles) -> list[str]:
    """Delete the temporary files except valid ``.swap`` files, whose names are returned."""
    swaps: list[str] = []
    cleaned: dict[str, int] = {}
    for name in list(files.present):
        if name.endswith(_DELETED) and not name.endswith(_SNAPSHOT_DELETED):
            files.delete(name, "it was marked for deletion before the broker stopped", kafka_class=_CLASS)
        elif name.endswith(_CLEANED):
            cleaned[name] = offset_of_name(files, name)
        elif name.endswith(_SWAP):
            swaps.append(name)
    least = min(cleaned.values(), default=None)
    for name in list(swaps):
        if offset_of_name(files, name) >= (2**63 if least is None else least):
            files.delete(name, "a split or cleaning of segments that did not complete", kafka_class=_CLASS)
            swaps.remove(name)
    for name in cleaned:
        files.delete(name, "a cleaning that did not complete", kafka_class=_CLASS)
    return swaps


def _swapped_range(files: PartitionFiles, swaps: list[str]) -> tuple[int, int] | None:
    """The offsets of the swapped segments: the first, and the one after the last. None where nothing is swapped."""
    first: int | None = None
    end = -(2**63)
    for name in swaps:
        if not name.removesuffix(_SWAP).endswith(LOG_SUFFIX):
            continue
        base_offset = offset_of_name(files, name)
        index_name = file_name(base_offset, OFFSET_INDEX_SUFFIX) + _SWAP
        index = read_index(files.present.get(index_name), base_offset)
        files.present.setdefault(index_name, None)  # the broker opens it, which creates the file
        place = files.present[name]
        first = base_offset if first is None else min(first, base_offset)
        if place is None:
            continue
        with opened(place) as source:
            try:
                end = max(end, log_end(source, source.size_bytes, index, files.path / name).next_offset)
            except CorruptRecords as error:
                raise StopsStart(
                    error.text,
                    "FileLogInputStream.nextBatch",
                    path=place,
                    reason="the broker looks for the end of the .swap log, and no batch can be as short as this",
                    position=error.position,
                ) from error
    return None if first is None else (first, end)
