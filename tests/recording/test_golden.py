"""What a few commands do is what the golden recording says that they do.

Where it changes on purpose, ``python -m tests.recording golden`` writes the recording anew and shows each change.
"""

from __future__ import annotations

import pytest

from tests.recording.compare import differences
from tests.recording.golden import golden_verbs, of_verb, read_golden, verbs_of
from tests.recording.outcomes import Recording
from tests.recording.recorder import record_small


@pytest.fixture(scope="module")
def recording() -> Recording:
    return record_small()


@pytest.mark.parametrize("verb", golden_verbs())
def test_a_verb_does_what_was_recorded(verb: str, recording: Recording) -> None:
    found = list(differences(read_golden(verb), of_verb(recording, verb)))
    shown = "\n".join(str(each) for each in found[:20])
    assert not found, f"{len(found)} differences; python -m tests.recording golden if they are meant\n{shown}"


def test_every_recorded_verb_has_a_golden(recording: Recording) -> None:
    assert verbs_of(recording) == golden_verbs()
