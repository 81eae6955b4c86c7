"""The quick look at the end of a closed segment gives the steps, findings and answers of the header scan."""

from __future__ import annotations

from pathlib import Path

import pytest

from format import layout
from format.verbs.find import time_index_lookup
from tests.format.verbs.find.lookup_logs import batch_of, write_indexed
from tests.format.verbs.find.lookups import Seen, by_max, by_time

pytestmark = pytest.mark.slow

_NEWEST = 1_000_000


def closed_segments(partition: Path) -> Path:
    """Two closed segments whose timestamps rise, and an active one; the log of the first is returned."""
    for first in (0, 8, 16):
        batches = [
            batch_of([(offset, 1000 + offset)], base_offset=offset, last_offset=offset, value=b"x" * 60)
            for offset in range(first, first + 8)
        ]
        write_indexed(partition, first, batches, interval_bytes=180, is_closed=first < 16)
    return partition / f"{0:020d}{layout.LOG_SUFFIX}"


def shown(lookup: Seen) -> str:
    return f"{lookup.steps} {lookup.findings} {lookup.found}"


def test_a_sound_end_needs_no_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed_segments(tmp_path / "topic-0")
    answers: list[bool] = []
    look = time_index_lookup.confirms_last_entry

    def spied(*values: object) -> bool:
        answers.append(look(*values))  # type: ignore[arg-type]
        return answers[-1]

    monkeypatch.setattr(time_index_lookup, "confirms_last_entry", spied)
    assert by_max(tmp_path / "topic-0").answer == (23, 1023)
    assert answers[:2] == [True, True]


def test_every_byte_of_the_last_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever byte of the last three headers is changed or cut off, both give the same."""
    log = closed_segments(tmp_path / "topic-0")
    content = log.read_bytes()
    size_bytes = len(content) // 8
    changed = [
        content[:at] + bytes((content[at] ^ bits,)) + content[at + 1 :]
        for batch in (5, 6, 7)
        for at in range(batch * size_bytes, batch * size_bytes + layout.RECORD_BATCH.size_bytes)
        for bits in (0x01, 0x80)
    ]
    for each in (content, *changed, content[:-1], content[: -size_bytes + 30], content + content[-size_bytes:]):
        log.write_bytes(each)
        quick = [shown(by_max(log.parent)), shown(by_time(log.parent, _NEWEST))]
        with monkeypatch.context() as patched:
            patched.setattr(time_index_lookup, "confirms_last_entry", lambda *values: False)
            assert [shown(by_max(log.parent)), shown(by_time(log.parent, _NEWEST))] == quick
