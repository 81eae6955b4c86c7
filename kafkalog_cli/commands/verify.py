"""kafkalog verify: findings about logs and side files, and counts of what was checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from msgspec.structs import replace

from format.columns import FINDING
from format.limits import Limits
from format.node.target import Target
from format.wording import counted, listed, offset_range
from kafkalog_cli.options.groups import first_given, option
from kafkalog_cli.options.output import LEVELS, DocumentOutput, Judging
from kafkalog_cli.options.parsers import one_of
from kafkalog_cli.options.reading import Following, Reading, Tiering, bundles_of
from kafkalog_cli.options.values import ValueOptions
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.verbs.verify.verify import Coverage, VerifyTerms

EXAMPLES = (
    ("kafkalog verify /var/kafka", "a whole log directory, everything across files too"),
    ("kafkalog verify --level crc /var/kafka/orders-0", "only headers and CRCs of one partition"),
    ("kafkalog verify --partitioner murmur2 /var/kafka/orders-0", "also the partition of each key"),
    ("kafkalog verify --values /var/kafka/orders-0", "also what does not decode, who wrote it, and since when"),
    ("kafkalog verify --since scrub.db /var/kafka", "read only the headers of what kafkalog scrub has verified"),
    ("kafkalog verify --follow /var/kafka", "check what a broker appends, as it is appended"),
    (
        "kafkalog verify --format jsonl --fail-on warning /mnt/copy > findings.jsonl",
        "for a script: one finding per line",
    ),
)
#: The most partitions with misplaced records that the sentence names.
_MOST_NAMED = 3


class ValueChecks(msgspec.Struct, frozen=True):
    """Whether keys and values are decoded, and how."""

    are_checked: Annotated[
        bool,
        option(
            "Also decode keys and values, and count what does not decode by topic, schema and producer.", "--values"
        ),
    ] = False
    values: ValueOptions = msgspec.field(default_factory=ValueOptions)


class VerifyDepth(msgspec.Struct, frozen=True):
    """How deep logs are checked."""

    level: Annotated[
        str,
        option(
            "Depth of the checks: batch headers; with crc also CRCs; with records also records; with full also "
            "everything across files.",
            **one_of(*LEVELS),
        ),
    ] = "full"
    since: Annotated[
        str | None,
        option(
            "Read only the headers of logs that kafkalog scrub found sound, by its state file, as they are now.",
            metavar="STATE",
        ),
    ] = None
    checks: ValueChecks = msgspec.field(default_factory=ValueChecks)
    following: Following = msgspec.field(default_factory=Following)
    tiering: Tiering = msgspec.field(default_factory=Tiering)


class KeyPlaces(msgspec.Struct, frozen=True):
    """Whether the partition of each key is checked, and against which partitioner."""

    partitioner: Annotated[
        str | None,
        option(
            "Check that records are in the partitions of their keys, by this partitioner: that of Java clients.",
            show_default=False,
            **one_of("murmur2"),
        ),
    ] = None
    partitions: Annotated[
        int | None,
        option(
            "The number of partitions of the topic, for --partitioner. Default: those of the metadata log at or around "
            "the paths.",
            metavar="N",
            min=1,
            show_default=False,
        ),
    ] = None


def verify(
    depth: VerifyDepth,
    places: KeyPlaces,
    reading: Reading,
    output: DocumentOutput,
    judging: Judging,
    guards: Guards,
    work: Work,
) -> None:
    """Check logs and their side files. Every finding comes with its meaning and the next step.

    Damage does not end the run: reading continues at the next intact batch.
    """
    from format.node.log_dir import Kind
    from format.verbs.verify import verify as verb

    if places.partitions is not None and places.partitioner is None:
        raise typer.BadParameter("it is for --partitioner", param_hint="--partitions")
    if places.partitioner is None and judging.is_on("misplaced"):
        raise typer.BadParameter("misplaced needs --partitioner", param_hint="--fail-on")
    if places.partitioner is not None and depth.level in ("headers", "crc"):
        raise typer.BadParameter(
            f"keys are not read at --level {depth.level}: use records or full", param_hint="--partitioner"
        )
    checks = depth.checks
    if checks.values.is_asked and not checks.are_checked:
        raise typer.BadParameter("keys and values are decoded with --values: give it too")
    if checks.are_checked and depth.level in ("headers", "crc"):
        raise typer.BadParameter(
            f"values are not read at --level {depth.level}: use records or full", param_hint="--values"
        )
    remote = depth.tiering.remote
    follow_apart = {"--output": output.output_file, "--jobs": work.sharing.jobs, "--remote": remote}
    depth.following.check({**follow_apart, "--since": depth.since, "--values": checks.are_checked})
    targets = reading.targets()
    if places.partitions is not None:
        _check_one_topic(targets)
    if reading.session.bundles:
        _check_not_bundled(depth, places)
    level, coverage = verb.Level[depth.level.upper()], verb.Coverage()
    partition_counts = _partition_counts(places, targets, guards.limits)
    with (
        Run("verify", output, judging, paths=reading.paths, main_schema=FINDING, shows_summary=True) as run,
        depth.tiering.joined(run, targets := run.readable(targets), guards.limits) as tiered,
        _verified_files(depth.since) as is_verified,
    ):
        compacted_topics = verb.compacted_topics_at(targets, guards.limits)
        jobs = work.process_count
        terms = verb.VerifyTerms(level, guards.limits, partition_counts, compacted_topics, is_verified, jobs)
        if reading.session.bundles:
            _show_bundled(run, reading, targets, terms)
            return
        if depth.following.follow:
            _follow(run, targets, terms, coverage)
        else:
            passes = 2 if checks.are_checked else 1
            progress = run.progress(lambda: passes * sum(verb.bytes_to_verify(each) for each in targets))
            verified = verb.verify_all(targets, replace(terms, advance=progress.advance))
            coverage = verified.coverage
            run.findings(verified)
            if tiered is not None and level is verb.Level.FULL:
                from format.state.tiered_logs import compared_with_local

                run.findings(compared_with_local(tiered.tier, targets))
            if checks.are_checked:
                _show_values(run, targets, checks.values, replace(terms, advance=progress.advance))
        run.counts(coverage.counts)
        if places.partitioner is not None:
            _say_misplaced(run, coverage)
        run.not_checked(*verb.not_checked(level, coverage))
        if is_verified is not None:
            run.not_checked("CRCs and records of the logs that are verified by --since")
        if level is verb.Level.FULL:
            run.not_checked(*verb.other_clusters(targets, guards.limits))
        if level is verb.Level.FULL and {each.kind for each in targets} - {Kind.LOG_DIR, Kind.PARTITION}:
            run.not_checked("the files beside a file that is given alone")


def _show_values(run: Run, targets: list[Target], values: ValueOptions, terms: VerifyTerms) -> None:
    """Write a finding for what does not decode in each partition, and say it by topic and schema."""
    from format.verbs.verify.values import undecodable_values, undecodable_words

    decoding = replace(values, value_as=values.value_as or "auto").decoding(run, targets, terms.limits)
    if decoding is None:
        return
    found, counts = undecodable_values(targets, decoding, terms.limits, jobs=terms.jobs, advance=terms.advance)
    run.findings(each.finding() for each in found)
    run.count("decoded_values", counts.decoded)
    run.count("raw_values", counts.raw)
    run.count("undecodable_values", sum(each.count for each in found))
    run.conclude(undecodable_words(found))


@contextmanager
def _verified_files(state_path: str | None) -> Iterator[Callable[[Path], bool] | None]:
    """Whether a log is as scrub verified it, by a state file; None without one."""
    if state_path is None:
        yield None
        return
    from format.verbs.scrub.state import reading_state

    with reading_state(state_path) as state:
        yield state.verified_files()


def _partition_counts(places: KeyPlaces, targets: list[Target], limits: Limits) -> int | dict[str, int] | None:
    """The number of partitions that is given, or that of each topic by the metadata log; None to check no keys.

    Raises a usage error without both.
    """
    if places.partitioner is None or places.partitions is not None:
        return places.partitions
    from format.state.cluster_context import ContextTerms, read_context

    image = read_context(targets, ContextTerms(limits=limits)).image
    if image is None:
        raise typer.BadParameter(
            "there is no metadata log at or around the paths: give --partitions N", param_hint="--partitioner"
        )
    return {topic: image.partition_count(topic) for topic in image.names.values()}


def _say_misplaced(run: Run, coverage: Coverage) -> None:
    """Say how many records are not in the partition of their key, and count them."""
    found = sorted(coverage.misplaced.items())
    total = sum(each.count for _, each in found)
    run.count("misplaced_records", total)
    if not total:
        return
    places = [f"{name} ({each.count:,}, {offset_range(each.first, each.last)})" for name, each in found[:_MOST_NAMED]]
    places += [f"{len(found) - _MOST_NAMED:,} more partitions"] if len(found) > _MOST_NAMED else []
    run.conclude(f"{counted(total, 'record')} in another partition than that of the key: {listed(places)}.")


def _check_one_topic(targets: list[Target]) -> None:
    """Raise a usage error for partitions of several topics: --partitions is the number of partitions of one."""
    from format.checks.records import is_placed_by_key

    places = [partition.location() for target in targets for partition in target.partitions()]
    topics = sorted({place.topic for place in places if place.topic is not None and is_placed_by_key(place)})
    if len(topics) > 1:
        words = f"is for one topic, and there are {len(topics)} at the paths: give the directories of one, such as "
        words += f"{topics[0]}-*"
        raise typer.BadParameter(words, param_hint="--partitions")


def _check_not_bundled(depth: VerifyDepth, places: KeyPlaces) -> None:
    """Raise a usage error for options that need the logs themselves."""
    needing_logs = {
        "--follow": depth.following.follow,
        "--remote": depth.tiering.remote,
        "--partitioner": places.partitioner,
        "--level": depth.level != "full",
        "--since": depth.since,
        "--values": depth.checks.are_checked,
    }
    name = first_given(needing_logs)
    if name is not None:
        raise typer.BadParameter(f"a bundle has the findings of verify --level full: leave {name} out")


def _show_bundled(run: Run, reading: Reading, targets: list[Target], terms: VerifyTerms) -> None:
    """Write the findings of the time when the bundles were made, and those of their headers now."""
    from format.verbs.bundle.verify_bundle import NOT_CHECKED, verified_counts, verify_bundle

    for bundle in bundles_of(reading.session, reading.paths):
        own = [target for target in targets if str(target.path).startswith(f"{bundle.path}/")]
        run.findings(verify_bundle(bundle, own, terms))
        for name, count in verified_counts(bundle, own):
            run.count(name, count)
    run.not_checked(NOT_CHECKED)


def _follow(run: Run, targets: list[Target], terms: VerifyTerms, coverage: Coverage) -> None:
    from format.verbs.verify.partition_checks import NOT_FOLLOWED, follow_verify
    from kafkalog_cli.following import followed

    run.not_checked(NOT_FOLLOWED)
    walk = terms.walk
    run.findings(followed(run, targets, lambda following: follow_verify(targets, walk, following, coverage)))
