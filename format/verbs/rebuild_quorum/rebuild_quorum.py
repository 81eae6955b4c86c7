"""rebuild-quorum: a metadata log for each voter of a lost quorum, from the best copy that is left.

Each new directory has meta.properties with the identity of the voter, and one snapshot with all metadata records of the
copy, byte for byte. A controller starts from a snapshot alone (raft KafkaMetadataLog), and nodes with another log get
that snapshot from the leader, since its leader epoch and its end lie above those of all copies.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from format.columns import REBUILD_CHANGE
from format.errors import InputError, KafkaLogError, OutputError, Refused
from format.files import meta_properties
from format.internal_topics.encoder import encode_control_record, unsigned_varint
from format.io.session import absolute
from format.kafka_uuid import canonical_uuid, is_reserved
from format.layout import META_PROPERTIES, METADATA_PARTITION
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.encode_batches import BatchHeader, encode_batch
from format.node.target import Target, target_at
from format.rewriting.publication import Publication
from format.state.cluster_context import named_nodes
from format.state.cluster_image import ClusterImage
from format.state.quorum import BestCopy, MetadataCopy, Quorum, Voter, quorum_of, read_metadata_copies
from format.timestamps import iso_time
from format.verbs.quorum import lost_changes, read_copies
from format.verbs.rebuild_quorum.corrections import (
    AT_RISK,
    LOST,
    RECORDS_OF_PARTITION,
    SET,
    Disks,
    MetadataChange,
    changes_between,
    changes_on_disks,
    corrections_by_disks,
    gone_topics,
    read_disks,
)
from format.verbs.rebuild_quorum.surviving import SurvivingRecords, records_after_damage, surviving_records
from format.wording import counted, first_of, listed

#: The most bytes of values in a batch; readers take up to 8 MiB (raft KafkaRaftClient.MAX_BATCH_SIZE_BYTES).
_BATCH_BYTES = 256 * 1024
_CONTROL = 0x20
_NO_KEY = b"\x01"  # -1 as a zigzag varint
ControlValue = tuple[str, dict[str, Any]]


class SnapshotId(msgspec.Struct, frozen=True):
    """The offset after the last record that a snapshot contains, and the leader epoch of that record."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020}-{self.epoch:010}.checkpoint"


class _Batches:
    """Batches of one epoch and time, one after the other."""

    def __init__(self, epoch: int, timestamp: int) -> None:
        self.content = bytearray()
        self._epoch, self._timestamp, self._next_offset = epoch, timestamp, 0

    def add(self, records: Sequence[tuple[bytes | None, bytes]], attributes: int = 0) -> None:
        count = len(records)
        encoded = b"".join(_record(delta, key, value) for delta, (key, value) in enumerate(records))
        header = BatchHeader(
            self._next_offset, count - 1, count, self._timestamp, self._timestamp, self._epoch, attributes
        )
        self.content += encode_batch(header, encoded)
        self._next_offset += count


def encode_snapshot(
    snapshot: SnapshotId,
    controls: Iterable[ControlValue],
    values: Iterable[bytes],
    *,
    last_timestamp: int,
    timestamp: int,
) -> bytes:
    """A snapshot of these metadata records. ``last_timestamp`` (ms) is that of the last record in the log.

    ``controls`` are the records about the quorum, written after the header.
    """
    batches = _Batches(snapshot.epoch, timestamp)
    first: list[ControlValue] = [("SNAPSHOT_HEADER", {"lastContainedLogTimestamp": last_timestamp}), *controls]
    batches.add([encode_control_record(*each) for each in first], _CONTROL)
    pending: list[tuple[bytes | None, bytes]] = []
    size_bytes = 0
    for value in values:
        if pending and size_bytes + len(value) > _BATCH_BYTES:
            batches.add(pending)
            pending, size_bytes = [], 0
        pending.append((None, value))
        size_bytes += len(value)
    if pending:
        batches.add(pending)
    batches.add([encode_control_record("SNAPSHOT_FOOTER", {})], _CONTROL)
    return bytes(batches.content)


def _record(offset_delta: int, key: bytes | None, value: bytes) -> bytes:
    """One v2 record without headers, at the time of its batch (clients DefaultRecord)."""
    key_part = _NO_KEY if key is None else unsigned_varint(len(key) << 1) + key
    body = b"\x00\x00" + unsigned_varint(offset_delta << 1) + key_part + unsigned_varint(len(value) << 1) + value
    body += b"\x00"
    return unsigned_varint(len(body) << 1) + body


