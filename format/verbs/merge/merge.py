"""salvage --merge: one log of each partition, made of the intact batches of all its replicas.

Each partition is planned first, by one process: which ranges of which files make up its log. Then the pipeline of all
rewriting verbs copies the ranges as if they were one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from format import layout
from format.columns import MERGED_RANGE
from format.errors import FileChanged, InputError
from format.files import leader_epoch_checkpoint
from format.files.leader_epoch_checkpoint import EpochEntry
from format.findings import AS_THE_TABLE_SAYS, Certainty, Finding, Judgement, Severity, finding
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.walker import BODY_CHUNK_BYTES
from format.node.partition import Partition, Segment, segment_file_name
from format.node.target import Target
from format.offset_ranges import Range, merged
from format.rewriting.carried_files import CarryTerms, topic_ids_of
from format.rewriting.composed_logs import ComposedPath, Piece
from format.rewriting.publication import Publication
from format.rewriting.read_back import Rewritten, compare_bytes
from format.rewriting.rewriter import FirstLook, Rewriter, RewritingResult, SegmentResult, WriteTerms, WrittenSegment
from format.rewriting.run import rewrite
from format.rewriting.sources import WriteSources, is_cluster_metadata, job_of
from format.rows.finding_rows import finding_as_json
from format.rows.record_rows import Row
from format.scan.progress import Advance, no_progress
from format.scan.whole_units import scan_units
from format.state.cluster_context import ClusterContext, configs_of_topic
from format.verbs.diff.replica_log import OfReplicas, Replica, Replicas, matched
from format.verbs.merge.branch import Claims, History, claims_of, confirm, history_of
from format.verbs.merge.union import Branch, SegmentPieces, Union
from format.verbs.verify.written_output import verify_output
from format.wording import counted, listed, offset_range, span

_MAY_BE_UNREAD = Judgement(
    certainty=Certainty.POSSIBLE,
    next_step="Run it again as a user that can read every replica, and then look for these offsets elsewhere.",
)
#: The most ranges that a sentence names.
_MOST_NAMED = 3


class MergedPartition(msgspec.Struct, frozen=True):
    """How the log of one partition is put together. Numbers of replicas are their places in ``replicas``.

    ``lost`` are the offsets that no replica has, ``lost_head`` those before the first segment of all. ``reached`` is an
    offset that the log has reached, with what shows it. ``doubtful`` are offsets with tombstones that may be lost.
    ``unread_count`` is the number of replicas that could not be read, or not whole.
    """

    name: str
    topic: str | None
    number: int | None
    replicas: list[Replica]
    base: int
    history: History
    segments: list[SegmentPieces]
    branches: list[Branch]
    lost: list[Range]
    lost_head: Range | None
    doubtful: list[Range]
    end_offset: int
    reached: tuple[int, str]
    findings: list[Finding]
    unread_count: int = 0

    @property
    def partition(self) -> Partition:
        """The partition to write: the files of the base beside a log of pieces."""
        found = self._composed(self.replicas[self.base].partition, self.segments)
        if self.replicas[self.base].topic_id is None:  # it cannot be read
            found.metadata = next((each.partition.metadata for each in self.replicas if each.topic_id), found.metadata)
        return found

    def branch(self, number: int) -> Partition:
        """What a replica has that is of another history, as a partition."""
        return self._composed(self.replicas[number].partition, self.branches[number].segments)

    @staticmethod
    def _composed(base: Partition, segments: Sequence[SegmentPieces]) -> Partition:
        own = {each.base_offset: each for each in base.segments}
        made = []
        for each in segments:
            name = segment_file_name(each.base_offset, layout.LOG_SUFFIX)
            files: dict[str, Path] = {layout.LOG_SUFFIX: ComposedPath.of(base.path / "merged" / name, each.pieces)}
            index = own[each.base_offset].transaction_index if each.base_offset in own else None
            if index is not None:
                files[layout.TRANSACTION_INDEX_SUFFIX] = index
            made.append(Segment(base.path, each.base_offset, None, files))
        found = base.with_segments(made)
        found.leader_epoch_checkpoint = None  # that of the history is written
        return found

    @property
    def lost_end(self) -> Range | None:
        """The offsets at the end that no replica has, though the log had reached them; None for none."""
        reached = self.reached[0]
        return (self.end_offset, reached - 1) if reached > self.end_offset else None

    @property
    def all_lost(self) -> list[Range]:
        """The offsets that no replica has, in order."""
        shown = (self.lost_head, self.lost_end)
        return sorted([*self.lost, *(each for each in shown if each is not None)])

    @property
    def location(self) -> Location:
        return self.replicas[self.base].partition.location()

    @property
    def _nobody(self) -> str:
        return "no replica that could be read has" if self.unread_count else "no replica here has"

    def label(self, number: int) -> str:
        """The name of a replica: its node where all have other ones, else its path."""
        ids = [each.node_id for each in self.replicas]
        is_known = None not in ids and len(set(ids)) == len(ids)
        return f"node {ids[number]}" if is_known else str(self.replicas[number].path)

    def rows(self) -> Iterator[Row]:
        """Rows of columns.MERGED_RANGE."""
        for segment in self.segments:
            for each in segment.pieces:
                yield (
                    self.topic,
                    self.number,
                    segment.base_offset,
                    str(each.path),
                    self.replicas[each.replica].node_id,
                    each.replica == self.base,
                    each.start,
                    each.size_bytes,
                    each.first_offset,
                    each.last_offset,
                    each.record_count,
                )

    def as_json(self) -> dict[str, Any]:
        """The entry of the manifest."""
        names = MERGED_RANGE.names[2:]
        return {
            "partition": self.name,
            "base": str(self.replicas[self.base].path),
            "replicas": [str(each.path) for each in self.replicas],
            "ranges": [dict(zip(names, row[2:], strict=True)) for row in self.rows()],
            "branches": [
                {
                    "path": str(self.replicas[number].path),
                    "epochs": sorted(branch.epochs),
                    "ranges": [[each.first_offset, each.last_offset] for each in branch.pieces],
                    "record_count": sum(each.record_count for each in branch.pieces),
                }
                for number, branch in enumerate(self.branches)
                if branch.segments
            ],
        }

    def judged(self) -> Iterator[tuple[Finding, bool]]:
        """The findings about the partition, each with whether it is a loss."""
        place = self.location
        for first, last in self.lost:
            message = f"{self._nobody} {offset_range(first, last)} intact"
            judgement = _MAY_BE_UNREAD if self.unread_count else AS_THE_TABLE_SAYS
            where = place.at(offset=first)
            yield finding("no-intact-replica", where, message, lost_offsets=(first, last), judgement=judgement), True
        shown: list[tuple[Range, str, Severity | None]] = []
        if self.lost_head is not None:  # or it was deleted just before a crash: see log-head-missing
            began = f"the {layout.LEADER_EPOCH_CHECKPOINT} shows that the log began at offset {self.lost_head[0]}"
            shown.append((self.lost_head, began, Severity.WARNING))
        if self.lost_end is not None:
            reached = f"{self.reached[1]} shows that the log reached offset {self.reached[0]}"
            shown.append((self.lost_end, reached, None))
        for lost, words, severity in shown:
            message = f"{words}, but {self._nobody} {offset_range(*lost)} intact"
            judgement, where = Judgement(severity, Certainty.LIKELY), place.at(offset=lost[0])
            yield finding("no-intact-replica", where, message, lost_offsets=lost, judgement=judgement), True
        for number, branch in enumerate(self.branches):
            if branch.segments:
                where = self.replicas[number].partition.location().at(offset=branch.pieces[0].first_offset)
                yield finding("branch-left-out", where, self._branch_words(number)), False
        for first, last in self.doubtful:
            message = f"tombstones at {offset_range(first, last)} may be lost: no replica has them intact, or others "
            message += "have removed them with what they delete; deleted keys may have their old values again"
            judgement = Judgement(certainty=Certainty.POSSIBLE)
            yield finding("tombstone-unknown", place.at(offset=first), message, judgement=judgement), False

    def _branch_words(self, number: int) -> str:
        branch = self.branches[number]
        ranges = merged((each.first_offset, each.last_offset) for each in branch.pieces)
        count = sum(each.record_count for each in branch.pieces)
        epochs = [str(each) for each in sorted(branch.epochs) if each >= 0]
        of = f" of leader epoch {listed(epochs)}" if epochs else ""
        where = "; ".join(offset_range(*each) for each in ranges[:_MOST_NAMED])
        more = f" and {counted(len(ranges) - _MOST_NAMED, 'more range')}" if len(ranges) > _MOST_NAMED else ""
        return f"{counted(count, 'record')}{of} ({where}{more}) are on another branch, and left out"

    @property
    def is_plain(self) -> bool:
        """Whether the log is that of the base, and nothing is to be said of it."""
        is_base = all(piece.replica == self.base for each in self.segments for piece in each.pieces)
        return is_base and not self.unread_count and not any(True for _ in self.judged())

    def sentence(self) -> str:
        """The conclusion: the base, what came from whom, what no replica has."""
        parts = [f"base {self.label(self.base)}"]
        pieces = [piece for each in self.segments for piece in each.pieces]
        end_of_base = max((each.last_offset for each in pieces if each.replica == self.base), default=-1)
        for number in range(len(self.replicas)):
            if number == self.base:
                continue
            for is_tail, verb in ((False, "filled"), (True, "appended")):
                ranges = [
                    each for each in pieces if each.replica == number and (each.first_offset > end_of_base) == is_tail
                ]
                if ranges:
                    count = sum(each.record_count for each in ranges)
                    what = counted(len(merged((each.first_offset, each.last_offset) for each in ranges)), "range")
                    parts.append(f"{what} {verb} from {self.label(number)} ({counted(count, 'record')})")
        lost = self.all_lost
        if lost:
            named = ", ".join(span(*each) for each in lost[:_MOST_NAMED])
            more = f" and {counted(len(lost) - _MOST_NAMED, 'more range')}" if len(lost) > _MOST_NAMED else ""
            parts.append(f"{self._nobody} {named}{more}")
        else:
            parts.append("no loss is known")
        if self.unread_count:
            parts.append(f"{counted(self.unread_count, 'replica')} could not be read")
        for number, branch in enumerate(self.branches):
            if branch.segments:
                count = sum(each.record_count for each in branch.pieces)
                parts.append(f"{counted(count, 'record')} of another branch of {self.label(number)} left out")
        if self.doubtful:
            parts.append("deleted keys may have old values again")
        return f"{self.name}  {' · '.join(parts)}"


def overview(merging: Merge) -> str:
    """The partitions counted, where there are several."""
    plans = merging.plans
    if len(plans) < 2:
        none = "No partition could be read." if merging.findings else "No partition is at the paths."
        return "" if plans else none
    parts = [f"{counted(len(plans), 'partition')} merged"]
    healed = sum(any(piece.replica != plan.base for each in plan.segments for piece in each.pieces) for plan in plans)
    lossy = sum(bool(plan.all_lost) for plan in plans)
    branched = sum(any(each.segments for each in plan.branches) for plan in plans)
    parts.append(
        f"{healed:,} with batches of other replicas than the base" if healed else "all equal to their base replica"
    )
    parts += [f"{lossy:,} with losses"] if lossy else ["no loss is known"]
    parts += [f"{branched:,} with other branches"] if branched else []
    return f"{' · '.join(parts)}."


class MergeScan(msgspec.Struct, OfReplicas[MergedPartition], frozen=True):
    """Plans partitions one by one. ``compacted`` are topics that the metadata has as compacted."""

    limits: Limits
    compacted: frozenset[str] = frozenset()

    def read(self, unit: Replicas, advance: Advance) -> Iterator[MergedPartition]:
        """The plan of a partition."""
        yield planned(unit, self.limits, advance, is_compacted=unit.topic in self.compacted)


def planned(group: Replicas, limits: Limits, advance: Advance, *, is_compacted: bool = False) -> MergedPartition:
    """Plan the log of one partition.

    The base is the replica that should lead: one that is assigned, with the latest epoch, the longest log, and in the
    ISR or the ELR.
    """
    claims = [claims_of(each.partition, limits) for each in group.replicas]
    confirm(claims)
    assignment = group.assignment.at_epoch(max(each.latest for each in claims))

    def order(number: int) -> tuple[Any, ...]:
        node_id = group.replicas[number].node_id
        is_other = bool(assignment.replicas) and node_id is not None and node_id not in assignment.replicas
        is_complete = node_id in assignment.complete_replicas
        return is_other, -claims[number].latest, -claims[number].log_end_offset, not is_complete, number

    base = min(range(len(claims)), key=order)
    history = history_of(claims[base], [each for number, each in enumerate(claims) if number != base])
    union = Union(group, base, history, limits, advance)
    union.may_be_compacted |= is_compacted
    union.run()
    end_offset = max((each.base_offset for each in union.segments), default=0)
    end_offset = max(end_offset, 0 if union.last_offset is None else union.last_offset + 1)
    if union.last_offset is None and union.segments:
        end_offset = union.segments[0].base_offset
    starts = zip(history.epochs.tolist(), history.starts.tolist(), strict=True)
    noted = [start for epoch, start in starts if any(epoch in each.noted for each in claims)]
    reached = [(max(noted, default=0), f"the {layout.LEADER_EPOCH_CHECKPOINT}")]
    for number, log in enumerate(union.logs):
        if union.branches[number].segments or not set(claims[number].starts) <= set(history.epochs.tolist()):
            continue  # its files may be of the other branch too
        offsets = log.replica.offsets
        reached.append((offsets.committed_end or 0, f"the {layout.REPLICATION_OFFSET_CHECKPOINT}"))
        reached.append((offsets.newest_snapshot or 0, "a producer snapshot"))
        if offsets.is_clean_shutdown:
            reached.append((offsets.recovery_point or 0, f"the {layout.RECOVERY_POINT_CHECKPOINT}"))
    shown_end = max(reached, key=lambda each: each[0])
    doubtful = union.doubtful
    if union.may_be_compacted and union.last_offset is not None and shown_end[0] > end_offset:
        doubtful = merged([*doubtful, (end_offset, shown_end[0] - 1)])
    return MergedPartition(
        name=group.name,
        topic=group.topic,
        number=group.number,
        replicas=group.replicas,
        base=base,
        history=history,
        segments=union.segments,
        branches=union.branches,
        lost=union.lost,
        lost_head=_lost_head(group.replicas, claims),
        doubtful=doubtful,
        end_offset=end_offset,
        reached=shown_end,
        findings=[found for log in union.logs for found in log.findings if found.is_incomplete],
    )


def _lost_head(replicas: Sequence[Replica], claims: Sequence[Claims]) -> Range | None:
    """The offsets before the first segments that the leader-epoch-checkpoints of all replicas have; None for none.

    A broker that deletes segments raises the first entry. It keeps entries for what is in remote storage, and notes the
    log start offsets of such partitions.
    """
    firsts, starts = [], []
    for replica, claim in zip(replicas, claims, strict=True):
        if replica.partition.segments:
            first = replica.partition.segments[0].base_offset
            noted = [claim.starts[each] for each in claim.noted] if replica.offsets.begins_with_first_segment else []
            firsts.append(first)
            starts.append(min([first, *noted]))
    if not starts or max(starts) >= min(firsts):
        return None
    return max(starts), min(firsts) - 1


class Merge(msgspec.Struct):
    """The partitions to merge, the plan of each, and findings about the paths.

    ``has_metadata``: the metadata log is there too. It is left out: each controller has a vote in its own log.
    """

    groups: list[Replicas]
    compacted: frozenset[str]
    findings: list[Finding]
    has_metadata: bool = False
    plans: list[MergedPartition] = msgspec.field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        """Bytes of the logs of all replicas."""
        return sum(each.size_bytes for each in self.groups)

    @property
    def written_bytes(self) -> int:
        """Bytes of the logs that will be written."""
        return sum(piece.size_bytes for plan in self.plans for each in plan.segments for piece in each.pieces)

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(replica.path for group in self.groups for replica in group.replicas)

    def plan(self, limits: Limits = DEFAULT_LIMITS, jobs: int = 1, advance: Advance = no_progress) -> None:
        """Read all replicas, and plan each partition. Raises WorkerDied."""
        scan = MergeScan(limits, self.compacted)
        plans = scan_units(scan, self.groups, jobs=jobs, advance=advance)
        self.plans = [replace(each, unread_count=self._unread_count(each)) for each in plans]

    def _unread_count(self, plan: MergedPartition) -> int:
        paths = set()
        for each in (*self.findings, *plan.findings):
            place = each.location
            is_of_plan = place.topic in (plan.topic, None) and place.partition in (plan.number, None)
            if each.is_incomplete and is_of_plan:
                paths.add(Path(place.path) if place.base_offset is None else Path(place.path).parent)
        return len(paths)

    def job(self, **options: Any) -> dict[str, Any]:
        """The job of a run, for its manifest and for resuming."""
        partitions = [replica.partition for group in self.groups for replica in group.replicas]
        files = (path for each in partitions for segment in each.segments for path in segment.files.values())
        return job_of("salvage", {"merge": True, **options}, self.paths, files)


def read_merge(targets: Sequence[Target], context: ClusterContext, limits: Limits = DEFAULT_LIMITS) -> Merge:
    """The partitions below some paths, each with its replicas, those with one replica too.

    Raises InputError for paths without a partition, for the metadata log by itself, single partitions that are not one,
    and several topics of one name.
    """
    matching = matched(targets, limits, "salvage --merge takes")
    groups = sorted((*matching.groups, *matching.single), key=lambda each: (each.topic or "", each.number or 0))
    kept = [each for each in groups if not is_cluster_metadata(each.replicas[0].partition)]
    if groups and not kept and not matching.findings:
        message = "the metadata log is not merged: quorum shows what its copies have, and rebuild-quorum takes the best"
        raise InputError(message, Location(str(groups[0].replicas[0].path)))
    has_metadata, groups = len(kept) < len(groups), kept
    compacted = set()
    for before, group in zip((None, *groups), groups, strict=False):
        if before is not None and before.name == group.name:
            message = f"also a partition of another topic or cluster: {before.replicas[0].path}; merge them one by one"
            raise InputError(message, Location(str(group.replicas[0].path)))
        group.assign(context)
        if context.image is not None and group.topic is not None and context.image.topic_id(group.topic) is not None:
            configs = configs_of_topic(group.topic, group.with_id.node_id, context.image, context.properties, {})
            if configs.is_compacted:
                compacted.add(group.topic)
    return Merge(groups, frozenset(compacted), list(matching.findings), has_metadata)


class Merger(Rewriter):
    """Copies the pieces of which logs are made. ``plans`` are by the names of the partitions in the output."""

    chunk_bytes = BODY_CHUNK_BYTES
    keeps_misplaced = True
    has_judged_offsets = True
    reads_around_errors = False

    def __init__(self, terms: WriteTerms, publication: Publication, plans: dict[str, MergedPartition]) -> None:
        super().__init__(terms)
        self._publication = publication
        self._plans = plans

    def read_back(self, written: Rewritten, advance: Advance) -> None:
        """Compare byte for byte, where all batches were copied."""
        if written.kept is not None:
            super().read_back(written, advance)
            return
        for each in written.became:
            compare_bytes(written.source, each.start, each.outputs, advance)

    def report_look(self, look: FirstLook, result: SegmentResult) -> None:
        """Report the batches at which a broker stops; all others were intact when they were chosen."""
        path = look.log.path
        pieces = path.pieces if isinstance(path, ComposedPath) else ()
        for each in look.scan.bad:
            place = _place_in(pieces, each.position, look.log.location)
            if each.code not in ("control-record-invalid", "batch-invalid"):
                raise FileChanged("the file changed while it was read", place)
            message = f"the batch is in the quarantine file: {each.reason}"
            result.add(finding(each.code, place, message), True)
            result.lost_bytes += each.length

    def end_partition(self, partition: Partition, last_offset: int | None) -> Iterator[Finding]:
        """Write the leader epochs of the history; no findings."""
        for name, plan in self._plans.items():
            if plan.replicas[plan.base].partition.path == partition.path:
                end = plan.end_offset
                epochs, starts = plan.history.epochs.tolist(), plan.history.starts.tolist()
                entries = [EpochEntry(*each) for each in zip(epochs, starts, strict=True) if each[1] < end]
                content = leader_epoch_checkpoint.write(entries)
                self._publication.write_file(f"{name}/{layout.LEADER_EPOCH_CHECKPOINT}", content)
        return iter(())

    def carry_terms(self, sources: WriteSources) -> CarryTerms:
        """With the topic ids of all replicas."""
        partitions = (each.partition for plan in self._plans.values() for each in plan.replicas)
        return CarryTerms(self.terms.limits, self.knows_all, topic_ids_of(partitions, self.terms.limits))

    def keeps_snapshots(self, result: RewritingResult, lost_bytes: int) -> bool:
        return False

    def manifest(self, result: RewritingResult) -> dict[str, Any]:
        return {
            "merged": [each.as_json() for each in self._plans.values()],
            "losses": [finding_as_json(each) for each in result.losses],
        }


def _place_in(pieces: Sequence[Piece], position: int, location: Location) -> Location:
    """The place in a source of a position in a log of pieces."""
    for each in pieces:
        if position < each.size_bytes:
            return replace(location, path=str(each.path), position=each.start + position)
        position -= each.size_bytes
    return location


def merge(
    merging: Merge, publication: Publication, terms: WriteTerms, result: RewritingResult
) -> Iterator[Finding | WrittenSegment]:
    """Write the planned partitions into the open publication, and finish it; yields segments and findings.

    Raises OutputError and FileChanged.
    """
    plans = {each.name: each for each in merging.plans}
    for plan in merging.plans:
        for found in plan.findings:
            result.findings.append(found)
            yield found
        for found, is_loss in plan.judged():
            result.findings.append(found)
            if is_loss:
                result.losses.append(found)
            yield found
    partitions = {name: plan.partition for name, plan in plans.items()}
    sources = WriteSources(merging.paths, partitions, None, list(merging.findings))
    yield from rewrite(sources, publication, Merger(terms, publication, plans), verify_output, result)


def branch_sources(merging: Merge) -> WriteSources:
    """The branches that were left out, each under the name of its replica."""
    partitions = {}
    for plan in merging.plans:
        for number, branch in enumerate(plan.branches):
            if branch.segments:
                label = plan.label(number)
                label = label.replace(" ", "-") if label.startswith("node ") else f"replica-{number + 1}"
                partitions[f"{label}/{plan.name}"] = plan.branch(number)
    return WriteSources(merging.paths, partitions)


def write_branches(
    sources: WriteSources, publication: Publication, terms: WriteTerms
) -> Iterator[Finding | WrittenSegment]:
    """Write the branches that were left out into another open publication, and finish it.

    No broker starts on a branch: what is wrong with one is of severity info, and says nothing of the merged logs.
    """
    for item in rewrite(sources, publication, Merger(terms, publication, {}), verify_output, RewritingResult()):
        is_judged = isinstance(item, Finding) and not item.is_incomplete
        yield replace(item, severity=Severity.INFO) if is_judged else item
