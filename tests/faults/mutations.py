"""Structure-aware mutations: logs and side files that are wrong in one place, deep down, under a CRC that is right.

Everything comes from a ``random.Random``, so that a case is known by its seed and number. Plain random numbers and
not Hypothesis: there is nothing to shrink that a case's few operations do not show, and the generator makes many more
cases a second.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random

from msgspec.structs import replace

from format import layout
from format.codecs import compress
from format.files import offset_index, time_index, transaction_index
from format.internal_topics.decoder import INTERNAL_TOPICS
from format.io.source import FileSource
from format.log.encode_batches import BatchHeader, encode_batch, encode_message, encode_wrapper, reseal, seal_batch
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from tests.corpora import DATA_DIR
from tests.record_encoder import NewRecord, encode_record, encode_varint

TIMESTAMP = 1_700_000_000_000
INTERESTING_32 = (
    -(2**31),
    -(2**31) + 1,
    -2,
    -1,
    0,
    1,
    2,
    7,
    60,
    127,
    128,
    255,
    2**15,
    2**16,
    2**24,
    2**31 - 2,
    2**31 - 1,
)
INTERESTING_64 = (*INTERESTING_32, -(2**63), -(2**63) + 1, 2**32, 2**40, 2**62, 2**63 - 2, 2**63 - 1, 2**63 - 2**31)
TEXTS = (b"", b"k", b"key", b"\xff\xfe", b"\x00", "ключ".encode(), b"x" * 130, b"=1+1", b"\x1b[2J")
_RECORD_FIELDS = ("length", "attributes", "timestamp_delta", "offset_delta", "key", "value", "headers")


@dataclass
class Case:
    """Files of one partition directory by name, and what was done to them, in words.

    ``messages`` are topic, key and value of internal topics' records, for their decoders.
    """

    files: dict[str, bytes]
    steps: list[str]
    messages: list[tuple[str, bytes | None, bytes | None]] = field(default_factory=list)


def int_of(bits: int, random: Random) -> int:
    """An integer of so many bits, signed: mostly one at an edge."""
    if random.random() < 0.7:
        values = INTERESTING_64 if bits == 64 else INTERESTING_32
        limit = 1 << (bits - 1)
        return max(-limit, min(limit - 1, random.choice(values) + random.choice((0, 0, 1, -1))))
    return random.getrandbits(bits) - (1 << (bits - 1))


# -- sound parts ---------------------------------------------------------------------------------------------


def some_records(random: Random, count: int) -> list[NewRecord]:
    return [
        NewRecord(
            number, number, random.choice((None, *TEXTS)), random.choice((None, *TEXTS)),
            tuple((random.choice(TEXTS), random.choice((None, *TEXTS))) for _ in range(random.choice((0, 0, 0, 1, 3)))),
        )
        for number in range(count)
    ]  # fmt: skip


def some_header(random: Random, base_offset: int, count: int) -> BatchHeader:
    header = BatchHeader(base_offset, count - 1, count, TIMESTAMP, TIMESTAMP + count - 1)
    if random.random() < 0.4:
        header = replace(
            header, producer_id=random.choice((0, 7, 2**62)), producer_epoch=3, base_sequence=base_offset & 0x7FFFFFFF
        )
        header = replace(header, attributes=layout.TRANSACTIONAL_BIT * random.randrange(2))
    return header


def control_batch(random: Random, base_offset: int) -> bytes:
    key = layout.CONTROL_KEY.struct.pack(random.choice((0, 0, 1, -1)), random.choice((0, 1, 2, 3, 4, 5, 6, 7, -1)))
    value = layout.END_TRANSACTION_MARKER.struct.pack(random.choice((0, 0, 1, -1)), random.choice((0, 5, -1)))
    key, value = (each[: random.choice((None, None, None, 0, 1, 3))] for each in (key, value))
    header = BatchHeader(base_offset, 0, 1, TIMESTAMP, TIMESTAMP, attributes=0x30, producer_id=7, producer_epoch=3)
    return encode_batch(header, encode_record(NewRecord(0, 0, random.choice((key, key, None)), value)))


def message_set(random: Random, magic: int, first: int, count: int) -> list[bytes]:
    return [
        encode_message(
            magic, first + each, random.choice((None, b"k")), random.choice(TEXTS), timestamp=TIMESTAMP + each
        )
        for each in range(count)
    ]


# -- one unit: a batch or message, with something wrong inside ----------------------------------------------


def sound_unit(random: Random, base_offset: int) -> tuple[bytes, int]:
    """A sound batch or message and the offset after it."""
    count = random.randrange(1, 6)
    kind = random.random()
    if kind < 0.6:
        records = b"".join(encode_record(each) for each in some_records(random, count))
        return encode_batch(
            some_header(random, base_offset, count), records, codec=random.randrange(5)
        ), base_offset + count
    if kind < 0.7:
        return control_batch(random, base_offset), base_offset + 1
    magic = random.randrange(2)
    if kind < 0.8:
        return message_set(random, magic, base_offset, 1)[0], base_offset + 1
    inner = message_set(random, magic, 0 if magic else base_offset, count)
    last = base_offset + count - 1
    return encode_wrapper(magic, inner, codec=random.randrange(1, 4), last_offset=last, timestamp=TIMESTAMP), last + 1


def broken_header(random: Random, base_offset: int) -> tuple[bytes, str]:
    unit, _ = sound_unit(random, base_offset)
    if unit[16] == 2:
        of = layout.RECORD_BATCH
    else:
        of = layout.MESSAGE_V1 if unit[16] else layout.MESSAGE_V0
    changed = bytearray(unit)
    names = random.sample(of.names, random.choice((1, 1, 2)))
    for name in names:
        field = next(each for each in of.fields if each.name == name)
        value = int_of(8 * field.size_bytes, random) & ((1 << 8 * field.size_bytes) - 1)
        changed[of.offset_of(name) : of.offset_of(name) + field.size_bytes] = value.to_bytes(field.size_bytes, "big")
    is_sealed = random.random() < 0.8 and "crc" not in names
    return reseal(changed) if is_sealed else bytes(changed), f"header {names}{' resealed' if is_sealed else ''}"


def broken_varint(random: Random) -> bytes:
    """A varint that is wrong, or one of an edge."""
    kind = random.randrange(4)
    if kind == 0:
        return encode_varint(int_of(random.choice((32, 64)), random))
    if kind == 1:
        return b"\x80" * random.choice((1, 4, 5, 9, 10, 11)) + random.choice((b"", b"\x00", b"\x01", b"\x7f"))
    if kind == 2:
        return b"\xff" * random.choice((4, 5, 9, 10)) + random.choice((b"\x0f", b"\x10", b"\x01", b"\x02", b"\x7f"))
    return random.randbytes(random.randrange(4))


def broken_record(random: Random, record: NewRecord) -> tuple[bytes, str]:
    """One record with one field replaced by something wrong; its length fits, mostly."""
    field = random.choice(_RECORD_FIELDS)
    parts = {
        "attributes": bytes([record.attributes]),
        "timestamp_delta": encode_varint(record.timestamp_delta),
        "offset_delta": encode_varint(record.offset_delta),
        "key": _sized(record.key),
        "value": _sized(record.value),
        "headers": encode_varint(len(record.headers))
        + b"".join(_sized(part) for pair in record.headers for part in pair),
    }
    if field == "attributes":
        parts[field] = bytes([random.randrange(256)])
    elif field == "headers" and random.random() < 0.5:
        key = random.choice((_sized(b"h"), broken_varint(random), _sized(b"\xff\xfe"), encode_varint(-1)))
        parts[field] = (
            encode_varint(random.choice((1, 1, 2, 3))) + key + random.choice((_sized(None), broken_varint(random)))
        )
    elif field != "length":
        parts[field] = broken_varint(random) + parts[field][random.randrange(3) :]
    body = b"".join(parts.values()) + random.randbytes(random.choice((0, 0, 0, 0, 1, 9)))
    length = encode_varint(len(body))
    if field == "length":
        length = (
            broken_varint(random)
            if random.random() < 0.5
            else encode_varint(len(body) + random.choice((-3, -1, 1, 3, 100)))
        )
    return length + body, field


def _sized(content: bytes | None) -> bytes:
    return encode_varint(-1) if content is None else encode_varint(len(content)) + content


def broken_records(random: Random, base_offset: int) -> tuple[bytes, str]:
    """A v2 batch, resealed, with one record that is wrong, or with a wrong number of them."""
    count = random.randrange(1, 6)
    records = some_records(random, count)
    encoded = [encode_record(each) for each in records]
    at = random.randrange(count)
    what = "record count"
    kind = random.random()
    if kind < 0.75:
        encoded[at], what = broken_record(random, records[at])
    elif kind < 0.85:
        encoded.insert(at, random.choice(encoded))
    elif kind < 0.95:
        del encoded[at]
    else:
        encoded.append(random.randbytes(random.randrange(1, 20)))
    codec = random.randrange(5)
    return encode_batch(
        some_header(random, base_offset, count), b"".join(encoded), codec=codec
    ), f"record {what}, codec {codec}"


def damaged_bytes(random: Random, content: bytes) -> bytes:
    """Some bytes cut, flipped, doubled or inserted."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(changed) + 1) if random.random() < 0.7 else min(len(changed), random.randrange(24))
        kind = random.randrange(6)
        if kind == 0:
            del changed[at:]
        elif kind == 1:
            changed[at:at] = random.randbytes(random.choice((1, 4, 8)))
        elif kind == 2 and at < len(changed):
            changed[at] ^= 1 << random.randrange(8)
        elif kind == 3:
            changed[at : at + 4] = struct.pack(random.choice((">i", "<i")), int_of(32, random))
        elif kind == 4:
            changed += content
        else:
            del changed[at : at + random.randrange(1, 9)]
    return bytes(changed)