#: How far the new snapshot lies above all copies: nodes whose copy is not at hand may have a later epoch or end.
_EPOCH_STEP, _OFFSET_STEP = 1_000, 1_000_000
_KRAFT_VERSIONS = (0, 1)
_DEFAULT_LISTENER = "CONTROLLER"


class Address(msgspec.Struct, frozen=True):
    """A voter that is asked for: ``ID@HOST:PORT``."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.node_id}@{_bracketed(self.host)}:{self.port}"


class WantedQuorum(msgspec.Struct, frozen=True):
    """What is asked for: the copy to take, None for the best one; the voters, empty for those of the copy."""

    copy: Path | None = None
    voters: tuple[Address, ...] = ()
    is_forced: bool = False
    limits: Limits = DEFAULT_LIMITS


class Rebuilding(msgspec.Struct, frozen=True):
    """What is to be written, and what is lost by it."""

    copies: list[MetadataCopy]
    quorum: Quorum
    cluster_id: str
    snapshot: SnapshotId
    voters: tuple[Voter, ...]
    found: SurvivingRecords
    changes: list[MetadataChange]
    not_checked: list[str]
    wanted: WantedQuorum

    @property
    def copy(self) -> MetadataCopy:
        return self.quorum.best.copy

    @property
    def lost(self) -> list[MetadataChange]:
        return [each for each in self.changes if each.action == LOST]

    @property
    def at_risk(self) -> dict[str, list[str]]:
        """The records that only nodes have whose disks are not here, by the reason."""
        found: dict[str, list[str]] = {}
        for each in self.changes:
            if each.action == AT_RISK:
                found.setdefault(each.reason, []).append(each.subject)
        return found

    @property
    def corrections(self) -> list[MetadataChange]:
        return [each for each in self.changes if each.action == SET]

    @property
    def controls(self) -> list[ControlValue]:
        """The records about the quorum: none in a static one, whose voters are in the configuration."""
        if not self.quorum.is_dynamic:
            return []
        voters = [_voter_data(each) for each in self.voters]
        return [("KRAFT_VERSION", {"kRaftVersion": self.copy.kraft_version}), ("KRAFT_VOTERS", {"voters": voters})]

    def rows(self, root: Path) -> Iterator[tuple[Any, ...]]:
        """A row of columns.REBUILT_CONTROLLER for each directory."""
        for each in self.voters:
            endpoints = [f"{name}://{_bracketed(host)}:{port}" for name, host, port in each.endpoints]
            yield each.node_id, each.directory_id, endpoints, str(root / _name_of(each))

    def change_rows(self) -> Iterator[tuple[Any, ...]]:
        """A row of columns.REBUILD_CHANGE for each change that is lost or made."""
        for each in self.changes:
            yield each.action, each.subject, each.before, each.after, each.reason, each.path

    def sentences(self) -> Iterator[str]:
        """What is taken, what is lost, and what is changed."""
        image, lost = self.found.image, self.lost
        when = f" ({iso_time(self.found.last_timestamp)})" if self.found.last_timestamp else ""
        names = listed([str(each.node_id) for each in self.voters])
        counts = (len(image.names), "topic"), (len(image.partitions), "partition"), (len(image.brokers), "broker")
        yield (
            f"{'Controllers' if len(self.voters) > 1 else 'Controller'} {names} of cluster {self.cluster_id}: metadata "
            f"from {_owner(self.copy)}, to offset {self.copy.end[1] - 1}{when}, with "
            f"{listed([counted(*each) for each in counts])}."
        )
        if self.copy.gap:
            yield f"Metadata is missing from it: {self.copy.gap}."
        if lost:
            yield f"Lost: {first_of([each.subject for each in lost], _MOST_NAMED)}."
        else:
            missing = self.missing_nodes()
            unknown = f"; what only {named_nodes(missing)} had is not known" if missing else ""
            yield f"No copy and no disk here shows a later change{unknown}."
        for reason, subjects in list(self.at_risk.items())[:_MOST_NAMED]:
            names = first_of([each.removeprefix(RECORDS_OF_PARTITION) for each in subjects], _MOST_NAMED)
            of = RECORDS_OF_PARTITION if len(subjects) == 1 else "records of partitions "
            yield f"At risk: {of}{names}, since {reason}."
        for each in self.corrections[:_MOST_NAMED]:
            yield f"{each.subject}: {_values(each.before)} becomes {_values(each.after)}, since {each.reason}."
        if len(self.corrections) > _MOST_NAMED:
            yield f"{counted(len(self.corrections) - _MOST_NAMED, 'more correction')}: see the rows."

    def missing_nodes(self) -> list[int]:
        """The brokers and voters of which no copy is here."""
        known = {*self.found.image.brokers, *(each.node_id for each in self.copy.voters or ())}
        return sorted(known - {each.node_id for each in self.copies if each.node_id is not None})

    def steps(self, root: Path) -> Iterator[str]:
        """What remains to be done, in words."""
        yield (
            f"Put {root}/node-ID in place of each controller's log directory (if that has other partitions, only its "
            f"{METADATA_PARTITION}), then start the controllers together."
        )
        if self.wanted.voters and not self.quorum.is_dynamic:
            yield f"Set on all nodes: controller.quorum.voters={','.join(map(str, self.wanted.voters))}"
            if {each.node_id for each in self.voters} != {each.node_id for each in self.quorum.voters or ()}:
                yield (
                    "Only these nodes may have controller in process.roles. Before they start, delete "
                    f"{METADATA_PARTITION}/quorum-state on all others: releases before 3.9 refuse that of another "
                    "voter set."
                )
        elif self.wanted.voters:
            servers = ",".join(f"{_bracketed(each.host)}:{each.port}" for each in self.wanted.voters)
            yield f"Set on all nodes: controller.quorum.bootstrap.servers={servers}"
            if len(self.voters) < len(self.quorum.voters or ()):
                yield "Add there the controllers that are to join them: brokers that lose the leader ask only these."
        if self.corrections or self.lost:
            yield "Stop all brokers before the controllers start: what they have in memory is newer than this metadata."


_MOST_NAMED = 5


def rebuilding(targets: Sequence[Target], wanted: WantedQuorum) -> Rebuilding:
    """What is to be written from the copies at some paths, without writing.

    Raises InputError where nothing can be made of them, and Refused where it would not be safe.
    """
    limits = wanted.limits
    copies = read_copies(targets, limits)
    unread = next((each for each in copies if each.unread or each.unsure), None)
    if unread is not None and not wanted.is_forced:
        why = unread.unread or unread.unsure
        message = f"a metadata log cannot be read, and may be intact: {why} (--force goes on without it)"
        raise Refused(message, Location(str(unread.path)))
    quorum = quorum_of(copies, limits, _chosen(copies, wanted))
    copy = quorum.best.copy
    if copy.gap and not wanted.is_forced:
        raise Refused(f"the best copy is not whole: {copy.gap} (--force takes what there is)", Location(str(copy.path)))
    found = surviving_records(copy, limits)
    if quorum.is_intact and not wanted.is_forced:
        raise Refused(_intact_words(quorum))
    cluster_id = next((each.cluster_id for each in (copy, *copies) if each.cluster_id is not None), None)
    if cluster_id is None:
        raise InputError(
            "no meta.properties here has the cluster id: add the log directory of a broker", Location(str(copy.path))
        )
    voters = _voters(wanted.voters, quorum, found.image, copies)
    if not voters:
        raise InputError("the voters are not known: name them with --voter", Location(str(copy.path)))
    of_cluster = [each for each in copies if each.cluster_id in (None, cluster_id)]
    disks = read_disks(targets, cluster_id, limits)
    not_checked = [_unread_words(disks.unread)] if disks.unread else []
    if not_checked and not wanted.is_forced:
        raise Refused(f"they may be later than the metadata: {not_checked[0]} (--force goes on without them)")
    changes = list(_changes_in_others(copy, of_cluster, found, limits, not_checked))
    changes += changes_on_disks(lost_changes(targets, quorum, limits), found.image)
    controllers = {each.node_id for each in (*voters, *(quorum.voters or ()))}  # also those that vote no more
    absent = frozenset(controllers & set(found.image.brokers)) - disks.node_ids
    changes += corrections_by_disks(found, disks, is_stale=bool(changes), absent=absent)
    gone = list(gone_topics(found.image, disks))
    not_checked += _not_checked(disks, found.image, [] if changes else gone)
    changes += gone if changes else []
    return Rebuilding(
        copies=of_cluster,
        quorum=quorum,
        cluster_id=cluster_id,
        snapshot=_snapshot_id(of_cluster),
        voters=voters,
        found=found,
        changes=_without_repeats(changes),
        not_checked=not_checked,
        wanted=wanted,
    )


def _unread_words(errors: Sequence[KafkaLogError]) -> str:
    """What of brokers' disks cannot be read, by the first of it."""
    first, count = errors[0], len(errors)
    path = "" if first.location is None else first.location.path
    return f"{counted(count, 'partition')} on disks that cannot be read, such as {path} ({first.message})"


