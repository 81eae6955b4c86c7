"""Look-ups in damaged logs: why an offset is not found, and where a time is looked for."""

from __future__ import annotations

import struct
from pathlib import Path

from format.findings import Finding
from format.log.encode_batches import reseal
from format.verbs.find.find import find_offset, partition_to_search
from format.verbs.verify.verify import verify
from tests.building import BASE_TIMESTAMP, batch, wrapper, write_segment
from tests.format.verbs.find.lookups import batch_of, by_max, by_offset, by_time, write_checkpoint, write_indexed


def test_an_offset_in_a_batch_out_of_order(tmp_path: Path) -> None:
    sound = [batch(number * 3, key=None) for number in range(10)]
    write_segment(tmp_path / "t-0", 0, [*sound[:2], b"x" * 300, *sound[7:], sound[4]])
    assert by_offset(tmp_path / "t-0", 13).reason == (
        "offset 13 is in a batch out of order, where a broker does not look for it; the next record is at offset 21"
    )
    assert by_offset(tmp_path / "t-0", 7).reason.startswith("offset 7 is lost: ")
    assert by_offset(tmp_path / "t-0", 28).offset == 28


def test_an_offset_of_a_batch_with_a_wrong_crc(tmp_path: Path) -> None:
    """The offsets of its records are damaged too: the one that is sought is not among them."""
    damaged = bytearray(batch(3, [b"a", b"b"], last_offset_delta=1))
    damaged[61 + 3] = 2  # the first record's offset delta, a varint: 1 and not 0
    write_segment(tmp_path / "t-0", 0, [batch(0), bytes(damaged), batch(5)])
    lookup = by_offset(tmp_path / "t-0", 3)
    assert lookup.codes == ["batch-crc-mismatch"]
    assert "offsets 3 to 4 should hold offset 3 and cannot be read" in lookup.reason


def test_an_offset_in_a_batch_of_an_unknown_codec_is_not_said_to_be_damaged(tmp_path: Path) -> None:
    """A later release may read it."""
    unknown = bytearray(batch(3))
    unknown[22] = 5  # the low byte of the attributes
    write_segment(tmp_path / "t-0", 0, [batch(0), reseal(bytes(unknown)), batch(6)])
    found = find_offset(partition_to_search(tmp_path / "t-0"), 4)
    assert [each.code for each in found.findings] == ["codec-unknown"]
    assert found.answer is not None
    assert found.answer.visibility is None


def test_an_offset_of_a_compressed_message_with_a_wrong_crc(tmp_path: Path) -> None:
    """Its header has only its last offset: that it lost no more would be wrong."""
    damaged = bytearray(wrapper(1, 3))
    damaged[40] ^= 1
    write_segment(tmp_path / "t-0", 0, [wrapper(1, 0), bytes(damaged), wrapper(1, 6)])
    [found] = find_offset(partition_to_search(tmp_path / "t-0"), 4).findings
    assert (found.code, found.lost_offsets) == ("batch-crc-mismatch", None)
    assert "its offsets cannot be trusted" in found.message


def test_an_offset_in_a_batch_of_the_segment_before(tmp_path: Path) -> None:
    sound = [batch(number * 3) for number in range(6)]
    write_segment(tmp_path / "t-0", 0, [*sound[:3], sound[4]])
    write_segment(tmp_path / "t-0", 9, [sound[3], sound[5]])
    lookup = by_offset(tmp_path / "t-0", 12)
    assert lookup.codes == ["offset-out-of-segment"]
    assert lookup.reason.startswith(
        "offset 12 is in a batch in segment 0, where a broker does not look for it; the next"
    )
    write_segment(tmp_path / "v-0", 0, [sound[0], sound[4]])
    write_segment(tmp_path / "v-0", 3, [sound[1], sound[2]])
    write_segment(tmp_path / "v-0", 9, [sound[3], sound[5]])
    assert by_offset(tmp_path / "v-0", 12).reason.startswith("offset 12 is in a batch in segment 0, where a")
    write_segment(tmp_path / "u-0", 0, sound[:3])
    write_segment(tmp_path / "u-0", 9, [sound[3], sound[5]])
    absent = by_offset(tmp_path / "u-0", 12)
    assert not absent.codes
    assert absent.reason.startswith("offset 12 is not in the log: compacted, or never written")


