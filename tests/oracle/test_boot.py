"""boot held against a real broker: a sample of the trials; ``python -m tests.oracle.boot_trials`` runs all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.boot_mutations.table import mutations
from tests.oracle.boot_trials import Trials
from tests.oracle.kafka_lab import KafkaLab

pytestmark = [pytest.mark.oracle]

VERSION = "4.3.1"
SAMPLE = (
    "untouched/unclean",
    "directory-names/dir 'lost+found'",
    "two-directories/same partition",
    "two-directories/partition moved, its epochs garbage",
    "partition-metadata/empty",
    "partition-metadata/foreign id",
    "tails/2 payments-0 cut unclean",
    "middles/13 users-0 zero-batch point zero unclean",
    "indexes/index active past the end clean",
    "leftovers/swap of the first segment",
    "metadata-logs/newest snapshot zeroed",
    "metadata-logs/directory missing",
    "missing/partition users-0",
    "segment-files/log is a pipe",
    "log-starts/1265 clean",
)


@pytest.fixture(scope="module")
def trials(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    """Brokers on copies of the node that ships with the tests."""
    lab = KafkaLab()
    missing = lab.missing(VERSION) or (None if lab.logging_jars() else "no logger for Kafka 4.3.1: fetch a 3.x release")
    if missing is not None:
        from tests.conftest import unavailable

        unavailable(missing)
    return Trials(lab, VERSION, data_dir / "kafka-4.3-single" / "node-1", tmp_path_factory.mktemp("boot"))


def test_the_sample_is_of_the_trials() -> None:
    assert set(SAMPLE) <= {str(each) for each in mutations()}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_broker_does_what_boot_says(trials: Trials, name: str) -> None:
    mutation = next(each for each in mutations() if str(each) == name)
    result = trials.compared(mutation)
    assert result.predicted == result.outcome
    assert not result.differences
