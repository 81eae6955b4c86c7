"""verify: checks logs and the files beside them, and yields findings; damage never stops the rest of the checks.

It is a scan of units: partitions, single files, and the own files of log directories. Every driver runs the same scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from format.checks.directories import check_log_dir_files, check_topic_ids
from format.errors import KafkaLogError
from format.files import meta_properties
from format.findings import Certainty, Finding, Judgement, Severity, finding, finding_of
from format.io.live_broker import is_broker_running, settled_findings
from format.io.session import is_there, joins_remote_segments, map_near
from format.layout import CLUSTER_METADATA_TOPIC, PARTITION_METADATA
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Beside, Checkpoints, Kind, LogDir, TopicPartition, read_log_dir, with_checkpoints
from format.node.offsets import offsets_of, unread_heads_words
from format.node.partition import (
    Partition,
    key_of_directory,
    location_of_directory,
    location_of_file,
    parse_partition_dir,
    read_partition,
)
from format.node.partition_surroundings import completed_swaps
from format.node.target import Target, clusters_of, nothing_to_read, target_at
from format.scan.cluster import cluster_of
from format.scan.drivers import SerialDriver, may_be_shared, open_units, size_of
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Driver, LogParts, LogUnit
from format.scan.selected_logs import every_log_of, partitions_below
from format.verbs.verify.partition_checks import (
    Coverage,
    PartitionCheck,
    UnitReport,
    check_kraft_snapshot,
    check_lone_segment,
)
from format.verbs.verify.walk import Level, LogWalk, PartitionCounts, WalkedChunk

if TYPE_CHECKING:
    from format.verbs.verify.intact_replicas import ReplicasAtHand

_METADATA = (CLUSTER_METADATA_TOPIC, 0)
#: Damage inside a log, which no broker repairs.
INSIDE_A_LOG = frozenset(
    (
        "batch-crc-mismatch",
        "log-framing-broken",
        "log-truncated",
        "batch-invalid",
        "segment-missing",
        "log-head-missing",
    )
)
#: A lost end of a log, which a broker truncates when it starts.
AT_THE_END = frozenset(("tail-torn", "tail-zeros", "checkpoint-mismatch"))
#: Marks of directories that are no duplicate: a replica that is being moved is in two directories, and no client
#: reads a stray or deleted one.
_BESIDE = ("future", "stray", "delete")


class _Owner(msgspec.Struct, frozen=True):
    """The node that a log directory belongs to, and the directory id; ``is_metadata``: the metadata log is in it."""

    cluster_id: str | None
    node_id: int
    directory_id: str | None
    is_metadata: bool

    def is_beside(self, other: _Owner) -> bool:
        """Whether one node uses both: two with the same directory id, and two with a metadata log, are copies."""
        is_copy = self.directory_id is not None and self.directory_id == other.directory_id
        is_copy = is_copy or (self.is_metadata and other.is_metadata)
        return (self.cluster_id, self.node_id) == (other.cluster_id, other.node_id) and not is_copy


def check_node_log_dirs(log_dirs: Iterable[LogDir], limits: Limits) -> Iterator[Finding]:
    """Findings for log directories that belong to one node by meta.properties; those without one are skipped."""
    owned = _owned(log_dirs, limits)
    for number, (log_dir, owner) in enumerate(owned):
        for other_dir, other in owned[:number]:
            if owner.is_beside(other):
                is_ours = owner.directory_id is not None and other.directory_id is not None
                judgement = _judged(log_dir, other_dir, owner.cluster_id, is_proven=is_ours)
                yield from _duplicates(log_dir, other_dir, judgement, has_metadata=_has_metadata(owner, owned))
            elif owner.directory_id is not None and owner.directory_id == other.directory_id:
                yield finding(
                    "boot-refused",
                    Location(str(log_dir.path)),
                    f"{other_dir.path} has the same directory id {owner.directory_id}, as if one were a copy: a broker "
                    "does not start with both",
                    judgement=Judgement(
                        severity=Severity.INFO, certainty=Certainty.POSSIBLE, next_step="Nothing, if one is a copy."
                    ),
                )
                break


def log_dirs_of_nodes(log_dirs: Iterable[LogDir], limits: Limits) -> dict[str, list[str]]:
    """By log directory, those that its node uses, itself too; without copies of one log directory."""
    owned = _owned(log_dirs, limits)
    return {
        str(log_dir.path): [
            str(each.path) for each, other in owned if each.path == log_dir.path or owner.is_beside(other)
        ]
        for log_dir, owner in owned
    }


def other_clusters(targets: Iterable[Target], limits: Limits) -> Iterator[str]:
    """Notes about log directories of other clusters than the first one, one for each cluster: nothing is compared."""
    clusters = clusters_of(targets, limits)
    for cluster_id, path in clusters[1:]:
        first_id, first = clusters[0]
        yield f"{path} against {first}: they are of two clusters, {cluster_id} and {first_id}"


def log_dirs_beside(log_dirs: Sequence[LogDir], limits: Limits) -> dict[Path, Beside]:
    """By log directory, the other ones of the same node; without those that have no other."""
    if len(log_dirs) < 2:
        return {}
    owned = _owned(log_dirs, limits)
    found: dict[Path, Beside] = {}
    for log_dir, owner in owned:
        others = [(each, other) for each, other in owned if owner.is_beside(other)]
        if others:
            keys = frozenset(key for each, _ in others for key in _replicas(each))
            # Without directory ids, one of the two may be a copy.
            with_metadata = (each.path for each, other in others if other.is_metadata and other.directory_id)
            found[log_dir.path] = Beside(keys, next(with_metadata, None) if owner.directory_id else None)
    return found


def _judged(log_dir: LogDir, other_dir: LogDir, cluster_id: str | None, *, is_proven: bool) -> Judgement:
    """How certain it is that one node uses two directories with its id: other directory ids prove it.

    Without a cluster id they may be of two clusters, and a directory that has nothing of its own may be a copy.
    """
    step = "Find out whether one node uses both directories; if so, compare both logs with kafkalog diff."
    own, others = _replicas(log_dir).keys(), _replicas(other_dir).keys()
    if is_proven or (cluster_id is not None and own - others and others - own):
        return Judgement(certainty=Certainty.PROVEN if is_proven else Certainty.LIKELY, next_step=step)
    return Judgement(severity=Severity.WARNING, certainty=Certainty.POSSIBLE, next_step=step)


def _duplicates(log_dir: LogDir, other_dir: LogDir, judgement: Judgement, *, has_metadata: bool) -> Iterator[Finding]:
    """Findings for partitions in both directories.

    Where the node has a metadata log, a broker treats a log without a topic id as stray: no duplicate is reported.
    """
    others = _replicas(other_dir)
    for key, path in sorted(_replicas(log_dir).items()):
        other = others.get(key)
        if other is None:
            continue
        if has_metadata and not all(is_there(each / PARTITION_METADATA) for each in (path, other)):
            continue
        words = f"the same partition is in {other} too, and a broker that uses both does not start: Duplicate log "
        words += f"directories for {key[0]}-{key[1]} are found"
        if judgement.certainty is not Certainty.PROVEN:
            words += "; or one of the two directories is a copy, or of another cluster"
        yield finding("boot-refused", Location(str(path), *key), words, judgement=judgement)


def _has_metadata(owner: _Owner, owned: Iterable[tuple[LogDir, _Owner]]) -> bool:
    return owner.is_metadata or any(each.is_metadata and owner.is_beside(each) for _, each in owned)


def _replicas(log_dir: LogDir) -> dict[TopicPartition, Path]:
    found: dict[TopicPartition, Path] = {}
    for path in log_dir.partitions:
        parsed = parse_partition_dir(path.name)
        if parsed is not None and parsed[2] not in _BESIDE:
            found[parsed[0], parsed[1]] = path
    return found


def _owned(log_dirs: Iterable[LogDir], limits: Limits) -> list[tuple[LogDir, _Owner]]:
    """The log directories whose node is known."""
    known = [(log_dir, log_dir.meta_properties) for log_dir in log_dirs if log_dir.meta_properties is not None]
    if not known:
        return []
    owned = []
    read = map_near(partial(_read_properties, limits), (path for _, path in known), known[0][1])
    for (log_dir, _), found in zip(known, read, strict=True):
        if found is not None and found.node_id is not None:
            is_metadata = _METADATA in log_dir.topic_partitions
            owned.append((log_dir, _Owner(found.cluster_id, found.node_id, found.directory_id, is_metadata)))
    return owned


def _read_properties(limits: Limits, path: Path) -> meta_properties.MetaProperties | None:
    try:
        return meta_properties.read(path, limits)
    except KafkaLogError:
        return None


__all__ = [
    "Coverage",
    "Level",
    "Verified",
    "VerifyScan",
    "VerifyTerms",
    "other_clusters",
    "verify",
    "verify_all",
    "verify_nodes",
]

#: What a run of each level does not check.
NOT_CHECKED = {
    Level.HEADERS: ("CRCs", "records", "indexes, checkpoints, producer state"),
    Level.CRC: ("records", "indexes, checkpoints, producer state"),
    Level.RECORDS: ("indexes, checkpoints, producer state",),
    Level.FULL: (),
}
#: Called with each chunk of a log before it is checked, by callers that add up what verify reads anyway.
Watch = Callable[[LogUnit, WalkedChunk], None]


class VerifyTerms(msgspec.Struct, frozen=True):
    """What is verified, and how.

    ``compacted_topics``: whether topics are compacted, where the metadata log shows it. Of a log that ``is_verified``
    as it is now, only headers are read. ``jobs`` processes share the work, and ``advance`` is called with the bytes of
    the logs that were read since the last call.
    """

    level: Level = Level.FULL
    limits: Limits = DEFAULT_LIMITS
    partition_counts: PartitionCounts = None  # see LogWalk
    compacted_topics: Mapping[str, bool] = msgspec.field(default_factory=dict)
    is_verified: Callable[[Path], bool] | None = None
    jobs: int = 1
    advance: Advance = no_progress

    @property
    def walk(self) -> LogWalk:
        """The walk over each log."""
        return LogWalk(self.level, self.limits, self.partition_counts)


class Verified(Iterator[Finding]):
    """The findings of a run, which are made as they are consumed, and in ``coverage`` what was checked so far."""

    def __init__(self, find: Callable[[Coverage], Iterator[Finding]]) -> None:
        self.coverage = Coverage()
        self._found = find(self.coverage)

    def __next__(self) -> Finding:
        return next(self._found)


class LogDirFiles(msgspec.Struct, frozen=True):
    """A log directory's own files. ``listed`` is the directory if this process has listed it."""

    path: Path
    listed: LogDir | None = None

    def __reduce__(self) -> tuple[type[LogDirFiles], tuple[Path]]:
        return LogDirFiles, (self.path,)


