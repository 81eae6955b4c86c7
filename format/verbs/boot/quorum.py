"""The KRaft part of a start: bootstrap metadata, the metadata log, its snapshots, quorum-state, the roles of the node.

A node reads them before any other log, and recovers the metadata log at every start, even after a clean shutdown. It
reads each record of the log and of its newest snapshot, and stops where it cannot. A controller alone has no log
manager: it leaves every other file of its log directories alone. The voters of a dynamic quorum (KIP-853) are pairs of
node id and directory id. A controller whose metadata log lies in a directory with another id is an observer: it never
votes, and never becomes the leader.

Source: metadata BootstrapDirectory, BootstrapMetadata, BatchFileReader, MetadataRecordSerde, FeaturesDelta and
FeatureControlManager; raft KafkaRaftLog (before 4.2 core KafkaMetadataLog), FileQuorumStateStore, RecordsIterator,
KRaftControlRecordStateMachine, KafkaRaftClient, VoterSet.isVoter; server-common AbstractApiMessageSerde; core
KafkaRaftServer, SharedServer, KafkaRaftManager.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.errors import CorruptDataError, KafkaLogError, LimitExceeded
from format.files.side_file import INT32_RANGE, INT64_RANGE, decode_integer
from format.findings import Finding
from format.internal_topics.decoder import FRAME_VERSION, decoder_for
from format.internal_topics.reader import Cursor, reader_for
from format.internal_topics.record_check import odd_rows
from format.internal_topics.schema import RecordType
from format.io.session import is_there
from format.io.source import FileSource
from format.kafka_uuid import canonical_uuid, is_uuid
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchRange
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.scan.protocol import LogUnit
from format.state.cluster_image import KRAFT_VERSION, METADATA_VERSION, ClusterImage
from format.state.metadata_log import MetadataReplay, metadata_records
from format.verbs.boot.broker_files import (
    PartitionFiles,
    exists,
    followed,
    opened,
    read_partition_files,
    stop_at_pipe,
    why_closed,
)
from format.verbs.boot.identity import NodeIdentity
from format.verbs.boot.log_manager import stored_topic_id
from format.verbs.boot.one_log.batches import CorruptRecords, batches_from, valid_batches
from format.verbs.boot.one_log.checkpoints import BadText, EpochCache, read_lines
from format.verbs.boot.one_log.log_load import LoadTerms, load_log
from format.verbs.boot.steps import Action, BootTerms, NotKnown, Step, StopsStart, problem_step
from format.wording import counted

_Version = tuple[int, int]
#: The first and last level of metadata.version that a release supports (server-common MetadataVersion).
_METADATA_LEVELS = {(3, 9): (1, 21), (4, 0): (7, 25), (4, 1): (7, 27), (4, 2): (7, 29), (4, 3): (7, 30),
                    (4, 4): (7, 33)}  # fmt: skip
#: The last level that it can name: those between are not ready for use, and the controller refuses them in other words.
_LAST_NAMED = {(3, 9): 23, (4, 0): 26, (4, 1): 29, (4, 2): 30, (4, 3): 31, (4, 4): 34}
#: The releases that brought the levels of the other features, from level 1 on (server-common Feature).
_FEATURES: dict[str, tuple[_Version, ...]] = {
    "kraft.version": ((3, 9),),
    "transaction.version": ((4, 0), (4, 0)),
    "group.version": ((4, 0),),
    "eligible.leader.replicas.version": ((4, 0),),
    "share.version": ((4, 1), (4, 4)),
    "streams.version": ((4, 2),),
}
_MOST_SHORT = 0x7FFF
_FRAME_BYTES = 3  # the frame version, the type and the version of a record
_CONTROL_TYPES = frozenset(range(2, 7))  # LEADER_CHANGE to KRAFT_VOTERS


class _Unreadable(Exception):
    """Why a node does not read a record: in its words, with the class that says so."""

    def __init__(self, text: str, kafka_class: str = "RecordsIterator", *, is_later: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.kafka_class = kafka_class
        self.is_later = is_later  # than all releases that this program knows: a later one may well read it


def check_records(path: Path, end: int, from_offset: int, terms: BootTerms) -> list[StopsStart]:
    """Read the records of a file up to a position, those of batches below an offset aside. Raises StopsStart.

    Returns what stops all releases that are known, and may not stop a later one, where the release is not known.
    The CRCs were checked before. A batch that this program cannot read is left to the replay, which reports it.
    """
    passed = []
    with opened(path) as source:
        for chunk in batch_chunks(source, BatchRange(0, end), limits=terms.limits):
            which = chunk.table.last_offset >= from_offset
            for table in record_tables(chunk, which=which, limits=terms.limits):
                for row in _odd_rows(table, terms):
                    try:
                        _read(table, row, terms.version)
                    except _Unreadable as error:
                        reason = f"the metadata record at offset {int(table.offset[row])} cannot be read"
                        position = int(table.batches.position[table.batch[row]])
                        stop = StopsStart(error.text, error.kafka_class, path, reason, position)
                        if terms.is_release_known or not error.is_later:
                            raise stop from error
                        passed.append(stop)
    return passed


def check_feature(name: str, level: int, path: Path, offset: int, terms: BootTerms) -> None:
    """Raises StopsStart for the level of a feature that a release does not know, NotKnown if a later one may."""
    if name == METADATA_VERSION:
        lowest, highest = _METADATA_LEVELS[terms.version]
        check_metadata_level(level, path, terms)
    else:
        lowest, highest = 0, sum(since <= terms.version for since in _FEATURES.get(name, ()))
    if not lowest <= level <= highest:
        known = f"supports {lowest} to {highest}" if highest else "has no such feature"
        reason = f"{name} has level {level} at offset {offset}, and a {terms.release} broker {known}"
        if level > highest and not terms.is_release_known:
            raise NotKnown(f"{reason}; one of a later release may support it", path)
        raise StopsStart("Tried to apply FeatureLevelRecord", "FeatureControlManager", path=path, reason=reason)


def check_metadata_level(level: int, path: Path, terms: BootTerms) -> None:
    """Raises StopsStart for a level of metadata.version that a release cannot name, NotKnown if a later one may."""
    lowest, last = _METADATA_LEVELS[terms.version][0], _LAST_NAMED[terms.version]
    if not lowest <= level <= last:
        text = f"No MetadataVersion with feature level {level}"
        if terms.version >= (4, 0):
            text += f". Valid feature levels are from {lowest} to {last}."
        reason = f"metadata.version has level {level}, and a {terms.release} broker knows {lowest} to {last}"
        if level > last and not terms.is_release_known:
            raise NotKnown(f"{reason}; one of a later release may support it", path)
        raise StopsStart(text, "MetadataVersion.fromFeatureLevel", path=path, reason=reason)


def _odd_rows(table: RecordTable, terms: BootTerms) -> list[int]:
    """The rows that are not plainly sound for the release."""
    batches = table.batches
    is_control = batches.is_control[table.batch]
    is_odd = is_control | (table.timestamp != batches.base_timestamp[table.batch]) | (table.header_count > 0)
    known, newest = _record_types(terms.version), _record_types()
    if later := [kind for kind, each in newest.items() if known.get(kind) is not each]:
        is_odd |= _is_of_types(table, later)
    rows = set(np.flatnonzero(is_odd).tolist()) | odd_rows(table, layout.CLUSTER_METADATA_TOPIC)
    return sorted(rows)


def _is_of_types(table: RecordTable, types: list[int]) -> NDArray[np.bool_]:
    """Whether a row may have one of some record types: the byte after that of the frame version is the type."""
    found: NDArray[np.bool_] = table.value_length >= _FRAME_BYTES
    rows = np.flatnonzero(found)
    found[rows] = np.isin(np.frombuffer(table.buffer, np.uint8)[table.value_start[rows] + 1], types)
    return found


def _read(table: RecordTable, row: int, version: _Version) -> None:
    """Read a record. Raises _Unreadable."""
    delta = int(table.timestamp[row]) - int(table.batches.base_timestamp[table.batch[row]])
    if delta:
        raise _Unreadable(f"Got timestamp delta of {delta}, but this is invalid")
    key, value = table.key(row), table.value(row)
    is_control = bool(table.batches.is_control[table.batch[row]])
    if is_control:
        _read_control(key, value)
    else:
        if key is not None:
            raise _Unreadable("Got key in the record when no key was expected")
        _read_data(_present(value, "value"), version)
    if table.header_count[row] > 0 and table.buffer[int(table.start[row] + table.size_bytes[row]) - 1]:
        raise _Unreadable("Got numHeaders of ")  # it takes the last byte for their number


def _present(content: bytes | None, part: str) -> bytes:
    if content is None:
        raise _Unreadable(f"Missing {part} in the record when a {part} was expected")
    if not content:
        raise _Unreadable(f"Got an unexpected empty {part} in the record")
    return content


def _read_control(key: bytes | None, value: bytes | None) -> None:
    key, _ = _present(key, "key"), _present(value, "value")
    kind = int.from_bytes(key[2:4], "big") if len(key) >= layout.CONTROL_KEY.size_bytes else None
    if kind is not None and kind not in _CONTROL_TYPES:
        raise _Unreadable("Unknown control record type", "ControlRecord", is_later=kind > max(_CONTROL_TYPES))


def _read_data(value: bytes, version: _Version) -> None:
    cursor = Cursor(value, "value")
    frame = _short(cursor, "frame version")
    if frame != FRAME_VERSION:
        unknown = "with" if frame == 0 else "due to unknown"
        text = f"Could not deserialize metadata record {unknown} frame version {frame}"
        raise _parse(text, is_later=frame > FRAME_VERSION)
    kind, number = _short(cursor, "type"), _short(cursor, "version")
    newest, record_type = _record_types(), _record_types(version).get(kind)
    if record_type is None or record_type.until is not None:
        raise _parse(f"Unknown metadata id {kind}", is_later=kind > max(newest))
    message = record_type.value
    known = message.versions.highest
    is_later = number > newest[kind].value.versions.highest
    failed = f"Failed to deserialize record with type {kind}"
    try:
        content = reader_for(message, max(message.versions.lowest, min(number, known)))(cursor)
    except (CorruptDataError, LimitExceeded) as error:
        raise _parse(failed, is_later=is_later) from error
    if number > known and any(each.element_type == "struct" and content.get(each.name) for each in message.fields):
        # The classes of structs refuse versions that they do not know, a message does not.
        raise _parse(failed, is_later=is_later)
    if cursor.position < cursor.end:
        left = cursor.end - cursor.position
        raise _parse(f"Found {left} byte(s) of garbage after {kind}", is_later=is_later)


def _record_types(version: _Version | None = None) -> dict[int, RecordType]:
    return decoder_for(layout.CLUSTER_METADATA_TOPIC, version).record_types


def _short(cursor: Cursor, name: str) -> int:
    """Read an unsigned varint into an int of Java, which has a sign, and that into a short.

    So a long varint may be a sound number, or one below 0. Of a fifth byte, only four bits are kept.
    """
    bits = 0
    try:
        for count in range(5):
            byte = cursor.buffer[cursor.take(1)]
            bits |= (byte & 0x7F) << (7 * count)
            if byte < 0x80:
                break
        else:
            raise _parse(f"Error while reading {name}")
    except KafkaLogError as error:
        raise _parse(f"Error while reading {name}") from error
    if _MOST_SHORT < bits & 0xFFFFFFFF <= 0x7FFFFFFF:
        raise _parse(f"Value for {name} was too large.")
    return (bits + 0x8000 & 0xFFFF) - 0x8000


def _parse(text: str, *, is_later: bool = False) -> _Unreadable:
    return _Unreadable(text, "MetadataRecordSerde", is_later=is_later)


_BOOTSTRAP = "BootstrapDirectory"
_BOOTSTRAP_REASON = "a node reads its bootstrap metadata at every start, though only a new cluster needs it"
#: The topic id of __cluster_metadata, which no metadata record gives.
_METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
_RAFT_LOG = "KafkaRaftLog"
#: Later releases take a snapshot that cannot be found for one that was deleted (FileRawSnapshotReader.open).
_PASSES_MISSING_SNAPSHOTS = (4, 3)
#: (epoch, end offset) of the snapshot that a new node with a dynamic quorum begins with: its log repeats the records.
_BOOTSTRAP_SNAPSHOT = (0, 0)
#: From this release on, nothing is taken from that snapshot but the voters.
_PASSES_BOOTSTRAP_SNAPSHOT = (4, 3)
_SHORTEST_BATCH = 17  # bytes, up to the magic byte
_SNAPSHOT_ENDS = (".checkpoint", ".checkpoint.part", ".checkpoint.deleted")
_QUORUM = "FileQuorumStateStore"
_FIELDS = {
    0: ("clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters"),
    1: ("leaderId", "leaderEpoch", "votedId", "votedDirectoryId"),
}
_OF_LOG_MANAGER = (layout.CLEAN_SHUTDOWN, *layout.OFFSET_CHECKPOINTS)


def check_bootstrap(metadata_dir: Path, terms: BootTerms) -> None:
    """Read bootstrap.checkpoint, the metadata of a new cluster, as a node does, without CRCs.

    Raises StopsStart where a node fails, NotKnown where one of a later release may not, UnreadableFile, FileChanged.
    """
    path = metadata_dir / layout.BOOTSTRAP_CHECKPOINT
    if not exists(path):
        return
    if path.is_dir():
        raise StopsStart(os.strerror(errno.EISDIR), _BOOTSTRAP, path, _BOOTSTRAP_REASON)
    stop_at_pipe(path, _BOOTSTRAP)
    with opened(path) as source:
        level = _bootstrap_level(source, path, terms)
    if level is None:
        text = (
            "No FeatureLevelRecord for metadata.version was found in the bootstrap metadata from the binary bootstrap "
            f"metadata file: {path}"
        )
        raise StopsStart(text, "BootstrapMetadata.fromRecords", path, _BOOTSTRAP_REASON)
    if not terms.is_one_of_several:  # else the release may be an earlier one
        check_metadata_level(level, path, terms)


def _bootstrap_level(source: FileSource, path: Path, terms: BootTerms) -> int | None:
    """The last metadata.version in the records, all of which are decoded; None without one. Raises StopsStart."""
    level = None
    try:
        for batch in batches_from(source, 0, source.size_bytes, path):
            where = BatchRange(batch.position, batch.position + batch.size_bytes)
            for chunk in batch_chunks(source, where, limits=terms.limits):
                for table in record_tables(chunk, which=~chunk.table.is_control, limits=terms.limits):
                    for row in range(len(table)):
                        fields = _bootstrap_record(table.value(row), path, batch.position, terms)
                        if fields.get("name") == METADATA_VERSION:
                            level = int(fields["featureLevel"])
                    if table.problems:
                        reason = f"{_BOOTSTRAP_REASON}: {table.problems[0].error}"
                        text = "InvalidRecordException"
                        raise StopsStart(text, "DefaultRecord.readFrom", path, reason, batch.position)
    except CorruptRecords as error:
        kafka_class = "FileLogInputStream.nextBatch"
        raise StopsStart(error.text, kafka_class, path, _BOOTSTRAP_REASON, error.position) from error
    return level


def _bootstrap_record(value: bytes | None, path: Path, position: int, terms: BootTerms) -> dict[str, Any]:
    """The fields of a record that sets a feature, none of another one. Raises StopsStart, NotKnown."""
    decoder = decoder_for(layout.CLUSTER_METADATA_TOPIC)
    words = "a record without a value, or of a type that this program does not know"
    try:
        decoded = decoder.decode_value(None, value)
    except KafkaLogError as error:
        words = str(error)
    else:
        if decoded.data is not None:
            return decoded.data if decoded.record_type == "FEATURE_LEVEL_RECORD" else {}
        kind = decoder.record_types.get(decoded.type_id or 0)
        is_later = (decoded.type_id or 0) > max(decoder.record_types)
        is_later |= kind is not None and (decoded.version or 0) > kind.value.versions.highest
        if is_later and not terms.is_release_known:
            raise _later("a record of the bootstrap metadata cannot be read", path, terms)
    reason = f"{_BOOTSTRAP_REASON}: {words}"
    raise StopsStart("unable to deserialize record", _BOOTSTRAP, path, reason, position)


def _later(words: str, path: Path, terms: BootTerms) -> NotKnown:
    """What the known releases cannot read, and a later one may."""
    up_to = f"one up to Kafka {terms.release} refuses"
    return NotKnown(f"{words}: a broker of a later release may read it, and {up_to}", path)


class LoadedMetadata(msgspec.Struct):
    """What the rest of a start needs of the metadata log; ``image`` is None where none could be loaded."""

    image: ClusterImage | None = None
    configured_voters: tuple[int, ...] | None = None  # those in quorum-state, of a quorum without directory ids
    epoch: int = 0  # that of quorum-state
    timestamp: int | None = None  # of the last metadata record
    path: Path | None = None  # of the metadata log, None without one
    steps: list[Step] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)  # about records of later releases
    levels: list[tuple[str, int, Path, int]] = msgspec.field(default_factory=list)  # feature, level, file, offset
    log_end_offset: int = 0  # after the load
    is_cut: bool = False  # whether damage in the log is cut off

    @property
    def voters(self) -> tuple[int, ...] | None:
        """The ids of the controllers that elect a leader; None where they are not known."""
        if self.image is not None and self.image.voters is not None:
            return tuple(self.image.voters)
        return self.configured_voters


def load_metadata(metadata_dir: Path, terms: BootTerms) -> LoadedMetadata:
    """Simulate the load of the metadata log. Raises StopsStart, NotKnown, UnreadableFile and FileChanged."""
    path = metadata_dir / layout.METADATA_PARTITION
    if not is_there(path):
        if terms.is_one_of_several:
            return LoadedMetadata()
        reason = "there is no metadata log here: the node begins a new one and knows of no topic"
        step = Step(Action.CREATE, path, layout.CLUSTER_METADATA_TOPIC, 0, reason=reason, kafka_class=_RAFT_LOG)
        return LoadedMetadata(ClusterImage(), steps=[step])
    return _loaded(path, terms)


def check_levels(state: LoadedMetadata, terms: BootTerms) -> None:
    """Raises StopsStart for a feature level that no such broker supports; one of a later release is a problem."""
    if terms.is_one_of_several or state.image is None:  # the release may be an earlier one
        return
    for name, level, path, offset in state.levels:
        try:
            check_feature(name, level, path, offset, terms)
        except NotKnown as error:
            state.image.problem = state.image.problem or error.text


def _loaded(path: Path, terms: BootTerms) -> LoadedMetadata:
    state = LoadedMetadata(ClusterImage(), path=path)
    files = read_partition_files(path, layout.CLUSTER_METADATA_TOPIC, 0)
    epochs = EpochCache(files, terms.limits)
    why = "the metadata log is recovered at every start"
    log = load_log(files, LoadTerms(terms, clean=False, is_metadata=True, why_recovered=why))
    epochs.settle(log)
    _check_topic_id(files, terms.limits)
    snapshots = _snapshots(files, log.log_start)
    newest = _newest(snapshots, files, terms)
    epoch = max(epochs.latest_epoch, 0)
    is_replaced = newest is not None and newest > (epoch, log.log_end)
    state.log_end_offset = newest[1] if newest is not None and is_replaced else log.log_end
    state.is_cut = any(step.action is Action.TRUNCATE for step in files.steps)
    if newest is not None and is_replaced:
        name = snapshots[newest].name
        reason = f"the newest snapshot, {name}, is ahead of the log: the log is emptied and goes on after it"
        for segment in log.segments:
            if segment.place is not None:
                files.step(
                    Action.TRUNCATE, segment.shown_path.name, reason, position=0, bytes=segment.size_bytes,
                    offset=newest[1], kafka_class=_RAFT_LOG,
                )  # fmt: skip
    _check_quorum_state(path / layout.QUORUM_STATE, state, terms.limits)
    if newest is not None and newest[1] == INT64_RANGE[1]:
        message = "Shutting down because we were unable to register with the controller quorum"
        reason = "the log goes on after its newest snapshot, where no offset is left"
        raise StopsStart(message, "BrokerLifecycleManager", snapshots[newest], reason)
    _check_next_epoch(state, max(epochs.latest_epoch, 0 if newest is None else newest[0]), path)
    to_replay: list[tuple[Path, int, int]] = []  # files, each up to a position, from an offset on
    if newest is not None:
        to_replay.append((snapshots[newest], _snapshot_end(newest, snapshots[newest], terms), 0))
    if not is_replaced:
        start = 0 if newest is None else newest[1]
        to_replay += [(each.place, each.size_bytes, start) for each in log.segments if each.place is not None]
    _replay(to_replay, state, terms)
    state.steps = files.settled_steps(with_kept=terms.every_file)
    return state


def _snapshot_end(snapshot_id: tuple[int, int], path: Path, terms: BootTerms) -> int:
    """The end of the last whole batch of a snapshot, which is read as a node does, with CRCs. Raises StopsStart."""
    kafka_class, end = "RecordsSnapshotReader", 0
    reason = "a node reads its newest metadata snapshot at every start, and tries no older one"
    if path.is_dir():
        raise StopsStart("Is a directory", kafka_class, path, reason)
    stop_at_pipe(path, kafka_class)
    with opened(path) as source:
        if 0 < source.size_bytes < _SHORTEST_BATCH:
            text = 'MemoryRecords.firstBatchSize()" is null'
            raise StopsStart(text, kafka_class, path, f"{reason}; this one is too short for a batch")
        try:
            for batch in valid_batches(source, path):
                end = batch.position + batch.size_bytes
        except CorruptRecords as error:
            text = error.text
            if text.startswith("Found record size"):
                text = f"Record size {text.split()[3]} is less than the minimum record overhead (14)"
            raise StopsStart(text, kafka_class, path, reason, error.position) from error
    if not end and (snapshot_id != _BOOTSTRAP_SNAPSHOT or terms.version < _PASSES_BOOTSTRAP_SNAPSHOT):
        raise StopsStart("No value present", kafka_class, path, reason)
    return end


def _replay(files: list[tuple[Path, int, int]], state: LoadedMetadata, terms: BootTerms) -> None:
    """Replay a snapshot and logs into the image; a record that cannot be read becomes ``image.problem``.

    Raises StopsStart for the first record at which a node stops, and for a log that refers to what is nowhere.
    """
    later = [stop for each in files for stop in check_records(*each, terms)]
    image = ClusterImage()
    if later:
        image.problem = _later(f"{later[0].reason} ({later[0].text})", later[0].path, terms).text
    replay = MetadataReplay(image)
    state.image = image
    for path, end, from_offset in files:
        log = LogUnit(followed(path), Location(str(path)), end=end)
        for item in metadata_records(log, from_offset, terms.limits):
            if isinstance(item, Finding):
                image.problem = image.problem or f"a metadata record cannot be read: {item.message}"
                if item.code == "version-unknown":
                    state.findings.append(item)
                continue
            if item.record_type == "FEATURE_LEVEL_RECORD":
                state.levels.append((item.data["name"], item.data["featureLevel"], path, item.offset))
            replay.take(item)
            if not item.is_control:
                state.timestamp = item.timestamp
    if replay.first_contradiction is not None and image.problem is None and state.path is not None:
        offset, text = replay.first_contradiction
        reason = f"the metadata log refers to records that the snapshot lacks: {text}"
        message = f"Error loading metadata log record from offset {offset}"
        raise StopsStart(message, "MetadataLoader", state.path, reason)


def _check_next_epoch(state: LoadedMetadata, log_epoch: int, path: Path) -> None:
    """Raises StopsStart where the only voter, which votes for itself at its start, has no higher epoch to go to."""
    voters = state.configured_voters
    if max(state.epoch, log_epoch) == INT32_RANGE[1] and voters is not None and len(voters) == 1:
        message = f"Received invalid partition leader epoch entry EpochEntry[epoch={INT32_RANGE[0]}"
        raise StopsStart(message, "EpochEntry", path, "its epoch is the largest that there is")


def _check_topic_id(files: PartitionFiles, limits: Limits) -> None:
    """Raises StopsStart where partition.metadata cannot be read or has another topic id."""
    path = files.path / layout.PARTITION_METADATA
    try:
        topic_id = stored_topic_id(files, limits)
    except BadText as error:
        raise StopsStart(error.text, "PartitionMetadataFile", path, "it cannot be read") from error
    if topic_id is None:
        files.step(Action.CREATE, layout.PARTITION_METADATA, "it is rewritten", kafka_class="PartitionMetadataFile")
    elif topic_id != _METADATA_TOPIC_ID:
        text = f"{layout.METADATA_PARTITION},but log already contained topic ID {topic_id}"
        raise StopsStart(text, "UnifiedLog.initializeTopicId", path, "the metadata log has a fixed topic id")


def _snapshots(files: PartitionFiles, log_start: int) -> dict[tuple[int, int], Path]:
    """The snapshots that a node keeps, by (epoch, end offset). Raises StopsStart where the log's head has none."""
    kept: dict[tuple[int, int], Path] = {}
    removed: list[tuple[str, str]] = []
    for name in (*files.present, *files.folders, *files.dangling):
        if not name.endswith(_SNAPSHOT_ENDS):
            continue
        end_offset, epoch = _snapshot_id(files.path / name)
        if not name.endswith(_SNAPSHOT_ENDS[0]):
            removed.append((name, "a snapshot that was not finished, or was to be deleted"))
        elif end_offset < log_start:
            removed.append((name, f"a snapshot below the log start offset {log_start}"))
        else:
            kept[epoch, end_offset] = files.path / name
    newest = max(kept, default=None)
    if log_start > 0 and newest is None:
        text = (
            "Inconsistent snapshot state: there must be a snapshot at an offset larger then the current log start "
            f"offset {log_start}, but the latest snapshot is"
        )
        reason = "the start of the metadata log was deleted, and no snapshot has its records"
        raise StopsStart(text, _RAFT_LOG, files.path, reason)
    for name, reason in removed:
        files.delete(name, reason, kafka_class=_RAFT_LOG)
    return kept


