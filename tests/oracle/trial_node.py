"""A node that a release wrote, for the trials of boot against that release.

    python -m tests.oracle.trial_node --kafka 3.9.1 --output DIR

starts a broker on an empty log directory, fills it as the shared corpus was filled, and stops it. DIR/node-1 is then
the ``--node`` of ``python -m tests.oracle.boot_trials --kafka 3.9.1``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.corpora import SHARED, present
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

#: As the corpus was written: many metadata snapshots, a cleaner that works at once.
_SETTINGS = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.retention.check.interval.ms": "5000",
    "metadata.log.max.record.bytes.between.snapshots": "4096",
    "metadata.max.idle.interval.ms": "100",
}


def written_node(
    lab: KafkaLab, version: str, target: Path, *, scale: float = 0.05, python: str = sys.executable
) -> Path:
    """Write the log directory of a node below ``target``, and return it; it was stopped cleanly."""
    log_dir = target / "node-1"
    log_dir.mkdir(parents=True)
    script = present(SHARED / "kafka-lab" / "generate_corpus.py")
    with tempfile.TemporaryDirectory(prefix="trial-node-") as scratch:
        with Broker(lab, version, log_dir, Path(scratch) / "work", _SETTINGS) as broker:
            words = ["--bootstrap", broker.address, "--out", str(target), "--scale", str(scale)]
            subprocess.run([python, str(script), *words], check=True, timeout=1200)
        (log_dir / ".lock").unlink(missing_ok=True)
    return log_dir


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="3.9.1")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--python", default=sys.executable, help="a Python that has the clients, see tests.field")
    options = parser.parse_args()
    lab = KafkaLab()
    missing = lab.missing(options.kafka)
    if missing is not None:
        print(missing, file=sys.stderr)
        return 2
    try:
        print(written_node(lab, options.kafka, options.output, scale=options.scale, python=options.python))
    except BaseException:
        shutil.rmtree(options.output / "node-1", ignore_errors=True)
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
