"""The metadata quorum: copies of its log on disks, its voters, who of them can be elected, what a majority holds.

A node recovers its metadata log at every start: it checks every CRC and truncates the log where one is wrong, or
empties it where the newest snapshot reaches further. So a copy ends here where its node, started on it, ends. It may
have records that the quorum has not committed: voters and observers alike fetch up to the end of the leader's log (raft
KafkaRaftClient.tryCompleteFetchRequest, Isolation.UNCOMMITTED). Snapshots hold committed records alone.

A voter votes for no candidate whose log ends before its own: the last leader epoch counts, then the end offset
(KIP-595). Some voters may not be at hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from format.errors import KafkaLogError, UnreadableFile
from format.files import leader_epoch_checkpoint, meta_properties, quorum_state
from format.files.leader_epoch_checkpoint import EpochEntry
from format.files.quorum_state import QuorumState
from format.files.side_file import INT32_RANGE, INT64_RANGE
from format.findings import Finding, Severity, finding, finding_of
from format.kafka_uuid import canonical_uuid
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import log_dir_around
from format.node.partition import KraftSnapshot, Partition
from format.node.target import Target
from format.scan.protocol import Depth, LogUnit, Needs, OpenedRange
from format.scan.read_log import LogChunk, selected_chunks
from format.scan.selected_logs import log_of_segment
from format.scan.selection import EVERYTHING
from format.state.leader_epochs import ReplicaEpochs, replica_epochs
from format.state.log_headers import log_parts
from format.state.metadata_log import (
    MetadataRecord,
    MetadataRecords,
    MetadataSource,
    MetadataState,
    Until,
    check_start,
    finished_snapshots,
    metadata_records,
    metadata_sources,
    reaches_back,
    read_metadata,
    unfinished_finding,
)
from format.wording import counted

_FileT = TypeVar("_FileT")
#: The codes of a file that ends inside a batch.
_CUT = ("tail-torn", "log-truncated")
#: Control records about the quorum itself (KIP-853), which snapshots and logs have.
_OF_THE_QUORUM = ("KRAFT_VERSION", "KRAFT_VOTERS")


class Voter(msgspec.Struct, frozen=True):
    """A voter of the metadata quorum.

    ``endpoints`` are (listener, host, port). The directory id and the kraft.version levels are None in a static quorum,
    whose voters are in the configuration of the controllers.
    """

    node_id: int
    directory_id: str | None = None
    endpoints: tuple[tuple[str, str, int], ...] = ()
    kraft_versions: tuple[int, int] | None = None


class MetadataCopy(msgspec.Struct, frozen=True):
    """The metadata log in one log directory, as its node has it after a start.

    ``snapshot`` is the newest one, ``sound_snapshot`` the newest that can be read; ``epochs`` are those of the log.
    ``records`` are those about the quorum itself, in the order in which they count. ``dropped_from`` is the offset from
    which on the node truncates its log because of damage. ``refusal`` says why a node does not start on it, ``unsure``
    why it is not known whether it does, ``gap`` why it is not whole. ``unread`` says why it cannot be read to its end,
    so that it is not known what the node has; empty where it can.
    """

    source: MetadataSource
    directory_id: str | None
    snapshot: KraftSnapshot | None
    sound_snapshot: KraftSnapshot | None
    epochs: ReplicaEpochs
    state: QuorumState | None
    records: tuple[MetadataRecord, ...]
    dropped_from: int | None
    refusal: str
    unsure: str
    gap: str
    unread: str
    findings: tuple[Finding, ...]

    @property
    def node_id(self) -> int | None:
        return self.source.node_id

    @property
    def cluster_id(self) -> str | None:
        return self.source.cluster_id

    @property
    def path(self) -> Path:
        """The metadata partition, or the one file that was given."""
        return self.source.partition.path

    @property
    def end(self) -> tuple[int, int]:
        """The last leader epoch and the end offset; in this order, voters compare logs."""
        return -1 if self.epochs.latest is None else self.epochs.latest, self.epochs.log_end_offset

    @property
    def committed_end(self) -> int:
        """The offset before which its snapshots show that the records are committed; it may lie past its log's end."""
        return max((each.end_offset for each in finished_snapshots(self.source.partition)), default=0)

    @property
    def is_usable(self) -> bool:
        """Whether the whole metadata up to its end can be read from it."""
        return not (self.gap or self.unread)

    @property
    def is_able(self) -> bool | None:
        """Whether its node starts on it, so that it can vote; None where a file of it cannot be read."""
        return False if self.refusal else None if self.unsure else True

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version: 0 for a static quorum, 1 for a dynamic one."""
        levels = [each.data["kRaftVersion"] for each in self.records if each.record_type == "KRAFT_VERSION"]
        return levels[-1] if levels else 0

    @property
    def voters(self) -> tuple[Voter, ...] | None:
        """The voters by its last KRAFT_VOTERS record, or by the quorum-state of a static quorum; None if not there.

        A voter set counts from the moment it is in the log, before it is committed (KIP-853).
        """
        sets = [each.data["voters"] for each in self.records if each.record_type == "KRAFT_VOTERS"]
        if sets:
            return tuple(sorted(map(_voter, sets[-1]), key=lambda each: each.node_id))
        named = None if self.state is None else self.state.current_voters
        return tuple(map(Voter, sorted(named))) if named else None


class BestCopy(msgspec.Struct, frozen=True):
    """The copy to go on from, and the reasons, each a sentence."""

    copy: MetadataCopy
    reasons: tuple[str, ...]


def _voter(data: dict[str, Any]) -> Voter:
    feature = data["kRaftVersionFeature"]
    return Voter(
        data["voterId"],
        data["voterDirectoryId"],
        tuple((each["name"], each["host"], each["port"]) for each in data["endpoints"]),
        (feature["minSupportedVersion"], feature["maxSupportedVersion"]),
    )


def read_metadata_copies(targets: Iterable[Target], limits: Limits = DEFAULT_LIMITS) -> list[MetadataCopy]:
    """Every copy at or below some paths, in their order. Raises InputError if there is none."""
    return [_copy(source, limits) for source in metadata_sources(targets, limits)]


def metadata_source(
    targets: Iterable[Target], limits: Limits, until: Until | None = None, *, is_history: bool = False
) -> tuple[MetadataSource, list[MetadataSource]]:
    """The metadata log of the best copy at or below some paths, and the others.

    With ``until`` it is the best of those that have all records up to that one, if any has: with ``is_history`` from
    the start of the log on, else from a snapshot on. Where none has, it is one that reaches back to that record. Raises
    InputError if there is none, UnreadableFile if none can be listed.
    """
    found = metadata_sources(targets, limits)
    readable = [each for each in found if each.unread is None]
    if found[0].unread is not None and not readable:
        raise UnreadableFile(found[0].unread.message, found[0].unread.location)
    best = readable[0]
    if len(readable) > 1:
        copies = [_copy(each, limits) for each in readable]
        chosen = best_copy(copies).copy
        if until is not None and (is_history or until != Until()):
            is_whole = partial(_is_whole_until, best=chosen, until=until, limits=limits, is_history=is_history)
            if not is_whole(chosen):
                of_cluster = [each for each in copies if each.cluster_id == chosen.cluster_id]
                kept = [each for each in of_cluster if is_whole(each)]
                if not kept and not reaches_back(chosen.source.partition, until, limits):
                    kept = [each for each in of_cluster if reaches_back(each.source.partition, until, limits)]
                    kept = [each for each in kept if each.is_usable]
                chosen = best_copy(kept or [chosen]).copy
        best = chosen.source
    return best, [each for each in found if each is not best]


def _is_whole_until(copy: MetadataCopy, best: MetadataCopy, until: Until, limits: Limits, is_history: bool) -> bool:
    """Whether a copy has every record up to one: those that there are before the end of the best copy."""
    if not reaches_back(copy.source.partition, until, limits):
        return False
    # With a watch, all records from the oldest snapshot on are read.
    state = read_metadata(copy.source.partition, until, limits, (lambda *_: None) if is_history else None)
    is_past = copy.end[1] > min(until.offset, state.last_offset + 1)
    return not state.is_damaged and (is_past or copy.end >= best.end)


def best_copy(copies: Sequence[MetadataCopy]) -> BestCopy:
    """The copy that reaches furthest: by its last leader epoch, then by its end, as voters compare logs.

    One that is not whole comes last, and so does one with a later epoch than every quorum-state here: a node writes
    that file before the first batch of an epoch, and no CRC covers the epoch of a batch. Of equal ones that of a voter,
    the one without damage, and then the one that reaches back furthest comes first. Copies of other clusters than most
    are left out.
    """
    clusters = Counter(each.cluster_id for each in copies if each.cluster_id is not None)
    cluster_id = clusters.most_common(1)[0][0] if clusters else None
    of_cluster = [each for each in copies if cluster_id is None or each.cluster_id in (None, cluster_id)]
    voters = {each.node_id for copy in of_cluster for each in copy.voters or ()}

    epochs = [each.state.leader_epoch for each in of_cluster if each.state is not None]
    latest = max(epochs, default=INT32_RANGE[1])

    def standing(copy: MetadataCopy) -> tuple[object, ...]:
        is_sane, start = copy.is_usable and copy.end[0] <= latest, copy.epochs.log_start_offset
        return is_sane, copy.end, copy.node_id in voters, not copy.refusal, copy.dropped_from is None, -start

    best = max(of_cluster, key=standing)
    return BestCopy(best, tuple(_reasons(best, of_cluster, len(copies) - len(of_cluster))))


def _reasons(best: MetadataCopy, copies: Sequence[MetadataCopy], foreign: int) -> Iterator[str]:
    epoch, end = best.end
    others = [each for each in copies if each is not best]
    equal = sum(each.end == best.end and each.is_usable for each in others)
    rank = "further than every other" if others else "the only one here"
    rank = f"as {counted(equal, 'other copy')} {'does' if equal == 1 else 'do'}" if equal else rank
    yield f"it ends at offset {end} of epoch {epoch}, {rank}"
    if best.gap:
        yield f"no copy is whole: {best.gap}"
    for each in others:
        if each.end > best.end:
            why = each.gap or each.unread or "no quorum-state here has such an epoch"
            yield f"{each.path} ends at {each.end[1]} of epoch {each.end[0]}, but is not whole: {why}"
        if each.committed_end > end:
            yield f"a snapshot in {each.path} shows that records up to offset {each.committed_end - 1} were committed"
    if foreign:
        yield f"{counted(foreign, 'copy')} of another cluster left out"


# -- the metadata up to the end of a copy --------------------------------------------------------------------------


class CopyRecord(msgspec.Struct, frozen=True):
    """A record of a copy, and whether it is in the snapshot."""

    record: MetadataRecord
    is_snapshot: bool


def records_of_copy(
    copy: MetadataCopy, limits: Limits, *, is_past_damage: bool = False
) -> Iterator[CopyRecord | Finding]:
    """The records of its newest sound snapshot and of its log from there to its end, and findings about these.

    With ``is_past_damage`` also those that its node drops, as far as they can be read.
    """
    partition, snapshot = copy.source.partition, copy.sound_snapshot
    start, known_end = 0, copy.end[1]
    end = INT64_RANGE[1] if is_past_damage else known_end
    if snapshot is not None:
        start = snapshot.end_offset
        for item in metadata_records(LogUnit(snapshot.path, partition.location(snapshot.path)), 0, limits):
            if isinstance(item, MetadataRecord):
                yield CopyRecord(item, is_snapshot=True)
            elif item.is_incomplete or item.severity >= Severity.ERROR:
                yield item
    for segment in partition.segments:
        log, next_base = log_of_segment(partition, segment), partition.next_base_offset(segment)
        if log is None or segment.base_offset >= end or (next_base is not None and next_base <= start):
            continue
        for item in metadata_records(log, start, limits):
            if isinstance(item, Finding):
                if _concerns(item, start, known_end):
                    yield item
            elif item.offset < end:
                yield CopyRecord(item, is_snapshot=False)
            else:
                break


def _concerns(found: Finding, start: int, end: int) -> bool:
    """Whether a finding is about records of a log between these offsets; a copy ends at the first damage of its log."""
    offset = found.location.offset
    if offset is None:
        return found.is_incomplete and start < end
    return start <= offset < end and (found.is_incomplete or found.severity >= Severity.ERROR)


def state_of_copy(copy: MetadataCopy, limits: Limits = DEFAULT_LIMITS) -> MetadataState:
    """The image of the cluster at the end of a copy. Records after damage, which its node drops, do not count."""
    snapshot = copy.sound_snapshot
    state = MetadataState(path=copy.path, snapshot=None if snapshot is None else snapshot.path)
    check_start(copy.source.partition, state)
    for item in records_of_copy(copy, limits):
        if isinstance(item, Finding):
            state.findings.append(item)
        else:
            state.take(item.record, is_snapshot=item.is_snapshot)
    state.findings += state.last_findings(copy.source.partition.location())
    return state


# -- reading ---------------------------------------------------------------------------------------------------------


class _Span(msgspec.Struct):
    """The batches of a chunk: each change of their epoch, the first offset and the end, up to the first damaged one."""

    epochs: list[EpochEntry]
    first_offset: int
    end: int
    is_cut: bool


class _CopyWalk(msgspec.Struct, frozen=True):
    """The headers of a metadata log or snapshot with checked CRCs, and the records about the quorum."""

    limits: Limits

    @property
    def needs(self) -> Needs:
        return Needs(Depth.CRC, EVERYTHING, self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[_Span | MetadataRecord | Finding]:
        """The spans of chunks in log order, each before its records; nothing after the first damage but findings."""
        is_cut = False
        records = MetadataRecords(limits=self.limits, only_controls=True)
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
            elif not is_cut and len(item.chunk.table):
                span = _span_of(item)
                yield span
                for each in records.of_chunk(item):
                    if isinstance(each, Finding) or each.offset < span.end:
                        yield each
                is_cut = span.is_cut or item.chunk.damage is not None


def _span_of(item: LogChunk) -> _Span:
    table = item.chunk.table
    broken = np.flatnonzero(table.crc_valid == 0)
    count = int(broken[0]) if len(broken) else len(table)
    first = int(table.base_offset[0])
    span = _Span([], first, first, is_cut=bool(len(broken)))
    for row, epoch in enumerate(table.leader_epoch[:count].tolist()):
        if not span.epochs or epoch != span.epochs[-1].leader_epoch:
            span.epochs.append(EpochEntry(epoch, int(table.base_offset[row])))
        span.end = table.last_offset_of(row) + 1
    return span


class _Reading(msgspec.Struct):
    """What was read of a copy so far."""

    findings: list[Finding] = msgspec.field(default_factory=list)
    epochs: list[EpochEntry] = msgspec.field(default_factory=list)
    log_records: list[MetadataRecord] = msgspec.field(default_factory=list)
    start: int | None = None
    end: int = 0
    snapshot_records: list[MetadataRecord] = msgspec.field(default_factory=list)
    is_newest_cut: bool = False  # a node reads such a snapshot up to its last whole batch, and starts
    dropped_from: int | None = None
    refusal: str = ""
    unsure: str = ""
    gap: str = ""
    unread: str = ""


def _copy(source: MetadataSource, limits: Limits) -> MetadataCopy:
    partition = source.partition
    read = _Reading()
    if source.unread is not None:
        read.findings.append(source.unread)
        read.unread = source.unread.message
    _read_log(partition, limits, read)
    snapshots = finished_snapshots(partition)
    newest = snapshots[0] if snapshots else None
    sound = _read_snapshots(partition, snapshots, limits, read)
    if newest is not None and newest is not sound and not read.is_newest_cut:
        is_known = all(each.location.path != str(newest.path) or not each.is_incomplete for each in read.findings)
        if is_known:
            read.refusal = f"its newest snapshot, {newest.path.name}, is damaged"
        else:
            read.unsure = f"its newest snapshot, {newest.path.name}, cannot be read"
    state = _read_file(quorum_state.read, partition.quorum_state, limits, read)
    log_dir = log_dir_around(partition.path)
    properties_path = None if log_dir is None else log_dir.meta_properties
    properties = _read_file(meta_properties.read, properties_path, limits, read)
    epochs = _epochs(partition, sound, limits, read)
    least = 0 if sound is None else sound.end_offset
    return MetadataCopy(
        source=source,
        directory_id=None if properties is None else properties.directory_id,
        snapshot=newest,
        sound_snapshot=sound,
        epochs=epochs,
        state=state,
        records=(
            *(each for each in read.log_records if each.offset < least),
            *read.snapshot_records,
            *(each for each in read.log_records if each.offset >= least),
        ),
        dropped_from=read.dropped_from,
        refusal=read.refusal,
        unsure=read.unsure,
        gap=read.gap,
        unread=read.unread,
        findings=tuple(read.findings),
    )


def _read_file(
    read_at: Callable[[Path, Limits], _FileT], path: Path | None, limits: Limits, read: _Reading
) -> _FileT | None:
    """A file without which a node starts, but not if it cannot decode it; None where it is not there."""
    try:
        return None if path is None else read_at(path, limits)
    except KafkaLogError as error:
        read.findings.append(finding_of(error, Location(str(path))))
        words = f"its {path.name if path is not None else ''} cannot be read"
        if isinstance(error, UnreadableFile):  # by this user: its node may read it
            read.unsure = read.unsure or words
        else:
            read.refusal = read.refusal or words
        return None


def _epochs(partition: Partition, sound: KraftSnapshot | None, limits: Limits, read: _Reading) -> ReplicaEpochs:
    """The epochs of the log, which the node empties where its snapshot reaches further; also sets ``read.gap``."""
    path = partition.leader_epoch_checkpoint
    noted: Sequence[EpochEntry] = ()
    with suppress(KafkaLogError):  # verify reports it
        noted = () if path is None else leader_epoch_checkpoint.read(path, limits).entries
    start = read.end if read.start is None else read.start
    epochs = replica_epochs(noted, read.epochs, log_start_offset=start, log_end_offset=read.end, high_watermark=None)
    if sound is not None and (sound.epoch, sound.end_offset) > (
        -1 if epochs.latest is None else epochs.latest,
        read.end,
    ):
        read.gap = ""
        entry = EpochEntry(sound.epoch, sound.end_offset)
        return ReplicaEpochs((entry,), sound.end_offset, sound.end_offset)
    if sound is None and read.start is None:
        read.gap = "it has neither a log nor a snapshot that can be read"
    elif start > (0 if sound is None else sound.end_offset):
        read.gap = f"no snapshot that can be read has the records before offset {start}, where its log begins"
        read.refusal = read.refusal or read.gap
    return epochs


def _read_log(partition: Partition, limits: Limits, read: _Reading) -> None:
    """Read the segments up to the first damage, where a start truncates the log."""
    for segment in partition.segments:
        log = log_of_segment(partition, segment)
        if log is None:
            continue
        if read.dropped_from is not None or read.unread:
            break
        if read.start is None:
            read.start = read.end = segment.base_offset
        elif segment.base_offset > read.end:
            read.gap = read.gap or f"its log lacks the records from {read.end} to {segment.base_offset - 1}"
        elif segment.base_offset < read.end:
            read.gap = read.gap or f"its log has the records from {segment.base_offset} to {read.end - 1} twice"
        damage: list[Finding] = []
        for item in log_parts(_CopyWalk(limits), log):
            if isinstance(item, _Span):
                for entry in item.epochs:
                    last = read.epochs[-1].leader_epoch if read.epochs else -1
                    if entry.leader_epoch > last:
                        read.epochs.append(entry)
                    elif entry.leader_epoch < last:
                        words = f"leader epoch {entry.leader_epoch} follows {last}"
                        place = log.location.at(offset=entry.start_offset)
                        read.findings.append(finding("leader-epoch-decreasing", place, words))
                        read.gap = read.gap or f"at offset {entry.start_offset}, {words}"
                if item.first_offset > read.end:
                    read.gap = read.gap or f"its log lacks the records from {read.end} to {item.first_offset - 1}"
                read.end = max(read.end, item.end)
            elif isinstance(item, MetadataRecord):
                if item.record_type in _OF_THE_QUORUM:
                    read.log_records.append(item)
            else:
                damage.append(item)
        read.findings += damage
        read.unread = next((each.message for each in damage if each.code == "file-unreadable"), "")
        if not read.unread and any(each.severity >= Severity.ERROR for each in damage):
            read.dropped_from = read.end


def _read_snapshots(
    partition: Partition, snapshots: Sequence[KraftSnapshot], limits: Limits, read: _Reading
) -> KraftSnapshot | None:
    """The newest snapshot that can be read whole, with its records about the quorum; None for none."""
    newest = next(iter(snapshots), None)
    for snapshot in snapshots:
        records: list[MetadataRecord] = []
        wrong: list[Finding] = []
        location, last = partition.location(snapshot.path), ""
        for item in log_parts(_CopyWalk(limits), LogUnit(snapshot.path, location)):
            if isinstance(item, Finding):
                wrong.append(item)
            elif isinstance(item, MetadataRecord):
                last = item.record_type
                if last in _OF_THE_QUORUM:
                    records.append(item)
        if not wrong and last == "SNAPSHOT_FOOTER":
            read.snapshot_records = records
            return snapshot
        if not read.is_newest_cut:
            read.is_newest_cut = bool(last) and all(each.code in _CUT for each in wrong) and snapshot is newest
        read.findings += wrong or [unfinished_finding(location)]
    return None


#: The leader epoch of the last batch, and the end offset; in this order they compare as the voters do.
LogEnd = tuple[int, int]


def majority_of(voter_count: int) -> int:
    """How many voters elect a leader."""
    return voter_count // 2 + 1


def can_lead(ends: Mapping[int, LogEnd], voter_count: int, dead_count: int = 0) -> dict[int, bool | None]:
    """By node id, whether a voter can be elected; None where that depends on voters that are not at hand.

    ``dead_count`` voters are at hand and cannot vote.
    """
    majority, absent = majority_of(voter_count), voter_count - len(ends) - dead_count
    found: dict[int, bool | None] = {}
    for node_id, end in ends.items():
        votes = sum(end >= other for other in ends.values())
        found[node_id] = True if votes >= majority else None if votes + absent >= majority else False
    return found


def held_by_majority(ends: Sequence[int], voter_count: int) -> tuple[int, int]:
    """The offset before which a majority certainly has all records, and before which it may have them.

    ``ends`` has, of each voter at hand, the offset before which its records are those of the longest log.
    """
    ordered, majority = sorted(ends, reverse=True), majority_of(voter_count)
    absent = voter_count - len(ordered)
    certain = ordered[majority - 1] if len(ordered) >= majority else 0
    possible = ordered[max(majority - absent, 1) - 1] if ordered else 0
    return certain, possible


class QuorumMember(msgspec.Struct, frozen=True):
    """A node of the quorum by its furthest copy of the metadata log.

    ``is_voter`` is None if the voters are not known, or the node is not: there is no meta.properties beside its copy.
    Before ``shared_end``, its log is that of the best copy.
    """

    copy: MetadataCopy
    is_voter: bool | None
    shared_end: int

    @property
    def node_id(self) -> int:
        return -1 if self.copy.node_id is None else self.copy.node_id

    @property
    def end(self) -> LogEnd:
        return self.copy.end

    @property
    def is_able(self) -> bool | None:
        """Whether its node starts on the copy, see MetadataCopy."""
        return self.copy.is_able


class Quorum(msgspec.Struct, frozen=True):
    """The quorum by the copies at hand; its members come with the furthest log first. ``voters`` None: not known.

    ``best`` is the copy that is compared with, ``state`` its image of the cluster. ``left_out`` are the copies of other
    clusters, those that cannot be read, and those of nodes of which another copy reaches further.
    """

    members: tuple[QuorumMember, ...]
    voters: tuple[Voter, ...] | None
    best: BestCopy
    state: MetadataState
    left_out: tuple[MetadataCopy, ...] = ()

    @property
    def is_dynamic(self) -> bool:
        """Whether the voters are in the metadata log, and not in the configuration of the controllers (KIP-853)."""
        return self.best.copy.kraft_version > 0

    @property
    def voting(self) -> dict[int, QuorumMember]:
        """The voters at hand, by node."""
        return {each.node_id: each for each in self.members if each.is_voter}

    @property
    def absent(self) -> tuple[int, ...]:
        """The voters whose logs are not at hand."""
        return tuple(each.node_id for each in self.voters or () if each.node_id not in self.voting)

    @property
    def unsure(self) -> tuple[int, ...]:
        """The voters of which it is not known whether they vote: the absent ones, and those with an unreadable file."""
        return self._unsure_of(self.voters or ())

    def _unsure_of(self, voters: tuple[Voter, ...]) -> tuple[int, ...]:
        sure = {each.node_id for each in self.members if _votes(each.copy, voters) and each.is_able is not None}
        return tuple(sorted(each.node_id for each in voters if each.node_id not in sure))

    def unsure_for(self, node_id: int) -> tuple[int, ...]:
        """The voters on which it depends whether a node can be elected, by its own log."""
        return self._unsure_of(next(self._own_voters(each) or () for each in self.members if each.node_id == node_id))

    @property
    def majority(self) -> int:
        """How many voters elect a leader."""
        return majority_of(len(self.voters or ()))

    @property
    def is_intact(self) -> bool | None:
        """Whether the voters that start elect a leader; None where that depends on those that are unsure."""
        if self.voters is None:
            return None
        able = sum(each.is_able is True for each in self.voting.values())
        return True in self.can_lead.values() or (None if able + len(self.unsure) >= self.majority else False)

    @property
    def can_lead(self) -> dict[int, bool | None]:
        """By node, whether a voter at hand can be elected by the voters of its own log, the furthest log first.

        None where that depends on voters that are unsure.
        """
        copies = [each.copy for each in self.members]
        own = {each.node_id: (each, self._own_voters(each)) for each in self.members}
        return {
            node_id: _can_be_elected(each.copy, voters, copies)
            for node_id, (each, voters) in own.items()
            if voters is not None and (each.is_voter or _votes(each.copy, voters))
        }

    def _own_voters(self, member: QuorumMember) -> tuple[Voter, ...] | None:
        """The voters that a node asks for their votes: those of its own log in a dynamic quorum (KIP-853)."""
        return member.copy.voters if member.copy.kraft_version else self.voters

    @property
    def held(self) -> tuple[int, int]:
        """The offset before which a majority certainly has all records of the best copy, and before which it may."""
        ends = [each.shared_end for each in self.voting.values()]
        return held_by_majority(ends, len(self.voters or ()))

    @property
    def committed_end(self) -> int:
        """The offset before which a majority has the records of the best copy, or a snapshot has them.

        A majority's records of an earlier epoch are not committed while another voter has a later epoch without them.
        """
        by_snapshots = [min(each.shared_end, each.copy.committed_end) for each in self.members]
        return max([*by_snapshots, self.held[0]])

    @property
    def overwritten(self) -> list[tuple[QuorumMember, int, int]]:
        """The members with committed records that the best copy has not: from an offset, up to an end."""
        return [
            (each, each.shared_end, each.copy.committed_end)
            for each in self.members
            if each.shared_end < each.copy.committed_end
        ]

    def roles_of(self, node_id: int | None) -> tuple[str, ...]:
        """The roles of a node by the metadata: broker, controller, or both; none where it does not name the node."""
        image = self.state.image
        voters = {each.node_id for each in self.voters or ()}
        roles = {"broker": image.brokers, "controller": {*image.controllers, *voters}}
        return tuple(role for role, nodes in roles.items() if node_id in nodes)


def quorum_of(
    copies: Sequence[MetadataCopy], limits: Limits = DEFAULT_LIMITS, chosen: BestCopy | None = None
) -> Quorum:
    """The quorum by some copies, without those of other clusters than most; of a node, its furthest copy counts.

    ``chosen`` is the copy to compare with, None for the best one. A node whose copy cannot be read counts as absent.
    Raises UnreadableFile if none can be read.
    """
    readable = [each for each in copies if not each.unread]
    if chosen is None and not readable:
        raise UnreadableFile(copies[0].unread, Location(str(copies[0].path)))
    best = chosen or best_copy(readable)
    state = state_of_copy(best.copy, limits)
    of_nodes: dict[object, MetadataCopy] = {}
    for each in (best.copy, *sorted(readable, key=lambda each: (each.is_usable, each.end), reverse=True)):
        if None in (each.cluster_id, best.copy.cluster_id) or each.cluster_id == best.copy.cluster_id:
            of_nodes.setdefault(each.path if each.node_id is None else each.node_id, each)
    voters = _voters(list(of_nodes.values()), state)
    return Quorum(
        tuple(
            QuorumMember(each, _votes(each, voters), each.epochs.truncated_by(best.copy.epochs))
            for each in of_nodes.values()
        ),
        voters,
        best,
        state,
        tuple(each for each in copies if all(each is not kept for kept in of_nodes.values())),
    )


def _voters(copies: Sequence[MetadataCopy], state: MetadataState) -> tuple[Voter, ...] | None:
    """The voters by the copies, the best first; where none names them, the controllers that have registered.

    A voter of a dynamic quorum asks those of its own log for their votes. So where a change of the voters reached too
    few of the new ones, those of the first copy count whose node can be elected, if there is one.
    """
    registered = {
        node_id: Voter(node_id, None, tuple((each["name"], each["host"], each["port"]) for each in data["endPoints"]))
        for node_id, data in sorted(state.image.controllers.items())
    }
    named = next((each.voters for each in copies if each.voters is not None), None)
    if copies[0].kraft_version:
        sets = ((each, each.voters) for each in copies if each.voters is not None)
        named = next((voters for each, voters in sets if _can_be_elected(each, voters, copies)), named)
    if named is None:
        return tuple(registered.values()) or None
    return tuple(each if each.endpoints else registered.get(each.node_id, each) for each in named)


def _can_be_elected(copy: MetadataCopy, voters: tuple[Voter, ...], copies: Sequence[MetadataCopy]) -> bool | None:
    """Whether the node of a copy is one of some voters, and can be elected by them; None where that depends on others.

    ``copies`` are those at hand, one of each node.
    """
    voting = {each.node_id: each for each in copies if each.node_id is not None and _votes(each, voters)}
    if copy.node_id is None or voting.get(copy.node_id) is not copy:
        return False
    if not copy.is_able:
        return copy.is_able
    ends = {node_id: each.end for node_id, each in voting.items() if each.is_able}
    dead_count = sum(each.is_able is False for each in voting.values())
    return can_lead(ends, len(voters), dead_count)[copy.node_id]


def _votes(copy: MetadataCopy, voters: tuple[Voter, ...] | None) -> bool | None:
    """Whether the node of a copy votes. One whose directory has another id than the voter set says only observes."""
    if voters is None or copy.node_id is None:
        return None
    expected = next((each for each in voters if each.node_id == copy.node_id), None)
    if expected is None or None in (expected.directory_id, copy.directory_id):
        return expected is not None
    return canonical_uuid(str(expected.directory_id)) == canonical_uuid(str(copy.directory_id))
