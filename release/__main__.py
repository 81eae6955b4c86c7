"""``python -m release`` makes all that a release consists of, below ``dist``; with names of steps, only these.

Everything is made from the committed state, in environments of its own, and comes out the same byte for byte when it is
made again on the same platform with the same versions of the tools. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from release.artifacts import Workplace, bill_of_materials, site, source_distribution, standalone, wheel
from tests.corpora import REPOSITORY

SUMS = "SHA256SUMS"


def checksums(place: Workplace) -> None:
    """``SHA256SUMS`` of everything that was made."""
    made = [each for each in sorted(place.output.iterdir()) if each.is_file() and each.name != SUMS]
    lines = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in made]
    (place.output / SUMS).write_text("".join(lines))


STEPS: dict[str, Callable[[Workplace], None]] = {
    "source": source_distribution,
    "wheel": wheel,
    "standalone": standalone,
    "bill-of-materials": bill_of_materials,
    "site": site,
    "checksums": checksums,
}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__.partition("\n")[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"one or more of {', '.join(STEPS)}; by default all")
    parser.add_argument(
        "--output", type=Path, default=REPOSITORY / "dist", help="the folder to write to, by default dist"
    )
    options = parser.parse_args(words)
    unknown = [name for name in options.steps if name not in STEPS]
    if unknown:
        parser.error(f"no such step: {', '.join(unknown)}; there are {', '.join(STEPS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kafkalog-release-") as scratch:
        place = Workplace(Path(scratch), options.output.resolve())
        for name in options.steps or STEPS:
            print(f"== {name}", flush=True)
            STEPS[name](place)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
