"""What a cell of the matrix gave, as a JSON line, and the table that is made of many."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("results.jsonl")


@dataclass
class Cell:
    """One broker, one thing that happened to its logs, one client: what was compared, and what differed."""

    broker: str
    mode: str
    scenario: str
    client: str
    outcome: str = "judged"  # or "refused": the client cannot speak to the broker; or "failed": no verdict
    note: str = ""
    findings: list[str] = field(default_factory=list)  # warnings and above that the broker's own view does not share
    shared: list[str] = field(default_factory=list)  # those that it shares
    partitions: int = 0  # replicas that were compared
    records: int = 0
    lookups: int = 0
    dumped_files: int = 0
    starts: int = 0  # nodes of which boot predicted the start
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.broker}/{self.mode}/{self.scenario}/{self.client}"

    @property
    def is_right(self) -> bool:
        """Whether nothing was found that the broker does not share, and all that was compared was equal."""
        return self.outcome == "judged" and not self.findings and not self.differences


def append(path: Path, cells: Iterable[Cell]) -> None:
    """Add cells to a results file."""
    with path.open("a", encoding="utf-8") as lines:
        for cell in cells:
            text = json.dumps(asdict(cell), ensure_ascii=False)
            lines.write(text.replace(str(Path.home()), "~") + "\n")


def read(path: Path) -> list[Cell]:
    """The last result of each cell of a results file, in the order of the brokers."""
    found: dict[str, Cell] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        cell = Cell(**json.loads(line))
        found[cell.name] = cell
    return sorted(found.values(), key=lambda each: (_numbers(each.broker), each.mode, each.scenario, each.client))


def tables_of(kind: str) -> str:
    """The table of the recorded results by brokers, scenarios or clients."""
    return {"brokers": table, "scenarios": scenario_table, "clients": client_table}[kind](read(RECORDED))


def record(paths: Iterable[Path]) -> None:
    """Make the recorded results of the last result of each cell in some files."""
    lines = "".join(path.read_text(encoding="utf-8") for path in paths)
    RECORDED.write_text(lines, encoding="utf-8")
    cells = read(RECORDED)
    RECORDED.unlink()
    append(RECORDED, cells)


def _numbers(version: str) -> list[int]:
    return [int(each) for each in version.replace("-", ".").split(".") if each.isdigit()]


def table(cells: list[Cell]) -> str:
    """A line for each broker, as a Markdown table."""
    lines = [
        "| broker | tried | refused | agreed | records |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for broker in dict.fromkeys((each.broker, each.mode) for each in cells):
        chosen = [each for each in cells if (each.broker, each.mode) == broker]
        lines.append(_line(" ".join(broker), chosen))
    judged = [each for each in cells if each.outcome == "judged"]
    lookups, files, starts = (
        sum(getattr(each, name) for each in judged) for name in ("lookups", "dumped_files", "starts")
    )
    compared = f"Compared, too: {lookups:,} look-ups, {files:,} files of dump-log, {starts:,} starts."
    return "\n".join([*lines, _line("all", cells), "", compared])


def _line(name: str, cells: list[Cell]) -> str:
    judged = [each for each in cells if each.outcome == "judged"]
    figures: list[Any] = [
        len(cells),
        sum(each.outcome == "refused" for each in cells),
        sum(each.is_right for each in judged),
        sum(each.records for each in judged),
    ]
    return f"| {name} | " + " | ".join(f"{each:,}" for each in figures) + " |"


def scenario_table(cells: list[Cell]) -> str:
    """A line for each scenario with the brokers on which it ran, and agreed of judged."""
    lines = ["| what happened to the logs | brokers | agreed / cells |", "| --- | --- | ---: |"]
    judged = [each for each in cells if each.outcome == "judged"]
    for scenario in sorted({each.scenario for each in judged}):
        chosen = [each for each in judged if each.scenario == scenario]
        brokers = ", ".join(dict.fromkeys(f"{each.broker}{'' if each.mode == 'KRaft' else ' ZK'}" for each in chosen))
        lines.append(f"| {scenario} | {brokers} | {sum(each.is_right for each in chosen)} / {len(chosen)} |")
    return "\n".join(lines)


def client_table(cells: list[Cell]) -> str:
    """A line for each client with the brokers that took what it wrote."""
    lines = ["| client | brokers | agreed / cells |", "| --- | --- | ---: |"]
    judged = [each for each in cells if each.outcome == "judged"]
    for client in sorted({each.client for each in judged}):
        chosen = [each for each in judged if each.client == client]
        brokers = ", ".join(dict.fromkeys(each.broker for each in chosen))
        lines.append(f"| {client} | {brokers} | {sum(each.is_right for each in chosen)} / {len(chosen)} |")
    return "\n".join(lines)
