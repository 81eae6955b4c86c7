"""Effects of damage name the damage: a gap of sequences behind a batch with a wrong CRC, and only that one."""

from __future__ import annotations

from pathlib import Path

from format.findings import Finding
from format.rows.finding_json import finding_as_json, finding_from_json
from format.verbs.verify.verify import verify
from tests.building import batch, write_segment


def sent(base_offset: int, producer_id: int, base_sequence: int) -> bytes:
    return batch(base_offset, producer_id=producer_id, producer_epoch=0, base_sequence=base_sequence)


def gaps_of(partition: Path) -> list[Finding]:
    return [each for each in verify(partition) if isinstance(each, Finding) and each.code == "sequence-gap"]


def test_a_gap_behind_a_damaged_batch_names_it(tmp_path: Path) -> None:
    """Producer 7 lost its batch at offset 3. Producer 8 wrote nothing there: its gap is one of its own."""
    content = [sent(0, 7, 0), sent(3, 7, 3), sent(6, 8, 0), sent(9, 7, 6), sent(12, 8, 9)]
    content[1] = content[1][:-1] + bytes([content[1][-1] ^ 1])
    partition = write_segment(tmp_path / "t-0", 0, content).parent
    log = partition / f"{0:020d}.log"
    effect, own = gaps_of(partition)
    assert effect.location.offset == 9
    assert effect.caused_by is not None
    assert effect.caused_by.as_json() == {
        "code": "batch-crc-mismatch",
        "path": str(log),
        "position": len(content[0]),
        "offset": 3,
    }
    assert effect.next_step == "None of its own: see the damage that it follows from."
    assert finding_from_json(finding_as_json(effect)) == effect
    assert (own.location.offset, own.caused_by) == (12, None)
    assert "Look for lost" in own.next_step


def test_damage_in_an_earlier_segment_is_a_cause(tmp_path: Path) -> None:
    lost = sent(3, 7, 3)
    write_segment(tmp_path / "t-0", 0, [sent(0, 7, 0), lost[:-1] + bytes([lost[-1] ^ 1])])
    partition = write_segment(tmp_path / "t-0", 6, [sent(6, 7, 6)]).parent
    (effect,) = gaps_of(partition)
    assert effect.caused_by is not None
    assert effect.caused_by.path == str(partition / f"{0:020d}.log")