class PartitionDirectory(msgspec.Struct, frozen=True):
    """A partition directory, and its entries in the checkpoints of the log directory.

    ``listing`` lists it, if this process has a listing that is kept; another process lists it anew.
    """

    path: Path
    checkpoints: Checkpoints
    listing: Callable[[], Partition] | None = None

    def __reduce__(self) -> tuple[type[PartitionDirectory], tuple[Path, Checkpoints]]:
        return PartitionDirectory, (self.path, self.checkpoints)


class LoneFile(msgspec.Struct, frozen=True):
    """A file that is checked by itself."""

    path: Path
    kind: Kind


Unit = LogDirFiles | PartitionDirectory | LoneFile | Finding


def units_of(target: Target, limits: Limits) -> Iterator[Unit]:
    """The units of a target in the order of verify, and findings about links. Raises InputError as ``Target.kind``."""
    if target.kind is Kind.PARTITION:
        yield PartitionDirectory(target.path, target.checkpoints_around(limits), lambda: target.partition)
        return
    if target.kind is not Kind.LOG_DIR:
        yield LoneFile(target.path, target.kind)
        return
    yield from target.link_findings()
    is_kept = cluster_of(target.path) is None  # there may be very many for one process
    for log_dir in with_checkpoints(target.log_dirs, limits):
        # Checkpoints come before the logs: a broker that runs meanwhile only moves the logs' ends past them.
        checkpoints = log_dir.checkpoints(limits)
        yield LogDirFiles(log_dir.path, log_dir)
        for path in log_dir.partitions:
            own = checkpoints.of_partition(key_of_directory(path))
            yield PartitionDirectory(path, own, partial(log_dir.partition, path) if is_kept else None)


