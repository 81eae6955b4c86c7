"""Makes the ranked diagnoses from the results of other verbs: one sentence each, true as it stands."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from format import layout
from format.errors import KafkaLogError
from format.findings import Finding, Severity
from format.io.session import is_there, path_of
from format.offset_ranges import merged, without
from format.scan.selected_logs import log_of_segment
from format.state.cluster_image import DELETED
from format.timestamps import iso_time
from format.verbs.boot.boot import removed_offsets
from format.verbs.compaction.compaction import DAMAGED_BATCH, LogCompaction
from format.verbs.doctor import cluster, usage
from format.verbs.doctor.diagnosis import TEMPLATES, URGENCY, Diagnosis, Draft, capital, command, ranges
from format.verbs.doctor.evidence import Evidence, is_unreadable_here, place_of
from format.verbs.report.terms import Report
from format.verbs.retention import modified_ms, read_segment_times, until_words
from format.verbs.txns.txns import MAX_TRANSACTION_TIMEOUT_MS, TransactionTerms
from format.wording import counted, listed

#: More diagnoses of one kind and node than these become one, which names the first of them.
_MOST_ALIKE = 3
#: What is wrong with records, and so with those of each replica.
_OF_RECORDS = frozenset(("retention-held", "sequences-wrong"))
_MOST_PLACES = 3
_MOST_RANGES = 2
#: How much older than the newest record a closed segment is that has waited long for the cleaner.
_LONG_MS = 10 * 60 * 1000

#: The template for each code of a finding; those of other codes are file-damaged or suspicious.
_TEMPLATE_OF = {
    "boot-refused": "start-refused",
    "boot-unserved": "not-served",
    "log-dir-empty": "directory-empty",
    "replica-stray": "directory-stray",
    "replica-missing": "replica-missing",
    "metadata-incomplete": "metadata-damaged",
    "topic-id-conflict": "directory-foreign",
    "checkpoint-mismatch": "records-lost",
    "tail-torn": "tail-torn",
    "tail-zeros": "tail-torn",
    **dict.fromkeys(("segment-missing", "log-head-missing", "segment-overlap"), "segments-lost"),
    **dict.fromkeys(
        ("offset-index-mismatch", "time-index-mismatch", "transaction-index-mismatch", "index-invalid",
         "index-missing", "index-orphan", "snapshot-invalid", "snapshot-mismatch"), "index-wrong",
    ),
    **dict.fromkeys(("sequence-gap", "sequence-duplicate", "producer-epoch-decreasing"), "sequences-wrong"),
}  # fmt: skip
#: What boot says by the metadata log of the node itself.
_BY_OWN_METADATA = ("replica-stray", "replica-missing")
_OF_INDEXES = ("index-invalid", "index-missing", "time-index-mismatch", "transaction-index-mismatch")
#: How the codes of damage inside of one batch begin.
_OF_BATCHES = ("batch-", "record-", "decompression-", "codec-", "control-", "internal-")
#: What is said elsewhere, or is said to be not known.
_LEFT_OUT = frozenset(("transaction-hanging", "log-head-remote", "nothing-to-read", "file-changed", "file-unreadable"))
_IO_ERROR = os.strerror(errno.EIO)


def diagnose(evidence: Evidence) -> list[Diagnosis]:
    """The diagnoses, the most urgent first; none where nothing is wrong."""
    drafts: list[Draft] = []
    for find in _FINDERS:
        drafts += find(evidence)
    drafts = _folded(evidence, _once(_explained(drafts)))
    drafts.sort(key=lambda each: (each.severity < Severity.ERROR, URGENCY[each.code], -each.weight, each.subject))
    return [
        Diagnosis(
            rank, each.severity, TEMPLATES[each.code].question, each.subject, each.sentence, each.path, each.offset,
            each.command, each.code,
        )
        for rank, each in enumerate(drafts, 1)
    ]  # fmt: skip


def conclude(report: Report, evidence: Evidence) -> None:
    """Add the diagnoses to a report, what was looked at, and what is not known."""
    elections = cluster.open_elections(evidence)
    report.diagnoses = diagnose(evidence)
    report.looked_at, report.not_known = evidence.looked_at(), [*elections, *evidence.not_known()]
    report.finds_nothing_wrong = not (report.diagnoses or elections)
    report.is_all_read = evidence.is_all_read


def _explained(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts without those that another one about the same directory explains."""
    missing = {each.path for each in drafts if each.code == "replica-missing"}
    emptied = {  # a stray directory without records, of a partition that the metadata has here
        each.path
        for each in drafts
        if each.code == "directory-stray" and each.severity < Severity.ERROR and each.path in missing
    }
    lost = {each.path for each in drafts if each.code == "directory-stray"} - emptied
    older = {each.node for each in drafts if each.code == "node-older"}
    hanging = {each.subject for each in drafts if each.code == "transaction-hangs"}
    diverged = {each.subject for each in drafts if each.code in ("replicas-diverge", "replica-behind")}
    stopped = {each.path for each in drafts if each.code == "cleaner-stopped"}
    damaged = {_directory_of_file(each.path) for each in drafts if each.code == "records-damaged"}
    drafts = [
        msgspec.structs.replace(each, sentence=f"{each.sentence} The cleaner stops there, and the log grows.")
        if each.code == "records-damaged" and _directory_of_file(each.path) in stopped
        else each
        for each in drafts
    ]
    return [
        each
        for each in drafts
        if not (each.code == "cleaner-stopped" and each.path in damaged)
        and not (
            each.code in ("records-lost", "replica-missing", "directory-foreign", "leftovers") and each.path in lost
        )
        and not (each.code in ("directory-stray", "records-lost") and each.path in emptied)
        and not (each.code == "cleaner-behind" and each.subject in hanging)
        and not (each.code == "unclean-election" and each.subject in diverged)
        and not (each.code == "replica-behind" and each.node and set(each.node.split(", ")) <= older)
    ]


