"""Records what all commands print, write and return, and compares two recordings.

    python -m tests.recording record before.jsonl.gz --root ../before    with another checkout's code
    python -m tests.recording record after.jsonl.gz                      with this one's
    python -m tests.recording compare before.jsonl.gz after.jsonl.gz     each difference; 1 where there is one
    python -m tests.recording golden                                     write tests/golden/recording anew

A recording runs over the shared corpora, or those that ship where there are none, and 200 damaged copies of small
partitions. Both recordings of a comparison must come from the same version of this program.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.corpora import REPOSITORY
from tests.recording.compare import differences, groups
from tests.recording.golden import golden_verbs, of_verb, read_golden, write_goldens
from tests.recording.outcomes import read_recording, write_recording
from tests.recording.recorder import ALL_DAMAGED, record, record_small


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recorded = verbs.add_parser("record", help="run all commands and keep what they did")
    recorded.add_argument("output", type=Path)
    recorded.add_argument("--root", type=Path, default=REPOSITORY, help="the checkout whose code runs")
    recorded.add_argument("--damaged", type=int, default=ALL_DAMAGED, help="how many damaged copies")
    compared = verbs.add_parser("compare", help="print the differences of two recordings")
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    compared.add_argument("--grouped", action="store_true", help="differences that are alike once, with their number")
    verbs.add_parser("golden", help="write what the tests compare with anew, and show what changed")
    options = parser.parse_args()
    if options.verb == "golden":
        return _write_goldens()
    if options.verb == "record":
        return _record(options.output, options.root.resolve(), options.damaged)
    return _compare(options.before, options.after, options.grouped)


def _record(output: Path, root: Path, damaged: int) -> int:
    started = time.monotonic()
    recording = record(root, damaged)
    write_recording(output, recording)
    died = [each.line for each in recording.outcomes if each.code is None]
    for line in died:
        print(f"died: {line}")
    size = output.stat().st_size
    print(f"{len(recording.outcomes)} commands in {time.monotonic() - started:.0f} s; {output}: {size} bytes")
    return 1 if died else 0


def _write_goldens() -> int:
    recording = record_small()
    for verb in golden_verbs():
        for _, each in groups(list(differences(read_golden(verb), of_verb(recording, verb)))):
            print(each)
    for path in write_goldens(recording):
        print(f"written: {path.relative_to(REPOSITORY)}, {path.stat().st_size} bytes")
    return 0


def _compare(before: Path, after: Path, is_grouped: bool) -> int:
    first, second = read_recording(before), read_recording(after)
    if first.about != second.about:
        print(f"recorded with {first.about} and with {second.about}")
    found = list(differences(first, second))
    if is_grouped:
        for number, each in groups(found):
            print(f"{number} times, such as {each}")
    else:
        for each in found:
            print(each)
    print(f"{len(first.outcomes)} and {len(second.outcomes)} commands, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
