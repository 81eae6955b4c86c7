"""Findings about a partition directory other than its live segments: leftovers, orphans, snapshots, foreign files."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from format import layout
from format.errors import InputError, UnreadableFile
from format.findings import Finding, Judgement, Severity, finding
from format.io.session import is_on_disk, is_there
from format.io.source import FileSource
from format.limits import Limits
from format.location import Location
from format.node.partition import Partition, Segment, is_offset, parse_partition_dir
from format.wording import counted_plainly, offsets_are

#: The name of a log whose offset has fewer than 20 digits.
_LOG_OF_A_SHORT_NAME = re.compile(r"[0-9]{1,19}" + re.escape(layout.LOG_SUFFIX))
#: The marks of a partition directory, for messages.
MARKS = {
    "delete": "marked for deletion",
    "future": "a future replica, moving here from another log directory",
    "stray": "stray: not assigned to this broker when it started",
}


def surroundings_findings(partition: Partition) -> Iterator[Finding]:
    """Findings about entries of the directory other than live segments."""
    if partition.mark is not None:
        yield finding("partition-dir-marked", partition.location(), f"the directory is {MARKS[partition.mark]}")
    for segment in partition.leftovers:
        yield _group_finding("segment-leftover", partition, segment, f"left behind as .{segment.leftover}")
    for snapshot in partition.kraft_snapshots:
        if snapshot.leftover is not None:
            message = f"a KRaft snapshot left behind as .{snapshot.leftover}"
            yield finding("segment-leftover", partition.location(snapshot.path, snapshot.end_offset), message)
    unread_logs = partition.unread_logs
    for segment in () if partition.is_deleted else partition.orphans:
        if segment.base_offset not in unread_logs:
            yield _group_finding("index-orphan", partition, segment, "but there is no .log")
    for path in partition.unexpected:
        yield unexpected_finding(path, partition.location(path))
    for path in partition.interrupted_writes:
        yield interrupted_finding(path, partition.location(path))


def denied_log(partition: Partition) -> UnreadableFile | None:
    """The error of the first log that this user must not read; such a partition is neither damaged nor shorter."""
    for segment in partition.segments:
        log = segment.log
        if log is not None and is_on_disk(log) and not os.access(log, os.R_OK) and os.access(log, os.F_OK):
            place = partition.location(log, segment.base_offset)
            return UnreadableFile(f"cannot open: {os.strerror(errno.EACCES)}", place)
    return None


def surroundings_notes(partition: Partition) -> list[str]:
    """The notes of ls about the same entries."""
    notes = [] if partition.segment_count else ["no segments"]
    marks = [each.leftover for each in partition.leftovers] + [each.leftover for each in partition.kraft_snapshots]
    leftovers = Counter(each for each in marks if each is not None)
    notes += [f"{count} left as .{mark}" for mark, count in leftovers.items()]
    if partition.orphans:
        notes.append(f"{counted_plainly(len(partition.orphans), 'base offset')} without .log")
    if partition.unexpected:
        notes.append(unexpected_note(partition.unexpected))
    return notes


def _group_finding(code: str, partition: Partition, segment: Segment, words: str) -> Finding:
    paths = list(segment.files.values())
    suffixes = ", ".join(sorted(segment.files))
    message = f"{suffixes} of base offset {segment.base_offset}: {words}"
    return finding(code, partition.location(segment.log or paths[0], segment.base_offset), message)


def unexpected_finding(path: Path, location: Location) -> Finding:
    """The finding for an entry of a directory that Kafka does not write there, or that is not read."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return finding("file-changed", location, "the file vanished, or cannot be accessed")
    segment, parsed = layout.SEGMENT_FILE.match(path.name), parse_partition_dir(path.name)
    if segment is not None and not is_offset(int(segment["base_offset"])):
        message = f"the base offset {segment['base_offset']} does not fit in 63 bits; the file is not read"
        return finding("entry-unexpected", location, message)
    if stat.S_ISLNK(mode) and (segment or parsed):
        next_step = "Pass the path that it points to as well: kafkalog does not follow links, a broker does."
        message = "is a symbolic link, which is not followed"
        if parsed is not None and not path.exists():
            next_step = "Mount or restore what it points to, or remove the link if the partition is not this node's."
            message = (
                "is a symbolic link to nothing: a broker ignores it, unless the metadata assigns the partition to "
            )
            message += "to this node: then the log directory fails"
        if parsed is not None:
            location = replace(location, topic=parsed[0], partition=parsed[1])
        return finding("file-unreadable", location, message, judgement=Judgement(next_step=next_step))
    if segment is not None:
        return finding("file-unreadable", location, f"is {_type_words(mode)} with the name of a segment's file")
    if location.topic is not None and stat.S_ISREG(mode) and _LOG_OF_A_SHORT_NAME.fullmatch(path.name):
        offset = int(path.name.partition(".")[0])
        opened = f"{offset:020d}{layout.LOG_SUFFIX}"
        if not is_there(path.with_name(opened)):
            message = (
                f"a broker takes it for the segment of offset {offset}, opens {opened} instead, and does not serve "
                "the records of the log from there on"
            )
            return finding("entry-unexpected", location, message, judgement=Judgement(severity=Severity.ERROR))
    if path.name == layout.MANIFEST and stat.S_ISREG(mode):
        message = "has the name of the manifest that kafkalog writes; a broker ignores it"
        return finding("entry-unexpected", location, message, judgement=Judgement(next_step="Nothing."))
    return finding("entry-unexpected", location, f"{_type_words(mode)} that no Kafka broker writes here")