def _directory_of_file(path: str | None) -> str:
    """The directory of a log."""
    return "" if path is None else path.rpartition("/")[0]


def _once(drafts: Sequence[Draft]) -> Iterator[Draft]:
    """The drafts, with one of those that say the same of each replica's records."""
    groups: dict[tuple[str, str, str], list[Draft]] = {}
    for each in drafts:
        subject = each.subject.removesuffix(f" on {each.node}") if each.code in _OF_RECORDS else each.subject
        groups.setdefault((each.code, subject, each.sentence), []).append(each)
    for (_code, subject, _sentence), alike in groups.items():
        first = alike[0]
        if len(alike) > 1 and first.code in _OF_RECORDS:
            nodes = listed([each.node for each in alike])
            first = msgspec.structs.replace(first, subject=f"{subject} on {nodes}", node=nodes)
            alike = [first]
        yield from alike


def _folded(evidence: Evidence, drafts: Iterable[Draft]) -> list[Draft]:
    """The drafts, with many of one kind on one node as one."""
    groups: dict[tuple[str, str], list[Draft]] = {}
    for each in drafts:
        groups.setdefault((each.code, each.node), []).append(each)
    found: list[Draft] = []
    for (code, node), alike in groups.items():
        if len(alike) <= _MOST_ALIKE:
            found += alike
            continue
        alike.sort(key=lambda each: (-each.severity, -each.weight))
        first = alike[0]
        names = [each.subject.removesuffix(f" on {node}") for each in alike[:_MOST_PLACES]]
        more = f" and {len(alike) - len(names):,} more"
        words = f"{len(alike):,} {TEMPLATES[code].many}: {', '.join(names)}{more}. The first: {first.sentence}"
        subject = node or evidence.log_dir_of(first.path or "").rpartition("/")[2] or counted(len(alike), "place")
        follow = first.many_command or first.command
        found.append(msgspec.structs.replace(first, subject=subject, sentence=words, command=follow))
    return found