def _newest(snapshots: dict[tuple[int, int], Path], files: PartitionFiles, terms: BootTerms) -> tuple[int, int] | None:
    """The newest snapshot that is there: links to nothing are removed. Raises StopsStart where a broker needs them."""
    while snapshots:
        newest = max(snapshots)
        path = snapshots[newest]
        if path.name not in files.dangling:
            return newest
        if terms.version < _PASSES_MISSING_SNAPSHOTS:
            text = f"Unable to Opens a snapshot file {path}"
            reason = "the newest metadata snapshot is a link that leads nowhere"
            raise StopsStart(text, "FileRawSnapshotReader.open", path=path, reason=reason)
        del snapshots[newest]
    return None


def _snapshot_id(path: Path) -> tuple[int, int]:
    """The end offset and the epoch in the name of a snapshot. Raises StopsStart where the broker cannot parse it."""
    name = path.name
    for text, (low, high) in ((name[:20], INT64_RANGE), (name[21:31], INT32_RANGE)):
        number = decode_integer(text, low, high)
        if number is None:
            broker_text = f'For input string: "{text}"' if len(name) >= 31 else "begin "
            reason = f"the name of a file that ends in {_SNAPSHOT_ENDS[0]} has to begin with an offset and an epoch"
            raise StopsStart(broker_text, "Snapshots.parse", path=path, reason=reason)
    return int(name[:20]), int(name[21:31])


