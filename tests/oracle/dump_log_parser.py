"""Reads what kafka-dump-log prints (releases 3.9.1 and 4.3.1) back into plain rows.

One run may dump many files. Each becomes a ``DumpedFile`` whose rows are dicts with Kafka's printed values under
the names that kafkalog uses, so that two rows can be compared key by key. The tool prints keys and values as text:
bytes that are not UTF-8 are lost, and a value with a line break runs over several lines, which are joined again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

_TIMESTAMP = r"(?P<timestamp_type>CreateTime|LogAppendTime|NoTimestampType): (?P<timestamp>-?\d+)"
_BATCH_END = (
    r" position: (?P<position>\d+) " + _TIMESTAMP + r" size: (?P<size_bytes>\d+) magic: (?P<magic>-?\d+)"
    r" compresscodec: (?P<codec>\S+) crc: (?P<crc>\d+) isvalid: (?P<crc_valid>true|false)"
)
_BATCH_V2 = re.compile(
    r"baseOffset: (?P<base_offset>-?\d+) lastOffset: (?P<last_offset>-?\d+) count: (?P<record_count>\S+)"
    r" baseSequence: (?P<base_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+)"
    r" producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+)"
    r" partitionLeaderEpoch: (?P<leader_epoch>-?\d+) isTransactional: (?P<is_transactional>true|false)"
    r" isControl: (?P<is_control>true|false) deleteHorizonMs: (?P<delete_horizon_ms>\S+)" + _BATCH_END
)
_MESSAGE = re.compile(r"offset: (?P<last_offset>-?\d+)" + _BATCH_END)
_RECORD = re.compile(
    r"\| offset: (?P<offset>-?\d+) " + _TIMESTAMP + r" keySize: (?P<key_bytes>-?\d+) valueSize: (?P<value_bytes>-?\d+)"
)
_CONTROL_WORDS = (
    r"(?:endTxnMarker:|LeaderChange:?|SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters|controlType:) "
)
_RECORD_V2 = re.compile(
    r" sequence: (?P<sequence>-?\d+) headerKeys: \[(?P<header_keys>.*?)\](?= key: | payload: | "
    + _CONTROL_WORDS
    + "|$)",
    re.DOTALL,
)
_RECORD_LEGACY = re.compile(r" isValid: (?P<crc_valid>true|false) crc: (?P<crc>\d+)\}?")
_CONTROL = re.compile(r" (?P<control>" + _CONTROL_WORDS + ".*)")

_INDEX_ENTRY = re.compile(r"offset: (?P<offset>-?\d+) position: (?P<position>-?\d+)")
_TIME_INDEX_ENTRY = re.compile(r"timestamp: (?P<timestamp>-?\d+) offset: (?P<offset>-?\d+)")
_ABORTED_TXN = re.compile(
    r"version: (?P<version>\d+) producerId: (?P<producer_id>-?\d+) firstOffset: (?P<first_offset>-?\d+)"
    r" lastOffset: (?P<last_offset>-?\d+) lastStableOffset: (?P<last_stable_offset>-?\d+)"
)
_PRODUCER = re.compile(
    r"producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+)"
    r" coordinatorEpoch: (?P<coordinator_epoch>-?\d+) currentTxnFirstOffset: (?P<current_txn_first_offset>\S+)"
    r" lastTimestamp: (?P<timestamp>-?\d+) ?"
    r"(?:firstSequence: (?P<first_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+)"
    r" lastOffset: (?P<last_offset>-?\d+) offsetDelta: (?P<offset_delta>-?\d+) timestamp: (?P<batch_timestamp>-?\d+))?"
)
_INVALID_BYTES = re.compile(r"Found (?P<count>\d+) invalid bytes at the end of (?P<name>.*)")
_OPTIONAL_LONG = re.compile(r"OptionalLong(?:\.empty|\[(?P<value>-?\d+)\])")

_TEXT = {"timestamp_type", "codec", "header_keys", "control"}
_SIDE_FILES = {
    ".index": (_INDEX_ENTRY,),
    ".timeindex": (_TIME_INDEX_ENTRY,),
    ".txnindex": (_ABORTED_TXN,),
    ".snapshot": (_PRODUCER,),
}


class UnparsedOutput(ValueError):
    """kafka-dump-log printed a line that this parser does not know."""


@dataclass
class DumpedFile:
    """What one run printed for one file; of the three lists only those that its kind has are filled."""

    path: str
    heading: str = ""
    batches: list[Row] = field(default_factory=list)  # of a .log or .checkpoint
    records: list[Row] = field(default_factory=list)  # the same, with --deep-iteration
    entries: list[Row] = field(default_factory=list)  # of an index or a producer snapshot
    invalid_bytes: int = 0  # "Found N invalid bytes at the end"


def parse_dump_log(stdout: bytes) -> dict[str, DumpedFile]:
    """Everything that one run printed, by the path that the tool was given; raises UnparsedOutput."""
    files: dict[str, DumpedFile] = {}
    for path, lines in _sections(stdout.decode("utf-8", "surrogateescape").split("\n")):
        dumped = files[path] = DumpedFile(path)
        suffix = path[path.rfind(".") :]
        if suffix in _SIDE_FILES:
            _parse_side_file(dumped, lines, _SIDE_FILES[suffix][0])
        else:
            _parse_log(dumped, lines)
    return files


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    path: str | None = None
    section: list[str] = []
    for line in lines:
        if line.startswith("Dumping "):
            if path is not None:
                yield path, section
            path, section = line.removeprefix("Dumping "), []
        elif path is not None:
            section.append(line)
        elif line:
            raise UnparsedOutput(f"before the first file: {line[:200]!r}")
    if path is not None:
        yield path, section[:-1] if section and section[-1] == "" else section


def _parse_side_file(dumped: DumpedFile, lines: list[str], pattern: re.Pattern[str]) -> None:
    for line in lines:
        if line in (f"{dumped.path} is empty.", ""):
            continue
        found = pattern.fullmatch(line)
        if found is None:
            raise UnparsedOutput(f"in {dumped.path}: {line[:200]!r}")
        dumped.entries.append(_row(found))


def _parse_log(dumped: DumpedFile, lines: list[str]) -> None:
    if lines:
        dumped.heading = lines[0]
    batch: Row | None = None
    texts: list[tuple[Row | None, list[str]]] = []
    for line in lines[1:]:
        header = _BATCH_V2.fullmatch(line) or _MESSAGE.fullmatch(line)
        if header is not None:
            batch = _row(header)
            dumped.batches.append(batch)
        elif _RECORD.match(line) is not None:
            texts.append((batch, [line]))
        elif (tail := _INVALID_BYTES.fullmatch(line)) is not None:
            dumped.invalid_bytes = int(tail["count"])
        elif texts:
            texts[-1][1].append(line)  # a key or value with a line break in it
        else:
            raise UnparsedOutput(f"in {dumped.path}: {line[:200]!r}")
    dumped.records.extend(_record(owner, "\n".join(text)) for owner, text in texts)


def _record(batch: Row | None, text: str) -> Row:
    """One record's row: its own fields, ``key`` and ``value`` as text, and its batch's position."""
    found = _RECORD.match(text)
    assert found is not None
    row = _row(found)
    row["position"] = None if batch is None else batch["position"]
    rest = text[found.end() :]
    for pattern in (_RECORD_V2, _RECORD_LEGACY, _CONTROL):
        more = pattern.match(rest)
        if more is not None:
            row.update(_row(more))
            rest = rest[more.end() :]
    row["key"], rest = _key(rest, row["key_bytes"])
    row["value"] = rest.removeprefix(" payload: ") if rest.startswith(" payload: ") else None
    if row["value"] is None and rest:
        raise UnparsedOutput(f"after a record's fields: {rest[:200]!r}")
    return row


def _key(rest: str, key_bytes: int) -> tuple[str | None, str]:
    """The printed key and what follows it. The size of the key decides where " payload: " is part of the key."""
    if not rest.startswith(" key: "):
        return None, rest
    rest = rest.removeprefix(" key: ")
    ends = [at.start() for at in re.finditer(" payload: ", rest)] or [len(rest)]
    for end in [*ends, len(rest)]:
        if len(rest[:end].encode("utf-8", "surrogateescape")) == key_bytes:
            return rest[:end], rest[end:]
    return rest[: ends[0]], rest[ends[0] :]  # not UTF-8, so its size says nothing


def _row(found: re.Match[str]) -> Row:
    row: Row = {}
    for name, text in found.groupdict().items():
        optional = None if text is None else _OPTIONAL_LONG.fullmatch(text)
        if text is None or (optional is not None and optional["value"] is None):
            row[name] = None
        elif optional is not None:
            row[name] = int(optional["value"])
        elif name in _TEXT:
            row[name] = text
        elif text in ("true", "false"):
            row[name] = text == "true"
        else:
            row[name] = int(text) if re.fullmatch(r"-?\d+", text) else text
    return row


def printed_text(content: bytes | None) -> str | None:
    """Bytes as the tool prints them, but for runs of replacement characters, see ``comparable``."""
    return None if content is None else comparable(content.decode("utf-8", "replace"))


def comparable(text: str | None) -> str | None:
    """Text with each run of replacement characters made one, as Java and Python disagree on how many there are."""
    return None if text is None else re.sub("\ufffd+", "\ufffd", text)
