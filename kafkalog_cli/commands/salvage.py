"""kafkalog salvage: copy every intact batch into a new directory, and list what is lost."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.writing import OutputDirectory, Rewriting, SourceOptions, local_directory
from kafkalog_cli.runner import Run, say_published, show_written

EXAMPLES = (
    ("kafkalog salvage /mnt/broken --output /mnt/saved", "a whole log directory; a broker can start on the result"),
    ("kafkalog salvage /mnt/broken/orders-0 --output saved", "one partition, into saved/orders-0"),
    ("kafkalog salvage 00000000000000170210.log --output saved", "one file by itself"),
    ("kafkalog salvage /mnt/broken --output saved --repair", "also batches whose length or base offset alone is wrong"),
    ("kafkalog salvage --merge node-1 node-2 node-3 --output whole", "one log of each partition, from all replicas"),
    ("kafkalog salvage /mnt/broken --output saved --format jsonl > lost.jsonl", "the list of losses, for a script"),
)


class Salvaged(msgspec.Struct, frozen=True):
    """The sources to salvage, and the directories of the result."""

    sources: SourceOptions
    output: OutputDirectory
    repair: Annotated[
        bool,
        option(
            "Also write batches of which only the length, base offset, leader epoch or magic is wrong, with the right "
            "value, where the bytes prove it; and batches with one flipped bit under the CRC, where other damage looks "
            "the same in at most 1 of 1,000,000 cases. Each is listed."
        ),
    ] = False
    merge: Annotated[
        bool,
        option(
            "Take the sources as replicas: log directories of several nodes, or copies of one partition. Each "
            "partition becomes one log, with the intact batches of all replicas that followed the same leader epochs."
        ),
    ] = False
    branches: Annotated[
        str | None,
        option(
            "With --merge: a new directory for the records of other branches, which are never merged.",
            metavar="DIR",
            callback=local_directory,
            show_default="they are only listed",
        ),
    ] = None


def salvage(salvaged: Salvaged, rewriting: Rewriting) -> None:
    """Copy every intact batch, byte for byte, into a new directory, with new indexes, and list what is lost.

    Each lost byte range is a finding with its offsets, and is listed in DIR/manifest.json. The exit status is 1 when
    something is lost, and 3 when nothing is lost, but --repair flipped a bit back. A broker that starts on the result
    checks all of it and rebuilds its producer state.
    """
    from format.rewriting.rewriter import PASSES, RewritingResult, WriteTerms
    from format.rewriting.sources import read_write_sources
    from format.verbs.salvage import salvage as salvage_sources

    if salvaged.branches is not None and not salvaged.merge:
        raise typer.BadParameter("needs --merge", param_hint="--branches")
    if salvaged.repair and salvaged.merge:
        raise typer.BadParameter(
            "does not go with --merge, which takes the batch from another replica", param_hint="--repair"
        )
    with rewriting.run("salvage") as run:
        if salvaged.merge:
            _merge(run, salvaged, rewriting)
            return
        paths = salvaged.sources.paths
        found = read_write_sources(paths, takes_files=True)
        repair = {"repair": True} if salvaged.repair else {}
        job = found.job("salvage", index_interval_bytes=rewriting.indexing.interval_bytes, **repair)
        result = RewritingResult()
        with rewriting.publication(run, salvaged.output, paths, job) as publication:
            terms = WriteTerms(**rewriting.terms(run.progress(PASSES * found.size_bytes)))
            show_written(run, salvage_sources(found, publication, terms, result, repairs=salvaged.repair))
            run.count("losses", len(result.losses))
        if result.losses:
            run.condition(Condition.DAMAGE)


def _merge(run: Run, salvaged: Salvaged, rewriting: Rewriting) -> None:
    from format.columns import MERGED_RANGE
    from format.node.target import targets_at
    from format.rewriting.rewriter import PASSES, RewritingResult, WriteTerms
    from format.state.cluster_context import ContextTerms, read_context
    from format.verbs.merge.merge import branch_sources, merge, overview, read_merge, write_branches

    targets, limits = targets_at(salvaged.sources.paths), rewriting.guards.limits
    merging = read_merge(targets, read_context(targets, ContextTerms(limits=limits)), limits)
    if merging.has_metadata:
        run.not_checked("the metadata log, which is not merged: see quorum and rebuild-quorum")
    run.hold()
    merging.plan(limits, rewriting.work.process_count, run.progress(merging.size_bytes).advance)
    plans = merging.plans
    for plan in plans:
        run.write(MERGED_RANGE, plan.rows(), only=lambda row: not row[MERGED_RANGE.names.index("is_base")])
    run.conclude(overview(merging), *(each.sentence() for each in plans if len(plans) == 1 or not each.is_plain))
    terms = WriteTerms(**rewriting.terms(run.progress(PASSES * merging.written_bytes)))
    result = RewritingResult()
    job = merging.job(index_interval_bytes=rewriting.indexing.interval_bytes)
    branches = branch_sources(merging)
    with rewriting.publication(run, salvaged.output, salvaged.sources.paths, job) as publication:
        if salvaged.branches is not None and branches.partitions:
            # Before the log: a run that ends between the two is repeated without --branches.
            branches_job = {**job, "branches": True}
            with rewriting.resumption.publication(salvaged.branches, salvaged.sources.paths, branches_job) as other:
                show_written(run, write_branches(branches, other, terms), counts_written=False)
            say_published(run, other.target)
        show_written(run, merge(merging, publication, terms, result))
        run.count("losses", len(result.losses))
    if result.losses:
        run.condition(Condition.DAMAGE)