def _check_quorum_state(path: Path, state: LoadedMetadata, limits: Limits) -> None:
    """Read quorum-state as a node does. Raises StopsStart."""
    if not exists(path):
        return
    stop_at_pipe(path, _QUORUM)
    text, wrong = f"Error while reading the Quorum status from the file {path}", ""
    fields: Any = None
    try:
        lines = read_lines(path, limits)
        fields, _ = json.JSONDecoder().raw_decode(lines[0].strip())
    except BadText as error:
        wrong = error.text
    except IndexError:
        wrong = "the file is empty"
    except (ValueError, RecursionError):
        wrong = "its first line is not JSON"
    if not wrong and not isinstance(fields, dict):
        wrong = "its first line is not a JSON object"
    elif not wrong and "data_version" not in fields:
        wrong = "it has no data_version"
    elif not wrong:
        text, wrong = _wrong_quorum_fields(fields)
    if wrong:
        raise StopsStart(text, _QUORUM, path, f"{wrong}; a node without the file starts")
    state.epoch = fields["leaderEpoch"]
    if _as_short(fields["data_version"]) == 0:
        state.configured_voters = tuple(each["voterId"] for each in fields["currentVoters"])


def _wrong_quorum_fields(fields: dict[str, Any]) -> tuple[str, str]:
    """What a node refuses in the fields of quorum-state, in its words and in ours; empty texts for none."""
    version = _as_short(fields["data_version"])
    if version not in _FIELDS:
        text = f"data_version ({version}) is not within the min (0) and max (1) supported version"
        return text, "its version is unknown"
    for name in (*_FIELDS[0], "votedDirectoryId"):  # a field of the other version may be missing, but has its type
        if name not in fields:
            if name in _FIELDS[version]:
                text = f"unable to locate field '{name}', which is mandatory in version {version}"
                return text, f"it has no {name}"
        elif not _has_type(name, fields[name]):
            is_text = name == "votedDirectoryId" and isinstance(fields[name], str)
            return "base64" if is_text else "QuorumStateData: ", f"its {name} has the wrong type"
    voters = fields.get("currentVoters", [])
    if version == 1 and voters:
        return "Can't read version 1 of Voter", "its currentVoters are those of version 0"
    if version == 0 and voters is None:
        return 'currentVoters()" is null', "its currentVoters are null"
    for each in voters or []:
        if not isinstance(each, dict) or "voterId" not in each:
            return "Voter: unable to locate field 'voterId', which is mandatory in version 0", "a voter has no id"
        if not _has_type("voterId", each["voterId"]):
            return "Voter expected a 32 bit signed integer", "the id of a voter is no number"
    return "", ""


