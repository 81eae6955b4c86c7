"""The selection of the field corpus that ships: partitions of finished trials, and what clients saw of them.

    python -m tests.field.shipped DIR/work/4.3.1-KRaft-clients NAME from-sarama from-kafkajs

copies the files of the log directories and these topics to tests/_data/field/NAME, with their truth.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.corpora import DATA_DIR
from tests.field.judge import Seen

FOLDER = DATA_DIR / "field"
TRUTH = "truth.json.gz"


def selections() -> Iterator[tuple[str, list[list[Path]], Seen]]:
    """Each selection that ships: its name, the log directories of each node, and what clients saw."""
    for folder in sorted(FOLDER.iterdir()):
        if not folder.is_dir():
            continue
        nodes: dict[str, list[Path]] = {}
        for each in sorted(folder.glob("node-*-*")):
            nodes.setdefault(each.name.split("-")[1], []).append(each)
        yield folder.name, list(nodes.values()), Seen.load(folder / TRUTH)


def ship(trial: Path, name: str, topics: list[str]) -> None:
    """Copy topics of a trial that was kept."""
    target = FOLDER / name
    seen = Seen.load(trial / TRUTH)
    chosen = {place for place in seen.places if place.rpartition("-")[0] in topics}
    for log_dir in sorted((trial / "evidence").iterdir()):
        (target / log_dir.name).mkdir(parents=True)
        for each in sorted(log_dir.iterdir()):
            if each.is_file():
                shutil.copy2(each, target / log_dir.name)
            elif each.name in chosen:
                shutil.copytree(each, target / log_dir.name / each.name)
    records = {place: rows for place, rows in seen.records.items() if place in chosen}
    places = {place: seen.places[place] for place in sorted(chosen)}
    replace(seen, places=places, records=records).save(target / TRUTH)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", type=Path)
    parser.add_argument("name")
    parser.add_argument("topics", nargs="+")
    given = parser.parse_args()
    ship(given.trial, given.name, given.topics)
