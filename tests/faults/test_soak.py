"""A short soak in every run that has a broker; the long one is ``python -m tests.faults.soak --minutes 60``."""

from __future__ import annotations

import os

import pytest

from tests.conftest import unavailable
from tests.faults.soak import missing, soak
from tests.ports import lab_ports

SECONDS = float(os.environ.get("KAFKALOG_SOAK_SECONDS", "15"))


@pytest.mark.oracle
@pytest.mark.slow
def test_an_appending_broker_is_never_called_corrupt() -> None:
    with lab_ports():
        reason = missing()
        if reason is not None:
            unavailable(reason)
        soaked = soak(SECONDS)
    assert soaked.scans > 3
    assert not soaked.has_failed, soaked.describe()