def test_a_time_past_an_emptied_segment_with_a_time_index_entry(tmp_path: Path) -> None:
    """A broker goes by the entry, not by the time when the file was changed, and looks on in the next segment."""
    write_indexed(tmp_path / "t-0", 0, [batch(0)]).write_bytes(b"")
    write_indexed(tmp_path / "t-0", 5, [batch(5)])
    lookup = by_time(tmp_path / "t-0", BASE_TIMESTAMP + 5)
    assert lookup.answer == (5, BASE_TIMESTAMP + 5)
    assert "time-index-mismatch" in lookup.codes
    assert "looks no further than segment 0" in by_time(tmp_path / "t-0", BASE_TIMESTAMP + 2).reason


def test_an_offset_in_a_swap_that_a_start_completes(tmp_path: Path) -> None:
    """A 4.3.1 broker served it after the start: it is not below the log start offset."""
    log = write_indexed(tmp_path / "t-0", 0, [batch(0)])
    log.rename(f"{log}.swap")
    write_indexed(tmp_path / "t-0", 3, [batch(3)])
    lookup = by_offset(tmp_path / "t-0", 1)
    assert (lookup.offset, lookup.codes) == (1, [])


def test_a_time_in_a_closed_segment_whose_time_index_ends_in_zeros(tmp_path: Path) -> None:
    """After a clean stop 4.3.1 took the zeros for the largest time, and answered with the next segment.

    It did so after a crash, too, if the segment ends at the recovery point or before: its start checks no such segment.
    Without the file, it answered with nothing, unless the .index was missing, too.
    """
    index = write_indexed(tmp_path / "t-0", 0, [batch(0)]).with_suffix(".timeindex")
    write_indexed(tmp_path / "t-0", 3, [batch(3)])
    index.write_bytes(index.read_bytes() + bytes(24))
    assert (by_time(tmp_path / "t-0", BASE_TIMESTAMP + 1).codes) == []
    (tmp_path / ".kafka_cleanshutdown").touch()
    lookup = by_time(tmp_path / "t-0", BASE_TIMESTAMP + 1)
    assert (lookup.offset, lookup.codes) == (1, ["time-index-mismatch"])
    (tmp_path / ".kafka_cleanshutdown").unlink()
    write_checkpoint(tmp_path, "recovery-point-offset-checkpoint", "t", 0, 2)
    assert (by_time(tmp_path / "t-0", BASE_TIMESTAMP + 1).codes) == []
    write_checkpoint(tmp_path, "recovery-point-offset-checkpoint", "t", 0, 3)
    assert (by_time(tmp_path / "t-0", BASE_TIMESTAMP + 1).codes) == ["time-index-mismatch"]
    index.unlink()
    lookup = by_time(tmp_path / "t-0", BASE_TIMESTAMP + 4)
    assert (lookup.offset, lookup.codes) == (4, ["index-missing"])
    index.with_suffix(".index").unlink()
    assert by_time(tmp_path / "t-0", BASE_TIMESTAMP + 4).codes == []


def test_an_offset_behind_damage_that_ends_the_search_of_a_broker(tmp_path: Path) -> None:
    """4.3.1 and 3.9.1 answer a fetch of it with CORRUPT_MESSAGE, but hop over a wrong magic byte."""
    sound = [batch(number * 3) for number in range(6)]
    zeros, magic = bytes(len(sound[1])), bytearray(sound[1])
    magic[16] = 77
    write_segment(tmp_path / "t-0", 0, [sound[0], zeros, *sound[2:]])
    write_segment(tmp_path / "u-0", 0, [sound[0], bytes(magic), *sound[2:]])
    match = by_offset(tmp_path / "t-0", 7).match
    assert (match.location.offset, match.visibility) == (7, "damaged")
    assert match.note == f"behind the damage at position {len(sound[0])}, where a broker's search for it ends"
    assert by_offset(tmp_path / "t-0", 0).match.visibility == "visible"
    assert by_offset(tmp_path / "u-0", 7).match.visibility == "visible"


