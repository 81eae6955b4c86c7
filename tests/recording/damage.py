"""Damaged copies of small partitions: log directories of one partition each, made from a seed and nothing else.

A case is known by its number. Each kind of damage takes its turn, so that any run of consecutive numbers as long as
``KINDS`` has them all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import crc32c

from tests.recording.framing import Batch, batches_of, number_at, sealed

SEED = 2024
#: Partitions of ``tests/_data``, by the log directory that holds them.
SUBJECTS = {
    "kafka-4.3-single/node-1": (
        "payments-1", "clicks-uncompressed-0", "clicks-gzip-0", "clicks-snappy-0", "clicks-lz4-0", "clicks-zstd-0",
        "clients-0", "edge.cases_1-0", "users-0", "sensor-0", "__consumer_offsets-2", "__transaction_state-0",
    ),
    "kafka-4.3/node-1": ("ledger-0", "payments-0"),
}  # fmt: skip
LEGACY_LOG = "kafka-0.8-to-2.8/data/legacy-0/00000000000000000000.log"
LEGACY_MESSAGES = 12
CHECKPOINTS = (
    "replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)  # fmt: skip
NODE_FILES = ("meta.properties", ".kafka_cleanshutdown")
EDGE_VALUES = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 7, 127, 128, 255, 2**15, 2**16, 2**24, 2**31 - 1, 2**40, 2**63 - 1)

#: The files of a log directory by their path in it.
Files = dict[str, bytes]


@dataclass
class Case:
    """A log directory to damage: the name of its partition, its files, and what was done to them, in words."""

    partition: str
    files: Files
    steps: list[str]

    def paths(self, *suffixes: str) -> list[str]:
        """The files of the partition with one of these endings, in order."""
        found = sorted(each for each in self.files if each.startswith(self.partition + "/"))
        return [each for each in found if not suffixes or each.endswith(suffixes)]

    def log(self, random: Random) -> str:
        """One of the logs that have a batch; of several, mostly not the last."""
        filled = [each for each in self.paths(".log") if self.files[each]]
        return random.choice(filled)


# -- sound log directories -----------------------------------------------------------------------------------


def subject(data_dir: Path, random: Random) -> Case:
    """One of the partitions as its broker left it, with the checkpoints' lines about it."""
    if random.random() < 0.15:
        return _legacy_subject(data_dir, random)
    choices = [(node, name) for node, names in SUBJECTS.items() for name in names]
    node, name = random.choice(choices)
    log_dir = data_dir / node
    files = {f"{name}/{each.name}": each.read_bytes() for each in sorted((log_dir / name).iterdir())}
    files |= {each: (log_dir / each).read_bytes() for each in NODE_FILES if (log_dir / each).exists()}
    topic, _, partition = name.rpartition("-")
    for checkpoint in CHECKPOINTS:
        lines = (log_dir / checkpoint).read_text().splitlines()[2:]
        kept = [each for each in lines if each.split()[:2] == [topic, partition]]
        files[checkpoint] = "\n".join(["0", str(len(kept)), *kept, ""]).encode()
    return Case(name, files, [f"{node}/{name}"])


def _legacy_subject(data_dir: Path, random: Random) -> Case:
    """Consecutive messages of one format and codec, in a log of their own without indexes."""
    content = (data_dir / LEGACY_LOG).read_bytes()
    messages = batches_of(content)
    kind = random.choice(sorted({(each.magic, each.codec) for each in messages}))
    rows = [row for row, each in enumerate(messages) if (each.magic, each.codec) == kind]
    first = random.choice(rows[: -LEGACY_MESSAGES or None] or rows[:1])
    chosen = messages[first : first + LEGACY_MESSAGES]
    base_offset = messages[first - 1].last_offset + 1 if first else 0
    files = {f"legacy-0/{base_offset:020d}.log": content[chosen[0].position : chosen[-1].end]}
    return Case("legacy-0", files, [f"messages of magic {kind[0]} and codec {kind[1]} from offset {base_offset}"])


# -- damage to a log -----------------------------------------------------------------------------------------


def flipped_bit(case: Case, random: Random) -> str:
    path, batch = _some_batch(case, random)
    at = random.randrange(batch.position + 17, batch.end)
    _write(case, path, at, bytes([case.files[path][at] ^ 1 << random.randrange(8)]))
    return f"bit flipped at {at}"


def several_flipped_bits(case: Case, random: Random) -> str:
    count = random.choice((3, 10, 40))
    for _ in range(count):
        flipped_bit(case, random)
    return f"{count} bits flipped"


