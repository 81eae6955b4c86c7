"""Findings: the results of checks, as data, and the table of their stable codes.

A finding is never an exception. Its code, severity and meaning come from FINDING_CODES, from which the documentation is
generated. A check may lower or raise the severity of a finding for its context.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from format.errors import KafkaLogError, NotInBundle
from format.location import Location

#: The number of findings with one code in one file that verify reports one by one; one more finding counts the rest.
MOST_ALIKE = 100


#: Values of bounded size, as files from elsewhere may have them. ``Lost`` is the first and the last lost offset.
Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Short = Annotated[str, Meta(max_length=64 * 1024)]
Lost = tuple[Integer, Integer]


class Severity(IntEnum):
    """How bad a finding is; severities can be compared."""

    INFO = 0
    WARNING = 1  # valid but suspicious, or repaired by the broker itself
    ERROR = 2  # integrity broken
    FATAL = 3  # data unreadable or lost

    @property
    def label(self) -> str:
        return self.name.lower()


class Certainty(Enum):
    """How certain a finding is: proven by the bytes, likely from the context, or only possible.

    A batch is reconstructed if one flipped bit was corrected: the finding says with what odds that is false.
    """

    PROVEN = "proven"
    LIKELY = "likely"
    POSSIBLE = "possible"
    RECONSTRUCTED = "reconstructed"


class FindingCode(msgspec.Struct, frozen=True):
    """One row of the table: the meaning of a code, what a broker does in this case, and what to do next."""

    code: str
    severity: Severity
    level: str  # the lowest level of verify that reports it: headers, crc, records, full, or any
    meaning: str
    broker: str
    next_step: str
    incomplete: bool = False  # whether it reports that something was not checked, rather than damage


class Cause(msgspec.Struct, frozen=True):
    """The code and the place of the finding that is the cause of another one."""

    code: str
    path: Short
    position: Natural | None = None
    offset: Integer | None = None

    @classmethod
    def of(cls, found: Finding) -> Cause:
        """The Cause that refers to a finding."""
        where = found.location
        return cls(found.code, where.path, where.position, where.offset)

    def as_json(self) -> dict[str, Any]:
        """The cause as the value of the column ``caused_by``."""
        return {"code": self.code, "path": self.path, "position": self.position, "offset": self.offset}


class Finding(msgspec.Struct, frozen=True):
    """One result of a check. ``lost_offsets`` is the first and last offset of a range that cannot be read.

    ``caused_by`` is set if other damage, which has its own finding, is the cause.
    """

    code: str
    severity: Severity
    location: Location
    message: str
    certainty: Certainty = Certainty.PROVEN
    expected: Any = None
    actual: Any = None
    next_step: str = ""
    lost_offsets: tuple[int, int] | None = None
    caused_by: Cause | None = None

    @property
    def is_incomplete(self) -> bool:
        return FINDING_CODES[self.code].incomplete


class FindingValues(msgspec.Struct):
    """The columns of FINDING by name, as JSON and tables have them; those that are None may be left out."""

    code: str
    severity: Literal["info", "warning", "error", "fatal"]
    path: Short
    message: Short
    certainty: Certainty
    topic: Short | None = None
    partition: Integer | None = None
    segment_base_offset: Integer | None = None
    position: Natural | None = None
    length: Integer | None = None
    offset: Integer | None = None
    expected: Any = None
    actual: Any = None
    next_step: Short | None = None
    lost_offsets: Lost | None = None
    caused_by: Cause | None = None

    def __post_init__(self) -> None:
        check_code(self.code)
        if self.caused_by is not None:
            check_code(self.caused_by.code)

    def finding(self, root: str = "") -> Finding:
        """The finding; ``root`` is put before its paths."""
        cause = self.caused_by
        where = (self.topic, self.partition, self.segment_base_offset, self.position, self.length, self.offset)
        return Finding(
            self.code,
            Severity[self.severity.upper()],
            Location(root + self.path, *where),
            self.message,
            self.certainty,
            self.expected,
            self.actual,
            self.next_step or "",
            self.lost_offsets,
            None if cause is None else Cause(cause.code, root + cause.path, cause.position, cause.offset),
        )


def check_code(code: str) -> None:
    """Raise ValueError for a code that is not in FINDING_CODES."""
    if code not in FINDING_CODES:
        raise ValueError(f"the finding code {code[:100]!r}, which this version does not know")


class Judgement(msgspec.Struct, frozen=True):
    """The judgement of one finding in its context. A severity or next step of None is that of the table."""

    severity: Severity | None = None
    certainty: Certainty = Certainty.PROVEN
    next_step: str | None = None
    caused_by: Cause | None = None


AS_THE_TABLE_SAYS = Judgement()
#: What to do next where a bundle does not hold what was asked for.
STEP_OUTSIDE_BUNDLE = "Run the command on the logs themselves."


def finding(
    code: str,
    location: Location,
    message: str,
    *,
    expected: Any = None,
    actual: Any = None,
    lost_offsets: tuple[int, int] | None = None,
    judgement: Judgement = AS_THE_TABLE_SAYS,
) -> Finding:
    """Make a Finding; severity and next step come from the table unless ``judgement`` has them.

    ``expected`` and ``actual`` are JSON values. Raises KeyError for an unknown code.
    """
    severity, next_step = judgement.severity, judgement.next_step
    return Finding(
        code=code,
        severity=FINDING_CODES[code].severity if severity is None else severity,
        location=location,
        message=message,
        certainty=judgement.certainty,
        expected=expected,
        actual=actual,
        next_step=next_step_of(code, location) if next_step is None else next_step,
        lost_offsets=lost_offsets,
        caused_by=judgement.caused_by,
    )


def next_step_of(code: str, location: Location | None = None) -> str:
    """The next step for a code, from the table; for an unreadable remote file, one without advice about disks."""
    if code == "file-unreadable" and location is not None and "://" in location.path:
        return "Check the address, the credentials and the network, then run again."
    return FINDING_CODES[code].next_step


def finding_of(error: KafkaLogError, location: Location | None = None) -> Finding:
    """The finding that reports an error.

    ``location`` is used if the error has no location. If the error has only the same path, ``location`` adds topic,
    partition and segment to it.
    """
    where = error.location or location or Location("")
    if location is not None and where.topic is None and where.path == location.path:
        where = location.at(where.position, where.length, where.offset)
    is_left_out = isinstance(error, NotInBundle)
    judgement = Judgement(next_step=STEP_OUTSIDE_BUNDLE) if is_left_out else AS_THE_TABLE_SAYS
    return finding(error.code, where, error.message, judgement=judgement)


_I, _W, _E, _F = Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.FATAL

_CODES = (
    # -- input ------------------------------------------------------------------------------------------------
    FindingCode("file-unreadable", _E, "any", "The operating system denied access to the file, or it is not a regular file.",
                "If it cannot read the file either, it stops using the log directory, or does not start.",
                "Run as the broker's user, or check the disk (dmesg, smartctl), then run again.", incomplete=True),
    FindingCode("file-changed", _W, "any", "The file shrank, vanished or was replaced while it was read.",
                "Does this itself, by truncation, compaction and retention.", "Run again; while a broker runs this is normal.", incomplete=True),
    FindingCode("log-head-remote", _W, "any", "The head of the log is in remote (tiered) storage: the log start offset is below the first segment here.",
                "Serves these offsets from remote storage.", "Pass the address of the objects with --remote, or read these offsets with a consumer.", incomplete=True),
    FindingCode("remote-segment-missing", _E, "any", "The metadata of remote storage names a segment whose objects do not exist.",
                "Fails fetches of these offsets.", "Look for the objects: another bucket or prefix, a lifecycle rule, a backup."),
    FindingCode("remote-segment-mismatch", _E, "any", "A remote segment differs from its metadata or from the segment on the disk.",
                "Does not notice; serves the objects as they are.", "Compare with another replica, and with a backup of the objects."),
    FindingCode("remote-segment-unfinished", _I, "any", "A remote segment is being copied or deleted, or the broker stopped during that.",
                "Serves it from the disk until it is copied; deletes the rest later.", "Nothing."),
    FindingCode("remote-object-orphan", _I, "any", "Objects of a remote segment that no metadata names, or that should have been deleted.",
                "Ignores them, and never deletes them.", "Delete them once it is certain that the topic's metadata is complete."),
    FindingCode("nothing-to-read", _W, "any", "No segment of any log was found.",
                "Keeps at least one segment in each log.", "Check the path: give the log directory, or a directory with log directories below it.", incomplete=True),
    FindingCode("log-dir-empty", _E, "any", "A log directory that was given beside others is empty: not formatted, or its disk is not mounted.",
                "With KRaft, does not start: meta.properties is missing.", "Mount the disk; format the directory if it is new."),
    FindingCode("live-tail", _I, "headers", "The file grew while it was read: its end is still being written.",
                "Is writing it.", "Run again when the broker is stopped, or ignore it.", incomplete=True),
    FindingCode("followed-log-cut", _W, "any", "The log was truncated while it was followed: records that were shown are no longer in it.",
                "Truncates a log when a new leader's log ends earlier, or when it recovers after a crash.",
                "Discard what was read from these offsets on; consumers never saw records above the high watermark."),
    FindingCode("followed-offsets-deleted", _W, "any", "Retention or a request deleted records before the follower had read them.",
                "Deletes records by retention or on request (kafka-delete-records).", "Follow on a faster host, or fewer partitions; this run cannot show the records any more.", incomplete=True),
    FindingCode("followed-log-replaced", _W, "any", "A followed partition was replaced by another directory, which is read from its first record on.",
                "Makes a new directory when a topic is deleted and created again.", "Treat all records after this finding as records of another log."),
    FindingCode("followed-log-gone", _I, "any", "The directory of a followed partition no longer exists.",
                "Removes it when the topic is deleted or the replica moves.", "Nothing, if that was intended."),
    FindingCode("limit-exceeded", _W, "any", "Data over a limit of this program were not checked; they may be sound.",
                "Has other limits, and may run out of memory.", "Raise the limit with its option if you trust the data.", incomplete=True),
    FindingCode("worker-died", _E, "any", "A worker process died or was killed; its part of the work is not done.",
                "Is not involved.", "Check whether the host ran out of memory (dmesg), then run again, with --jobs 1.", incomplete=True),
    FindingCode("unsupported", _W, "any", "A well-formed value that this program does not support.",
                "A newer broker may support it.", "Use a newer kafkalog.", incomplete=True),
    FindingCode("magic-unknown", _E, "headers", "A magic byte other than 0, 1 and 2, in bytes that otherwise look like a batch.",
                "Throws CorruptRecordException; recovery truncates the log here.", "Run salvage to keep what is readable after it.", incomplete=True),
    FindingCode("codec-unknown", _E, "records", "The compression type of a batch is unknown, and its CRC is valid.",
                "Serves it; consumers fail on it.", "Use a newer kafkalog; or find its producer: kafkalog producers --record.", incomplete=True),
    FindingCode("version-unknown", _W, "any", "A version number that is newer than the known ones.",
                "An older broker refuses or ignores it.", "Use a newer kafkalog.", incomplete=True),
    FindingCode("attributes-unknown", _I, "headers", "Attribute bits that no known Kafka version uses are set.",
                "Ignores them.", "Find out which program wrote them; a newer format may use them.", incomplete=True),
    # -- framing ----------------------------------------------------------------------------------------------
    FindingCode("tail-torn", _W, "headers", "The last segment ends inside a batch, or after a crash with one whose CRC is wrong: a write that the crash cut off.",
                "Truncates the segment to the last whole batch when it recovers it.",
                "If another replica leads, nothing: this one fetches the lost records again. If this one may lead, look for them in another replica before it starts."),
    FindingCode("tail-zeros", _W, "headers", "The segment ends in zero bytes: preallocated or never flushed.",
                "Truncates them at recovery; with preallocation a clean stop trims them.",
                "After an unclean stop, nothing. After a clean stop a broker may refuse to start: delete .kafka_cleanshutdown, with the broker stopped, and the next start recovers the log."),
    FindingCode("log-framing-broken", _F, "headers", "There is no batch where one should start; reading resumes at the next intact batch, if there is one.",
                "Fails fetches at these offsets. After an unclean stop, recovery truncates the log here if the segment is past the recovery point, with the intact batches after the damage.",
                "Copy the directory first, then run salvage to keep the intact batches after the damage."),
    FindingCode("log-truncated", _F, "headers", "A segment that is not the last ends inside a batch, or in zeros in place of batches.",
                "Does not notice, except in recovery: after an unclean stop, it truncates the segment here and deletes every later one, if the segment is past the recovery point.",
                "Copy the directory first, then run salvage."),
    FindingCode("batch-invalid", _E, "headers", "A batch header whose fields contradict each other.",
                "Serves it as it is. After an unclean stop, recovery truncates the log here if the segment is past the recovery point and the batch fails Kafka's check (ensureValid).",
                "Run salvage, or compare with another replica."),
    FindingCode("batch-crc-mismatch", _F, "crc", "The CRC does not match the bytes of the batch.",
                "Serves it, and consumers fail on it. After an unclean stop, recovery truncates the log here if the segment is past the recovery point, with the intact batches after it.",
                "Compare with another replica; run salvage to keep the batches after it."),
    FindingCode("batch-reconstructed", _W, "any", "salvage wrote a batch with one bit flipped back under its CRC, which is right then; the message has the odds that this is false.",
                "Serves the batch.", "Compare the records with another replica, if there is one.", incomplete=True),
    FindingCode("batch-repaired", _W, "any", "salvage wrote a batch with another header field, whose right value is proven and which no CRC covers.",
                "Serves the batch.", "Nothing."),
    FindingCode("no-intact-replica", _F, "any", "None of the replicas that were merged has these offsets intact.",
                "Serves what is before and after them.", "Look for these offsets in a replica that was not given, a backup, or where the records came from."),
    FindingCode("branch-left-out", _W, "any", "A replica has records of another history than the one that was merged: it followed another leader.",
                "Truncates them when the replica follows the leader.", "Look at what it holds, with --branches DIR or dump, and write what is wanted again."),
    FindingCode("tombstone-unknown", _W, "any", "In a compacted log, tombstones may be lost that other replicas have removed together with what they delete.",
                "Serves the old values of such keys again.", "Give the replica that lacks these offsets in a better copy, or delete again the keys that must not be there."),
    FindingCode("data-truncated", _E, "records", "The data end in the middle of a structure.",
                "Fails the fetch.", "Run salvage."),
    FindingCode("data-corrupt", _E, "any", "Bytes that contradict the format.", "Depends on the file.", "Compare with another replica."),
    # -- offsets and header fields ----------------------------------------------------------------------------
    FindingCode("offset-not-increasing", _E, "headers", "A batch starts at or before the last offset of the previous batch.",
                "Serves what lies below the log end, which the last batch sets; consumers may see records twice. Recovery of the segment may remove all of its batches.",
                "Compare with another replica; the base offset is not covered by the CRC and may be damaged."),
    FindingCode("offset-gap", _I, "headers", "Offsets are missing between two batches. They are lost if an earlier record has no key, likely lost if the metadata does not have the topic as compacted; else compaction may have removed them.",
                "Does not notice; consumers skip them.", "Compare with another replica, if the topic was never compacted."),
    FindingCode("offset-out-of-segment", _E, "headers", "A batch's offsets are before the segment's base offset, past the next segment's, or too large for its index.",
                "Fails to index it, or serves it under the wrong segment.", "Compare with another replica."),
    FindingCode("file-name-mismatch", _I, "headers", "The first batch does not start at the offset in the file's name.",
                "Serves it; legal after compaction or in a follower.", "Check the file's name if the topic is not compacted."),
    FindingCode("last-offset-delta-mismatch", _E, "headers", "The last offset delta and the record count contradict each other.",
                "Serves it; consumers may stall or skip.", "Compare with another replica."),
    FindingCode("leader-epoch-decreasing", _E, "headers", "A batch has a lower leader epoch than one before it.",
                "Does not notice; recovery skips the lower epoch. A follower that fetches the batch drops later epochs from its leader epoch cache, and may truncate at the wrong offset.", "Compare with another replica; the epoch is not covered by the CRC."),
    FindingCode("leader-epoch-checkpoint-mismatch", _W, "full", "The leader-epoch-checkpoint and the batches' leader epochs disagree.",
                "Trusts the checkpoint; followers may truncate at the wrong offset.", "Compare with another replica's checkpoint."),
    FindingCode("max-timestamp-mismatch", _W, "records", "The batch's max timestamp is not the largest of its records.",
                "Trusts the header; look-ups by time and retention may be wrong.", "Find its producer: kafkalog producers --record."),
    FindingCode("timestamp-suspicious", _I, "records", "A timestamp far in the future, or negative other than -1.",
                "Keeps a segment with a future timestamp until that time (retention by time).", "Find its producer: kafkalog producers --record; kafkalog retention shows what it keeps."),
    # -- records ----------------------------------------------------------------------------------------------
    FindingCode("record-invalid", _E, "records", "A record inside a batch with a valid CRC cannot be decoded.",
                "Serves it; consumers fail on it and cannot get past it.", "Let consumers seek past the batch; find its producer: kafkalog producers --record."),
    FindingCode("record-count-mismatch", _E, "records", "The number of records in the batch differs from the count in its header.",
                "Serves it; consumers fail on it.", "Let consumers seek past the batch; find its producer: kafkalog producers --record."),
    FindingCode("record-offset-invalid", _E, "records", "A record's offset does not increase, or is past the batch's last offset.",
                "Serves it; consumers may see it twice or skip it.", "Find its producer: kafkalog producers --record."),
    FindingCode("record-trailing-bytes", _E, "records", "Bytes are left after the last record of a batch.",
                "Ignores them, or fails if it validates the records.", "Find its producer: kafkalog producers --record."),
    FindingCode("value-undecodable", _W, "any", "A key or value could not be decoded as it was asked, or as it says itself.",
                "Serves it. A consumer fails on it, too, if the bytes do not fit their schema.", "See who wrote such values, and since when: kafkalog verify --values.", incomplete=True),
    FindingCode("record-header-not-utf8", _I, "records", "A record header's key is not valid UTF-8.",
                "Serves it; clients replace the bytes.", "Find its producer: kafkalog producers --record."),
    FindingCode("record-misplaced", _W, "records", "A record's key belongs in another partition by Kafka's default partitioner (with --partitions).",
                "Serves it; consumers see the key in two partitions, out of order, and compaction keeps both.", "Find its producer (kafkalog producers --record); check its partitioner, and whether partitions were added to the topic."),
    FindingCode("record-attributes-unknown", _I, "records", "A record's attributes byte is not 0; no known version uses it.",
                "Ignores it.", "Find its producer: kafkalog producers --record."),
    FindingCode("decompression-failed", _E, "records", "The codec library rejects the compressed bytes of a batch with a valid CRC.",
                "Serves it; consumers fail on it.", "Let consumers seek past the batch; find its producer: kafkalog producers --record."),
    FindingCode("message-invalid", _E, "records", "A v0 or v1 message, or a wrapper's inner set, contradicts the format.",
                "Serves it, or throws InvalidRecordException if it reads the records.", "Run salvage; find its producer: kafkalog producers --record."),
    FindingCode("control-record-invalid", _E, "records", "A control record's key or value cannot be decoded.",
                "Refuses to start, if it has to rebuild the producer state from this batch.", "Compare with another replica."),
    FindingCode("internal-record-invalid", _E, "records", "A record of an internal topic contradicts Kafka's schema for it, or earlier records of its group.",
                "Groups: from 4.0 on, it cannot load the partition, and none of its groups can be used; before 4.0, none of its groups has committed offsets. Transactions: loads no record after it. Metadata: stops.", "Compare with another replica; kafkalog dump --records --raw shows the bytes of the record."),
    # -- producers and transactions ---------------------------------------------------------------------------
    FindingCode("sequence-gap", _W, "full", "A producer's sequence does not follow its last one in the same epoch.",
                "Would have refused the append (OutOfOrderSequence); does not notice it in the log.", "Look for lost or removed batches before it."),
    FindingCode("sequence-duplicate", _W, "full", "A producer's batch repeats sequences that it wrote before in the same epoch.",
                "Would have treated the append as a duplicate; does not notice it in the log.", "Look for records that are in the log twice."),
    FindingCode("producer-epoch-decreasing", _W, "full", "A producer's batch has a lower epoch than an earlier one.",
                "Would have fenced the producer; does not notice it in the log.", "Look for batches out of order."),
    FindingCode("transaction-open", _I, "full", "A transaction has no end marker, so the last stable offset does not advance.",
                "Gives read_committed consumers nothing from its first offset on, until it ends or times out.",
                "If it stays open, run kafkalog txns --open: it shows the producer, and the abort command if the transaction hangs."),
    FindingCode("transaction-hanging", _W, "any", "A transaction has no end marker, and no coordinator will write one (txns).",
                "Gives read_committed consumers nothing from its first offset on, and keeps the log from there on from the cleaner.",
                "Abort it with kafka-transactions.sh abort, as txns prints it."),
    FindingCode("transaction-marker-orphan", _I, "full", "An end marker of a producer that has no open transaction in this log.",
                "Accepts it; normal after retention, compaction or an empty transaction.", "Nothing."),
    FindingCode("transaction-index-mismatch", _E, "full", "The .txnindex and the abort markers in the log disagree.",
                "Does not notice; read_committed consumers get aborted records, or miss committed ones.",
                "Run rebuild-index; or, with the broker stopped, delete the .index and the .txnindex of the segment: the next start rebuilds all its indexes."),
    FindingCode("snapshot-invalid", _W, "full", "A producer snapshot cannot be decoded, or its CRC is wrong.",
                "Deletes it and rebuilds the producer state from the log.", "Nothing; the next start replaces it."),
    FindingCode("snapshot-mismatch", _W, "full", "A producer snapshot disagrees with the log before its offset.",
                "Trusts it: may refuse or accept the wrong sequences.",
                "Compare with the snapshot and the log of another replica. Do not delete it: a broker cannot rebuild from the log what compaction and retention removed."),
    # -- indexes ----------------------------------------------------------------------------------------------
    FindingCode("index-invalid", _E, "full", "An index file's size or order contradicts the format.",
                "Does not notice it at start, except in a .txnindex, which it rebuilds; look-ups may be wrong.",
                "Run rebuild-index; or, with the broker stopped, delete the .index of the segment: the next start rebuilds all its indexes."),
    FindingCode("index-missing", _W, "full", "A segment has no .index or .timeindex.",
                "Rebuilds a missing .index at start, and the segment's other indexes with it; makes an empty .timeindex, with which look-ups of later times may find nothing.",
                "If the .index is missing, nothing. If only the .timeindex is missing: run rebuild-index; or, with the broker stopped, delete the .index too."),
    FindingCode("index-orphan", _W, "full", "An index without its segment.",
                "Deletes it at start.", "Check whether the .log was lost."),
    FindingCode("offset-index-mismatch", _E, "full", "An offset index entry points to no batch, or to one that would make look-ups miss records.",
                "Does not notice at start; fetches at those offsets fail or skip records.",
                "Run rebuild-index; or, with the broker stopped, delete the .index: the next start rebuilds it."),
    FindingCode("offset-index-imprecise", _I, "full", "An offset index entry has an offset that is not the first or last of a batch; look-ups still work.",
                "Does not notice.", "Nothing."),
    FindingCode("time-index-mismatch", _E, "full", "A time index entry contradicts the batches: look-ups by time would miss records.",
                "Does not notice at start; look-ups by time are wrong.",
                "Run rebuild-index; or, with the broker stopped, delete the .index of the segment (not only the .timeindex): the next start rebuilds both."),
    FindingCode("time-index-imprecise", _I, "full", "A time index entry does not match the batches exactly, but look-ups still work.",
                "Does not notice.", "Nothing."),
    FindingCode("index-preallocated", _I, "full", "An index still has its preallocated size: its segment was active when the broker stopped without closing it.",
                "Trims it when it closes or recovers the segment.", "Nothing."),
    # -- checkpoints and directory ----------------------------------------------------------------------------
    FindingCode("checkpoint-invalid", _E, "full", "A checkpoint or properties file cannot be decoded.",
                "Starts without it, or fails the log directory: kafkalog boot says which.", "Restore it from a backup; or, with the broker stopped, delete it where kafkalog boot says that a broker starts without it."),
    FindingCode("checkpoint-mismatch", _W, "full", "A checkpoint's offset is outside the log.",
                "Truncates the log or resets the offset.", "Compare with another replica: records may be lost."),
    FindingCode("checkpoint-missing", _W, "full", "There is no log-start-offset-checkpoint, although the broker stopped cleanly.",
                "Begins every log with its first segment: records that were deleted before an offset come back.", "If records were deleted before an offset, restore the file from a backup, or delete them again after the start; with another replica, its own file has the offsets."),
    FindingCode("checkpoint-stale-entry", _I, "full", "A checkpoint names a partition that is not in this directory.",
                "Drops it at the next write.", "Nothing, unless the partition's directory was lost."),
    FindingCode("topic-id-conflict", _E, "full", "Two topics have the same topic id, or partitions of one topic have different ones.",
                "Takes the partition for part of another topic: renames it to -stray, or serves it under the wrong id.",
                "Find out with kafka-topics.sh --describe which id is right; the other directory does not belong to this topic."),
    FindingCode("unclean-shutdown", _I, "full", "The clean-shutdown mark is missing: the broker runs, or was killed.",
                "Recovers every segment past the recovery point at start.", "Nothing about the mark itself; see the findings at the ends of the logs."),
    FindingCode("unflushed-segment", _I, "full", "A segment is past the recovery point: the broker checks it batch by batch at start.",
                "Recovers it.", "Nothing."),
    FindingCode("segment-leftover", _I, "full", "A file that a broker left when it deleted, cleaned or swapped segments, or wrote a checkpoint.",
                "Deletes it at start, or completes what it had begun.", "Nothing; the broker does this by itself."),
    FindingCode("segment-overlap", _E, "headers", "Two segments hold the same offsets.",
                "Serves the segment that its search finds, and never the other one at these offsets.", "Compare with another replica."),
    FindingCode("segment-changed", _E, "any", "scrub: the batches of a segment are others than when it was verified before, with right CRCs, and neither compaction nor truncation explains it.",
                "Does not notice.", "Compare with another replica by kafkalog diff; look for errors of the disk and its controller."),
    FindingCode("segment-missing", _E, "headers", "Offsets are missing between two segments. They are lost if an earlier record has no key, likely lost if the metadata does not have the topic as compacted; else compaction may have removed them.",
                "Does not notice; consumers skip them.", "Look for the segment's file; compare with another replica."),
    FindingCode("log-head-missing", _W, "full", "The leader-epoch-checkpoint begins before the first segment: the segments before it are lost, or in remote storage.",
                "Begins the log with the first segment; the start of the checkpoint moves when segments are next deleted.", "Look for the segments' files, or compare with another replica, before a broker starts."),
    FindingCode("partition-dir-marked", _I, "full", "A partition directory is marked for deletion, as a future replica, or as stray.",
                "Deletes it (-delete), completes the move (-future), or leaves it alone (-stray).", "Delete a stray directory once its records are not needed."),
    FindingCode("entry-unexpected", _I, "full", "A file or directory that no Kafka broker writes here.",
                "Ignores a file. Refuses to start if a log directory holds a directory whose name is not TOPIC-PARTITION.", "Move it elsewhere."),
    FindingCode("boot-refused", _E, "full", "A broker would refuse to start on this log directory.",
                "Stops, with the error in the message.", "Run kafkalog boot on all log directories of the node; repair or move away the files that it names."),
    FindingCode("boot-unserved", _E, "full", "A broker would start, but not serve this log directory or partition.",
                "Takes it offline.", "Run kafkalog boot on all log directories of the node; repair the files that it names, or delete those that a broker writes again."),
    FindingCode("replica-stray", _E, "full", "The metadata at hand does not assign the log to this node.",
                "Renames its directory to -stray and does not serve it.", "Find out where the directory comes from; restore its partition.metadata if that is wrong."),
    FindingCode("replica-missing", _E, "full", "A partition that the metadata log assigns to this directory is not in it; with ZooKeeper, only its future replica is.",
                "Creates an empty log, and fetches from the leader if it is a follower.", "Look for a disk that is not mounted; compare with another replica before a broker starts."),
    FindingCode("metadata-incomplete", _E, "any", "Part of the metadata log is lost or damaged: the image of the cluster lacks its records.",
                "Starts by its newest snapshot; without one, does not start, or knows less of the cluster.",
                "Read the metadata of another controller or broker; do not let this node lead the quorum."),
    FindingCode("quorum-leader-unknown", _W, "full", "The leader in quorum-state is not one of the voters that it lists.",
                "Starts without a known leader, and asks the voters for it.", "Find out whether the file is from another node or cluster."),
    FindingCode("quorum-lost", _E, "any", "Too few voters of the metadata quorum can start for a majority.",
                "Controllers that start elect no leader; brokers wait for one.",
                "Restore a disk of one of these voters; if there is none, run rebuild-quorum, which makes new controllers of the best copy."),
    FindingCode("metadata-committed-lost", _E, "any", "A snapshot holds committed metadata that the copy with the latest epoch lacks.",
                "A node elected on that copy makes the others drop it.",
                "Find out how that copy came to lack it, such as an old backup; do not let its node lead the quorum."),
    FindingCode("metadata-change-lost", _E, "any", "A partition directory shows a change that was committed and that the metadata lacks.",
                "A leader with a later epoch on its disk rejects the older one; the directory of a topic that the metadata does not know is renamed to -stray.",
                "Look for a copy of the metadata that reaches further, on every controller and broker, before a controller starts."),
    FindingCode("metadata-transaction-open", _I, "any", "A metadata transaction has no end: its records are not applied.",
                "Does not apply them; the next controller aborts the transaction.", "Nothing."),
)  # fmt: skip

FINDING_CODES: dict[str, FindingCode] = {entry.code: entry for entry in _CODES}
