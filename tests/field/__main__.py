"""The field corpus: brokers x what happens to logs x clients, each cell rebuilt and judged.

    python -m tests.field --prepare
    python -m tests.field --broker 4.3.1 --scenario clients --output DIR
    python -m tests.field --table DIR/results.jsonl
    python -m tests.field --record DIR/results.jsonl ...

The first fetches and builds the clients. The second runs the cells whose broker, mode (KRaft, ZooKeeper), scenario and
client match the regular expressions; --cell takes all four at once, as 4.3.1/KRaft/clients/sarama. Each result is a
line of DIR/results.jsonl; log directories are kept below DIR with --keep. The third prints the tables. The last keeps
the results in tests/field/results.jsonl, from which `python -m docs.generate` makes the tables of docs/reliability.md.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

from tests.field.clients import Client, prepare
from tests.field.results import append, client_table, read, record, scenario_table, table
from tests.field.scenarios import SCENARIOS
from tests.field.trial import Scenario, Trial
from tests.oracle.kafka_lab import KafkaLab

#: Releases with the modes in which they run here.
BROKERS = {
    "4.3.1": ("KRaft",), "4.2.0": ("KRaft",), "4.1.0": ("KRaft",), "4.0.0": ("KRaft",),
    "3.9.1": ("KRaft", "ZooKeeper"), "3.6.2": ("KRaft", "ZooKeeper"), "3.3.2": ("KRaft",),
    "2.8.2": ("ZooKeeper",), "1.1.1": ("ZooKeeper",), "0.11.0.3": ("ZooKeeper",), "0.10.2.2": ("ZooKeeper",),
    "0.8.2.2": ("ZooKeeper",),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--record", type=Path, nargs="+")
    parser.add_argument("--cell", help="BROKER/MODE/SCENARIO/CLIENT, a regular expression for each")
    parser.add_argument("--broker", default="")
    parser.add_argument("--mode", default="")
    parser.add_argument("--scenario", default="")
    parser.add_argument("--client", default="")
    parser.add_argument("--output", type=Path, default=Path("field"))
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if options.table is not None:
        cells = read(options.table)
        print(table(cells), scenario_table(cells), client_table(cells), sep="\n\n")
        return 0
    if options.record:
        record(options.record)
        return 0
    if options.prepare:
        prepare()
        return 0
    broker, mode, scenario, client = (
        options.cell.split("/") if options.cell else (options.broker, options.mode, options.scenario, options.client)
    )
    options.output.mkdir(parents=True, exist_ok=True)
    is_right = True
    for version, modes in BROKERS.items():
        for each in modes:
            if re.search(broker, version) and re.search(mode, each):
                is_right &= _run(options, version, each, scenario, client)
    return 0 if is_right else 1


def _sharing_a_cluster(scenarios: list[Scenario]) -> list[list[Scenario]]:
    """Scenarios with the same layout follow each other on one cluster."""
    groups: list[list[Scenario]] = []
    for each in scenarios:
        for group in groups:
            if group[0].layout is each.layout and not each.is_alone and not group[0].is_alone:
                group.append(each)
                break
        else:
            groups.append([each])
    return groups


def _run(options: argparse.Namespace, version: str, mode: str, pattern: str, client: str) -> bool:
    lab = KafkaLab()
    missing = lab.missing(version)
    if missing is not None:
        sys.exit(missing)

    def wanted(each: Client) -> bool:
        return re.search(client, each.name) is not None

    trial = Trial(lab, version, mode, options.output.resolve() / "work", wanted)
    is_right = True
    chosen = [each for each in SCENARIOS if re.search(pattern, each.name) and each.fits(version, mode)]
    for group in _sharing_a_cluster(chosen):
        cells = trial.run(group)
        append(options.output / "results.jsonl", cells)
        for cell in cells:
            print(f"{cell.name}: {'agreed' if cell.is_right else cell.outcome}; {cell.records} records, "
                  f"{cell.lookups} look-ups, {cell.dumped_files} files, {cell.seconds} s", flush=True)  # fmt: skip
            for line in [*cell.findings[:8], *cell.differences[:8], *([cell.note] if cell.outcome != "judged" else [])]:
                print(f"    {line}", flush=True)
            is_right &= cell.is_right or cell.outcome == "refused"
        if not options.keep:
            shutil.rmtree(options.output.resolve() / "work", ignore_errors=True)
    return is_right


if __name__ == "__main__":
    sys.exit(main())