def test_an_offset_in_the_batch_before_damage(tmp_path: Path) -> None:
    """4.1.1 and 4.3.1 read the damaged header, too, unless the offset is the batch's first; 4.0.0 and 3.9.1 do not."""
    sound = [batch(number * 3) for number in range(6)]
    write_segment(tmp_path / "t-0", 0, [sound[0], bytes(len(sound[1])), *sound[2:]])
    assert by_offset(tmp_path / "t-0", 0).match.visibility == "visible"
    for offset in (1, 2):
        match = by_offset(tmp_path / "t-0", offset).match
        assert (match.location.offset, match.visibility) == (offset, "damaged")
        assert match.note == (
            f"right before the damage at position {len(sound[0])}, which a broker's search for it reads, too, from 4.1 "
            "on: earlier releases return it"
        )


def test_an_offset_behind_a_batch_with_a_wrong_last_offset(tmp_path: Path) -> None:
    """3.9.1 and 4.0.0 take that batch for the one with the offset; 4.1.1 and 4.3.1 go by the first offsets."""
    sound = [batch(number * 3) for number in range(4)]
    damaged = bytearray(sound[1])
    damaged[25] = 1
    write_segment(tmp_path / "t-0", 0, [sound[0], bytes(damaged), *sound[2:]])
    match = by_offset(tmp_path / "t-0", 7).match
    assert match.visibility == "damaged"
    assert match.note.endswith("to 261, where a broker's search for it ends, up to 4.0: later releases return it")
    assert by_offset(tmp_path / "t-0", 1).match.visibility == "visible"


def test_times_in_an_active_segment_whose_time_index_is_cut(tmp_path: Path) -> None:
    """After a clean stop the index of the active segment stays, too: 4.3.1 looked no further, or in the one before."""
    write_indexed(tmp_path / "t-0", 0, [batch(0)])
    index = write_indexed(tmp_path / "t-0", 3, [batch(3), batch(6)], interval_bytes=1).with_suffix(".timeindex")
    content = index.read_bytes()
    assert by_time(tmp_path / "t-0", BASE_TIMESTAMP + 4).codes == []
    for left, codes in ((content, []), (content[:2], ["time-index-mismatch"]), (content[:-12] + bytes(12), ["time-"])):
        index.write_bytes(left)
        (tmp_path / ".kafka_cleanshutdown").touch()
        assert by_max(tmp_path / "t-0").offset == 8
        assert [each[: len(code)] for each, code in zip(by_max(tmp_path / "t-0").codes, codes, strict=True)] == codes
        (tmp_path / ".kafka_cleanshutdown").unlink()


def test_an_offset_between_batches_that_leads_to_damage(tmp_path: Path) -> None:
    """Consumers get the next batch, here one with a wrong CRC: it is not only compacted."""
    damaged = bytearray(batch(9))
    damaged[-1] ^= 1
    write_segment(tmp_path / "t-0", 0, [batch(0), bytes(damaged), batch(12)])
    lookup = by_offset(tmp_path / "t-0", 5)
    assert lookup.found.visibility == "damaged"
    assert lookup.reason == (
        "offset 5 is not in the log, and the batch of the next record has a wrong CRC; the next record is at offset 9"
    )
    damaged = bytearray(batch(9))
    damaged[26] = 3  # its last offset delta
    emptied = batch_of([(3, 0)], base_offset=3, last_offset=8)
    write_segment(tmp_path / "v-0", 0, [batch(0), emptied, bytes(damaged), batch(12)])
    lookup = by_offset(tmp_path / "v-0", 5)
    assert lookup.found.visibility == "damaged"
    assert "with offsets 9 to 12, which a broker returns, cannot be read; the next record is at" in lookup.reason
    index = write_indexed(tmp_path / "u-0", 0, [batch(0), batch(9), batch(12)]).with_suffix(".index")
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert by_offset(tmp_path / "u-0", 5).found.visibility == "compacted"
    index.write_bytes(struct.pack(">ii", 4, 2 * len(batch(0))))
    lookup = by_offset(tmp_path / "u-0", 5)
    assert lookup.found.visibility == "damaged"
    assert "the next record is not where a wrong index entry leads a broker's search for it, position " in lookup.reason
    assert lookup.reason.endswith("; the next record is at offset 9")


