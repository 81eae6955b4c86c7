"""kafkalog doctor: what is wrong, the most urgent first, each with its evidence and the next command."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import replace

from format.columns import DIAGNOSIS
from format.node.target import targets_at
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import DocumentOutput, Judging
from kafkalog_cli.options.reading import ConfigSources, Paths, bundles_of
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.render.folding import folded_line
from kafkalog_cli.render.text import printable
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.verbs.doctor.diagnosis import Diagnosis
    from format.verbs.doctor.doctor import DoctorRun
    from format.verbs.report.report import ReportRun
    from format.verbs.report.terms import Report

EXAMPLES = (
    ("kafkalog doctor /var/kafka", "what is wrong with a node"),
    ("kafkalog doctor node-1 node-2 node-3", "several nodes as one cluster: who leads, what differs, whom to elect"),
    ("kafkalog doctor --deep /mnt/copy", "also read every record, as verify does"),
    ("kafkalog doctor --format jsonl /var/kafka | jq -r .command", "the next commands, for a script"),
)


class DoctorDepth(msgspec.Struct, frozen=True):
    """How much is read."""

    deep: Annotated[bool, option("Read and check every record and index, as verify does.")] = False


def doctor(
    paths: Paths,
    depth: DoctorDepth,
    sources: ConfigSources,
    output: DocumentOutput,
    judging: Judging,
    guards: Guards,
    work: Work,
) -> None:
    """Say what is wrong, the most urgent first, each with its evidence and the next command.

    Without --deep, batch headers, side files, checkpoints, metadata and internal topics are read, but not the records
    of other topics. Several paths are one cluster. On a healthy node one line says what was looked at. The exit status
    is that of verify, and of diff where replicas differ.
    """
    from format.verbs.bundle.verify_bundle import NOT_CHECKED
    from format.verbs.report.terms import ReportTerms

    with Run("doctor", output, judging, paths=paths, main_schema=DIAGNOSIS) as run:
        targets = run.readable(targets_at(map(work.session.path, paths), takes_empty=True))
        bundles = bundles_of(work.session, paths)
        terms = ReportTerms(
            time.time_ns() // 1_000_000,
            guards.limits,
            jobs=work.process_count,
            bundles=bundles,
            context=sources.terms({}, guards.limits),
        )
        making: DoctorRun | ReportRun
        if depth.deep or bundles:
            from format.verbs.report.report import ReportRun
            from format.verbs.verify.verify import bytes_to_verify

            progress = run.progress(lambda: sum(bytes_to_verify(each) for each in targets))
            making = ReportRun(targets, replace(terms, advance=progress.advance))
        else:
            from format.scan.selected_logs import selected_bytes
            from format.scan.selection import EVERYTHING
            from format.verbs.doctor.doctor import DoctorRun

            progress = run.progress(lambda: selected_bytes(targets, EVERYTHING))
            making = DoctorRun(targets, replace(terms, advance=progress.advance))
        for found in making.findings():
            run.judge(found)
        made = making.finish()
        made.leave_out(run.left_out)
        run.judge_report(made)
        run.counts(made.counts)
        run.not_checked(*made.not_known)
        if bundles:
            run.not_checked(NOT_CHECKED)
        if not run.is_readable or output.columns is not None:
            run.write(DIAGNOSIS, (each.row() for each in made.diagnoses))
            return
        firsts: dict[str, int] = {}  # by command the rank of the first diagnosis with it
        for each in made.diagnoses:
            firsts.setdefault(each.command or "", each.rank)
        lines = [printable(line) for each in made.diagnoses for line in _lines(each, firsts, run.width)]
        run.conclude("\n".join([*lines, *_closing(made)]), replaces_summary=True)
        run.count("diagnosis", len(made.diagnoses))


_INDENT = " " * 11


def _lines(diagnosis: Diagnosis, firsts: Mapping[str, int], width: int | None) -> Iterator[str]:
    """A diagnosis as lines: rank, severity and sentence, the evidence, and the next command, which is never cut.

    A command is shown once, with the first of the diagnoses that have it.
    """
    head = f"{diagnosis.rank:<3}{diagnosis.severity.label:<8}"
    yield from folded_line(f"{diagnosis.subject}: {diagnosis.sentence}", width, _INDENT, head=head)
    if diagnosis.evidence_path is not None:
        offset = diagnosis.evidence_offset
        yield f"{_INDENT}{diagnosis.evidence_path}{'' if offset is None else f' at offset {offset}'}"
    if diagnosis.command is not None:
        first = firsts[diagnosis.command]
        yield f"{_INDENT}next: {diagnosis.command if first == diagnosis.rank else f'the command of {first}'}"
    yield ""


def _closing(made: Report) -> Iterator[str]:
    """What was looked at, and what is not known."""
    yield f"doctor: {made.closing}"
    if made.not_known:
        yield f"Not known: {'; '.join(made.not_known)}."