def unread_findings(partition: Partition) -> Iterator[Finding]:
    """Findings for live logs that are not read, since they are links or special files."""
    yield from filter(None, (unread_finding(path, partition.location(path)) for path in partition.unexpected))


def unread_finding(path: Path, location: Location) -> Finding | None:
    """The finding for a path that is named like a partition directory or live log but is not read; None for others."""
    segment = layout.SEGMENT_FILE.match(path.name)
    is_log = segment is not None and segment["suffix"] == layout.LOG_SUFFIX and segment["leftover"] is None
    if not is_log and parse_partition_dir(path.name) is None:
        return None
    found = unexpected_finding(path, location)
    return found if found.is_incomplete else None


def interrupted_finding(path: Path, location: Location) -> Finding:
    """The finding for the temporary file of a checkpoint that was never renamed."""
    whole = path.name.removesuffix(layout.TEMPORARY_SUFFIX)
    message = f"a write of {whole} was interrupted before it took effect; the next one overwrites this file"
    return finding("segment-leftover", location, message)


def unexpected_note(paths: list[Path]) -> str:
    """The note for ls about unexpected entries, with the names of the first three."""
    shown = ", ".join(path.name for path in paths[:3])
    return f"unexpected: {shown}" + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _type_words(mode: int) -> str:
    kinds = (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISCHR, "a device"),
    )
    return next((words for is_kind, words in kinds if is_kind(mode)), "a file")


def completed_swaps(partition: Partition, limits: Limits) -> tuple[Partition, list[Finding]]:
    """The partition with its swaps completed, and findings that report it; the same partition if there are none."""
    ends = {each.base_offset: (each, _end_offset(each, limits)) for each in _swaps(partition)}
    swaps = [each for each, end in ends.values() if end > each.base_offset]
    if not swaps:
        return partition, []
    first = min(each.base_offset for each in swaps)
    end = max(end for _, end in ends.values())
    replaced = [each for each in partition.segments if first <= each.base_offset < end]
    kept = [each for each in partition.segments if each not in replaced]
    new = [replace(each, leftover=None) for each in swaps]
    segments = sorted([*kept, *new], key=lambda each: each.base_offset)
    instead = f" in place of {counted_plainly(len(replaced), 'segment')}" if replaced else ""
    found = finding(
        "segment-leftover",
        partition.location(swaps[0].log, first),
        f"{offsets_are(first, end - 1)} taken from .swap files{instead}: "
        "a broker also completes the swap when it starts",
    )
    return partition.with_segments(segments), [found]


def _swaps(partition: Partition) -> Iterator[Segment]:
    """The ``.swap`` segments that replace others, in order."""
    cleaned = [each.base_offset for each in partition.leftovers if each.leftover == "cleaned"]
    for each in partition.leftovers:
        if each.leftover == "swap" and each.log is not None and each.base_offset < min(cleaned, default=2**63):
            yield each


def _end_offset(segment: Segment, limits: Limits) -> int:
    """The offset after the last batch of a segment, as far as its headers can be read."""
    from format.log.walker import header_chunks  # imports numpy

    end = segment.base_offset
    try:
        with FileSource(segment.log or Path()) as source:
            for chunk in header_chunks(source, limits=limits):
                if len(chunk.headers):
                    end = max(end, chunk.headers.last_offset_of(len(chunk.headers) - 1) + 1)
    except InputError:
        pass  # the segment is read again later, and the error is reported then
    return end
