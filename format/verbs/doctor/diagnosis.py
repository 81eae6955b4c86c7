"""Diagnoses: a sentence about what is wrong, with its rank, its evidence and the next command; and their templates."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from format.columns import DIAGNOSIS
from format.findings import Severity
from format.offset_ranges import merged
from format.rows.record_rows import Row
from format.wording import counted, shell_line, span

_E, _W = Severity.ERROR, Severity.WARNING


class Template(msgspec.Struct, frozen=True):
    """One kind of sentence. ``many`` follows a count where several of a kind are said together."""

    code: str
    severity: Severity
    question: str
    many: str
    condition: str


_TEMPLATES = (
    Template("start-refused", _E, "boot", "reasons to refuse the start",
             "By boot, a broker would refuse to start on the log directory."),
    Template("directory-empty", _E, "boot", "log directories are empty",
             "A log directory is empty: it was not formatted, or its disk is not mounted."),
    Template("metadata-damaged", _E, "metadata", "metadata logs are damaged",
             "Part of the metadata log is lost or damaged."),
    Template("disk-full", _E, "ls", "file systems are full",
             "A running broker's file system, or one of which the log directory is a tenth, has less than 2 % free."),
    Template("paths-unreadable", _W, "verify", "paths cannot be read",
             "Files or directories cannot be read; an error where it is an I/O error."),
    Template("records-lost", _E, "verify", "partitions have lost offsets",
             "A checkpoint or a snapshot shows that the log lost its end, its beginning or all."),
    Template("records-damaged", Severity.FATAL, "verify", "partitions have damaged batches",
             "Batches cannot be read, or contradict the format; records themselves, and what a start removes "
             "with them, only with --deep."),
    Template("segments-lost", _E, "verify", "partitions lack segments",
             "Offsets are missing before or between segments, or two segments hold the same ones, and neither "
             "retention nor compaction explains it."),
    Template("node-older", _E, "diff", "nodes have an older state",
             "By newer metadata, the node registered past the end of its metadata log, or after the clean stop that a "
             "log directory is left from."),
    Template("replicas-diverge", _E, "diff", "partitions have replicas that diverge",
             "Replicas here have different records at the same offsets, or each has records that others lack."),
    Template("no-leader", _E, "metadata", "partitions have no leader",
             "The newest metadata has no leader for the partition, while brokers with a replica of it run."),
    Template("not-served", _E, "boot", "partitions would not be served",
             "A broker would start, and not serve a log directory or a partition."),
    Template("replica-missing", _E, "boot", "replicas are missing",
             "The metadata has the replica in this log directory, and it is not there; with ZooKeeper, only its future "
             "replica is."),
    Template("directory-stray", _E, "boot", "directories do not belong here",
             "The metadata does not have the topic, has it with another id, or has no replica of it on this node."),
    Template("directory-foreign", _E, "ls", "directories are of another cluster, node or topic",
             "Cluster, node or topic ids of the directories contradict each other."),
    Template("transaction-hangs", _E, "txns", "transactions hang",
             "A transaction is open, was silent longer than transaction.max.timeout.ms, and no coordinator has it."),
    Template("cleaner-stopped", _E, "compaction", "logs stop the cleaner",
             "The cleaner cannot read a batch of what it has to clean next."),
    Template("index-wrong", _E, "verify", "partitions have wrong indexes",
             "An index, or a producer snapshot, contradicts its log: look-ups miss records."),
    Template("file-damaged", _E, "verify", "files are damaged",
             "Another file beside the logs cannot be decoded, or contradicts them."),
    Template("unclean-election", _W, "metadata", "partitions had an unclean election",
             "By the metadata's history, a leader was elected that may have lacked committed records."),
    Template("replica-behind", _W, "diff", "partitions have replicas that are behind",
             "No broker runs, and a replica ends before the high watermark of another one."),
    Template("voter-absent", _W, "quorum", "metadata quorums lack voters",
             "No broker runs, a majority of the voters is here but not all, and one that is not, or that lacks too "
             "much to lead, was fenced without an orderly stop."),
    Template("replicas-out-of-sync", _W, "metadata", "partitions have replicas out of sync",
             "In the newest metadata a replica is not in the ISR, although its broker runs."),
    Template("tail-torn", _W, "boot", "partitions end in a torn write",
             "The last segment ends inside a batch, or in zeros; a broker cuts that off when it starts; an error where "
             "the only replica lacks committed offsets."),
    Template("group-out-of-range", _W, "groups", "committed offsets are out of range",
             "A group committed an offset past the log end, or, if it has members, before the log start."),
    Template("transaction-open", _W, "txns", "transactions are open for long",
             "A transaction is open, and silent for 15 minutes before the newest record; whether it hangs is "
             "not known."),
    Template("retention-held", _W, "retention", "segments are held by future timestamps",
             "A timestamp more than an hour in the future keeps a segment and those after it from retention by time."),
    Template("cleaner-behind", _W, "compaction", "logs wait for the cleaner",
             "The log is dirtier than min.cleanable.dirty.ratio, nothing blocks the cleaner, and what it could clean "
             "was closed 10 minutes before the newest record."),
    Template("group-behind", _W, "groups", "groups are behind",
             "No broker runs, and a group lags by 1,000 records or more; it committed last 10 minutes before the "
             "newest record, or has read less than half of what a partition holds."),
    Template("group-commits", _W, "groups", "groups commit very often",
             "A group commits each partition more than once a second, in 8 MiB of records or more."),
    Template("sequences-wrong", _W, "producers", "partitions have gaps or repeats in sequences",
             "A producer's sequences skip or repeat in one epoch, and no damage explains it."),
    Template("records-twice", _W, "producers", "partitions have records twice",
             "Where logs are read whole: a producer without an id wrote equal batches, at most 5 minutes and 4,096 "
             "batches apart. Internal and compacted topics do not count."),
    Template("partitions-added", _W, "verify", "topics have keys in other partitions",
             "Where logs are read whole: partitions were added to the topic, and 16 keys or more are where the default "
             "partitioner put them before, not where it would put them now."),
    Template("leftovers", _W, "ls", "directories hold leftovers",
             "Directories marked -delete or -stray hold a tenth of the log directory and 64 MiB, or more."),
    Template("suspicious", _W, "verify", "findings are suspicious",
             "Another warning of verify, about something that can be mended."),
)  # fmt: skip

TEMPLATES: dict[str, Template] = {each.code: each for each in _TEMPLATES}
#: The place of each code in the order of urgency.
URGENCY: dict[str, int] = {each.code: number for number, each in enumerate(_TEMPLATES)}


class Diagnosis(msgspec.Struct, frozen=True):
    """One thing that is wrong. The rank counts from 1, the most urgent.

    ``question`` is the verb that answers more about it, ``subject`` the partition, node, group or file, and ``code``
    the template of the sentence. ``command`` runs as it is printed; None where there is nothing to run.
    """

    rank: int
    severity: Severity
    question: str
    subject: str
    sentence: str
    evidence_path: str | None
    evidence_offset: int | None
    command: str | None
    code: str

    def row(self) -> Row:
        return DIAGNOSIS.row_of(self, severity=self.severity.label)


class Draft(msgspec.Struct, frozen=True):
    """A diagnosis before it is ranked. ``graded`` is its severity where that is not the template's.

    Of one kind, those with more ``weight`` come first. ``node`` names the node where there are several, and
    ``many_command`` is the next command for many of the kind on one node.
    """

    code: str
    subject: str
    sentence: str
    path: str | None
    offset: int | None
    command: str | None
    graded: Severity | None = None
    weight: int = 0
    node: str = ""
    many_command: str | None = None

    @property
    def severity(self) -> Severity:
        return TEMPLATES[self.code].severity if self.graded is None else self.graded


def command(verb: str, *words: str) -> str:
    """A command of this program, quoted for a shell."""
    return shell_line(("kafkalog", verb, *words))


def ranges(offsets: Sequence[tuple[int, int]], most: int) -> str:
    """Ranges of offsets in words, those that touch joined, such as ``offsets 5 to 9 and 2 more ranges``."""
    found = merged(list(offsets))
    shown = [span(*each) for each in found[:most]]
    noun = "offset" if len(found) == 1 and found[0][0] == found[0][1] else "offsets"
    more = f" and {counted(len(found) - most, 'more range')}" if len(found) > most else ""
    return f"{noun} {', '.join(shown)}{more}"


def capital(words: str) -> str:
    """Words with a capital letter; a path stays as it is."""
    return words if "/" in words.split(" ")[0] else words[:1].upper() + words[1:]