def test_an_offset_behind_a_batch_out_of_order(tmp_path: Path) -> None:
    """Consumers of 4.3.1 and 3.9.1 get the batch out of order, and then what lies past it."""
    sound = [batch(number * 3) for number in range(6)]
    write_segment(tmp_path / "t-0", 0, [sound[0], sound[2], sound[1], *sound[3:]])
    match = by_offset(tmp_path / "t-0", 4).match
    assert (match.location.offset, match.visibility) == (4, "damaged")
    assert match.note.endswith("with offsets 6 to 8, where a broker's search for it ends")
    assert by_offset(tmp_path / "t-0", 6).match.visibility == "visible"
    far = batch(5000)
    write_segment(tmp_path / "u-0", 0, [*sound[:2], far, *sound[3:]])
    lookup = by_offset(tmp_path / "u-0", 7)
    assert lookup.reason == (
        f"offset 7 is not in the log, and the batch at position {2 * len(far)} with offsets 5000 to 5002, which a "
        "broker finds, is out of order; the next record is at offset 5000"
    )
    assert by_offset(tmp_path / "u-0", 9).match.visibility == "damaged"


def test_a_time_behind_damage_of_the_segment_that_reaches_it(tmp_path: Path) -> None:
    """4.3.1 and 3.9.1 answer with an error, and look into no other segment."""
    sound = [batch(number * 3) for number in range(6)]
    log = write_indexed(tmp_path / "t-0", 0, sound[:2])
    write_indexed(tmp_path / "t-0", 6, sound[2:])
    log.write_bytes(sound[0] + bytes(len(sound[1])))
    lookup = by_time(tmp_path / "t-0", BASE_TIMESTAMP + 4)
    assert lookup.codes == ["log-truncated"]
    assert lookup.reason.startswith(
        f"a broker looks no further than segment 0, where the damage at position {len(sound[0])} cannot be read: the "
    )
    assert lookup.reason.endswith("the next one is at offset 6")
    assert by_time(tmp_path / "t-0", BASE_TIMESTAMP + 2).offset == 2
    log.write_bytes(bytes(len(sound[0])) + sound[1])
    behind = by_time(tmp_path / "t-0", BASE_TIMESTAMP + 4)
    assert behind.reason.endswith("the next one is at offset 4")
    magic = bytearray(sound[0])
    magic[16] = 77
    log.write_bytes(magic + sound[1])
    assert by_time(tmp_path / "t-0", BASE_TIMESTAMP + 4).offset == 4
    assert by_time(tmp_path / "t-0", BASE_TIMESTAMP + 2).reason.endswith("the next one is at offset 3")
    index = log.with_suffix(".timeindex").read_bytes()
    log.with_suffix(".timeindex").write_bytes(index[:-12] + (BASE_TIMESTAMP + 9000).to_bytes(8, "big") + index[-4:])
    assert "time-index-mismatch" in by_time(tmp_path / "t-0", BASE_TIMESTAMP + 9).codes


def test_the_largest_timestamp_behind_damage(tmp_path: Path) -> None:
    sound = [batch(number * 3) for number in range(4)]
    log = write_indexed(tmp_path / "t-0", 0, sound)
    log.write_bytes(b"".join(sound[:3]) + bytes(len(sound[3])))
    write_indexed(tmp_path / "t-0", 12, [])
    lookup = by_max(tmp_path / "t-0")
    assert lookup.codes == ["log-truncated"]
    assert lookup.reason.endswith(f"only, and comes to the damage at position {3 * len(sound[0])} first")
    magic = bytearray(sound[3])
    magic[16] = 77
    log.write_bytes(b"".join(sound[:3]) + magic)
    assert by_max(tmp_path / "t-0").reason.endswith("answers with offset 11, in a batch that consumers cannot read")