class VerifyScan(msgspec.Struct, frozen=True):
    """verify as a scan of units: its results are the findings of each unit, and then the unit's Coverage.

    ``beside`` has, by log directory, the other log directories of its node.
    """

    walk: LogWalk = LogWalk()
    compacted_topics: Mapping[str, bool] = msgspec.field(default_factory=dict)
    beside: Mapping[Path, Beside] = msgspec.field(default_factory=dict)

    def place(self, unit: Unit) -> Path | None:
        """The partition directory or the file of a unit; None for a log directory's own files."""
        return unit.path if isinstance(unit, (PartitionDirectory, LoneFile)) else None

    def logs(self, unit: Unit) -> Sequence[LogUnit]:
        """The logs of a partition, or a log by itself."""
        if isinstance(unit, LoneFile) and unit.kind is Kind.LOG:
            return (LogUnit(unit.path, location_of_file(unit.path)),)
        if not isinstance(unit, PartitionDirectory):
            return ()
        try:
            partition = read_partition(unit.path) if unit.listing is None else unit.listing()
            partition, _ = _as_started(unit, partition, self.walk.limits)
            return tuple(every_log_of(partition, offsets_of(partition, unit.checkpoints)))
        except KafkaLogError:
            return ()  # verifying the unit reports it

    def results(self, unit: Unit, driver: Driver[WalkedChunk]) -> Iterator[Finding | Coverage]:
        """The findings, and the coverage.

        Beside a running broker only the findings that further readings confirm: each lists and reads all anew, with a
        driver of its own, and counts nothing.
        """
        coverage = Coverage()
        if isinstance(unit, LogDirFiles) and unit.listed is None:
            unit = LogDirFiles(unit.path, read_log_dir(unit.path))
        if isinstance(unit, Finding):
            yield unit
        elif not _is_live(unit):
            yield from self._look(unit, driver, coverage)
        else:

            def again() -> Iterator[Finding]:
                return self._look(_listed_anew(unit, self.walk.limits), SerialDriver(self.walk), Coverage())

            yield from settled_findings(list(self._look(unit, driver, coverage)), again, location_of_unit(unit))
        yield coverage

    def _look(
        self, unit: LogDirFiles | PartitionDirectory | LoneFile, driver: Driver[WalkedChunk], coverage: Coverage
    ) -> Iterator[Finding]:
        """The findings of one reading of a unit. KRaft snapshots are small files, which do not count as progress."""
        walk, report = self.walk, UnitReport(coverage)
        small = SerialDriver(walk)
        if isinstance(unit, LogDirFiles):
            yield from self._log_dir_files(unit.listed or read_log_dir(unit.path), small, report)
        elif isinstance(unit, PartitionDirectory):
            try:
                partition = read_partition(unit.path) if unit.listing is None else unit.listing()
                partition, swapped = _as_started(unit, partition, walk.limits)
            except KafkaLogError as error:
                yield finding_of(error, location_of_unit(unit))
                return
            yield from swapped
            coverage.partitions += 1
            check = PartitionCheck(partition, unit.checkpoints, walk, report, compacted_topics=self.compacted_topics)
            yield from check.findings(driver, small)
        elif unit.kind is Kind.LOG:
            yield from check_lone_segment(unit.path, walk, driver, report)
            yield from report.ended()
        elif unit.kind is Kind.KRAFT_SNAPSHOT:
            check_kraft_snapshot(unit.path, walk, small, report)
            yield from report.ended()
        else:
            from format.rows.side_file_rows import side_file_blocks

            coverage.side_files += 1
            blocks = side_file_blocks(unit.path, unit.kind, limits=walk.limits)
            yield from (item for item in blocks if isinstance(item, Finding))

    def _log_dir_files(self, log_dir: LogDir, small: Driver[WalkedChunk], report: UnitReport) -> Iterator[Finding]:
        if self.walk.level is not Level.FULL:
            yield from log_dir.unread_findings()
            return
        from format.verbs.boot.boot import refusal_findings  # importing it takes a fifth of a short run's start

        limits = self.walk.limits
        checkpoints = log_dir.checkpoints(limits)
        beside = self.beside.get(log_dir.path)
        for found in (
            checkpoints.findings,
            check_log_dir_files(log_dir, checkpoints, limits, () if beside is None else beside.partitions),
            check_topic_ids(log_dir, limits),
            refusal_findings(log_dir.path, limits, beside),
        ):
            report.add(found)
            yield from report.ended()
        report.coverage.side_files += len(log_dir.checkpoint_paths) + (log_dir.meta_properties is not None)
        if log_dir.bootstrap_checkpoint is not None:
            check_kraft_snapshot(log_dir.bootstrap_checkpoint, self.walk, small, report)
            yield from report.ended()