def _as_short(value: object) -> int:
    """The number that the broker's JSON library makes of a value: 0 of anything but a number."""
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def _has_type(name: str, value: object) -> bool:
    if name == "currentVoters":
        return value is None or isinstance(value, list)
    if name == "clusterId":
        return isinstance(value, str)
    if name == "votedDirectoryId":
        return isinstance(value, str) and is_uuid(value)
    low, high = INT64_RANGE if name == "appliedOffset" else INT32_RANGE
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_broker(
    log_dirs: list[Path], identity: NodeIdentity | None, metadata: LoadedMetadata, node_id: int | None, terms: BootTerms
) -> bool | None:
    """Whether the node runs a broker, by the option or its metadata log; None where nothing says so.

    Where the metadata log does not name the node, files that only a broker writes tell. Where it names a controller
    alone, it may have lost the registration of the broker, which has written high watermarks every five seconds.
    """
    if terms.is_broker is not None:
        return terms.is_broker
    if identity is not None and identity.is_zookeeper:
        return True
    image = metadata.image
    if image is not None and node_id is not None:
        if node_id in image.brokers or any(image.assigned_to(node_id)):
            return True
        if any(is_there(path / layout.REPLICATION_OFFSET_CHECKPOINT) for path in log_dirs):
            return True
        if image.problem is None and (node_id in image.controllers or node_id in (metadata.voters or ())):
            return False
    has_metadata_log = any(is_there(path / layout.METADATA_PARTITION) for path in log_dirs)
    if terms.is_one_of_several and not has_metadata_log:
        return True  # a controller has nothing but the directory of its metadata log
    return True if any(is_there(path / name) for path in log_dirs for name in _OF_LOG_MANAGER) else None


