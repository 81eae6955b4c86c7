"""Which commands a recording runs over which paths: the command line of each, with ``OUT`` for a new output path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from tests.recording.framing import batches_of
from tests.recording.inputs import KEY_FILE, Inputs, LogDir

Command = tuple[str, ...]
OUT = "{out}"
LATER = "1900000000000"  # a time after everything that the corpora hold
LEVELS = ("headers", "crc", "records", "full")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
JSONL, LOGFMT, CSV, TABLE = (("--format", each) for each in ("jsonl", "logfmt", "csv", "table"))
BOTH = (JSONL, LOGFMT)
PATTERNS: tuple[Command, ...] = (
    ("7",), ("PAID", "--ignore-case"), ("--regex", "^[a-z]+-.*[05]$", "--in", "key"), ("--regex", "[0-9]{4}$"),
    ("--bytes", "2c20", "--in", "value"), ("--all", "--tombstones"), ("--all", "--producer-id", "1001"),
    ("--header", "source", "web"), ("--all", "--header", "trace-id"), ("--invert", "paid"), ("no such text",),
)  # fmt: skip
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}


def commands(inputs: Inputs) -> Iterator[list[Command]]:
    """All commands of a full recording, in groups; no command comes twice."""
    yield list(_usage_mistakes(inputs))
    for log_dir in inputs.sound:
        yield list(_log_dir_commands(log_dir.path))
        yield list(_side_file_commands(inputs, log_dir.path))
        for partition in log_dir.partitions:
            yield list(_partition_commands(inputs, partition))
            yield list(_dump_log_commands(inputs, partition))
            yield list(_side_file_commands(inputs, partition))
    for log_dir in inputs.damaged:
        yield list(_damaged_commands(inputs, log_dir))


def small_commands(inputs: Inputs) -> Iterator[list[Command]]:
    """A few of them, whose output is the same with any release of the libraries that compress or draw tables."""
    yield [("txns", each.path, "--at", LATER, *JSONL) for each in inputs.sound]
    yield [("groups", "kafka-4.3-single/node-1", *each) for each in (JSONL, LOGFMT, ("--history", *JSONL))]
    yield [("verify", each.path, *JSONL) for each in inputs.sound]
    yield [("ls", each.path, *JSONL) for each in inputs.sound]
    for name in ("payments-1", "edge.cases_1-0", "__consumer_offsets-2"):
        yield list(_small_partition_commands(inputs, f"kafka-4.3-single/node-1/{name}"))
    yield [("diff", "kafka-4.3/node-1", "kafka-4.3/node-2", *each) for each in BOTH]
    plain = "kafka-4.3-single/node-1/clicks-uncompressed-0"
    yield [("redact", plain, "--output", OUT, *each, *JSONL) for each in (("--key-file", KEY_FILE), ("--mode", "fill"))]
    for log_dir in inputs.damaged:
        yield list(_small_damaged_commands(inputs, log_dir))


# -- sound log directories -----------------------------------------------------------------------------------


def _log_dir_commands(path: str) -> Iterator[Command]:
    yield from (("ls", path, *each) for each in (*BOTH, TABLE, CSV))
    yield ("ls", path, "--segments", *JSONL)
    yield ("ls", path, "--no-scan", *LOGFMT)
    yield from (("doctor", path, *each) for each in (*BOTH, ("--deep", *JSONL)))
    yield from (("ls", path, "--sort", key, "-r", *LOGFMT) for key in ("size", "segments", "batches", "time"))
    yield from (("verify", path, "--level", level, *JSONL) for level in LEVELS)
    yield from (("verify", path, *each) for each in (LOGFMT, TABLE, CSV))
    yield from (("verify", path, "--fail-on", each, *LOGFMT) for each in ("info", "warning", "fatal"))
    yield ("verify", path, "--jobs", "2", *JSONL)
    yield from (("dump", path, *each) for each in BOTH)
    yield ("dump", path, "--records", "--limit", "500", *CSV)
    yield ("dump", path, "--output", OUT, *JSONL)
    yield from ((verb, path, "--at", LATER, *each) for verb in ("txns", "producers") for each in (*BOTH, CSV))
    yield ("producers", path, "--duplicates", "--at", LATER, *JSONL)
    yield from (("groups", path, *each) for each in (*BOTH, TABLE, CSV, ("--history", *JSONL)))
    yield from (("quorum", path, *each) for each in BOTH)
    yield from (("sql", f"SELECT * FROM {each}", path, *JSONL) for each in ("partitions", "groups", "transactions"))
    yield from (("grep", *pattern, path, "--count", *LOGFMT) for pattern in PATTERNS)
    yield from (("grep", *pattern, path, "--files-with-matches", *JSONL) for pattern in PATTERNS[:4])
    yield ("grep", "7", path, "--limit", "40", *JSONL)
    yield from (("recompress", path, "--estimate", *each) for each in BOTH)
    yield ("recompress", path, "--output", OUT, "--codec", "zstd", *JSONL)
    yield ("recompress", path, "--output", OUT, "--codec", "none", "--jobs", "2", *LOGFMT)
    yield ("salvage", path, "--output", OUT, *JSONL)
    yield ("rebuild-index", path, "--output", OUT, *JSONL)
    yield ("rebuild-index", path, "--output", OUT, "--with-log", *LOGFMT)
    yield ("redact", path, "--output", OUT, "--key-file", KEY_FILE, *JSONL)
    yield from (("extract", path, "--output", OUT, "--to", each, *JSONL) for each in ("parquet", "jsonl", "csv"))


def _partition_commands(inputs: Inputs, path: str) -> Iterator[Command]:
    yield from (("ls", path, *each) for each in (*BOTH, TABLE))
    yield from (("dump", path, *each) for each in BOTH)
    yield from (("dump", path, "--records", *each) for each in BOTH)
    yield ("dump", path, "--records", "--raw", *JSONL)
    yield from (
        ("dump", path, "--records", "--value-as", "auto", "--limit", "30", *each) for each in (*BOTH, CSV, TABLE)
    )
    yield ("verify", path, "--values", *JSONL)
    yield from (("dump", path, "--records", "--limit", "30", *each) for each in (CSV, TABLE))
    yield from (("dump", path, "--limit", "30", *each) for each in (CSV, TABLE))
    yield from _ranges(inputs, path)
    yield from (("verify", path, "--level", level, *JSONL) for level in LEVELS)
    yield from (("verify", path, *each) for each in (LOGFMT, TABLE))
    yield ("verify", path, "--partitioner", "murmur2", "--partitions", "3", *LOGFMT)
    yield from _look_ups(inputs, path, BOTH)
    yield from (("grep", *pattern, path, *JSONL) for pattern in PATTERNS[1:])
    yield ("grep", "7", path, *LOGFMT)
    yield from (("grep", *PATTERNS[2], path, "--limit", "30", *each) for each in (CSV, TABLE))
    yield ("recompress", path, "--estimate", "--codec", "lz4", *JSONL)
    yield from (("recompress", path, "--explain", "--codec", codec, *JSONL) for codec in ("none", "zstd"))
    yield ("recompress", path, "--explain", "--codec", "lz4", *LOGFMT)
    yield from (("recompress", path, "--output", OUT, "--codec", codec, *LOGFMT) for codec in CODECS)
    yield ("recompress", path, "--output", OUT, "--codec", "gzip", "--level", "9", "--force", *JSONL)
    yield ("recompress", path, "--output", OUT, "--codec", "lz4", "--batch-bytes", "64KiB", "--magic", "2", *JSONL)
    yield ("recompress", path, "--output", OUT, "--codec", "zstd", "--segment-bytes", "20KiB", *JSONL)
    yield ("salvage", path, "--output", OUT, *LOGFMT)
    yield ("rebuild-index", path, "--output", OUT, "--index-interval-bytes", "256", *JSONL)
    yield ("redact", path, "--output", OUT, "--key-file", KEY_FILE, *LOGFMT)
    yield ("redact", path, "--output", OUT, "--mode", "fill", "--header-names", *JSONL)
    yield ("extract", path, "--output", OUT, "--to", "jsonl", "--records-per-file", "100", *LOGFMT)


def _ranges(inputs: Inputs, path: str) -> Iterator[Command]:
    """dump and grep from an offset or a time on, or up to one."""
    offsets, timestamps = _samples(inputs, path)
    if not offsets:
        return
    low, high = str(offsets[len(offsets) // 3]), str(offsets[-len(offsets) // 3])
    yield ("dump", path, "--records", "--from-offset", low, "--to-offset", high, *JSONL)
    yield ("dump", path, "--from-offset", high, *LOGFMT)
    yield ("grep", "--all", path, "--from-offset", high, "--limit", "20", *JSONL)
    yield ("extract", path, "--output", OUT, "--to", "csv", "--to-offset", low, *LOGFMT)
    if timestamps:
        early, late = str(timestamps[len(timestamps) // 3]), str(timestamps[-1])
        yield ("dump", path, "--records", "--from-time", early, "--to-time", late, *JSONL)
        yield ("grep", "7", path, "--to-time", early, "--count", *LOGFMT)


def _look_ups(inputs: Inputs, path: str, formats: Iterable[Command]) -> Iterator[Command]:
    offsets, timestamps = _samples(inputs, path)
    chosen = sorted({0, *offsets[:: max(1, len(offsets) // 3)], *offsets[-1:], (offsets or [0])[-1] + 1})
    for form in formats:
        for offset in chosen:
            yield ("find", path, "--offset", str(offset), "--explain", *form)
        for timestamp in sorted({0, *timestamps[:: max(1, len(timestamps) // 3)], *timestamps[-1:]}):
            yield ("find", path, "--timestamp", f"{timestamp}ms", "--explain", *form)
        yield ("find", path, "--max-timestamp", *form)
    for timestamp in timestamps[-1:]:
        yield ("find", path, "--timestamp", str(timestamp), "--past-high-watermark", *JSONL)


def _samples(inputs: Inputs, path: str) -> tuple[list[int], list[int]]:
    """The last offset and the largest timestamp of each batch of a partition that has them, in the order of logs."""
    found = [batch for log in inputs.files(path, ".log") for batch in batches_of((inputs.folder / log).read_bytes())]
    timestamps = [each.max_timestamp for each in found if each.max_timestamp is not None and each.max_timestamp > 0]
    return [each.last_offset for each in found if each.last_offset >= 0], timestamps


def _dump_log_commands(inputs: Inputs, path: str) -> Iterator[Command]:
    decoder = DECODERS.get(path.rpartition("/")[2].rpartition("-")[0])
    for log in inputs.files(path, ".log"):
        yield ("dump-log", "--files", log)
        yield ("dump-log", "--print-data-log", "--files", log)
        yield ("dump-log", "--deep-iteration", "--max-bytes", "5000", "--files", log)
        yield ("dump-log", "--skip-record-metadata", "--print-data-log", "--max-bytes", "9000", "--files", log)
        yield ("dump-log", "--emulate", "3.9.1", "--print-data-log", "--files", log)
        if decoder is not None:
            yield from (("dump-log", decoder, "--files", log, *each) for each in ((), ("--emulate", "4.3.1")))
    for index in inputs.files(path, ".index", ".timeindex"):
        yield ("dump-log", "--files", index)
        yield ("dump-log", "--index-sanity-check", "--files", index)
        yield ("dump-log", "--verify-index-only", "--files", index)


def _side_file_commands(inputs: Inputs, path: str) -> Iterator[Command]:
    for file in inputs.files(path):
        yield from (("dump", file, *each) for each in BOTH)
        yield ("verify", file, *JSONL)
        yield ("ls", file, *LOGFMT)
        if file.endswith((".txnindex", ".snapshot", ".checkpoint")):
            yield ("dump-log", "--files", file)


# -- damaged log directories ---------------------------------------------------------------------------------


def _damaged_commands(inputs: Inputs, log_dir: LogDir) -> Iterator[Command]:
    path = log_dir.path
    yield from (("verify", path, "--level", level, *JSONL) for level in LEVELS)
    yield from (("verify", path, *each) for each in (LOGFMT, TABLE))
    yield from (("verify", path, "--fail-on", each, *LOGFMT) for each in ("info", "warning"))
    yield from (("ls", path, *each) for each in (JSONL, ("--segments", *LOGFMT)))
    yield from (("dump", path, *each) for each in BOTH)
    yield from (("dump", path, "--records", *each) for each in (JSONL, CSV))
    yield ("grep", "7", path, *JSONL)
    yield ("grep", "--all", path, "--count", *LOGFMT)
    yield ("grep", "7", path, "--files-with-matches", *LOGFMT)
    yield ("recompress", path, "--estimate", *JSONL)
    yield from (("recompress", path, "--output", OUT, "--codec", each, *LOGFMT) for each in ("zstd", "none"))
    yield ("recompress", path, "--output", OUT, "--codec", "lz4", "--skip-damaged", *JSONL)
    yield ("salvage", path, "--output", OUT, *JSONL)
    yield ("rebuild-index", path, "--output", OUT, *JSONL)
    yield ("rebuild-index", path, "--output", OUT, "--with-log", *LOGFMT)
    yield ("redact", path, "--output", OUT, "--key-file", KEY_FILE, *JSONL)
    yield from (("extract", path, "--output", OUT, "--to", each, *JSONL) for each in ("parquet", "jsonl", "csv"))
    for partition in log_dir.partitions:
        yield ("verify", partition, *JSONL)
        yield ("recompress", partition, "--explain", "--codec", "lz4", *JSONL)
        yield from _look_ups(inputs, partition, (JSONL,))
        for log, arguments in product(inputs.files(partition, ".log"), ((), ("--print-data-log",))):
            yield ("dump-log", "--files", log, *arguments)
        for log in inputs.files(partition, ".log")[:1]:
            yield ("dump-log", "--emulate", "4.3.1", "--deep-iteration", "--files", log)
            yield ("verify", log, *JSONL)
        for file in inputs.files(partition, ".index", ".timeindex", ".txnindex", ".snapshot", "checkpoint", "metadata"):
            yield ("dump", file, *JSONL)
            yield ("dump-log", "--index-sanity-check", "--files", file)
    for file in inputs.files(path):
        yield ("dump", file, *JSONL)


# -- the small selection -------------------------------------------------------------------------------------


def _small_partition_commands(inputs: Inputs, path: str) -> Iterator[Command]:
    yield ("verify", path, *LOGFMT)
    yield ("ls", path, *LOGFMT)
    yield ("dump", path, *CSV)
    yield ("dump", path, "--records", "--limit", "20", *JSONL)
    yield from _look_ups(inputs, path, (LOGFMT,))
    yield from (("grep", *pattern, path, "--count", *JSONL) for pattern in PATTERNS)
    yield ("recompress", path, "--explain", "--codec", "none", *JSONL)
    yield ("recompress", path, "--output", OUT, "--codec", "none", *JSONL)
    yield ("salvage", path, "--output", OUT, *LOGFMT)
    yield ("rebuild-index", path, "--output", OUT, *LOGFMT)
    yield ("extract", path, "--output", OUT, "--to", "csv", *LOGFMT)
    yield ("extract", path, "--output", OUT, "--to", "jsonl", *LOGFMT)
    yield ("dump-log", "--print-data-log", "--max-bytes", "3000", "--files", inputs.files(path, ".log")[0])


def _small_damaged_commands(inputs: Inputs, log_dir: LogDir) -> Iterator[Command]:
    path = log_dir.path
    yield ("verify", path, *JSONL)
    yield ("verify", path, "--level", "headers", "--fail-on", "warning", *LOGFMT)
    yield ("ls", path, "--segments", *LOGFMT)
    yield ("dump", path, "--limit", "15", *JSONL)
    yield ("grep", "7", path, "--count", *LOGFMT)
    yield ("salvage", path, "--output", OUT, *JSONL)
    yield ("rebuild-index", path, "--output", OUT, *LOGFMT)
    yield ("recompress", path, "--output", OUT, "--codec", "none", *LOGFMT)
    yield ("extract", path, "--output", OUT, "--to", "jsonl", *LOGFMT)
    for log in (each for partition in log_dir.partitions for each in inputs.files(partition, ".log")[:1]):
        yield ("dump-log", "--files", log)


# -- mistakes of the user ------------------------------------------------------------------------------------


def _usage_mistakes(inputs: Inputs) -> Iterator[Command]:
    path = inputs.sound[0].partitions[-1]
    yield ()
    yield ("no-such-command",)
    for verb in ("ls", "dump", "verify", "find", "recompress", "salvage", "rebuild-index", "extract", "redact"):
        yield (verb,)
        yield (verb, "no/such/path")
        yield (verb, path, "--no-such-option")
        yield (verb, path, "--format", "yaml")
    yield ("grep", "7", "no/such/path")
    yield ("grep", path)
    yield ("grep", "--regex", "(", path)
    yield ("grep", "--bytes", "0g", path)
    yield ("dump", path, "--from-offset", "x")
    yield ("dump", path, "--from-time", "yesterday-ish")
    yield ("verify", path, "--level", "deep")
    yield ("verify", path, "--max-record-bytes", "-1")
    yield ("find", path)
    yield ("find", path, "--offset", "1", "--max-timestamp")
    yield ("recompress", path, "--codec", "brotli", "--output", OUT)
    yield ("salvage", path, "--output", path)
    yield ("salvage", path, "--output", f"{path}/inside")
    yield ("redact", path, "--output", OUT, "--key-file", "no-such-key")
    yield ("dump-log",)
    yield ("dump-log", "--files", "no/such/00000000000000000000.log")
    yield ("verify", str(Path(path).parent / "meta.properties"), "--as", "log", *JSONL)
