"""boot: simulates what a broker's start does to the log directories of one node, from its identity to each file.

The order is the broker's own: meta.properties, bootstrap metadata, the metadata log, then all other logs. All
refusals that can be found are reported, though a broker stops at the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from format.errors import KafkaLogError
from format.files import clean_shutdown
from format.files.meta_properties import has_metadata_log
from format.findings import Certainty, Finding, Severity, finding
from format.io import live_broker
from format.io.session import is_on_disk, is_there
from format.layout import (
    BOOTSTRAP_CHECKPOINT,
    CLEAN_SHUTDOWN,
    CLUSTER_METADATA_TOPIC,
    LOCK,
    META_PROPERTIES,
    METADATA_PARTITION,
)
from format.limits import Limits
from format.location import Location
from format.node.log_dir import Beside
from format.verbs.boot import log_manager, quorum
from format.verbs.boot.broker_files import closed_to_the_owner, closed_to_this_user, note_read_only
from format.verbs.boot.identity import NodeIdentity, read_identity
from format.verbs.boot.steps import (
    Action,
    BootResult,
    BootTerms,
    KnownMetadata,
    NotKnown,
    Step,
    StopsStart,
    problem_step,
)
from format.wording import counted

_MUCH_SPACE = 2**30  # bytes, of which a start needs a part
_ORDER = {action: number for number, action in enumerate(Action)}


def boot(log_dirs: list[Path], terms: BootTerms, node_id: int | None = None) -> BootResult:
    """What a broker would do with these log directories of one node, given in the order of its configuration.

    ``node_id`` is the node id in the broker's configuration; None stands for the one in meta.properties.
    """
    return _Start(log_dirs, terms, node_id).run()


class _Start:
    """One simulated start, and what it has found out so far: the identity of the node and its metadata."""

    def __init__(self, log_dirs: list[Path], terms: BootTerms, node_id: int | None) -> None:
        self._log_dirs = log_dirs
        self._terms = terms
        self._node_id = node_id
        self._result = BootResult()
        with_metadata = (path for path in log_dirs if is_there(path / METADATA_PARTITION))
        self._metadata_dir = terms.metadata_dir or next(with_metadata, log_dirs[0])
        self._identity: NodeIdentity | None = None
        self._metadata = quorum.LoadedMetadata()

    def run(self) -> BootResult:
        result, terms, log_dirs = self._result, self._terms, self._log_dirs
        self._note(*closed_to_this_user(log_dirs))
        if result.is_unknown:
            result.not_checked.append("what the start would do: not every log directory can be listed")
            return result
        self._read_identity()
        identity = self._identity
        if identity is not None and not identity.is_zookeeper:
            self._load_metadata()
        self._note(
            *(
                NotKnown("a broker runs on this log directory, and changes it", path)
                for path in log_dirs
                if live_broker.probe(path / LOCK).is_held
            ),
        )
        result.steps += [
            replace(problem_step(each, each.path), is_closed=True) for each in closed_to_the_owner(log_dirs)
        ]
        if identity is not None:
            self._node_id = identity.node_id
        image, node_id = self._metadata.image, self._node_id
        has_broker = quorum.is_broker(log_dirs, identity, self._metadata, node_id, terms)
        if image is not None and image.problem is not None:
            self._note(NotKnown(image.problem, self._metadata_dir / METADATA_PARTITION))
        if identity is not None and image is not None and node_id is not None:
            result.steps += quorum.observer_steps(self._metadata_dir, identity, image, node_id, terms)
        if has_broker is False:
            result.is_controller = True
            result.steps += quorum.controller_lock(self._metadata_dir)
        else:
            steps = self._log_steps()
            result.steps += steps if has_broker else map(quorum.if_broker, steps)
        self._note_not_checked(has_broker)
        if not terms.every_file:
            result.steps = [step for step in result.steps if _is_remarkable(step)]
        result.steps.sort(key=lambda step: _ORDER[step.action])
        return result

    def _note(self, *errors: StopsStart | NotKnown | KafkaLogError) -> None:
        """Add the steps of errors."""
        self._result.steps += [problem_step(error, self._metadata_dir) for error in errors]

    def _read_identity(self) -> None:
        """Read meta.properties and the bootstrap metadata."""
        terms = self._terms
        try:
            identity = read_identity(self._log_dirs, self._metadata_dir, self._node_id, terms.version, terms.limits)
            try:
                if not identity.is_zookeeper:
                    quorum.check_bootstrap(self._metadata_dir, terms)
            except NotKnown as error:
                self._note(error)
        except (StopsStart, NotKnown, KafkaLogError) as error:
            self._note(error)
            return
        self._identity = identity
        reason = "it has no directory.id: the broker makes up a new id, and rewrites the file"
        self._result.steps += [
            Step(Action.CREATE, path / META_PROPERTIES, reason=reason, kafka_class="KafkaRaftServer")
            for path in identity.without_directory_id
        ]

    def _load_metadata(self) -> None:
        path = self._metadata_dir / METADATA_PARTITION
        try:
            state = quorum.load_metadata(self._metadata_dir, self._terms)
            quorum.check_levels(state, self._terms)
        except (StopsStart, NotKnown, KafkaLogError) as error:
            self._result.steps.append(problem_step(error, path, (CLUSTER_METADATA_TOPIC, 0)))
            return
        self._metadata = state
        self._result.steps += state.steps
        self._result.findings += state.findings

    def _log_steps(self) -> list[Step]:
        """The steps of a broker's log manager on all logs but the metadata log."""
        terms, identity, result, node_id = self._terms, self._identity, self._result, self._node_id
        offline = identity.offline if identity is not None else {}
        directory_ids = identity.directory_ids if identity is not None else {}
        image = self._metadata.image if terms.later is None else terms.later.image
        if image is not None and image.problem is not None:
            image = None  # what belongs to the node may be in what cannot be read
        opened = [
            log_manager.open_log_dir(path, directory_ids.get(path), terms)
            for path in self._log_dirs
            if path not in offline and path.is_dir()
        ]
        logs = log_manager.load_logs(opened, image, node_id, terms)
        result.unread += logs.unread
        if image is not None and node_id is not None:
            self._note_left_behind(logs, image.brokers.get(node_id, {}).get("brokerEpoch", -1))
        steps = [*logs.problems, *self._failed_directories(opened, offline)]
        if image is not None:
            steps += log_manager.config_steps(image, self._metadata_dir / METADATA_PARTITION, terms)
        for log_dir in opened:
            steps += log_dir.steps
            result.failed_dirs += [log_dir.path for step in log_dir.steps if step.action is Action.OFFLINE]
        steps += logs.steps
        if logs.links:
            count = counted(len(logs.links), "link")
            result.not_checked.append(
                f"whether symbolic links lead to the same files on the broker's host: {count} followed, as a broker "
                f"does; the first is {logs.links[0]}"
            )
        if identity is not None and identity.is_zookeeper:
            steps += log_manager.lone_future_steps(logs)
            steps += log_manager.new_directory_steps(logs, identity.new)
        if image is None or node_id is None:
            return list(log_manager.without_losses_of_futures(steps, logs))
        steps += log_manager.future_log_steps(logs, image, node_id)
        steps = list(log_manager.without_losses_of_futures(steps, logs))
        known = {each.directory_id for each in opened}
        if None not in known:  # one without an id may be any
            registered = image.brokers.get(node_id, {}).get("logDirs") or []
            result.absent_ids = [each for each in registered if each not in known]
        is_whole = not offline and not terms.is_one_of_several
        steps += log_manager.unknown_directory_steps(logs, opened, image, node_id, is_whole=is_whole)
        is_later = terms.later is not None and self._metadata.path is not None
        earlier = self._metadata.image if is_later else None
        made = log_manager.missing_log_steps(logs, opened, image, node_id, is_whole=is_whole, earlier=earlier)
        steps += map(self._of_failed_directory, made)
        unclean = {each.path for each in opened if not each.clean}
        steps = [log_manager.of_topic_made_anew(step, image, unclean) for step in steps]
        return [log_manager.with_other_replicas(step, image, node_id) for step in steps]

    def _note_left_behind(self, logs: log_manager.LogsState, registered: int) -> None:
        """Note the log directories that are older than the last start of the node."""
        epochs = {
            str(path): clean_shutdown.broker_epoch_at(path / CLEAN_SHUTDOWN, self._terms.limits)
            for path in self._log_dirs
        }
        in_use = {str(each.log_dir.path) for each in logs.live.values()}
        for path, used in clean_shutdown.left_behind(epochs, in_use, registered).items():
            self._result.not_checked.append(
                f"what was lost before: {path} was last used up to a clean stop with broker epoch {epochs[path]}, and "
                f"the node registered with {registered} since and used {used}: its logs lack what was written since"
            )

    def _of_failed_directory(self, step: Step) -> Step:
        """The step where a log directory fails as a log is made in it; a broker exits with that of the metadata log."""
        if step.action is not Action.OFFLINE or step.path not in self._log_dirs:
            return step
        if step.path == self._metadata_dir and is_there(step.path / METADATA_PARTITION):
            return replace(step, action=Action.REFUSE, reason=f"{step.reason}, and with it the metadata log")
        self._result.failed_dirs.append(step.path)
        return step

    def _failed_directories(self, opened: list[log_manager.LogDirState], offline: dict[Path, Step]) -> Iterator[Step]:
        """Steps for log directories that fail; the broker exits with the last one, or with that of the metadata log."""
        is_one_of_several, identity = self._terms.is_one_of_several, self._identity
        has_metadata = identity is not None and not identity.is_zookeeper
        has_metadata = has_metadata and (not is_one_of_several or is_there(self._metadata_dir / METADATA_PARTITION))
        failed = list(offline.items())
        failed += [(log_dir.path, step) for log_dir in opened for step in log_dir.failures]
        serving = {log_dir.path for log_dir in opened if not log_dir.failures}
        for path, step in failed:
            reason = f"{step.reason}; the log directory fails, and "
            if not serving and not is_one_of_several:
                yield replace(step, reason=f"{reason}no other is left")
            elif path == self._metadata_dir and has_metadata:
                yield replace(step, reason=f"{reason}with it the metadata log")
            else:
                reason = f"{step.reason}; the log directory {path} fails, and none of its partitions is served"
                self._result.failed_dirs.append(path)
                yield replace(step, action=Action.OFFLINE, reason=reason)

    def _note_not_checked(self, has_broker: bool | None) -> None:
        """Note what the log directories cannot show."""
        result, terms, identity, metadata = self._result, self._terms, self._identity, self._metadata
        notes = result.not_checked
        notes.append("the broker's configuration: listeners, log.dirs, segment.index.bytes, remote storage")
        notes += [f"{path} is not a regular file: a broker ignores it" for path in result.unread]
        missing = "strays and missing partitions"
        if identity is None:
            notes.append(f"{missing}: the node's identity cannot be read")
        elif identity.is_zookeeper:
            notes.append(f"{missing}: in ZooKeeper mode, the assignment of partitions is in ZooKeeper")
            notes.append("the cluster id in ZooKeeper: a broker does not start with another one")
            if not terms.is_release_known:
                notes.append(
                    "releases before 3.9, which refuse more: a meta.properties that is empty and another that is not, "
                    "a -stray directory, a leader-epoch-checkpoint that cannot be read"
                )
                notes.append("releases from 4.0 on, which have no ZooKeeper mode: --kafka-version shows what they do")
        elif metadata.image is None or metadata.image.problem is not None:
            notes.append(f"{missing}: the metadata log cannot be read as a whole")
        else:
            result.as_of = terms.later
            if metadata.voters != (self._node_id,):
                notes.append("whether a majority of the controllers runs: the node waits for their leader")
                if terms.later is None and metadata.path is not None:
                    result.as_of = KnownMetadata(metadata.path, metadata.image, metadata.timestamp)
                    words = "metadata that other controllers have and this node does not: give theirs with --metadata"
                    notes.append(words)
        may_be_old = terms.version <= LAST_WITH_ZOOKEEPER or not terms.is_release_known
        if identity is not None and identity.may_be_zookeeper and may_be_old:
            result.may_be_zookeeper = True
            notes.append(
                "whether the node still runs with ZooKeeper, in a migration or back from one: its meta.properties is "
                "of version 0; ZooKeeper then has the assignment of partitions, and the metadata log may be out of date"
            )
        if terms.is_broker is None and has_broker is None:
            notes.append("whether the node is a broker: neither its metadata log nor its files say so")
        elif terms.is_broker is None and not has_broker:
            notes.append(
                f"process.roles: the metadata log has a controller {self._node_id} and no broker {self._node_id}, so "
                "the node is taken for a controller alone, which reads nothing but the metadata log; --process-roles "
                "says otherwise"
            )
        if not terms.is_one_of_several:
            _note_space(self._log_dirs, result)
            notes += note_read_only(self._log_dirs)
        if self._metadata_dir != self._log_dirs[0]:
            notes.append(
                f"metadata.log.dir: the metadata log lies in {self._metadata_dir}; unless that property names the "
                "directory, a broker looks in the first one of log.dirs, and stops: Found unexpected metadata location"
            )