def _chosen(copies: list[MetadataCopy], wanted: WantedQuorum) -> BestCopy | None:
    """The copy that is asked for; None for the best one."""
    if wanted.copy is None:
        return None
    path = absolute(wanted.copy)
    for each in copies:
        if path in (absolute(each.path), absolute(each.path).parent):
            return BestCopy(each, ("it was asked for",))
    raise InputError("there is no metadata log among the paths", Location(str(wanted.copy)))


def _intact_words(quorum: Quorum) -> str:
    able = sorted(node for node, each in quorum.voting.items() if each.is_able)
    return (
        f"{named_nodes(able)} of the voters {listed([str(each.node_id) for each in quorum.voters or ()])} "
        f"{'has an intact metadata log' if len(able) == 1 else 'have intact metadata logs'}: a majority, which elects "
        "a leader when it is started (--force rebuilds all the same)"
    )


def _voters(
    wanted: tuple[Address, ...], quorum: Quorum, image: ClusterImage, copies: list[MetadataCopy]
) -> tuple[Voter, ...]:
    """The voters to write directories for: the old ones, or those that are asked for, with the ids that are known.

    The address that is asked for is that of each listener of the old voters: which of them the controllers take, their
    configuration says, and 4.3.1 ended where a voter has none of that name. Each voter corrects its own as it starts.
    """
    old = quorum.voters or ()
    known = {each.node_id: each for each in old}
    if not wanted:
        return tuple(msgspec.structs.replace(each, directory_id=_directory_id(each, image, copies)) for each in old)
    listeners = {name for each in old for name, *_ in each.endpoints} or {_DEFAULT_LISTENER}
    found = []
    for each in wanted:
        voter = known.get(each.node_id, Voter(each.node_id))
        directory_id = _directory_id(voter, image, copies)
        if directory_id is None and quorum.is_dynamic:
            directory_id = _new_directory_id()
        versions = voter.kraft_versions or (_KRAFT_VERSIONS if quorum.is_dynamic else None)
        endpoints = tuple((name, each.host, each.port) for name in sorted(listeners))
        found.append(Voter(each.node_id, directory_id, endpoints, versions))
    return tuple(found)