def broken_payload(random: Random, base_offset: int) -> tuple[bytes, str]:
    """A batch or wrapper, resealed, whose compressed bytes are damaged or of another codec."""
    count, codec = random.randrange(1, 6), random.randrange(1, 5)
    content = b"".join(encode_record(each) for each in some_records(random, count))
    claimed = codec if random.random() < 0.8 else random.randrange(8)
    if random.random() < 0.5:
        payload = damaged_bytes(random, compress(codec, content))
        header = some_header(random, base_offset, count)
        return seal_batch(header, payload, codec=claimed), f"payload of codec {codec} as {claimed}"
    magic, codec = random.randrange(2), min(codec, 3)
    payload = damaged_bytes(random, compress(codec, b"".join(message_set(random, magic, 0, count)), magic=magic))
    return encode_message(
        magic, base_offset + count, None, payload, attributes=claimed & 7
    ), f"wrapper of codec {codec}"


def broken_inner(random: Random, base_offset: int) -> tuple[bytes, str]:
    """A v0 or v1 wrapper around messages that are wrong."""
    magic, count, codec = random.randrange(2), random.randrange(0, 5), random.randrange(1, 4)
    inner = message_set(random, magic, 0 if magic else base_offset, count)
    what = "none" if not inner else "inner"
    if inner:
        at = random.randrange(count)
        kind = random.randrange(5)
        if kind == 0:
            inner[at] = damaged_bytes(random, inner[at])
        elif kind == 1:
            inner[at] = encode_message(random.randrange(2), int_of(64, random), b"k", b"v")
        elif kind == 2:
            nested = message_set(random, magic, 0, 2)
            inner[at] = encode_wrapper(magic, nested, codec=1, last_offset=at)
        elif kind == 3:
            inner.reverse()
        else:
            inner[at] = reseal(inner[at][:18] + struct.pack(">i", int_of(32, random)) + inner[at][22:])
    last = random.choice((base_offset + count, 0, int_of(64, random)))
    value = compress(codec, b"".join(inner), magic=magic)
    if random.random() < 0.1:
        value = b""
    wrapper = encode_message(magic, last, None, value if random.random() < 0.95 else None, attributes=codec)
    return wrapper, f"wrapper with {what}"