def _of_findings(evidence: Evidence) -> Iterator[Draft]:
    """Diagnoses from findings, those of one kind in one partition together."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    missing = [each for each in evidence.findings if each.code == "index-missing"]
    rebuilt = {_segment_of(each) for each in missing if layout.OFFSET_INDEX_SUFFIX in each.message}
    stopping = {each.location.path for each in evidence.findings if each.code in ("boot-refused", "boot-unserved")}
    for each in evidence.findings:
        code = _code_of(each)
        if code in ("file-damaged", "suspicious") and each.location.path in stopping:
            continue  # that finding says what a broker makes of the file
        if each.code in _BY_OWN_METADATA and evidence.replicas_at_hand.is_assigned(path_of(place_of(each))):
            continue  # before a broker looks at its logs, it fetches the later metadata of the others
        if each.code in _BY_OWN_METADATA and evidence.log_dir_of(each.location.path) in evidence.misnamed:
            continue  # the logs are those of the other node
        if each.code in _OF_INDEXES and _segment_of(each) in rebuilt:
            continue  # a broker that finds no .index rebuilds all indexes of the segment
        if code is not None:
            groups.setdefault((code, place_of(each)), []).append(each)
    for (code, place), alike in groups.items():
        alike.sort(key=lambda each: (-each.severity, each.location.path, each.location.position or 0))
        yield _of_alike(evidence, code, place, alike)


def _segment_of(found: Finding) -> str:
    """The path of a file of a segment without its suffix."""
    return os.path.splitext(found.location.path)[0]


def _code_of(found: Finding) -> str | None:
    if found.code in _LEFT_OUT or found.is_incomplete or _is_mended_by_broker(found):
        return None
    code = _TEMPLATE_OF.get(found.code)
    if found.code == "index-orphan" and found.lost_offsets is not None:
        return "segments-lost"
    if code == "tail-torn" and found.severity >= Severity.ERROR:
        return "records-damaged"
    if code is not None:
        return code
    if found.location.path.endswith(layout.LOG_SUFFIX):
        return "records-damaged" if found.severity >= Severity.ERROR else "suspicious"
    return "file-damaged" if found.severity >= Severity.ERROR else "suspicious"


def _is_mended_by_broker(found: Finding) -> bool:
    """Whether a broker mends it when it starts, with no loss."""
    return found.severity < Severity.ERROR and found.next_step.startswith(("Nothing.", "Nothing;"))


def _of_alike(evidence: Evidence, code: str, place: str, alike: Sequence[Finding]) -> Draft:
    first, count = alike[0], len(alike)
    where, graded = first.location, first.severity
    subject = evidence.subject_of(place, where.topic, where.partition)
    words = capital(first.message.rstrip("."))
    lost = [each.lost_offsets for each in alike if each.lost_offsets is not None]
    weight = sum(last - begin + 1 for begin, last in lost)
    if code == "records-damaged":
        noun = "batch" if all(each.code.startswith(_OF_BATCHES) for each in alike) else "place"
        what = counted(count, noun) + (" is" if count == 1 else " are")
        shown = lost or [
            (each.location.offset, each.location.offset) for each in alike if each.location.offset is not None
        ]
        at = f", {ranges(shown, _MOST_RANGES)}" if shown else ""
        codes = listed(list(dict.fromkeys(each.code for each in alike)))
        words = f"{what} damaged{at} ({codes})"
    elif code == "tail-torn":
        is_left = where.topic != layout.CLUSTER_METADATA_TOPIC and evidence.stopped_cleanly(place)
        words += "; a broker appends after them" if is_left else "; a broker cuts them off when it starts"
        if lost and evidence.is_only_replica(place, where.topic, where.partition):
            words, graded = f"{words}; no other node has a replica", max(graded, Severity.ERROR)
    elif count > 1:
        words += f"; and {counted(count - 1, 'finding')} more of this kind there"
    follow, many = command("verify", place), command("verify", *evidence.log_dirs_of_node(place))
    twins = evidence.twins(place) if code == "start-refused" and where.path == place else []
    if code in ("records-damaged", "records-lost", "segments-lost") and lost:
        offsets = min(first for first, _ in lost), max(last for _, last in lost)
        covered, follow = _replica_words(evidence, place, offsets, code)
        words += (_removed_words(evidence, place, lost) if code == "records-damaged" else "") + covered
        if evidence.is_cleaned(place) and any(each.code == "batch-crc-mismatch" for each in alike):
            words += ". The cleaner checks no CRC: what it keeps of a damaged batch gets a right one, and looks sound"
    elif code == "directory-empty":
        follow = command("boot", *(str(each.path) for each in evidence.targets))
    elif twins:
        follow, many = command("diff", place, *twins), command("diff", *map(evidence.log_dir_of, (place, *twins)))
    elif code == "replica-missing" and evidence.context.image is None and not is_there(path_of(place)):
        follow = many  # of what ZooKeeper assigns, boot knows nothing
    elif code in ("start-refused", "not-served", "directory-stray", "replica-missing", "tail-torn"):
        follow = many = command("boot", *evidence.log_dirs_of_node(place))
    elif where.topic is not None and any(each.code == "sequence-duplicate" for each in alike):
        follow = command("producers", "--duplicates", "--topic", where.topic, place)
    return Draft(
        code, subject, f"{words}.", where.path, where.offset, follow, graded=graded, weight=weight or count,
        node=evidence.node_of(place), many_command=many,
    )  # fmt: skip


def _unreadable(evidence: Evidence) -> Iterator[Draft]:
    """Paths that cannot be read, those of one log directory together; an I/O error is one that a broker gets, too."""
    groups: dict[str, list[Finding]] = {}
    for each in filter(is_unreadable_here, evidence.findings):
        groups.setdefault(evidence.log_dir_of(each.location.path), []).append(each)
    for directory, alike in groups.items():
        first = min(alike, key=lambda each: _IO_ERROR not in each.message)
        is_broken = _IO_ERROR in first.message
        then = f"What {'it holds' if len(alike) == 1 else 'they hold'} is not known"
        then = "A broker that gets this error stops using the log directory" if is_broken else then
        yield Draft(
            "paths-unreadable",
            evidence.node_of(directory) or directory.rpartition("/")[2],
            f"{counted(len(alike), 'path')} cannot be read ({first.message}). {then}.",
            first.location.path,
            first.location.offset,
            command("verify", directory),
            graded=Severity.ERROR if is_broken else None,
            weight=len(alike),
            node=evidence.node_of(directory),
        )


def _removed_words(evidence: Evidence, place: str, damaged: list[tuple[int, int]]) -> str:
    """Which offsets that are not damaged a start removes with the damaged ones, if that is so."""
    end = evidence.log_end(place)
    if not evidence.reads_records or evidence.is_bundled or evidence.is_live or end is None:
        return ""
    removed = removed_offsets(path_of(place), end, evidence.limits)
    left = [] if removed is None else without([removed], merged(damaged))
    return f". A broker that starts cuts the log there, and removes {ranges(left, _MOST_RANGES)} too" if left else ""


def _replica_words(evidence: Evidence, place: str, offsets: tuple[int, int], code: str) -> tuple[str, str]:
    """What is known of the other replicas at offsets that were lost or damaged (``code``), and the next command."""
    others = [each.path for each in evidence.others(place)]
    if evidence.is_bundled or place.endswith(f"/{layout.METADATA_PARTITION}"):  # a voter must not lose its log
        return "", command("diff", place, *others) if others else command("verify", place)
    try:
        deep = evidence.reads_records
        remedy = evidence.replicas_at_hand.remedy(path_of(place), offsets, deep=deep, is_end=code == "records-lost")
    except KafkaLogError:
        remedy = None  # a finding says what cannot be read
    words = "" if remedy is None or not remedy.sentence else f". {remedy.sentence.rstrip('.')}"
    if remedy is not None and remedy.merge is not None:
        return words, remedy.merge
    if remedy is not None and remedy.intact:
        return words, command("diff", place, *(str(each.replica.path) for each in remedy.intact))
    if code == "segments-lost" or not evidence.has_segments(place):
        return words, command("verify", place)  # nothing of it is left in this log
    if remedy is not None and remedy.not_at_hand and not remedy.others:
        return words, command("verify", place)  # salvage comes after the other replicas were looked at
    return words, command("salvage", place, "--output", f"{place.rpartition('/')[2]}.salvaged")


def _transactions(evidence: Evidence) -> Iterator[Draft]:
    """Transactions that hang, and those that were open for long where it is not known whether they hang."""
    terms = TransactionTerms(evidence.now_ms, limits=evidence.limits, bootstrap_server=evidence.bootstrap_server)
    for each in evidence.opened:
        known, path = each.transaction, str(each.found.partition.path)
        last = known.last_timestamp if known.last_timestamp >= 0 else known.start_timestamp
        is_old = evidence.newest_timestamp - last > MAX_TRANSACTION_TIMEOUT_MS
        if not each.is_hanging and (each.is_hanging is False or not is_old):
            continue
        who = f"Producer {known.producer_id}"
        who = who if each.transactional_id is None else f"{each.transactional_id} (producer {known.producer_id})"
        since = f", since {iso_time(known.start_timestamp)}" if known.start_timestamp >= 0 else ""
        records, _ = each.found.waiting(known)
        words = f"{who} has a transaction open from offset {known.first_offset} on{since}"
        if each.is_hanging:
            words += ", and no coordinator will end it"
        words += f". Consumers with read_committed wait for {counted(records, 'record')}"
        if not each.is_hanging:
            words += ". Whether it hangs is not known without every partition of __transaction_state"
        code = "transaction-hangs" if each.is_hanging else "transaction-open"
        subject = evidence.subject_of(path, each.topic, each.partition)
        follow = each.abort_command(terms) if each.is_hanging else command("txns", "--open", path)
        all_open = command("txns", "--open", *evidence.log_dirs_of_node(path))
        yield Draft(code, subject, f"{words}.", path, known.first_offset, follow, weight=records,
                    node=evidence.node_of(path), many_command=all_open)  # fmt: skip


def _retention(evidence: Evidence) -> Iterator[Draft]:
    """Segments that a future timestamp keeps, the first of each partition."""
    seen: dict[str, list[dict[str, Any]]] = {}
    for row in evidence.held:
        seen.setdefault(str(row["path"]).rpartition("/")[0], []).append(row)
    for place, rows in seen.items():
        late = [each for each in rows if each["retained_by"] == "future_timestamp"
                and (each["largest_timestamp"] or 0) > evidence.future_ms]  # fmt: skip
        if not late:
            continue
        row = late[0]
        at, offset = row["largest_timestamp"], row["largest_timestamp_offset"]
        until = until_words(row["deletable_at"], row["config_source"])
        which = "A record" if offset is None else f"The record at offset {offset}"
        held = [each for each in rows if each in late or each["retained_by"] == "preceding_segment"]
        size = sum(each["size_bytes"] for each in held)
        words = f"{which} has the timestamp {iso_time(at)}: retention by time keeps its segment {until}"
        words += f", {counted(size, 'byte')} in {counted(len(held), 'segment')}."
        subject = evidence.subject_of(place, row["topic"], row["partition"])
        follow = command("retention", place)
        if offset is not None:
            follow = command("producers", "--record", f"{row['topic']}-{row['partition']}:{offset}", place)
        yield Draft("retention-held", subject, words, str(row["path"]), offset,
                    follow, weight=size, node=evidence.node_of(place))  # fmt: skip


def _cleaners(evidence: Evidence) -> Iterator[Draft]:
    """Logs that stop the cleaner, and those that wait for it."""
    for each in evidence.cleaners:
        partition, path, found = each.partition, str(each.partition.path), each.range
        subject = evidence.subject_of(path, partition.topic, partition.number)
        draft = Draft("cleaner-stopped", subject, "", path, found.first_dirty_offset, command("compaction", path),
                      weight=found.dirty_bytes, node=evidence.node_of(path))  # fmt: skip
        if each.blocked_by == DAMAGED_BATCH:
            words = "A batch that the cleaner cannot read stops it"
            words += f" from offset {found.first_dirty_offset} on: the log is cleaned no more, and grows."
            yield msgspec.structs.replace(draft, sentence=words)
        elif each.blocked_by is None and _waits_long(evidence, each):
            total = found.dirty_bytes + found.clean_bytes
            words = f"The cleaner is behind: {found.dirty_bytes:,} of {counted(total, 'byte')} are dirty, from offset "
            words += f"{found.first_dirty_offset} on, and nothing in the log blocks it: see whether its thread died."
            yield msgspec.structs.replace(draft, code="cleaner-behind", sentence=words, graded=Severity.WARNING)


def _waits_long(evidence: Evidence, each: LogCompaction) -> bool:
    """Whether the last segment that the cleaner could clean was closed long before the newest record of the log.

    Both the timestamps and the times of the files must say so: producers may write old timestamps, and copying files
    may set their times anew.
    """
    partition, found = each.partition, each.range
    listing = next((one for one in evidence.partitions if one.path == str(partition.path)), None)
    dirty = [one for one in partition.segments[:-1] if found.first_dirty_offset <= one.base_offset]
    dirty = [one for one in dirty if one.base_offset < found.first_uncleanable_offset]
    log = log_of_segment(partition, dirty[-1]) if len(dirty) > 1 else None
    newest = partition.segments[-1].log
    if log is None or newest is None or listing is None or listing.max_timestamp is None:
        return False
    if modified_ms(newest) - modified_ms(log.path) < _LONG_MS:
        return False
    times, _ = read_segment_times(log, evidence.limits, by_headers=False, with_offset=False)
    return times is not None and 0 <= times.largest_timestamp < listing.max_timestamp - _LONG_MS


def _boot_by_metadata(evidence: Evidence, path: str) -> str:
    """The command that simulates the start of the node of a path by the metadata at hand."""
    source, log_dirs = evidence.context.source, evidence.log_dirs_of_node(path)
    if source is None:
        return command("boot", *log_dirs)
    metadata = str(source.partition.path)
    around = metadata.rpartition("/")[0] or "."
    if around in log_dirs:
        return command("boot", *log_dirs)
    is_here = any(str(each.path) == around for each in evidence.log_dirs)
    return command("boot", "--metadata", around if is_here else metadata, *log_dirs)


def _strays(evidence: Evidence) -> Iterator[Draft]:
    """Directories that, by the metadata at hand, are not of this node, topic or cluster, or have a wrong node.id."""
    told = {place_of(each) for each in evidence.findings if each.code == "replica-stray"}
    for each in evidence.partitions:
        notes = [note for note in (each.notes or "").split("; ") if note.startswith("stray: ")]
        if not notes or each.path in told or evidence.log_dir_of(each.path) in evidence.misnamed:
            continue
        subject = evidence.subject_of(each.path, each.topic, each.partition)
        which = "" if each.topic_id is None else f"id {each.topic_id}"
        image = evidence.context.image
        known = None if image is None or each.topic is None else image.topic_id(each.topic)
        if known is not None and each.topic_id not in (None, known):
            which += f"; there {each.topic} has the id {known}"
        is_deleted = evidence.was_deleted(each)
        is_needless = is_deleted or not each.log_size_bytes
        which += f"; {DELETED}" if is_deleted else ""
        by = ", ".join(filter(None, (evidence.context.source_words, which)))
        words = f"The directory is stray: {notes[0].removeprefix('stray: ')}{f' ({by})' if by else ''}. A broker "
        words += "does not serve it." if each.mark == "stray" else "renames it to -stray and does not serve it."
        yield Draft("directory-stray", subject, words, each.path, None, _boot_by_metadata(evidence, each.path),
                    graded=Severity.WARNING if is_needless else None, weight=each.size_bytes or 0,
                    node=evidence.node_of(each.path))  # fmt: skip
    for path, whose in evidence.foreign.items():
        file = f"{path}/{layout.META_PROPERTIES}"
        words = f"The log directory is of another cluster: its cluster.id is not that of {whose}."
        yield Draft("directory-foreign", path, words, file, None, command("dump", file))
    for path, (named, owner) in evidence.misnamed.items():
        file = f"{path}/{layout.META_PROPERTIES}"
        words = f"The node.id of the log directory is {named}, and by the metadata at hand node {owner} registered its "
        words += f"directory.id: node.id is wrong. Node {owner} does not start with it, and node {named} would rename "
        words += "the logs to -stray."
        yield Draft("directory-foreign", path, words, file, None, command("dump", file))


_FINDERS: tuple[Callable[[Evidence], Iterator[Draft]], ...] = (
    _of_findings,
    _unreadable,
    cluster.older_nodes,
    cluster.older_directories,
    cluster.diverged,
    cluster.no_leaders,
    cluster.absent_voters,
    cluster.out_of_sync,
    cluster.elected_uncleanly,
    _transactions,
    usage.out_of_range,
    usage.behind,
    usage.committing_often,
    usage.repeated_batches,
    usage.misplaced,
    _retention,
    _cleaners,
    _strays,
    usage.full_disks,
    usage.leftovers,
)