def _directory_id(voter: Voter, image: ClusterImage, copies: list[MetadataCopy]) -> str | None:
    """The id of a voter's directory: by the voter set, by its own disk, or that of a broker with one log directory."""
    if voter.directory_id is not None and not is_reserved(voter.directory_id):
        return voter.directory_id
    own = next((each.directory_id for each in copies if each.node_id == voter.node_id), None)
    log_dirs = image.brokers.get(voter.node_id, {}).get("logDirs") or []
    return own or (log_dirs[0] if len(log_dirs) == 1 else None)


def _new_directory_id() -> str:
    while True:
        text = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        if not text.startswith("-") and not is_reserved(text):  # as Kafka's Uuid.randomUuid
            return canonical_uuid(text)


def _snapshot_id(copies: list[MetadataCopy]) -> SnapshotId:
    """An offset and a leader epoch above all that copies and their votes show."""
    epochs = [each.end[0] for each in copies]
    epochs += [each.state.leader_epoch for each in copies if each.state is not None]
    end = max(max(each.end[1], each.committed_end) for each in copies)
    return SnapshotId(end + _OFFSET_STEP, max(epochs) + _EPOCH_STEP)


def _changes_in_others(
    copy: MetadataCopy, copies: list[MetadataCopy], found: SurvivingRecords, limits: Limits, not_checked: list[str]
) -> Iterator[MetadataChange]:
    """The changes in records that only other copies have, the furthest copy first, or that are after damage."""
    for other in sorted(copies, key=lambda each: each.end, reverse=True):
        cut = other.epochs.truncated_by(copy.epochs) if copy.epochs.latest is not None else copy.end[1]
        if cut < other.end[1]:
            yield from _changes_since(cut, copy, other, found, limits, not_checked)
        elif other.dropped_from is not None:
            end = copy.end[1]
            later = records_after_damage(other, found.image, end, limits)
            reason = f"it is in records from offset {end} on, after damage in the copy of {_owner(other)}"
            yield from changes_between(found.image, later, later.subjects, reason, str(other.path))
        if other.dropped_from is not None and other.dropped_from >= copy.end[1]:
            not_checked.append(f"what is damaged in {other.path} at offset {other.dropped_from}")