def header_field(case: Case, random: Random) -> str:
    """A header field of another value, mostly under a CRC that is right."""
    path, batch = _some_batch(case, random)
    name = random.choice(sorted(batch.fields))
    at, size = batch.fields[name]
    old = number_at(case.files[path], batch.position + at, size)
    new = random.choice((*EDGE_VALUES, old + 1, old - 1, old + 100)) & (1 << 8 * size) - 1
    _write(case, path, batch.position + at, new.to_bytes(size, "big"))
    is_sealed = name not in ("crc", "length") and random.random() < 0.8
    if is_sealed:
        _seal(case, path, batch)
    return f"{name} at {batch.position} from {old} to {new}{', resealed' if is_sealed else ''}"


def record_byte(case: Case, random: Random) -> str:
    """A changed byte of the records under a CRC that is right."""
    path, batch = _some_batch(case, random)
    at = min(batch.end - 1, batch.position + batch.header_bytes + random.choice((0, 0, 1, 2, 3, 4, 5, 8, 20, 60)))
    _write(case, path, at, bytes([random.randrange(256)]))
    _seal(case, path, batch)
    return f"byte of the records at {at}, resealed"


def cut_records(case: Case, random: Random) -> str:
    """A batch whose records end early, with a length and a CRC that fit."""
    path, batch = _some_batch(case, random)
    content = case.files[path]
    kept = max(1, (batch.size_bytes - batch.header_bytes) * random.randrange(1, 10) // 10)
    whole = bytearray(content[batch.position : batch.position + batch.header_bytes + kept])
    whole[8:12] = (len(whole) - 12).to_bytes(4, "big")
    case.files[path] = content[: batch.position] + sealed(bytes(whole)) + content[batch.end :]
    return f"records of the batch at {batch.position} cut to {kept} bytes, resealed"


def zeros(case: Case, random: Random) -> str:
    path = case.log(random)
    size = random.choice((1, 16, 512, 4096))
    at = random.randrange(len(case.files[path])) // size * size
    size = min(size, len(case.files[path]) - at)
    _write(case, path, at, bytes(size))
    return f"{size} zeros at {at}"


def garbage(case: Case, random: Random) -> str:
    """Random bytes over, or between, what was there."""
    path, batch = _some_batch(case, random)
    content, size = case.files[path], random.choice((1, 3, 12, 100, 700))
    at = random.choice((batch.position, batch.end, random.randrange(len(content))))
    over = size if random.random() < 0.5 else 0
    case.files[path] = content[:at] + random.randbytes(size) + content[at + over :]
    return f"{size} random bytes at {at}, {'over' if over else 'between'} the others"


def missing_bytes(case: Case, random: Random) -> str:
    path = case.log(random)
    content, size = case.files[path], random.choice((1, 4, 61, 300))
    at = random.randrange(len(content))
    case.files[path] = content[:at] + content[at + size :]
    return f"{size} bytes left out at {at}"


def missing_batch(case: Case, random: Random) -> str:
    path, batch = _some_batch(case, random)
    content = case.files[path]
    case.files[path] = content[: batch.position] + content[batch.end :]
    return f"the batch at {batch.position} left out"


def doubled_batch(case: Case, random: Random) -> str:
    path, batch = _some_batch(case, random)
    content = case.files[path]
    case.files[path] = content[: batch.end] + content[batch.position :]
    return f"the batch at {batch.position} twice"


def swapped_batches(case: Case, random: Random) -> str:
    path, one = _some_batch(case, random)
    content = case.files[path]
    other = random.choice(batches_of(content))
    first, second = sorted((one, other), key=lambda each: each.position)
    if first == second:
        return "nothing"
    case.files[path] = b"".join(
        (
            content[: first.position], content[second.position : second.end], content[first.end : second.position],
            content[first.position : first.end], content[second.end :],
        )
    )  # fmt: skip
    return f"the batches at {first.position} and {second.position} swapped"


def foreign_batch(case: Case, random: Random) -> str:
    """A batch of another partition, a tail of one, or its image inside garbage."""
    path, batch = _some_batch(case, random)
    content = case.files[path]
    image = content[batch.position : batch.end]
    offset = random.choice((batch.last_offset + 1, batch.base_offset + 1000, 0))
    image = offset.to_bytes(8, "big") + image[8:]
    image = random.choice((image, random.randbytes(9) + image, image[: len(image) // 2]))
    at = random.choice((batch.end, len(content)))
    case.files[path] = content[:at] + image + content[at:]
    return f"{len(image)} bytes with a batch that says offset {offset} at {at}"


def truncated(case: Case, random: Random) -> str:
    """A log that ends early, inside a batch or between two."""
    path, batch = _some_batch(case, random)
    length = random.choice((batch.position, batch.position + 5, batch.position + 40, batch.end - 1))
    case.files[path] = case.files[path][:length]
    return f"{path} cut to {length} bytes"


def zero_tail(case: Case, random: Random) -> str:
    """A last segment that was preallocated, or whose last pages were not written."""
    path = case.paths(".log")[-1]
    size = random.choice((12, 61, 4096, 20_000))
    case.files[path] += bytes(size)
    return f"{size} zeros after the end of {path}"


def _some_batch(case: Case, random: Random) -> tuple[str, Batch]:
    """One batch of one log; of a log that no longer begins with a whole one, its first bytes taken for one."""
    path = case.log(random)
    content = case.files[path]
    return path, random.choice(batches_of(content) or [Batch(0, max(18, len(content)), 2, 0, 0, None, 0)])


def _write(case: Case, path: str, at: int, new: bytes) -> None:
    content = case.files[path]
    case.files[path] = content[:at] + new + content[at + len(new) :]


def _seal(case: Case, path: str, batch: Batch) -> None:
    content = case.files[path][batch.position : batch.end]
    if len(content) > 61:
        _write(case, path, batch.position, sealed(content))


# -- damage to the files beside it ---------------------------------------------------------------------------


def index_entry(case: Case, random: Random) -> str:
    """An entry of an index with another value, or entries in another order."""
    path = _side_file(case, random, ".index", ".timeindex", ".txnindex")
    if path is None:
        return flipped_bit(case, random)
    size = {".index": 8, ".timeindex": 12, ".txnindex": 34}["." + path.rpartition(".")[2]]
    content = case.files[path]
    at = random.randrange(len(content) // size) * size
    if len(content) >= 3 * size and random.random() < 0.3:
        entries = [content[start : start + size] for start in range(0, len(content) - size + 1, size)]
        entries.reverse()
        case.files[path] = b"".join(entries)
        return f"entries of {path} reversed"
    field_at = at + random.choice((0, 4) if size == 8 else (0, 8) if size == 12 else (2, 10, 18, 26))
    new = random.choice((-1, 0, 1, 100, 2**31 - 1)) & 0xFFFFFFFF
    _write(case, path, field_at, new.to_bytes(4, "big"))
    return f"{path} at {field_at} set to {new}"


def side_file_length(case: Case, random: Random) -> str:
    """An index or snapshot that is cut, empty, longer, or gone."""
    path = _side_file(case, random, ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
    if path is None:
        return truncated(case, random)
    content = case.files[path]
    kind = random.choice(("cut", "empty", "zeros after it", "random bytes after it", "missing"))
    if kind == "missing":
        del case.files[path]
    else:
        case.files[path] = {
            "cut": content[: random.randrange(len(content))],
            "empty": b"",
            "zeros after it": content + bytes(random.choice((8, 12, 4096))),
            "random bytes after it": content + random.randbytes(random.choice((3, 8, 24))),
        }[kind]
    return f"{path}: {kind}"


def index_without_log(case: Case, random: Random) -> str:
    """An index that a crash left behind, or a log whose indexes are all gone."""
    if random.random() < 0.5:
        for path in case.paths(".index", ".timeindex", ".txnindex"):
            del case.files[path]
        return "no indexes"
    offset = random.choice((17, 5000))
    case.files[f"{case.partition}/{offset:020d}.index"] = struct.pack(">ii", 3, 61)
    case.files[f"{case.partition}/{offset:020d}.timeindex"] = struct.pack(">qi", 1_700_000_000_000, 3)
    return f"indexes of a segment {offset} that is not there"


def snapshot(case: Case, random: Random) -> str:
    """A producer snapshot with a changed byte, mostly under a CRC that is right."""
    path = _side_file(case, random, ".snapshot")
    if path is None:
        return record_byte(case, random)
    content = bytearray(case.files[path])
    at = random.randrange(len(content))
    content[at] = random.randrange(256)
    is_sealed = random.random() < 0.7
    if is_sealed and len(content) >= 6:
        content[2:6] = crc32c.crc32c(bytes(content[6:])).to_bytes(4, "big")
    case.files[path] = bytes(content)
    return f"byte of {path} at {at}{', resealed' if is_sealed else ''}"


def text_file(case: Case, random: Random) -> str:
    """A checkpoint or properties file with a changed number, a missing line, a line too many, or garbage."""
    chosen = random.choice([each for each in sorted(case.files) if _is_text(each)] or [""])
    if not chosen:
        return header_field(case, random)
    lines = case.files[chosen].split(b"\n")
    at = random.randrange(len(lines))
    kind = random.choice(("number", "number", "missing line", "line twice", "byte", "cut", "empty", "missing"))
    if kind == "missing":
        del case.files[chosen]
        return f"{chosen}: missing"
    if kind == "number":
        words = lines[at].split(b" ")
        words[-1] = str(random.choice((-1, 0, 1, 7, 10**6, 2**31, 2**63 - 1))).encode()
        lines[at] = b" ".join(words)
    elif kind == "missing line":
        del lines[at]
    elif kind == "line twice":
        lines.insert(at, lines[at])
    content = b"\n".join(lines)
    if kind == "byte" and content:
        content = content[: len(content) // 2] + random.randbytes(1) + content[len(content) // 2 + 1 :]
    elif kind in ("cut", "empty"):
        content = content[: random.randrange(len(content) + 1)] if kind == "cut" else b""
    case.files[chosen] = content
    return f"{chosen}: {kind}, line {at + 1}"


def _is_text(path: str) -> bool:
    name = path.rpartition("/")[2]
    if name.endswith("-offset-checkpoint") or name in NODE_FILES:
        return True
    return name in ("leader-epoch-checkpoint", "partition.metadata", "quorum-state")


def _side_file(case: Case, random: Random, *suffixes: str) -> str | None:
    filled = [each for each in case.paths(*suffixes) if case.files[each] and not _is_text(each)]
    return random.choice(filled) if filled else None


# -- damage to the directory ---------------------------------------------------------------------------------


def renamed_files(case: Case, random: Random) -> str:
    """A segment that a broker was deleting, cleaning or swapping when it stopped."""
    suffix = random.choice((".deleted", ".cleaned", ".swap"))
    stem = case.log(random).removesuffix(".log")
    for path in case.paths():
        if path.startswith(stem + "."):
            content = case.files[path]
            if random.random() < 0.5 or suffix == ".deleted":
                del case.files[path]
            case.files[path + suffix] = content
    return f"files of {stem} as {suffix}"


def renamed_partition(case: Case, random: Random) -> str:
    """A partition directory that is on its way out or in, or under another topic's name."""
    marks = (".0123456789abcdef0123456789abcdef-delete", ".0123456789abcdef0123456789abcdef-future")
    new = random.choice((case.partition + marks[0], case.partition + marks[1], "other-3"))
    for path in case.paths():
        case.files[new + path.removeprefix(case.partition)] = case.files.pop(path)
    case.partition = new
    return f"partition called {new}"


def missing_segment(case: Case, random: Random) -> str:
    """One segment gone, or its log under the name of another base offset."""
    path = random.choice(case.paths(".log"))
    if len(case.paths(".log")) > 1 and random.random() < 0.6:
        for each in case.paths():
            if each.startswith(path.removesuffix("log")):
                del case.files[each]
        return f"segment of {path} left out"
    offset = int(path.rpartition("/")[2].removesuffix(".log")) + random.choice((1, 40, 100_000))
    case.files[f"{case.partition}/{offset:020d}.log"] = case.files.pop(path)
    return f"{path} under offset {offset}"


def stray_files(case: Case, random: Random) -> str:
    """Files that no broker writes there."""
    case.files[f"{case.partition}/notes.txt"] = b"not Kafka's\n"
    case.files[f"{case.partition}/0000.log"] = b"too short a name"
    case.files["stray"] = b""
    return "stray files"


def overlapping_segment(case: Case, random: Random) -> str:
    """A second segment that holds the second half of the first once more."""
    path = case.log(random)
    content = case.files[path]
    batches = batches_of(content)
    if len(batches) < 2:
        return doubled_batch(case, random)
    batch = batches[len(batches) // 2]
    new = f"{case.partition}/{batch.base_offset:020d}.log"
    case.files.setdefault(new, content[batch.position :])
    return f"{new} repeats {path} from {batch.position} on"


Kind = Callable[[Case, Random], str]
#: The structural kinds are twice as many as the kinds for side files: they are what the verbs differ in.
KINDS: tuple[Kind, ...] = (
    flipped_bit, header_field, record_byte, index_entry, zeros, header_field, cut_records, side_file_length, garbage,
    header_field, missing_bytes, snapshot, missing_batch, record_byte, doubled_batch, text_file, swapped_batches,
    several_flipped_bits, foreign_batch, text_file, truncated, header_field, zero_tail, renamed_files, record_byte,
    missing_segment, index_without_log, renamed_partition, stray_files, overlapping_segment,
)  # fmt: skip


def damaged_case(data_dir: Path, number: int, seed: int = SEED) -> Case:
    """The case of that number: mostly one damage, sometimes a second one of any kind."""
    random = Random(f"{seed}-{number}")
    case = subject(data_dir, random)
    case.steps.append(KINDS[number % len(KINDS)](case, random))
    if random.random() < 0.25 and any(case.files[each] for each in case.paths(".log")):
        case.steps.append(random.choice(KINDS)(case, random))
    return case
