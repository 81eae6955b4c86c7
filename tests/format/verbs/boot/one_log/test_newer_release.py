"""What a release does not know of the metadata that a later one wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.verbs.boot.boot import boot
from format.verbs.boot.quorum import check_feature, check_records
from format.verbs.boot.steps import Action, BootTerms, StopsStart
from tests.corpora import DATA_DIR

pytestmark = pytest.mark.slow

NODE = DATA_DIR / "trials" / "metadata-4.4" / "node-1"
LOG = NODE / "__cluster_metadata-0" / "00000000000000000000.log"


def _check(version: tuple[int, int]) -> None:
    check_records(LOG, LOG.stat().st_size, 0, BootTerms(version=version))


def test_a_node_of_4_4_starts_with_4_4_alone() -> None:
    """As 4.4.0 and 4.3.1 did: the record is read before the level of metadata.version is applied."""
    assert not boot([NODE], BootTerms(version=(4, 4))).is_refused
    (step,) = boot([NODE], BootTerms(version=(4, 3))).having(Action.REFUSE)
    assert step.broker_message == "Unknown metadata id 29"


@pytest.mark.parametrize("version", [(3, 9), (4, 0), (4, 1), (4, 2), (4, 3)])
def test_a_record_type_of_a_later_release(version: tuple[int, int]) -> None:
    _check((4, 4))
    with pytest.raises(StopsStart) as stopped:
        _check(version)
    assert stopped.value.text is not None
    expected = "Failed to deserialize record with type" if version < (4, 3) else "Unknown metadata id 29"
    assert stopped.value.text.startswith(expected)


@pytest.mark.parametrize(
    ("name", "level", "version", "is_known"),
    [
        ("share.version", 2, (4, 4), True),
        ("share.version", 2, (4, 3), False),
        ("share.version", 1, (4, 1), True),
        ("share.version", 1, (4, 0), False),
        ("transaction.version", 2, (4, 0), True),
        ("transaction.version", 3, (4, 4), False),
        ("streams.version", 1, (4, 1), False),
        ("metadata.version", 33, (4, 4), True),
        ("metadata.version", 34, (4, 4), False),
        ("metadata.version", 31, (4, 3), False),
        ("no.such.version", 0, (4, 4), True),
        ("no.such.version", 1, (4, 4), False),
    ],
)
def test_levels_of_features(name: str, level: int, version: tuple[int, int], is_known: bool) -> None:
    """As Kafka's class Feature has them in the releases."""
    if is_known:
        check_feature(name, level, Path("log"), 0, BootTerms(version=version))
    else:
        with pytest.raises(StopsStart):
            check_feature(name, level, Path("log"), 0, BootTerms(version=version))