def broken_framing(random: Random, base_offset: int) -> tuple[bytes, str]:
    """Garbage, zeros, a cut batch, a batch inside a value, a wrong length."""
    unit, _ = sound_unit(random, base_offset)
    kind = random.randrange(6)
    if kind == 0:
        return random.randbytes(random.randrange(1, 100)), "garbage"
    if kind == 1:
        return bytes(random.choice((1, 8, 12, 61, 4096))), "zeros"
    if kind == 2:
        return unit[: random.randrange(len(unit))], "cut batch"
    if kind == 3:
        length = int.from_bytes(unit[8:12], "big") + random.choice((-1, 1, 8, 61, 256, -(2**31), 2**30))
        return unit[:8] + (length & 0xFFFFFFFF).to_bytes(4, "big") + unit[12:], "wrong length"
    if kind == 4:
        image = b"".join(sound_unit(random, base_offset + 10 * each)[0] for each in range(random.choice((1, 2))))
        outer = encode_batch(
            BatchHeader(base_offset, 0, 1, TIMESTAMP, TIMESTAMP), encode_record(NewRecord(0, 0, None, image))
        )
        at = random.choice((8, 20, 30, len(outer) - 1))
        return outer[:at] + random.randbytes(1) + outer[at + 1 :], "batch image in a damaged value"
    return unit + unit, "twice the same"


BREAKERS: tuple[Callable[[Random, int], tuple[bytes, str]], ...] = (
    broken_header, broken_header, broken_records, broken_records, broken_payload, broken_inner, broken_framing,
)  # fmt: skip
#: Of a log of many batches: most are wrong inside only, so that long runs of batches are read together.
BREAKERS_OF_MANY = (
    *(broken_records,) * 100, *(broken_payload,) * 40, *(broken_inner,) * 40, broken_header, broken_framing,
)  # fmt: skip