def _is_remarkable(step: Step) -> bool:
    return step.action is not Action.KEEP or bool(
        step.lost_offsets or step.may_lose or step.bytes or step.broker_message
    )


def _note_space(log_dirs: list[Path], result: BootResult) -> None:
    """Note where little space is free on this host's file systems; without any, a start cannot be predicted."""
    seen = set()
    for path in log_dirs:
        if not is_on_disk(path):
            continue
        try:
            status = os.statvfs(path)
        except OSError:
            continue  # the simulated start reports it
        if status.f_fsid in seen or status.f_flag & os.ST_RDONLY:
            continue  # an image that is mounted to be read is no place where a broker starts
        seen.add(status.f_fsid)
        free = status.f_bavail * status.f_frsize
        need = "a start needs some, for indexes and checkpoints"
        if not free:
            text = f"the file system has no byte free, on this host and now: {need}"
            result.steps.append(Step(Action.UNKNOWN, path, reason=text))
        elif free < _MUCH_SPACE:
            words = f"{counted(free, 'byte')} free, on this host and now"
            result.not_checked.append(f"whether the disk has room: {path} has {words}; {need}")


#: Without a file of KRaft the directory may belong to a broker with ZooKeeper, which 3.9 is the last to support.
NEWEST, LAST_WITH_ZOOKEEPER = (4, 4), (3, 9)