def test_an_offset_that_a_wrong_index_entry_hides(tmp_path: Path) -> None:
    """4.3.1 and 3.9.1 serve what comes after that position, if anything, unless a start builds the index again."""
    sound = [batch(number * 3) for number in range(6)]
    log = write_indexed(tmp_path / "t-0", 0, sound)
    log.with_suffix(".index").write_bytes(struct.pack(">ii", 5, 4 * len(sound[0])))
    assert by_offset(tmp_path / "t-0", 7).match.visibility == "visible"
    (tmp_path / ".kafka_cleanshutdown").touch()
    match = by_offset(tmp_path / "t-0", 7).match
    assert (match.location.offset, match.visibility) == (7, "damaged")
    where = f"position {4 * len(sound[0])}"
    assert match.note == f"not where a wrong index entry leads a broker's search for it, {where}"
    assert by_offset(tmp_path / "t-0", 4).match.visibility == "visible"
    assert by_offset(tmp_path / "t-0", 16).match.visibility == "visible"
    log.with_suffix(".index").write_bytes(struct.pack(">ii", 5, 2 * len(sound[0]) + 7))
    assert by_offset(tmp_path / "t-0", 16).match.visibility == "damaged"


def test_the_log_end_that_a_wrong_last_index_entry_gives(tmp_path: Path) -> None:
    """After a clean stop, 4.3.1 took offset 0 for the log end and served nothing."""
    sound = [batch(number * 3) for number in range(6)]
    index = write_indexed(tmp_path / "t-0", 0, sound).with_suffix(".index")
    index.write_bytes(struct.pack(">ii", 17, 6 * len(sound[0])))
    assert by_offset(tmp_path / "t-0", 4).match.visibility == "visible"
    (tmp_path / ".kafka_cleanshutdown").touch()
    match = by_offset(tmp_path / "t-0", 4).match
    assert match.visibility == "damaged"
    assert match.note == "past offset 0, which a broker takes for the log end, misled by the last entry of the .index"
    assert by_time(tmp_path / "t-0", BASE_TIMESTAMP).reason.startswith("a broker does not return offset 0, which is pa")
    assert by_max(tmp_path / "t-0").offset is None
    assert by_max(tmp_path / "t-0", past_high_watermark=True).offset == 17
    index.write_bytes(struct.pack(">ii", 17, 5 * len(sound[0])))
    assert by_offset(tmp_path / "t-0", 4).match.visibility == "visible"


def test_an_empty_time_index_that_a_start_builds_again(tmp_path: Path) -> None:
    """Of a segment past the recovery point, after a crash; else it stays empty."""
    index = write_indexed(tmp_path / "t-0", 0, [batch(0)]).with_suffix(".timeindex")
    write_indexed(tmp_path / "t-0", 3, [batch(3)])
    index.write_bytes(b"")
    for recovery_point, codes in ((2, []), (3, ["time-index-mismatch"])):
        write_checkpoint(tmp_path, "recovery-point-offset-checkpoint", "t", 0, recovery_point)
        assert by_time(tmp_path / "t-0", BASE_TIMESTAMP + 1).codes == codes
        found = [each for each in verify(tmp_path / "t-0") if isinstance(each, Finding)]
        assert [each.code for each in found if each.code == "time-index-mismatch"] == codes


def test_an_offset_in_a_segment_that_a_start_recovers(tmp_path: Path) -> None:
    """It is there, and damage before it, which a look-up does not see, may cost it at the next start."""
    for first in (0, 10, 20):
        write_indexed(tmp_path / "topic-0", first, [batch(first)])
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 23)
    assert by_offset(tmp_path / "topic-0", 21).match.unsure == ""  # nothing is known of a stop
    write_checkpoint(tmp_path, "recovery-point-offset-checkpoint", "topic", 0, 10)
    assert by_offset(tmp_path / "topic-0", 1).match.unsure == ""
    words = "if a start keeps it: no clean stop is marked here, so that a start cuts this segment at its first damage"
    assert by_offset(tmp_path / "topic-0", 21).match.unsure.startswith(words)
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert by_offset(tmp_path / "topic-0", 21).match.unsure == ""
