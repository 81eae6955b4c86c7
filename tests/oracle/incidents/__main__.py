"""Twenty incidents, built with real brokers and asked of the program on a terminal of 80 by 24.

    python -m tests.oracle.incidents [--only N ...] [--keep DIR | --from DIR] [--kafkalog PROGRAM] [--healthy]

Each incident has a question, one command that answers it, the facts that its screen must show, and sentences that
would be false. Then ``kafkalog doctor`` is asked without being told what to look for: its first diagnosis must name
the cause. ``--keep DIR`` leaves the log directories there, what is true of them (truth.json), and the screens;
``--from DIR`` asks such a folder again, without a broker. ``--healthy`` adds directories with which nothing is wrong,
and of which doctor must say nothing. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.incidents.cluster import Lab
from tests.oracle.incidents.healthy import ask_healthy, build_healthy
from tests.oracle.incidents.incident import Incident, Truth
from tests.oracle.incidents.judging import Judgement, judged
from tests.oracle.incidents.single_node import SINGLE_NODE
from tests.oracle.incidents.terminal import Shown, shown
from tests.oracle.incidents.three_nodes import THREE_NODES, FullDisk

INCIDENTS: list[Incident] = sorted((*SINGLE_NODE, *THREE_NODES), key=lambda each: each.number)


@dataclass
class Answer:
    """What the program said of an incident, and what is wrong with it."""

    incident: Incident
    command: str
    judgement: Judgement
    doctor_fault: str | None
    deep_fault: str | None  # of doctor --deep
    is_seen: bool  # whether the disks show its cause


def folder_of(incident: Incident, root: Path) -> Path:
    return root / f"{incident.number:02}-{incident.name.replace(' ', '-').replace(',', '')}"


def build(incident: Incident, lab: Lab, root: Path) -> None:
    """Build an incident, unless it is there."""
    folder = folder_of(incident, root)
    if (folder / "truth.json").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    truth = incident.build(lab, folder)
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


def ask(incident: Incident, program: Path, root: Path, screens: Path, columns: int) -> Answer:
    """Ask the one command, and doctor, and judge both."""
    folder = folder_of(incident, root)
    truth: Truth = json.loads((folder / "truth.json").read_text())
    prepared = _made(incident, truth, program, folder, columns)
    answer = shown([program, *incident.command(truth)], folder, columns=columns)
    judgement = judged(answer, incident.facts(truth), incident.false(truth), incident.statuses)
    judgement.unfit.extend(incident.checked(truth, folder))
    if prepared is not None and prepared.exit_status not in (0, 1):
        judgement.unfit.append(f"{prepared.command}: exit {prepared.exit_status}")
    with _full(incident, folder) as where:
        paths = incident.paths(truth, folder)
        doctor = shown([program, "doctor", *paths], where, columns=columns)
        rows = diagnoses(program, paths, where)
        deep_rows = diagnoses(program, [*paths, "--deep"], where)
    cause = incident.cause(truth)
    fault, deep_fault = (None, None) if cause is None else (cause.faults(rows), cause.faults(deep_rows))
    text = f"{incident.question}\n\n" + "\n\n".join(map(_screen, [*([prepared] if prepared else []), answer, doctor]))
    text += f"\n\ncommand: {judgement if not judgement.is_right else 'right'}\n"
    if cause is not None:
        text += f"doctor: {fault or 'right'}\ndoctor --deep: {deep_fault or 'right'}\n"
        text += "".join(f"  {_words(row)}\n" for row in deep_rows if row.get("type") == "diagnosis")
    (screens / f"{folder.name}.txt").write_text(text)
    return Answer(incident, answer.command, judgement, fault, deep_fault, cause is not None)


def _words(row: dict[str, Any]) -> str:
    return f"{row['rank']} {row['severity']} {row['code']} {row['subject']}: {row['sentence']}"


def _made(incident: Incident, truth: Truth, program: Path, folder: Path, columns: int) -> Shown | None:
    words = incident.making(truth)
    if words is None:
        return None
    (folder / words[-1]).unlink(missing_ok=True)
    return shown([program, *words], folder, columns=columns)


def _screen(answer: Shown) -> str:
    above = len(answer.lines) - len(answer.visible)
    lines = [
        *answer.lines[:above],
        *(["~" * 20 + " the screen of 24 lines begins here"] if above else []),
        *answer.visible,
    ]
    return "\n".join([f"$ {answer.command}", *lines, f"[exit {answer.exit_status}, {answer.seconds:.1f} s]"])


@contextmanager
def _full(incident: Incident, folder: Path) -> Iterator[Path]:
    """The folder; for the full disks a copy of it on file systems without a free byte, where they can be mounted."""
    with ExitStack() as stack:
        if not isinstance(incident, FullDisk):
            yield folder
            return
        where = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="full-disks-")))
        for source in sorted(folder.glob("node-*")):
            target = where / source.name
            target.mkdir()
            used = int(subprocess.check_output(["du", "-sk", str(source)]).split()[0])
            command = ["mount", "-t", "tmpfs", "-o", f"size={used + 2048}k", "tmpfs", str(target)]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                yield folder
                return
            stack.callback(subprocess.run, ["umount", "-l", str(target)], check=False)
            subprocess.run(["cp", "-a", "--sparse=always", f"{source}/.", str(target)], check=True)
            with suppress(OSError), (target / "orphan.tmp").open("wb", buffering=0) as file:
                while file.write(b"\0" * 4096):  # until no byte is free
                    pass
            stack.callback((target / "orphan.tmp").unlink, missing_ok=True)
        yield where


def diagnoses(program: Path, paths: Sequence[str | Path], cwd: Path) -> list[dict[str, Any]]:
    """The rows of doctor."""
    command = [str(program), "doctor", *map(str, paths), "--format", "jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=600)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(answers: Sequence[Answer]) -> str:
    """The answers as a Markdown table, and their figures."""
    lines = ["| incident | command | | doctor | `--deep` | why |", "| --- | --- | --- | --- | --- | --- |"]
    for each in answers:
        incident = each.incident
        faults = (each.judgement.is_right, each.doctor_fault is None, each.deep_fault is None)
        answered, *said = ("right" if is_right else "WRONG" for is_right in faults)
        why = [str(each.judgement), each.doctor_fault and f"doctor: {each.doctor_fault}"]
        if each.deep_fault != each.doctor_fault and each.deep_fault:
            why.append(f"--deep: {each.deep_fault}")
        if not each.is_seen:
            said = ["", ""]
            why.append(incident.unseen and f"doctor cannot know: {incident.unseen}")
        words = (f"{incident.number} {incident.name}", f"`{each.command}`", answered, *said)
        reasons = "; ".join(filter(None, why)).replace("|", "/")
        lines.append(f"| {' | '.join(words)} | {reasons} |")
    numbers = sorted({each.incident.number for each in answers})
    right = [at for at in numbers if all(each.judgement.is_right for each in answers if each.incident.number == at)]
    by_number = {at: [each for each in answers if each.incident.number == at and each.is_seen] for at in numbers}
    asked = {at: found for at, found in by_number.items() if found}
    named = [at for at, found in asked.items() if not any(each.doctor_fault for each in found)]
    deeply = [at for at, found in asked.items() if not any(each.deep_fault for each in found)]
    false = sum(len(each.judgement.false) for each in answers)
    figures = f"{len(right)} of {len(numbers)} answered by one command; {false} false sentences; "
    figures += f"doctor names the cause of {len(named)} first, with --deep of {len(deeply)}"
    return "\n".join([*lines, "", figures])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, nargs="*", default=[])
    parser.add_argument("--keep", type=Path, help="leave what was built here; what is there already is not built again")
    parser.add_argument("--from", type=Path, dest="source", help="ask what an earlier run kept here")
    parser.add_argument("--kafkalog", type=Path, default=Path(sys.executable).with_name("kafkalog"))
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--screens", type=Path, help="where the screens go [default: DIR/screens]")
    parser.add_argument("--healthy", action="store_true", help="ask healthy directories too")
    parser.add_argument("--build-only", action="store_true")
    options = parser.parse_args()
    chosen = [each for each in INCIDENTS if not options.only or each.number in options.only]
    with tempfile.TemporaryDirectory(prefix="incidents-") as work:
        root = (options.source or options.keep or Path(work) / "kept").absolute()
        built = []
        lab = Lab(options.kafka, Path(work))
        if options.source is None and (missing := lab.missing()) is not None:
            print(missing, file=sys.stderr)
            return 2
        for incident in chosen:
            try:
                if options.source is None:
                    print(f"building {incident.number} {incident.name}", file=sys.stderr, flush=True)
                    build(incident, lab, root)
                if (folder_of(incident, root) / "truth.json").exists():
                    built.append(incident)
            except Exception:
                traceback.print_exc()
                print(f"{incident.number} {incident.name} did not come about", file=sys.stderr)
        if options.healthy and options.source is None:
            build_healthy(lab, root / "healthy")
        if options.build_only:
            return 0
        screens = options.screens or root / "screens"
        screens.mkdir(parents=True, exist_ok=True)
        program = options.kafkalog.absolute()
        answers = [ask(incident, program, root, screens, options.columns) for incident in built]
        text = table(answers)
        print(text)
        if options.healthy:
            said = ask_healthy(program, root / "healthy", screens, lab if options.source is None else None)
            print(said)
            text += f"\n\n{said}"
        (screens / "table.md").write_text(text + "\n")
    return 0 if all(each.judgement.is_right for each in answers) else 1


if __name__ == "__main__":
    sys.exit(main())
