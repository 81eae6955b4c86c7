"""doctor: a look at some log directories without the bodies of records, from which the diagnoses are made.

Each partition is listed as ls lists it. Only where that shows something odd, the other verbs look at it: verify by its
headers and side files, txns where there are transactions, diff where the ends or the leader epochs of replicas differ.
Of internal topics the records are read, of partitions whose replicas differ, and of all where the logs are small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from format import layout
from format.columns import GROUP, GROUP_OFFSET
from format.errors import InputError, KafkaLogError
from format.findings import Finding, Severity, finding_of
from format.limits import DEFAULT_LIMITS
from format.node.log_dir import Checkpoints, Kind
from format.node.offsets import MARKS_OF_REPLICAS, PartitionOffsets, offsets_of
from format.node.partition import Partition, key_of_directory, location_of_directory
from format.node.target import Target, nothing_to_read
from format.scan.drivers import SerialDriver
from format.state.cluster_context import ClusterContext, TopicConfigs, read_context
from format.state.leader_epochs import replica_epochs
from format.state.log_headers import HeaderScan
from format.verbs.compaction.compaction import Compaction, CompactionTerms, KnownProducers, LogCompaction
from format.verbs.diff.diff import PartitionResult, diff
from format.verbs.diff.replica_log import Replicas
from format.verbs.doctor.diagnose import conclude
from format.verbs.doctor.evidence import Evidence, held_by_future, rows_by_name
from format.verbs.groups.group_list import GroupTerms
from format.verbs.groups.groups import GroupsReading
from format.verbs.ls.ls import ListUnit, known_by
from format.verbs.ls.partition_listing import ListedPartition, PartitionListing, PartitionTerms
from format.verbs.report.terms import Report, ReportTerms
from format.verbs.retention import ConfiguredLog
from format.verbs.txns.partition_transactions import PartitionTransactions, read_partition_transactions
from format.verbs.txns.txns import Transactions, TransactionTerms, open_transactions
from format.verbs.verify import verify
from format.verbs.verify.walk import LogWalk

#: What is no larger than this is read whole, as with --deep: it takes no longer than the start of the program.
SMALL_BYTES, SMALL_SEGMENTS = 32 * 2**20, 200
_COORDINATOR_TOPICS = (layout.CONSUMER_OFFSETS_TOPIC, layout.SHARE_GROUP_STATE_TOPIC)


@dataclass(slots=True)
class _Listed:
    """A partition, its listing, and its offsets from checkpoints."""

    partition: Partition
    checkpoints: Checkpoints
    found: ListedPartition
    offsets: PartitionOffsets

    @property
    def listing(self) -> PartitionListing:
        return self.found.listing


@dataclass(slots=True)
class DoctorRun:
    """One look: ``findings`` yields the findings, and ``finish`` returns a report with the diagnoses and no tables."""

    targets: Sequence[Target]
    terms: ReportTerms
    evidence: Evidence = field(init=False)
    _context: ClusterContext = field(init=False)
    _listed: list[_Listed] = field(default_factory=list)
    _topic_configs: dict[tuple[str | None, Path, bool], TopicConfigs] = field(default_factory=dict)
    _coverage: verify.Coverage = field(default_factory=verify.Coverage)

    def __post_init__(self) -> None:
        """Raises InputError for a path that is no log directory and no partition."""
        for target in self.targets:
            target.require_partitions("the doctor looks at whole logs")

    def findings(self) -> Iterator[Finding]:
        """List everything, and verify what is odd; yields findings."""
        self._context = read_context(self.targets, self.terms.context)
        self.evidence = Evidence(self.targets, self.terms.now_ms, self.terms.limits, self._context)
        log_dirs = [log_dir for target in self.targets for log_dir in target.log_dirs]
        self.evidence.reads_records = self._is_small()
        scan = verify.VerifyScan(
            LogWalk(limits=self.terms.limits, only_headers=not self.evidence.reads_records),
            self._context.compacted_topics(),
            verify.log_dirs_beside(log_dirs, self.terms.limits),
        )
        for target in self.targets:
            yield from map(self._taken, self._of_target(target, scan))
        yield from map(self._taken, verify.verify_nodes(self.targets, verify.VerifyTerms(limits=self.terms.limits)))

    def _is_small(self) -> bool:
        """Whether all logs are so small that they are read whole."""
        size_bytes = segments = 0
        for target in self.targets:
            for partition in target.partitions():
                size_bytes += partition.sizes.log_size_bytes
                segments += partition.segment_count
                if size_bytes > SMALL_BYTES or segments > SMALL_SEGMENTS:
                    return False
        return True

    def _taken(self, found: Finding) -> Finding:
        self.evidence.take(found)
        return found

    def _of_target(self, target: Target, scan: verify.VerifyScan) -> Iterator[Finding]:
        before = self._coverage.segments
        if target.kind is Kind.PARTITION:
            checkpoints = target.checkpoints_around(self.terms.limits)
            yield from self._partition(target.path, checkpoints, lambda: target.partition, scan)
        yield from target.link_findings()
        driver = SerialDriver(scan.walk)
        for log_dir in target.log_dirs:
            checkpoints = log_dir.checkpoints(self.terms.limits)
            files = scan.results(verify.LogDirFiles(log_dir.path, log_dir), driver)
            yield from (each for each in files if isinstance(each, Finding))
            self._coverage.side_files += len(log_dir.checkpoint_paths) + (log_dir.meta_properties is not None)
            for path in log_dir.partitions:
                own = checkpoints.of_partition(key_of_directory(path))
                yield from self._partition(path, own, partial(log_dir.partition, path), scan)
        if self._coverage.segments == before:
            yield nothing_to_read(target)

    def _partition(
        self, path: Path, checkpoints: Checkpoints, listing: Callable[[], Partition], scan: verify.VerifyScan
    ) -> Iterator[Finding]:
        terms = PartitionTerms(segments=False, limits=self.terms.limits, advance=self.terms.advance)
        found = ListUnit(path, checkpoints).listed(terms, listing)
        try:
            partition = listing()
        except KafkaLogError as error:
            yield finding_of(error, location_of_directory(path))
            return
        each = _Listed(partition, checkpoints, found, offsets_of(partition, checkpoints))
        self._listed.append(each)
        self.evidence.partitions.append(known_by(self._context, found.listing, path.parent))
        self._coverage.partitions += 1
        self._coverage.segments += found.listing.segment_count or 0
        self._coverage.batches += found.totals.batch_count
        self._coverage.bytes += found.listing.log_size_bytes or 0
        if self.evidence.reads_records or self._is_odd(each):
            unit = verify.PartitionDirectory(path, checkpoints, listing)
            if self._needs_records(each):
                scan = replace(scan, walk=replace(scan.walk, only_headers=False))
            verified = scan.results(unit, SerialDriver(scan.walk))
            yield from (each for each in verified if isinstance(each, Finding))

    def _is_odd(self, each: _Listed) -> bool:
        """Whether verify should look at a partition.

        Gaps say nothing where logs are compacted, or have messages that are compressed together (v0 and v1).
        """
        found, offsets, listing = each.found, each.offsets, each.listing
        end = listing.log_end_offset
        if any(one.severity >= Severity.WARNING for one in found.findings) or not found.totals.is_whole:
            return True
        if end is None or each.partition.orphans or each.partition.unread_logs:
            return True
        if listing.topic == layout.CLUSTER_METADATA_TOPIC:
            return True
        known = (*offsets.checkpointed().values(), offsets.newest_snapshot or 0)
        if listing.mark in MARKS_OF_REPLICAS and any(one > end for one in known):
            return True
        if offsets.is_clean_shutdown and offsets.recovery_point not in (None, end):
            return True
        return self._has_odd_gaps(each)

    def _has_odd_gaps(self, each: _Listed) -> bool:
        totals = each.found.totals
        return bool(totals.gaps) and totals.magics <= {2} and not self._configs(each).is_compacted

    def _needs_records(self, each: _Listed) -> bool:
        """Whether an odd partition is verified with its records.

        Keys show whether a gap is a loss, and the offsets of compressed v0 and v1 messages are inside of them.
        """
        return not each.found.totals.magics <= {2} or self._has_odd_gaps(each)

    def _configs(self, each: _Listed) -> TopicConfigs:
        """The configs of a topic on one node, looked up once."""
        key = each.listing.topic, each.partition.path.parent, each.offsets.cleaner_offset is None
        if key not in self._topic_configs:
            self._topic_configs[key] = self._context.configs_of(each.partition, each.checkpoints)
        return self._topic_configs[key]

    def finish(self) -> Report:
        """The diagnoses, after the findings were consumed."""
        report = Report(self.terms.now_ms, [str(target.path) for target in self.targets])
        for question, answer in (
            ("differences between replicas", self._replicas),
            ("transactions", self._transactions),
            ("groups", self._groups),
            ("retention", self._retention),
            ("compaction", self._compaction),
        ):
            try:
                answer(report)
            except (InputError, KafkaLogError) as error:
                report.note([f"{question}: {error.message}"])
        conclude(report, self.evidence)
        report.counts = self._coverage.counts
        report.counts["log_dirs"] = len(self.evidence.log_dirs)
        return report

    def _replicas(self, report: Report) -> None:
        """Compare the replicas of partitions whose ends or epochs differ."""
        listings = {each.listing.path: each for each in self._listed}
        keys = [each.partition.key for each in self._listed if each.listing.mark is None]
        if len(set(keys)) == len(keys):
            return

        def differ(group: Replicas) -> bool:
            members = [listings[str(each.path)] for each in group.replicas if str(each.path) in listings]
            return _may_differ(members, is_live=self.evidence.is_live)

        for item in diff(self.targets, context=self._context, limits=self.terms.limits, takes=differ):
            if isinstance(item, Finding):
                if item.code == "topic-id-conflict" and not self._is_known(item):
                    report.later_findings.append(self._taken(item))
            elif isinstance(item, PartitionResult):
                self.evidence.differences.append(item)
                report.is_incomplete |= not item.is_complete

    def _is_known(self, conflict: Finding) -> bool:
        """Whether one of two topic ids is that of the metadata: the directory with the other one is told as stray."""
        state, image, topic = self._context.state, self._context.image, conflict.location.topic
        if state is None or state.is_damaged or image is None or topic is None:
            return False
        return image.topic_id(topic) in (conflict.expected, conflict.actual)

    def _transactions(self, report: Report) -> None:
        """The open transactions of partitions with transactional batches."""
        logs = [
            each
            for each in self._listed
            if each.found.totals.in_transactions
            and each.listing.mark is None
            and each.listing.topic not in (layout.TRANSACTION_STATE_TOPIC, layout.CLUSTER_METADATA_TOPIC)
        ]
        if not logs:
            return
        result = Transactions(tuple(self.targets), context=self._context)
        driver = SerialDriver(HeaderScan(self.terms.limits), self.terms.advance)
        for each in logs:
            found = PartitionTransactions(each.partition, each.offsets)
            for _ in read_partition_transactions(found, None, self.terms.limits, driver):
                pass  # verify reports it
            result.keep(found)
        if not any(found.state.open for found in result.partitions.values()):
            return
        terms = TransactionTerms(self.terms.now_ms, limits=self.terms.limits)
        for _ in result.read(replace(terms, topics=frozenset((layout.TRANSACTION_STATE_TOPIC,)))):
            pass
        self.evidence.opened = open_transactions(result, terms)

    def _groups(self, report: Report) -> None:
        """The groups, where the log of a coordinator has records."""
        own = [each.listing for each in self._listed if each.listing.topic in _COORDINATOR_TOPICS]
        if not any(each.log_size_bytes for each in own):
            return
        reading = GroupsReading(self.targets, GroupTerms(limits=self.terms.limits), self._context)
        for item in reading.read(jobs=self.terms.jobs):
            if isinstance(item, Finding):
                self.evidence.take(item)
                report.later_findings.append(item)
        found = reading.groups()
        self.evidence.groups = list(rows_by_name(GROUP.names, found.group_rows()))
        self.evidence.group_offsets = list(rows_by_name(GROUP_OFFSET.names, found.offset_rows()))

    def _retention(self, report: Report) -> None:
        """The segments that a future timestamp keeps."""
        late = [each for each in self._listed if (each.listing.max_timestamp or 0) > self.evidence.future_ms]
        late = [each for each in late if each.partition.segments and each.listing.mark is None]
        if late:
            self.evidence.held = list(held_by_future(self.evidence, map(self._configured, late)))

    def _configured(self, each: _Listed) -> ConfiguredLog:
        is_only = self._context.is_only_replica(each.partition)
        return ConfiguredLog(each.partition, each.offsets, self._configs(each), is_only)

    def _compaction(self, report: Report) -> None:
        """What the cleaner waits for in compacted logs; records are read only where a log is damaged."""
        chosen = [each for each in self._listed if each.partition.segment_count > 1 and each.listing.mark is None]
        if not chosen:
            return
        logs = [(each, self._configs(each)) for each in chosen if each.listing.topic != layout.CLUSTER_METADATA_TOPIC]
        logs = [each for each in logs if each[1].is_compacted]
        if not logs:
            return
        opened: dict[Path, int] = {}
        for one in self.evidence.opened:
            path, first = one.found.partition.path, one.transaction.first_offset
            opened[path] = min(first, opened.get(path, first))
        known = {
            each.partition.path: KnownProducers({}, opened.get(each.partition.path), each.listing.log_end_offset)
            for each, _ in logs
            if each.listing.log_end_offset is not None
        }
        damaged = frozenset(Path(each) for each in self.evidence.damaged)
        terms = CompactionTerms(self.terms.now_ms, self.terms.limits, reads_records=False, known=known, damaged=damaged)
        judged = Compaction(self._context, terms)
        units = [self._configured(each) for each, _ in logs]
        self.evidence.cleaners = [item for item in judged.of_logs(units) if isinstance(item, LogCompaction)]


def _may_differ(replicas: Sequence[_Listed], *, is_live: bool) -> bool:
    """Whether the replicas of a partition end at different offsets, or by their epochs one would be truncated.

    Of running brokers the ends differ all the time.
    """
    ends = {each.listing.log_end_offset for each in replicas}
    if None in ends:
        return True
    if len(ends) > 1 and not is_live:
        return True
    epochs = []
    for each in replicas:
        path = each.partition.leader_epoch_checkpoint
        try:
            entries = () if path is None else each.partition.epochs_file(path, DEFAULT_LIMITS).entries
        except KafkaLogError:
            return True  # verify reports it
        epochs.append(
            replica_epochs(
                entries,
                (),
                log_start_offset=each.listing.log_start_offset or 0,
                log_end_offset=each.listing.log_end_offset or 0,
                high_watermark=each.listing.high_watermark,
            )
        )
    return any(
        follower.truncated_by(leader) < follower.log_end_offset
        for leader in epochs
        for follower in epochs
        if leader is not follower and leader.log_end_offset >= follower.log_end_offset
    )