def _changes_since(
    cut: int, copy: MetadataCopy, other: MetadataCopy, found: SurvivingRecords, limits: Limits, not_checked: list[str]
) -> Iterator[MetadataChange]:
    """The changes in the records of another copy from an offset on, which the copy that is taken has not."""
    try:
        later = surviving_records(other, limits, since=cut)
    except Refused as error:
        not_checked.append(f"what only {other.path} has from offset {cut} on: {error.message}")
        return
    subjects = dict(later.subjects)
    if later.before is None:  # a snapshot has some of the records: what is gone in it is named by the copy alone
        for key, read in surviving_records(copy, limits, since=0).subjects.items():
            subjects.setdefault(key, read)
    later.subjects = subjects
    before = found.image if later.before is None or cut >= copy.end[1] else later.before
    reason = f"it is in records from offset {cut} on, which only the copy of {_owner(other)} has"
    yield from changes_between(before, later, subjects, reason, str(other.path))


def _without_repeats(changes: list[MetadataChange]) -> list[MetadataChange]:
    """The changes without those that several copies have; what must be known of a partition comes once."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for each in changes:
        key = each.action, each.subject
        if key not in seen:
            seen.add(key)
            kept.append(each)
    return kept


def _not_checked(disks: Disks, image: ClusterImage, gone: list[MetadataChange]) -> Iterator[str]:
    missing = sorted(set(image.brokers) - disks.node_ids)
    if missing:
        yield f"whether the disks of {named_nodes(missing)} show later changes: they are not here"
    yield from disks.absent_of(image).values()
    if gone:
        names = listed([each.subject for each in gone])
        yield f"whether {names} {'was' if len(gone) == 1 else 'were'} deleted later: no disk here has it"


def write_rebuilt(plan: Rebuilding, publication: Publication) -> None:
    """Write the directories into the open publication, read them back and finish it. Raises OutputError."""
    values = [*plan.found.values, *(each.record for each in plan.corrections if each.record is not None)]
    content = encode_snapshot(
        plan.snapshot,
        plan.controls,
        values,
        last_timestamp=plan.found.last_timestamp,
        timestamp=int(time.time() * 1000),
    )
    for voter in plan.voters:
        name = _name_of(voter)
        entries = [("version", "1"), ("cluster.id", plan.cluster_id), ("node.id", str(voter.node_id))]
        if voter.directory_id is not None:
            entries.append(("directory.id", voter.directory_id))
        publication.write_file(f"{name}/{META_PROPERTIES}", meta_properties.write(entries))
        publication.write_file(f"{name}/{METADATA_PARTITION}/{plan.snapshot.file_name}", content)
    _check(plan, publication.place_of(_name_of(plan.voters[0])), values)
    publication.finish({
        "copy": str(plan.copy.path),
        "voters": [each.node_id for each in plan.voters],
        "changes": [dict(zip(REBUILD_CHANGE.names, row, strict=True)) for row in plan.change_rows()],
    })  # fmt: skip


def _check(plan: Rebuilding, directory: Path, values: list[bytes]) -> None:
    """Read a written directory as one reads a copy. Raises OutputError."""
    (copy,) = read_metadata_copies([target_at(directory)], plan.wanted.limits)
    written = surviving_records(copy, plan.wanted.limits)
    voters = None if copy.voters is None else {each.node_id for each in copy.voters}
    expected = {each.node_id for each in plan.voters} if plan.quorum.is_dynamic else None
    if copy.findings or written.values != values or voters != expected:
        raise OutputError("what was read back is not what was written", Location(str(directory)))


def _voter_data(voter: Voter) -> dict[str, Any]:
    least, most = voter.kraft_versions or _KRAFT_VERSIONS
    return {
        "voterId": voter.node_id,
        "voterDirectoryId": voter.directory_id,
        "endpoints": [{"name": name, "host": host, "port": port} for name, host, port in voter.endpoints],
        "kRaftVersionFeature": {"minSupportedVersion": least, "maxSupportedVersion": most},
    }


def _name_of(voter: Voter) -> str:
    return f"node-{voter.node_id}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _owner(copy: MetadataCopy) -> str:
    return str(copy.path) if copy.node_id is None else f"node {copy.node_id}"


def _values(values: Any) -> str:
    if not isinstance(values, dict):
        return str(values)
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())