def refusal_findings(log_dir: Path, limits: Limits, beside: Beside | None = None) -> Iterator[Finding]:
    """Findings about what would keep a broker from starting on a log directory, or from serving its logs.

    There are none for a directory that a running broker uses. ``beside``: the other log directories of its node, None
    if none is known.
    """
    if live_broker.probe(log_dir / LOCK).is_held:
        return
    version = _version_of(log_dir)
    is_one_of_several, beside = beside is not None, beside or Beside()
    terms = BootTerms(
        version, is_release_known=False, is_one_of_several=True, limits=limits, metadata_dir=beside.metadata_dir
    )
    result = boot([log_dir], terms)
    for step in result.steps:
        if not step.path.is_relative_to(log_dir):
            continue  # of the metadata log in another log directory
        if step.action is Action.REFUSE:
            yield _finding("boot-refused", step, f"a broker would not start: {step_words(step)}")
        elif step.is_closed:
            words = "Give the files to the user that the broker runs as."
            found = _finding("boot-unserved", step, step.reason)
            yield replace(found, severity=Severity.WARNING, certainty=Certainty.LIKELY, next_step=words)
        elif step.action is Action.OFFLINE:
            yield _finding("boot-unserved", step, f"a broker would not serve this: {step_words(step)}")
        elif step.action is Action.RENAME and str(step.new_path).endswith("-stray"):
            own = "" if result.as_of is None else "; by its own metadata: other controllers may have later metadata"
            if result.may_be_zookeeper:
                own += "; not so if the node still runs with ZooKeeper, as its meta.properties of version 0 allows"
            found = _finding("replica-stray", step, f"a broker would rename this log to -stray: {step.reason}{own}")
            if step.is_needless:
                words = "If nothing of the topic is needed, delete the directory when the broker has renamed it."
                found = replace(found, severity=Severity.WARNING, next_step=words)
            yield found
        elif step.action is Action.KEEP and _has_lost_head(step):
            yield replace(_finding("checkpoint-mismatch", step, step.reason), severity=Severity.ERROR)
        elif (step.topic, step.partition) in beside.partitions:
            continue  # a broker finds the log in another log directory, and notes that it lies there
        elif step.action is Action.CREATE and (
            step.lost_offsets is not None or (step.may_lose and is_one_of_several and step.topic is not None)
        ):  # of several log directories, the metadata has the one in which the broker made the log
            yield _finding("replica-missing", step, step.reason)
        elif step.action is Action.TRUNCATE and step.path.name.endswith("-future"):
            words = "Copy the directory before a broker starts; give the other log directories of the node, too."
            found = _finding("replica-missing", step, step.reason)
            yield replace(found, severity=Severity.WARNING, certainty=Certainty.POSSIBLE, next_step=words)