class _ToldDriver(msgspec.Struct, frozen=True):
    """A driver that reads only the headers of logs that were verified before, and shows all parts to ``watch``."""

    driver: Driver[WalkedChunk]
    terms: VerifyTerms
    watch: Watch | None

    def parts(self, log: LogUnit) -> LogParts[WalkedChunk]:
        """The parts of a log; a watch sees each before it is checked."""
        driver, terms, watch = self.driver, self.terms, self.watch
        if terms.is_verified is not None and terms.is_verified(log.path):
            driver = SerialDriver(replace(terms.walk, only_headers=True), terms.advance)
        own = driver.parts(log)
        if watch is None:
            return own

        def read(parts: LogParts[WalkedChunk]) -> Iterator[WalkedChunk]:
            try:
                for walked in own:
                    parts.state = own.state
                    watch(log, walked)
                    yield walked
            finally:
                parts.state = own.state

        return LogParts(read)


def _is_live(unit: LogDirFiles | PartitionDirectory | LoneFile) -> bool:
    """Whether a broker may write to the files of a unit."""
    if isinstance(unit, LogDirFiles):
        return (unit.listed or read_log_dir(unit.path)).broker_lock.may_be_held
    if isinstance(unit, PartitionDirectory):
        return unit.checkpoints.lock is not None and unit.checkpoints.lock.may_be_held
    return is_broker_running(unit.path.parent)


