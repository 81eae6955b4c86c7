"""The KRaft part of a start: the metadata log, its snapshots, and quorum-state.

A node reads them before any other log, and recovers the metadata log at every start, even after a clean shutdown.
Source: raft KafkaRaftLog (before 4.2 core KafkaMetadataLog), FileQuorumStateStore, KRaftControlRecordStateMachine.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from format.files.side_file import INT32_RANGE, INT64_RANGE, decode_integer
from format.findings import Finding
from format.io.session import is_there
from format.kafka_uuid import is_uuid
from format.layout import (
    CLUSTER_METADATA_TOPIC,
    PARTITION_METADATA,
    QUORUM_STATE,
)
from format.limits import Limits
from format.location import Location
from format.scan.protocol import LogUnit
from format.state.cluster_image import ClusterImage
from format.state.metadata_log import MetadataReplay, metadata_records
from format.verbs.boot.followed import exists, followed, opened
from format.verbs.boot.identity import METADATA_PARTITION
from format.verbs.boot.one_log.file_batches import CorruptRecords, batches_from, invalid_batch
from format.verbs.boot.one_log.kafka_text import BadText, read_lines, read_topic_id
from format.verbs.boot.one_log.leader_epochs import EpochCache
from format.verbs.boot.one_log.loaded_log import LoadTerms
from format.verbs.boot.one_log.log_load import load_log
from format.verbs.boot.one_log.metadata_records import RecordTerms, check_feature, check_records
from format.verbs.boot.one_log.partition_files import PartitionFiles, read_partition_files
from format.verbs.boot.pipes import stop_at_pipe
from format.verbs.boot.steps import Action, BootTerms, Step, StopsStart

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


class MetadataState(msgspec.Struct):
    """What the rest of a start needs of the metadata log; ``image`` is None where none could be loaded."""

    image: ClusterImage | None = None
    configured_voters: tuple[int, ...] | None = None  # those in quorum-state, of a quorum without directory ids
    epoch: int = 0  # that of quorum-state
    timestamp: int | None = None  # of the last metadata record
    path: Path | None = None  # of the metadata log, None without one
    steps: list[Step] = msgspec.field(default_factory=list)

    @property
    def voters(self) -> tuple[int, ...] | None:
        """The ids of the controllers that elect a leader; None where they are not known."""
        if self.image is not None and self.image.voters is not None:
            return tuple(self.image.voters)
        return self.configured_voters


def _check_records(path: Path, kafka_class: str, reason: str) -> int:
    """The end of the last whole batch of a snapshot, which is read as a node does, with CRCs. Raises StopsStart."""
    end = 0
    if path.is_dir():
        raise StopsStart("Is a directory", kafka_class, path=path, reason=reason)
    stop_at_pipe(path, kafka_class)
    with opened(path) as source:
        if 0 < source.size_bytes < _SHORTEST_BATCH:
            text = 'MemoryRecords.firstBatchSize()" is null'
            raise StopsStart(text, kafka_class, path=path, reason=f"{reason}; this one is too short for a batch")
        try:
            for batch in batches_from(source, 0, source.size_bytes, path):
                wrong = invalid_batch(source, batch)
                if wrong is not None:
                    raise CorruptRecords(wrong, batch.position)
                end = batch.position + batch.size_bytes
        except CorruptRecords as error:
            text = error.text
            if text.startswith("Found record size"):
                text = f"Record size {text.split()[3]} is less than the minimum record overhead (14)"
            raise StopsStart(text, kafka_class, path=path, reason=reason, position=error.position) from error
    return end


def load_metadata(metadata_dir: Path, terms: BootTerms) -> MetadataState:
    """Simulate the load of the metadata log. Raises StopsStart, NotKnown, UnreadableFile and FileChanged."""
    state = MetadataState()
    path = metadata_dir / METADATA_PARTITION
    if not is_there(path):
        if terms.is_one_of_several:
            return state
        state.image = ClusterImage()
        reason = "there is no metadata log here: the node begins a new one and knows of no topic"
        state.steps.append(Step(Action.CREATE, path, CLUSTER_METADATA_TOPIC, 0, reason=reason, kafka_class=_RAFT_LOG))
        return state
    on = terms.version, terms.every_file, terms.index_interval_bytes
    known, found = terms.earlier.metadata.pop(path, (None, state)) if terms.earlier is not None else (None, state)
    if known != on:
        found = _loaded(path, terms)
    if terms.kept is not None:
        terms.kept.metadata[path] = on, found
    return found


def _loaded(path: Path, terms: BootTerms) -> MetadataState:
    state = MetadataState()
    files = read_partition_files(path, CLUSTER_METADATA_TOPIC, 0)
    epochs = EpochCache(files, terms.limits)
    log = load_log(
        files,
        LoadTerms(terms, clean=False, is_metadata=True, why_recovered="the metadata log is recovered at every start"),
    )
    epochs.settle(log)
    _check_topic_id(files, terms.limits)
    snapshots = _snapshots(files, log.log_start)
    newest = _newest(snapshots, files, terms)
    epoch = epochs.latest_epoch
    is_replaced = newest is not None and (
        newest[0] > max(epoch, 0) or (newest[0] == max(epoch, 0) and newest[1] > log.log_end)
    )
    if newest is not None and is_replaced:
        name = snapshots[newest].name
        reason = f"the newest snapshot, {name}, is ahead of the log: the log is emptied and goes on after it"
        for segment in log.segments:
            if segment.place is not None:
                files.step(
                    Action.TRUNCATE, segment.shown_path.name, reason, position=0, bytes=segment.size_bytes,
                    offset=newest[1], kafka_class=_RAFT_LOG,
                )  # fmt: skip
    _check_quorum_state(path / QUORUM_STATE, state, terms.limits)
    if newest is not None and newest[1] == INT64_RANGE[1]:
        message = "Shutting down because we were unable to register with the controller quorum"
        reason = "the log goes on after its newest snapshot, where no offset is left"
        raise StopsStart(message, "BrokerLifecycleManager", path=snapshots[newest], reason=reason)
    _check_next_epoch(state, max(epoch, 0 if newest is None else newest[0]), path)
    replay = MetadataReplay(ClusterImage())
    record_terms = RecordTerms(terms.version, terms.limits, is_release_known=not terms.is_one_of_several)
    files_to_replay: list[tuple[Path, int, int]] = []
    if newest is not None:
        reason = "a node reads its newest metadata snapshot at every start, and tries no older one"
        end = _check_records(snapshots[newest], "RecordsSnapshotReader", reason)
        if not end and (newest != _BOOTSTRAP_SNAPSHOT or terms.version < _PASSES_BOOTSTRAP_SNAPSHOT):
            raise StopsStart("No value present", "RecordsSnapshotReader", path=snapshots[newest], reason=reason)
        check_records(snapshots[newest], end, 0, record_terms)
        files_to_replay.append((snapshots[newest], end, 0))
    if not is_replaced:
        start = 0 if newest is None else newest[1]
        read = [(each.place, each.size_bytes, start) for each in log.segments if each.place is not None]
        for each in read:
            check_records(*each, record_terms)
        files_to_replay += read
    for each in files_to_replay:
        _replay_file(replay, state, *each, terms)
    if replay.first_contradiction is not None and replay.image.problem is None:
        reason = "the metadata log refers to records that the snapshot lacks"
        raise StopsStart(replay.first_contradiction[1], "MetadataLoader", path=path, reason=reason)
    state.image, state.path = replay.image, path
    state.steps = files.settled_steps(with_kept=terms.every_file)
    return state


def _replay_file(
    replay: MetadataReplay, state: MetadataState, path: Path, end: int, from_offset: int, terms: BootTerms
) -> None:
    """Replay a log or snapshot file up to position ``end``; a record that cannot be read becomes ``image.problem``."""
    for item in metadata_records(LogUnit(followed(path), Location(str(path)), end=end), from_offset, terms.limits):
        if isinstance(item, Finding):
            replay.image.problem = replay.image.problem or f"a metadata record cannot be read: {item.message}"
        else:
            if item.record_type == "FEATURE_LEVEL_RECORD" and not terms.is_one_of_several:
                check_feature(item.data["name"], item.data["featureLevel"], terms.version, path, item.offset)
            replay.take(item)
            if not item.is_control:
                state.timestamp = item.timestamp


def _check_next_epoch(state: MetadataState, log_epoch: int, path: Path) -> None:
    """Raises StopsStart where the only voter, which votes for itself at its start, has no higher epoch to go to."""
    voters = state.configured_voters
    if max(state.epoch, log_epoch) == INT32_RANGE[1] and voters is not None and len(voters) == 1:
        message = f"Received invalid partition leader epoch entry EpochEntry[epoch={INT32_RANGE[0]}"
        raise StopsStart(message, "EpochEntry", path=path, reason="its epoch is the largest that there is")


def _check_topic_id(files: PartitionFiles, limits: Limits) -> None:
    path = files.path / PARTITION_METADATA
    if PARTITION_METADATA in files.folders:
        stop_at_pipe(path, "PartitionMetadataFile")
        text = f"Error while reading partition metadata file {path}"
        raise StopsStart(text, "PartitionMetadataFile", path=path, reason="it is a directory")
    if PARTITION_METADATA not in files.present:
        files.step(Action.CREATE, PARTITION_METADATA, "it is rewritten", kafka_class="PartitionMetadataFile")
        return
    try:
        topic_id = read_topic_id(path, limits)
    except BadText as error:
        raise StopsStart(error.text, "PartitionMetadataFile", path=path, reason="it cannot be read") from error
    if topic_id != _METADATA_TOPIC_ID:
        raise StopsStart(
            f"{METADATA_PARTITION},but log already contained topic ID {topic_id}",
            "UnifiedLog.initializeTopicId",
            path=path,
            reason="the metadata log has a fixed topic id",
        )


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
        raise StopsStart(
            "Inconsistent snapshot state: there must be a snapshot at an offset larger then the current log start "
            f"offset {log_start}, but the latest snapshot is",
            _RAFT_LOG,
            path=files.path,
            reason="the start of the metadata log was deleted, and no snapshot has its records",
        )
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


def _check_quorum_state(path: Path, state: MetadataState, limits: Limits) -> None:
    if not exists(path):
        return
    stop_at_pipe(path, _QUORUM)
    general = f"Error while reading the Quorum status from the file {path}"

    def stops(text: str, reason: str) -> StopsStart:
        return StopsStart(text, _QUORUM, path=path, reason=f"{reason}; a node without the file starts")

    try:
        lines = read_lines(path, limits)
    except BadText as error:
        raise stops(general, error.text) from error
    if not lines:
        raise stops(general, "the file is empty")
    try:
        fields, _ = json.JSONDecoder().raw_decode(lines[0].strip())
    except (ValueError, RecursionError) as error:
        raise stops(general, "its first line is not JSON") from error
    if not isinstance(fields, dict):
        raise stops(general, "its first line is not a JSON object")
    if "data_version" not in fields:
        raise stops(general, "it has no data_version")
    version = _as_short(fields["data_version"])
    if version not in _FIELDS:
        raise stops(
            f"data_version ({version}) is not within the min (0) and max (1) supported version",
            "its version is unknown",
        )
    for name in (*_FIELDS[0], "votedDirectoryId"):  # a field of the other version may be missing, but has its type
        if name not in fields:
            if name in _FIELDS[version]:
                text = f"unable to locate field '{name}', which is mandatory in version {version}"
                raise stops(text, f"it has no {name}")
        elif not _has_type(name, fields[name]):
            is_text = name == "votedDirectoryId" and isinstance(fields[name], str)
            raise stops("base64" if is_text else "QuorumStateData: ", f"its {name} has the wrong type")
    state.epoch = fields["leaderEpoch"]
    voters = fields.get("currentVoters", [])
    if version == 1 and voters:
        raise stops("Can't read version 1 of Voter", "its currentVoters are those of version 0")
    if version == 0 and voters is None:
        raise stops('currentVoters()" is null', "its currentVoters are null")
    for each in voters or []:
        if not isinstance(each, dict) or "voterId" not in each:
            raise stops("Voter: unable to locate field 'voterId', which is mandatory in version 0", "a voter has no id")
        if not _has_type("voterId", each["voterId"]):
            raise stops("Voter expected a 32 bit signed integer", "the id of a voter is no number")
    if version == 0:
        state.configured_voters = tuple(each["voterId"] for each in voters)


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