def _version_of(log_dir: Path) -> tuple[int, int]:
    """The newest release that can start on a log directory."""
    is_kraft = has_metadata_log(log_dir) or is_there(log_dir / BOOTSTRAP_CHECKPOINT)
    return NEWEST if is_kraft else LAST_WITH_ZOOKEEPER


def removed_offsets(partition: Path, log_end: int, limits: Limits) -> tuple[int, int] | None:
    """First and last of the offsets that a start would remove from a log that ends at ``log_end``; None for none.

    The log is read from its recovery point on. None also where a start would fail or cannot be predicted, as without
    the log directory around the log.
    """
    if not is_there(partition.parent / META_PROPERTIES):
        return None
    terms = BootTerms(version=_version_of(partition.parent), is_release_known=False, limits=limits)
    return log_manager.removed_by_start(partition, log_end, terms)


def _has_lost_head(step: Step) -> bool:
    start = step.log_start_offset
    return step.lost_offsets is not None and start is not None and step.lost_offsets[0] < start


def step_words(step: Step) -> str:
    """The broker's message, with the reason in brackets; without a message, the reason."""
    if step.broker_message is None:
        return step.reason
    message = step.broker_message.rstrip(".")
    return f"{message} ({step.reason.rstrip('.')})" if step.reason else message


def _finding(code: str, step: Step, message: str) -> Finding:
    location = Location(str(step.path), step.topic, step.partition, position=step.position)
    return finding(code, location, message, lost_offsets=step.lost_offsets)