def _as_started(unit: PartitionDirectory, partition: Partition, limits: Limits) -> tuple[Partition, list[Finding]]:
    """The partition with its swaps completed, as a broker's start leaves it; a broker that runs does so by itself."""
    return (partition, []) if _is_live(unit) else completed_swaps(partition, limits)


def _listed_anew(
    unit: LogDirFiles | PartitionDirectory | LoneFile, limits: Limits
) -> LogDirFiles | PartitionDirectory | LoneFile:
    """The unit without what was listed before. Raises KafkaLogError."""
    if isinstance(unit, LogDirFiles):
        return LogDirFiles(unit.path)
    if isinstance(unit, PartitionDirectory):
        return PartitionDirectory(unit.path, Target(unit.path).checkpoints_around(limits))
    return unit


def location_of_unit(unit: LogDirFiles | PartitionDirectory | LoneFile) -> Location:
    """The place of a unit, with the topic and the partition from the name of its directory."""
    if isinstance(unit, LogDirFiles):
        return Location(str(unit.path))
    return location_of_directory(unit.path) if isinstance(unit, PartitionDirectory) else location_of_file(unit.path)


def verify(path: Path | Target, terms: VerifyTerms | None = None, *, watch: Watch | None = None) -> Verified:
    """Findings for what lies at ``path``, in a fixed order.

    Raises InputError for a path that is none of Kafka's; every other problem is a finding.
    """
    terms = VerifyTerms() if terms is None else terms
    return Verified(lambda coverage: _findings((target_at(path),), terms, coverage, watch))


def verify_all(targets: Sequence[Target], terms: VerifyTerms) -> Verified:
    """Findings for several targets, one after another, and for the log directories of one node as a whole.

    The next step for damage is to fetch the replica anew, where another one below the targets is intact.
    """

    def find(coverage: Coverage) -> Iterator[Finding]:
        found = _findings(targets, terms, coverage)
        told: set[str] = set()
        for each in _advised(found, targets, terms.limits):
            if each.code in ("replica-stray", "topic-id-conflict"):
                told.add(each.location.path.removesuffix(f"/{PARTITION_METADATA}"))
            yield each
        yield from verify_nodes(targets, terms)
        if terms.level is Level.FULL:
            yield from _topic_ids(targets, terms.limits, told)

    return Verified(find)


