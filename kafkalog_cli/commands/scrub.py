"""kafkalog scrub: verify each segment of a node once in a period, and keep what was found in a state file."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from format.columns import FINDING
from format.io.file_writer import check_apart
from format.io.session import Session
from format.layout import LOG_SUFFIX
from format.timestamps import DAY_MS, iso_time
from format.wording import counted, duration, listed
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import Judging, RowOutput
from kafkalog_cli.options.parsers import number_to, parse_rate
from kafkalog_cli.options.reading import existing_paths
from kafkalog_cli.render.table import ShownColumns, human_size
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.node.target import Target
    from format.scan.follow import Stopping
    from format.verbs.scrub.scrub import ScrubPlan
    from format.verbs.scrub.state import State
    from format.verbs.scrub.status import Status

EXAMPLES = (
    ("kafkalog scrub /var/kafka --state scrub.db --once", "verify what is due, for cron or a timer"),
    ("kafkalog scrub /var/kafka --state scrub.db --metrics scrub.prom", "go on until Ctrl-C or SIGTERM"),
    ("kafkalog scrub --status --state scrub.db", "what was verified when, what is overdue, which findings are open"),
    ("kafkalog scrub --compare node-1.db node-2.db", "what differs between two nodes, without reading their logs"),
)

#: Without --once the node is listed again after so long, and the metrics are written so often.
_PASS_S, _METRICS_S, _IDLE_S = 3600.0, 30.0, 600.0
_NICENESS = 19
#: The longest period.
_MOST_DAYS = 36_500
_COLUMNS = {
    "scrub_directory": ShownColumns(
        (
            "path", "node_id", "partition_count", "segment_count", "size_bytes", "overdue_count", "oldest_verified_at",
            "finding_count",
        ),
        first_to_go=("node_id", "partition_count", "size_bytes"),
        deciding=("overdue_count", "finding_count"),
    ),
    "scrub_difference": ShownColumns(
        ("topic", "partition", "first_offset", "last_offset", "path_1", "path_2"), first_to_go=("path_2", "path_1")
    ),
}  # fmt: skip


class Scrubbed(msgspec.Struct, frozen=True):
    """What is scrubbed or asked, the state file, and the pace."""

    paths: Annotated[
        list[str] | None, existing_paths("The log directories of a node, or partition directories.", "[PATH]...")
    ] = None
    state: Annotated[str | None, option("The state: an SQLite file, made if there is none.", metavar="FILE")] = None
    once: Annotated[bool, option("Verify what is due, and end.")] = False
    period: Annotated[
        float,
        option(
            "Verify each segment once in this time; 0 makes all of them due.",
            metavar="DAYS",
            parser=number_to(_MOST_DAYS),
            show_default="21",
        ),
    ] = 21.0
    max_rate: Annotated[
        int | None,
        option(
            "Read at most this many megabytes per second. Default: what the period needs, at most 100.",
            metavar="MB/S",
            parser=parse_rate,
        ),
    ] = None
    metrics: Annotated[str | None, option("Write metrics for Prometheus' textfile collector.", metavar="FILE")] = None
    status: Annotated[bool, option("Show the state, and read no log.")] = False
    history: Annotated[bool, option("With --status: also findings that are gone.")] = False
    compare: Annotated[
        tuple[str, str] | None, option("Compare two states, and read no log.", metavar="STATE-1 STATE-2")
    ] = None
    session: Session = msgspec.field(default_factory=Session)

    @property
    def period_ms(self) -> int:
        return int(self.period * DAY_MS)

    def check(self) -> None:
        """Raise a usage error for options that do not go together."""
        asked = [name for name, is_given in (("--status", self.status), ("--compare", self.compare)) if is_given]
        if len(asked) > 1 or (asked and self.paths):
            raise typer.BadParameter("--status and --compare read only states: give one of the two, and no path")
        if not asked and not self.paths:
            raise typer.BadParameter("no PATH: give the log directories of a node, or --status or --compare")
        if self.compare is None and self.state is None:
            raise typer.BadParameter("no --state: give the file in which to keep what was verified when")
        of_scrubbing = {"--once": self.once, "--max-rate": self.max_rate}
        unused = of_scrubbing if self.status else {**of_scrubbing, "--state": self.state, "--metrics": self.metrics}
        given = [name for name, value in unused.items() if value] if asked else []
        if given:
            raise typer.BadParameter(f"{given[0]} does not go with {asked[0]}")
        if self.history and not self.status:
            raise typer.BadParameter("--history goes with --status")


def scrub(scrubbed: Scrubbed, output: RowOutput, judging: Judging) -> None:
    """Verify the batch headers and CRCs of every segment of a node once in a period, the longest unverified first.

    It is made to run beside the broker: as slowly as the period allows (or at --max-rate), with the lowest priority,
    and without use of the page cache. Without --once it goes on until Ctrl-C or SIGTERM. The state file has what was
    verified when, and all findings. A sealed segment whose batches are others than before is a finding, though its
    CRCs are right, if neither compaction nor truncation explains it.
    """
    scrubbed.check()
    if scrubbed.compare is not None:
        _compare(scrubbed.compare, output, judging)
    elif scrubbed.status:
        _show_status(scrubbed, output, judging)
    else:
        _scrub(scrubbed, output, judging)


def _scrub(scrubbed: Scrubbed, output: RowOutput, judging: Judging) -> None:
    from format.node.target import each_once, targets_at
    from format.verbs.scrub.state import writing_state
    from kafkalog_cli.following import stopped_by_signals

    paths, session = scrubbed.paths or [], scrubbed.session
    for each in filter(None, (scrubbed.state, scrubbed.metrics)):
        check_apart(each, paths)
    os.nice(_NICENESS)
    with (
        Run("scrub", output, judging, paths=paths, main_schema=FINDING) as run,
        writing_state(scrubbed.state or "") as state,
        stopped_by_signals() as stopping,
    ):
        is_first = True
        while True:
            passed = _Passing(run, scrubbed, state, stopping, is_first=is_first)
            passed.work(each_once(targets_at([session.path(each) for each in paths])))
            is_first = False
            if scrubbed.once or stopping.is_asked():
                break
            run.flush()
            select.select([stopping.wake_fd], [], [], 0 if passed.is_more_due else _IDLE_S)


class _Passing:
    """One pass of a run. The first pass of a run also shows the findings that are open from before."""

    def __init__(self, run: Run, scrubbed: Scrubbed, state: State, stopping: Stopping, *, is_first: bool) -> None:
        self._run, self._scrubbed, self._state, self._stopping = run, scrubbed, state, stopping
        self._is_first = is_first
        self._began = self._wrote = monotonic()
        self.is_more_due = False

    def work(self, targets: list[Target]) -> None:
        """Verify what is due, show what is found, and write the metrics."""
        from format.verbs.scrub.scrub import ScrubTerms, plan_pass, scrub

        scrubbed, run, session = self._scrubbed, self._run, self._scrubbed.session
        terms = ScrubTerms(scrubbed.period_ms, is_stopping=self._stopping.is_asked, ends=self._ends)
        began_ms = terms.now_ms()
        plan = plan_pass(targets, self._state, terms)
        rate = scrubbed.max_rate or plan.rate(scrubbed.period_ms)
        session.policy.set(rate, spares_cache=True)
        if self._is_first:
            self._say_pace(plan, rate)
        terms = msgspec.structs.replace(terms, bytes_per_s=rate, advance=run.progress(plan.due_bytes).advance)
        if scrubbed.once:
            run.hold()
        found = unread = 0
        for each in scrub(plan, self._state, terms):
            found += 1
            unread += each.code == "file-unreadable" and each.location.path.endswith(LOG_SUFFIX)
            run.finding(each)
        before = [known for known in self._state.findings() if known.seen_ms < began_ms] if self._is_first else []
        run.findings(known.finding for known in before)
        done = self._state.last_pass()
        self.is_more_due = done is not None and not done.is_complete
        self._write_metrics()
        run.count("segments", 0 if done is None else done.segment_count)
        run.count("bytes", 0 if done is None else done.size_bytes)
        run.count("due_segments", len(plan.rows))
        if scrubbed.once:
            run.conclude(self._sentence(plan, found, unread, len(before)))
            if self.is_more_due:
                from kafkalog_cli.exit_codes import Condition

                run.condition(Condition.INCOMPLETE)

    def _ends(self) -> bool:
        """Whether the pass is to end before its next segment; writes the metrics now and then."""
        now = monotonic()
        if now - self._wrote > _METRICS_S:
            self._wrote = now
            self._write_metrics()
        return self._stopping.is_asked() or (not self._scrubbed.once and now - self._began > _PASS_S)

    def _write_metrics(self) -> None:
        if self._scrubbed.metrics is not None:
            from format.verbs.scrub.status import status_of, write_metrics

            write_metrics(self._scrubbed.metrics, status_of(self._state, self._scrubbed.period_ms))

    def _say_pace(self, plan: ScrubPlan, rate: int) -> None:
        period_ms = self._scrubbed.period_ms
        needed_ms = 1000 * plan.size_bytes // rate
        if period_ms and needed_ms > period_ms:
            self._run.say_now(
                f"kafkalog: at {rate / 1e6:,.1f} MB/s, reading all {human_size(plan.size_bytes)} takes "
                f"{duration(needed_ms)}, longer than the period: give a higher --max-rate."
            )

    def _sentence(self, plan: ScrubPlan, found: int, unread: int, open_before: int) -> str:
        done = self._state.last_pass()
        count, size_bytes = (0, 0) if done is None else (done.segment_count - unread, done.size_bytes)
        if not len(plan.rows):
            words = f"Nothing is due: all {counted(plan.segment_count, 'segment')} were verified within the period."
        elif self.is_more_due:
            words = f"Stopped: {count:,} of {counted(len(plan.rows), 'due segment')} verified."
        else:
            words = f"{counted(count, 'segment')} verified ({human_size(size_bytes)}) of {plan.segment_count:,}"
            words += f"; {unread:,} cannot be read." if unread else "."
        words += f" {counted(found, 'finding')}." if found else " No damage." if count else ""
        return words + (f" {counted(open_before, 'finding')} of earlier passes still open." if open_before else "")


def _show_status(scrubbed: Scrubbed, output: RowOutput, judging: Judging) -> None:
    from format.columns import SCRUB_DIRECTORY
    from format.verbs.scrub.state import reading_state
    from format.verbs.scrub.status import status_of, write_metrics

    with (
        Run("scrub", output, judging, main_schema=SCRUB_DIRECTORY, columns=_COLUMNS) as run,
        reading_state(scrubbed.state or "") as state,
    ):
        status = status_of(state, scrubbed.period_ms)
        run.hold()
        run.write(SCRUB_DIRECTORY, (each.row() for each in status.directories))
        run.findings(each.finding for each in status.findings)
        if scrubbed.history:
            from format.columns import SCRUBBED_FINDING

            run.write(SCRUBBED_FINDING, (each.row() for each in state.findings(with_gone=True)))
        if status.last_pass is not None and status.last_pass.unread_count:
            from kafkalog_cli.exit_codes import Condition

            run.condition(Condition.INCOMPLETE)
        run.conclude(*_status_sentences(status, scrubbed))
        if scrubbed.metrics is not None:
            check_apart(scrubbed.metrics, ())
            write_metrics(scrubbed.metrics, status)


def _status_sentences(status: Status, scrubbed: Scrubbed) -> Iterator[str]:
    count = sum(each.segment_count for each in status.directories)
    days = f"{scrubbed.period:g} days"
    if status.overdue_count:
        words = f"{status.overdue_count:,} of {counted(count, 'segment')} "
        words += f"({human_size(status.overdue_bytes)}) not verified within {days}"
        left = status.seconds_left
        yield words + ("." if left is None else f": {duration(1000 * left)} at the rate of the last pass.")
    else:
        yield f"All {counted(count, 'segment')} were verified within {days}."
    last = status.last_pass
    if last is None:
        yield "No pass was made yet."
    elif last.ended_ms is None:
        yield f"The last pass began at {iso_time(last.started_ms)}; it still runs, or was killed."
    elif not last.is_complete:
        yield f"The last pass ended at {iso_time(last.ended_ms)} before all that was due was verified."
    if last is not None and last.unread_count:
        yield f"The last pass did not read {counted(last.unread_count, 'path')}: links, or directories not listed."
    yield f"Open: {counted(len(status.findings), 'finding')}." if status.findings else "No finding is open."


def _compare(paths: tuple[str, str], output: RowOutput, judging: Judging) -> None:
    from format.columns import SCRUB_DIFFERENCE
    from format.verbs.scrub.compare import COMPACTED, compare
    from format.verbs.scrub.state import reading_state
    from kafkalog_cli.exit_codes import Condition

    with (
        Run("scrub", output, judging, main_schema=SCRUB_DIFFERENCE, columns=_COLUMNS) as run,
        reading_state(paths[0]) as first,
        reading_state(paths[1]) as second,
    ):
        compared = compare(first, second)
        run.hold()
        run.write(SCRUB_DIFFERENCE, (each.row() for each in compared.differences))
        places = sorted({f"{each.topic}-{each.partition}" for each in compared.differences})
        words = f"{counted(compared.partition_count, 'partition')} compared, as far as both states verified them: "
        words += f"{listed(places[:3])} differ{'s' if len(places) == 1 else ''}" if places else "no difference"
        words += f", and {len(places) - 3:,} more." if len(places) > 3 else "."
        run.conclude(words)
        if compared.differences:
            run.condition(Condition.DIFFERENCE_FOUND)
        if set(compared.apart.values()) - {COMPACTED}:
            run.condition(Condition.INCOMPLETE)
        for each in _apart_words(compared.apart):
            run.not_checked(each)


def _apart_words(apart: dict[str, str]) -> Iterator[str]:
    """What could not be compared, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in apart.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        yield f"{', '.join(names[:3])}{more} ({reason})"