def if_broker(step: Step) -> Step:
    """A refusal of the log manager, on a node of which it is not known whether it runs one."""
    if step.action is not Action.REFUSE:
        return step
    words = step.reason or step.broker_message
    reason = f"{words}; a broker stops here, a controller alone does not: process.roles decides"
    return replace(step, action=Action.UNKNOWN, reason=reason)


def controller_lock(metadata_dir: Path) -> list[Step]:
    """The refusal of a controller that cannot lock the directory of its metadata log, none where it can."""
    path = metadata_dir / layout.LOCK
    closed = why_closed(path)
    if closed is None:
        return []
    return [
        problem_step(StopsStart(f"{path}: {closed}", "KafkaRaftManager", path, f"{layout.LOCK} cannot be opened"), path)
    ]


def observer_steps(
    metadata_dir: Path, identity: NodeIdentity, own: ClusterImage, node_id: int, terms: BootTerms
) -> list[Step]:
    """The step of a voter whose metadata log lies in a directory with another id than the voter set has."""
    image = own if terms.later is None else terms.later.image
    voters = image.voters
    if voters is None or node_id not in voters or not image.features.get(KRAFT_VERSION):
        return []
    expected = canonical_uuid(voters[node_id]["voterDirectoryId"])
    actual = identity.directory_ids.get(metadata_dir)
    if actual == expected:
        return []
    is_new = metadata_dir in identity.without_directory_id
    has = "has none, and gets a new one" if is_new else f"has {actual}"
    reason = f"the voter {node_id} of the metadata quorum has the directory id {expected}, "
    reason += f"and {layout.META_PROPERTIES} here {has}"
    elsewhere = [path for path, each in identity.directory_ids.items() if each == expected]
    if elsewhere:
        reason += f" ({expected} is that of {elsewhere[0]})"
    reason += ": the node only observes the quorum, and never votes"
    others = len(voters) - 1
    if others > len(voters) // 2:
        reason += f"; {counted(others, 'other voter')} can still elect a leader"
        action = Action.OFFLINE
    else:
        reason += ". No leader can be elected without it: the node waits without end"
        action = Action.REFUSE
    path = metadata_dir / layout.META_PROPERTIES
    return [Step(action, path, layout.CLUSTER_METADATA_TOPIC, 0, reason=reason, kafka_class="KafkaRaftClient")]