def _topic_ids(targets: Sequence[Target], limits: Limits, told: set[str]) -> list[Finding]:
    """Findings for topic ids that differ between nodes; beside running brokers those that each reading confirms."""
    log_dirs = [log_dir for target in targets if target.kind is Kind.LOG_DIR for log_dir in target.log_dirs]
    if len(log_dirs) < 2 and len(targets) < 2:
        return []
    from format.verbs.verify.topic_ids import check_topic_ids_of_nodes  # imports the metadata log, too

    def again() -> list[Finding]:
        return check_topic_ids_of_nodes([Target(each.path) for each in targets], limits, told)

    found = check_topic_ids_of_nodes(targets, limits, told)
    if found and any(each.broker_lock.may_be_held for each in log_dirs):
        found = settled_findings(found, again, Location(str(targets[0].path)))
    return found


def _advised(findings: Iterable[Finding], targets: Sequence[Target], limits: Limits) -> Iterator[Finding]:
    """The findings, with a next step by the other replicas of a damaged one, which are read at the first damage.

    A stray by the metadata log of its own node is none where later metadata at the targets assigns it to the node: a
    broker fetches that before it looks at its logs.
    """

    @cache
    def at_hand() -> ReplicasAtHand:
        from format.verbs.verify.intact_replicas import ReplicasAtHand  # imports diff, too

        return ReplicasAtHand(targets, limits)

    for found in findings:
        is_end = found.code in AT_THE_END
        if found.lost_offsets is not None and (is_end or found.code in INSIDE_A_LOG):
            yield at_hand().advised(found, is_end=is_end)
        elif found.code != "replica-stray" or not at_hand().is_assigned(Path(found.location.path)):
            yield found


def _findings(
    targets: Sequence[Target], terms: VerifyTerms, coverage: Coverage, watch: Watch | None = None
) -> Iterator[Finding]:
    scan = VerifyScan(terms.walk, terms.compacted_topics, _beside(targets, terms))
    clusters = [cluster_of(target.path) for target in targets]
    listed: dict[int, list[Unit]] = {}
    if not any(clusters) and terms.jobs > 1 and may_be_shared(terms.walk):
        for number, target in enumerate(targets):
            with suppress(KafkaLogError):  # verifying the target reports it
                listed[number] = list(units_of(target, terms.limits))
    is_verified = terms.is_verified or (lambda path: False)
    with open_units(
        terms.walk,
        lambda unit, driver: scan.results(unit, _ToldDriver(driver, terms, watch)),
        [
            (unit, [log for log in scan.logs(unit) if not is_verified(log.path)])
            for unit in chain.from_iterable(listed.values())
        ],
        terms.jobs,
        terms.advance,
        may_fold_elsewhere=watch is None,
    ) as results:
        for number, (target, cluster) in enumerate(zip(targets, clusters, strict=True)):
            units = listed.get(number) or units_of(target, terms.limits)
            before, counts = coverage.segments, _Counts(target, coverage)
            if cluster is None:
                items: Iterator[Finding | Coverage] = chain.from_iterable(map(results, units))
            else:
                items = cluster.results(scan, units, terms.advance)
            for item in items:
                if isinstance(item, Coverage):
                    coverage.add(item)
                elif not counts.leaves_out(item):
                    yield item
            if target.kind in (Kind.LOG_DIR, Kind.PARTITION) and coverage.segments == before:
                yield from _nothing_to_read(target)


class _Counts:
    """Counts the findings ``log-head-remote`` of a target if the remote part of tiered logs was not asked for."""

    def __init__(self, target: Target, coverage: Coverage) -> None:
        self._joins_remote = joins_remote_segments(target.path)
        self._coverage = coverage
        self._lost: set[tuple[str, int]] = set()  # logs whose heads are lost, as the metadata log shows before

    def leaves_out(self, found: Finding) -> bool:
        """Whether a finding is counted only, or says of a log whose head is lost that it is in remote storage."""
        if found.code == "checkpoint-mismatch" and found.lost_offsets is not None:
            self._lost.add((found.location.path, found.lost_offsets[0]))
        if found.code != "log-head-remote" or (found.location.path, found.location.offset) in self._lost:
            return found.code == "log-head-remote"
        self._coverage.remote_heads += not self._joins_remote
        return not self._joins_remote