# -- whole cases ---------------------------------------------------------------------------------------------


def log_case(random: Random, units: int | None = None) -> Case:
    """A log of ``units`` batches, or else of 1 to 4; about six in ten are wrong. Some cases have side files."""
    base_offset = random.choice((0, 0, 0, 1000, 2**31 - 3, 2**62, 2**63 - (40 if units is None else 8 * units)))
    offset = base_offset
    parts: list[bytes] = []
    steps: list[str] = []
    for _ in range(units or random.randrange(1, 5)):
        if random.random() < 0.6:
            part, what = random.choice(BREAKERS if units is None else BREAKERS_OF_MANY)(random, offset)
            steps.append(what)
        else:
            part, offset = sound_unit(random, offset)
        parts.append(part)
    if random.random() < 0.1:
        random.shuffle(parts)
    content = b"".join(parts)
    if random.random() < 0.1:
        content = content[: random.randrange(len(content) + 1)]
        steps.append("cut")
    name = f"{base_offset:020d}"
    files = {name + ".log": content}
    if random.random() < 0.3:
        files |= side_files(random, base_offset, len(content), steps)
    return Case(files, steps)


def side_files(random: Random, base_offset: int, log_bytes: int, steps: list[str]) -> dict[str, bytes]:
    """Files beside a log, some of them damaged, snapshots under a right CRC."""
    name = f"{base_offset:020d}"
    made = {
        name + ".index": lambda: offset_index.write(([0, 3], [61, log_bytes])),
        name + ".timeindex": lambda: time_index.write(([TIMESTAMP, TIMESTAMP + 3], [0, 3])),
        name + ".txnindex": lambda: transaction_index.write(([7], [base_offset], [base_offset], [base_offset])),
        name + ".snapshot": lambda: snapshot(random),
        "leader-epoch-checkpoint": lambda: b"0\n2\n0 0\n3 5\n",
        "partition.metadata": lambda: b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        "quorum-state": lambda: (
            b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[],"data_version":0}'
        ),
        "00000000000000000009-0000000001.checkpoint": lambda: control_batch(random, 0),
    }
    found = {}
    for each in random.sample(sorted(made), random.randrange(1, 4)):
        content = made[each]()
        if random.random() < 0.7:
            content = damaged_bytes(random, content)
            steps.append(f"damaged {each[-20:]}")
        found[each] = content
    return found


def snapshot(random: Random) -> bytes:
    """A producer snapshot with values at the edges, resealed."""
    from format.codecs.checksums import crc32c_of

    of = layout.PRODUCER_SNAPSHOT_ENTRY
    entries = b"".join(
        of.struct.pack(*(int_of(8 * field.size_bytes, random) for field in of.fields))
        for _ in range(random.randrange(4))
    )
    count = random.choice((len(entries) // of.size_bytes, int_of(32, random)))
    body = struct.pack(">i", count) + entries
    return struct.pack(">hI", random.choice((1, 1, 1, int_of(16, random))), crc32c_of(body)) + body


@cache
def internal_records() -> list[tuple[str, bytes | None, bytes | None]]:
    """Topic, key and value of records that real brokers wrote into their internal topics."""
    found: list[tuple[str, bytes | None, bytes | None]] = []
    for topic in INTERNAL_TOPICS:
        for log in sorted(DATA_DIR.glob(f"*/*/{topic}-*/*.log")):
            with FileSource(log) as source:
                for chunk in batch_chunks(source):
                    for table in record_tables(chunk, which=~chunk.table.is_control):
                        found += [(topic, table.key(row), table.value(row)) for row in range(len(table))]
    return found


def internal_case(random: Random) -> Case:
    """Some records of internal topics with damaged keys and values."""
    messages = []
    for topic, key, value in random.choices(internal_records(), k=6):
        if key and random.random() < 0.4:
            key = damaged_bytes(random, key)
        if value and random.random() < 0.8:
            value = damaged_bytes(random, value)
        messages.append((topic, key, value))
    return Case({}, ["internal topics"], messages)


def case(seed: int, number: int, units: int | None = None) -> Case:
    """The case of that number; ``units`` is the number of batches of a log of many, and gives other cases."""
    if units is not None:
        return log_case(Random(f"{seed}-{number}-{units}"), units)
    random = Random(f"{seed}-{number}")
    return internal_case(random) if number % 20 == 19 else log_case(random)