def _beside(targets: Iterable[Target], terms: VerifyTerms) -> dict[Path, Beside]:
    """By log directory, the other log directories of its node."""
    if terms.level is not Level.FULL:
        return {}
    log_dirs: list[LogDir] = []
    for target in targets:
        with suppress(KafkaLogError):  # verifying the target reports it
            log_dirs.extend(target.log_dirs)
    return log_dirs_beside(log_dirs, terms.limits)


def verify_nodes(targets: Iterable[Target], terms: VerifyTerms | None = None) -> Iterator[Finding]:
    """Findings about the log directories of one node as a whole, after ``verify`` of each target."""
    terms = VerifyTerms() if terms is None else terms
    log_dirs = [log_dir for target in targets for log_dir in target.log_dirs] if terms.level is Level.FULL else []
    if not log_dirs:
        return

    def look(present: Sequence[LogDir]) -> list[Finding]:
        report = UnitReport(Coverage())
        report.add(check_node_log_dirs(present, terms.limits))
        return report.ended()

    def again() -> list[Finding]:
        return look([read_log_dir(each.path) for each in log_dirs])

    found = look(log_dirs)
    if any(each.broker_lock.may_be_held for each in log_dirs):
        found = settled_findings(found, again, Location(str(log_dirs[0].path)))
    yield from found


def findings_of_place(target: Target) -> Iterator[Finding]:
    """Findings about a target that belong to none of its units: links, and that nothing is there to read."""
    if target.kind is Kind.LOG_DIR:
        yield from target.link_findings()
    if target.kind in (Kind.LOG_DIR, Kind.PARTITION):
        yield from _nothing_to_read(target)


def _nothing_to_read(target: Target) -> Iterator[Finding]:
    """A finding where there is no segment and nothing else explains why."""
    missing = 1 if target.kind is Kind.PARTITION else sum(len(each.partitions) for each in target.log_dirs)
    for partition in target.partitions():
        if partition.segments or partition.unexpected or partition.kraft_snapshots:
            return
        missing -= 1
    if not missing:
        yield nothing_to_read(target)


def logs_to_verify(target: Target, limits: Limits = DEFAULT_LIMITS) -> Iterator[LogUnit]:
    """The logs in the order in which verify reads them, without those of partitions that cannot be listed.

    A target lists each partition once, so a log that disappears after this call is still reported.
    """
    if target.kind is Kind.LOG:
        yield LogUnit(target.path, location_of_file(target.path))
    for found in partitions_below(target, limits):
        if not isinstance(found, Finding):
            yield from every_log_of(found[0], offsets_of(*found))


def bytes_to_verify(path: Path | Target) -> int:
    """How many bytes ``verify`` counts as progress; 0 for a path that is none of Kafka's."""
    try:
        return sum(size_of(log.path) for log in logs_to_verify(target_at(path)))
    except KafkaLogError:
        return 0  # verify reports why


def not_checked(level: Level, coverage: Coverage) -> Iterator[str]:
    """What a run did not check, in words."""
    yield from NOT_CHECKED[level]
    if coverage.remote_heads:
        yield unread_heads_words(coverage.remote_heads)


def compacted_topics_at(targets: Sequence[Target], limits: Limits) -> Mapping[str, bool]:
    """Whether topics are compacted according to the metadata log in the given log directories, by their names.

    Empty where there is no metadata log, or it cannot be read. Targets that are no log directories are passed over:
    for a single partition, reading the metadata log around it takes too long.
    """
    try:
        log_dirs = [target for target in targets if target.kind is Kind.LOG_DIR]
        directories = [log_dir for target in log_dirs for log_dir in target.log_dirs]
        if not any((CLUSTER_METADATA_TOPIC, 0) in each.topic_partitions for each in directories):
            return {}
        from format.state.cluster_context import ContextTerms, read_context  # takes longer to import than to run

        return read_context(log_dirs, ContextTerms(limits=limits)).compacted_topics()
    except KafkaLogError:
        return {}  # verifying the path reports it
