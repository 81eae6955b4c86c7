"""kafkalog dump-log where there is no Java: captured output, flags, exit codes, and what it does better."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.building import batch, batches, write_segment
from tests.corpora import REPOSITORY
from tests.oracle.dump_log_goldens import GOLDEN_DIR, GOLDENS, Golden
from tests.running import Run

RunMany = Callable[[Iterable[Iterable[str | Path]]], list[Run]]
FIRST = "00000000000000000000"


@pytest.fixture
def dump_log(run_kafkalog_many: RunMany, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Runs dump-log in the repository's folder."""
    monkeypatch.chdir(REPOSITORY)

    def run(*arguments: str | Path) -> Run:
        [done] = run_kafkalog_many([("dump-log", *arguments)])
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


# -- captured output -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: f"{golden.release}-{golden.name}")
def test_captured_output(golden: Golden, run_kafkalog_many: RunMany, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    expected = golden.path.read_bytes()
    commands = [("dump-log", "--emulate", golden.release, *golden.arguments)]
    if golden.by_default:
        commands.append(("dump-log", *golden.arguments))
    for run in run_kafkalog_many(commands):
        assert run.check(0).stdout.encode() == expected


def test_every_captured_file_is_asked_for() -> None:
    assert {each.path for each in GOLDENS} == set(GOLDEN_DIR.glob("*.txt"))


# -- flags ---------------------------------------------------------------------------------------------------


def test_usage_errors_come_before_any_output(run_kafkalog_many: RunMany, data_dir: Path) -> None:
    log = data_dir / "kafka-4.3-single/node-1/orders-0" / f"{FIRST}.log"
    wrong = (
        (),
        ("--files", log, "--bogus"),
        ("--files", f"{log},no-such-file.log"),
        ("--files", log, "--max-bytes", "x"),
        ("--files", log, "--max-bytes", "-1"),
        ("--files", log, "--max-bytes", "-+5"),
        ("--files", log, "--max-bytes", "9" * 5000),
        ("--files", log, "--key-decoder-class", "my.Decoder"),
        ("--files", log, "--emulate", "2.0"),
        ("--files", f"nowhere/{FIRST}.log", "--emulate", "4.3.1"),
        ("--files", log, "--bogus", "--emulate", "4.3.1"),
        ("--files", log, "--share-group-state-decoder", "--emulate", "3.9.1"),
    )
    for done in run_kafkalog_many(("dump-log", *each) for each in wrong):
        assert (done.check(2).code, done.stdout) == (2, ""), done.arguments
        assert "See 'kafkalog dump-log --help'" in done.stderr


def test_words_that_are_no_flags_are_reported(dump_log: Callable[..., Run], data_dir: Path) -> None:
    log = data_dir / "kafka-4.3-single/node-1/orders-0" / f"{FIRST}.log"
    done = dump_log("--files", log, "other.log")
    assert done.code == 0
    assert done.stdout == dump_log("--files", log).stdout
    assert "other.log" in done.stderr


def test_several_files_options_add_up(dump_log: Callable[..., Run], data_dir: Path) -> None:
    node = data_dir / "kafka-4.3-single/node-1"
    first, second = node / "orders-0" / f"{FIRST}.log", node / "orders-1" / f"{FIRST}.log"
    assert dump_log("--files", first, "--files", second).stdout == dump_log("--files", f"{first},{second}").stdout


# -- better than Kafka ---------------------------------------------------------------------------------------


def damaged_log(directory: Path) -> Path:
    """A log of twelve batches; the fifth has a broken length, the eighth a changed byte under its CRC."""
    content = [bytearray(each) for each in batches(12)]
    content[4][8:12] = bytes(4)
    content[7][-3] ^= 1
    return write_segment(directory, 0, map(bytes, content))


def test_reading_goes_on_after_damage(dump_log: Callable[..., Run], tmp_path: Path) -> None:
    log = damaged_log(tmp_path / "orders-0")
    size_bytes = len(batches(1)[0])
    ours = dump_log("--files", log)
    assert ours.code == 1
    lines = ours.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("baseOffset: ")] == [
        str(offset) for offset in range(0, 36, 3) if offset != 12
    ]
    assert f"Found {size_bytes} invalid bytes at position {4 * size_bytes} of {FIRST}.log" in lines
    assert [line.endswith("isvalid: false") for line in lines if line.startswith("baseOffset: 21 ")] == [True]
    assert "log-framing-broken" in ours.stderr
    assert "batch-crc-mismatch" in ours.stderr

    kafkas = dump_log("--emulate", "4.3.1", "--files", log)
    assert kafkas.code == 1
    assert kafkas.stdout.splitlines() == lines[: lines.index(f"Found {size_bytes} invalid bytes at position "
                                                             f"{4 * size_bytes} of {FIRST}.log")]  # fmt: skip


def test_one_bad_record_does_not_end_the_run(dump_log: Callable[..., Run], tmp_path: Path) -> None:
    bad = batch(3, [b"x", b"y"], record_count=3, last_offset_delta=2)
    log = write_segment(tmp_path / "orders-0", 0, [batches(1)[0], bad, batch(6, [b"z"])])
    ours = dump_log("--print-data-log", "--files", log)
    assert ours.code == 1
    printed = [line for line in ours.stdout.splitlines() if line.startswith("| ")]
    assert [line.partition("payload: ")[2] for line in printed] == ["value-0", "value-1", "value-2", "x", "y", "", "z"]
    assert printed[5].startswith("| Error in the batch at position ")
    assert "record-count-mismatch" in ours.stderr

    kafkas = dump_log("--emulate", "4.3.1", "--print-data-log", "--files", log)
    assert kafkas.code == 1
    assert kafkas.stdout.count("\n| ") == 5
    words = "a record is cut off by the end of its batch"
    assert kafkas.stderr == f"kafkalog: kafka-dump-log 4.3.1 ends here with an exception: {words}\n"


def test_a_decoder_that_does_not_fit_ends_the_line_and_not_the_run(
    dump_log: Callable[..., Run], tmp_path: Path
) -> None:
    log = write_segment(tmp_path / "orders-0", 0, [batch(0, [b"12345678", b"1"], key=None)])
    arguments = ("--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder", "--files", log)
    lines = dump_log(*arguments).stdout.splitlines()
    assert lines[3].endswith(f"payload: {int.from_bytes(b'12345678', 'big')}")
    assert " Error at offset 1, skipping. " in lines[4]
    kafkas = dump_log("--emulate", "4.3.1", *arguments)
    assert kafkas.code == 1
    assert kafkas.stdout.endswith("headerKeys: []")


def test_a_torn_tail_is_reported_in_kafkas_words(dump_log: Callable[..., Run], tmp_path: Path) -> None:
    whole = b"".join(batches(3))
    log = write_segment(tmp_path / "orders-0", 0, [whole[:-5]])
    left = len(whole) * 2 // 3
    ours = dump_log("--files", log)
    assert ours.stdout.endswith(f"Found {len(whole) - 5 - left} invalid bytes at the end of {FIRST}.log\n")
    assert ours.code == 0  # a crash does that to the last segment, and the broker repairs it
    write_segment(tmp_path / "orders-0", 9, batches(1, 9))
    assert dump_log("--files", log).code == 1


def test_a_zero_tail_does_not_kill(dump_log: Callable[..., Run], tmp_path: Path) -> None:
    log = write_segment(tmp_path / "orders-0", 0, [*batches(2), bytes(500)])
    ours = dump_log("--files", log)
    assert ours.code == 0
    assert ours.stdout.endswith(f"Found 500 invalid bytes at the end of {FIRST}.log\n")
    kafkas = dump_log("--emulate", "4.3.1", "--files", log)
    assert kafkas.code == 1
    assert kafkas.stdout == "".join(ours.stdout.splitlines(keepends=True)[:-1])


def test_gaps_are_reported_without_minus_one(dump_log: Callable[..., Run], tmp_path: Path) -> None:
    log = write_segment(tmp_path / "orders-0", 30, [batch(30), batch(40)])
    ours = dump_log("--deep-iteration", "--files", log)
    assert ours.code == 0
    reported = [f"Non-consecutive offsets in {log}", "  32 is followed by 40"]
    assert ours.stderr.splitlines() == reported
    assert dump_log("--emulate", "3.9.1", "--deep-iteration", "--files", log).stderr.splitlines() == reported
    assert dump_log("--emulate", "4.3.1", "--deep-iteration", "--files", log).stderr.splitlines() == [
        reported[0],
        "  -1 is followed by 30",
        reported[1],
    ]


def test_an_index_of_an_older_broker_is_no_mismatch(dump_log: Callable[..., Run], data_dir: Path) -> None:
    index = data_dir / "kafka-0.8-to-2.8/data/legacy-0" / f"{FIRST}.index"
    ours = dump_log("--files", index)
    assert (ours.code, ours.stderr) == (0, "")
    kafkas = dump_log("--emulate", "4.3.1", "--files", index)
    assert kafkas.stdout == ours.stdout
    assert kafkas.stderr.startswith(f"Mismatches in :{index}\n  Index offset: ")


def test_an_index_that_misleads_is_one(dump_log: Callable[..., Run], data_dir: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(data_dir / "kafka-4.3-single/node-1/orders-0", tmp_path / "orders-0")
    index = copy / f"{FIRST}.index"
    content = bytearray(index.read_bytes())
    content[15] ^= 1  # the position of the second entry
    index.write_bytes(content)
    ours = dump_log("--verify-index-only", "--files", index)
    assert ours.code == 1
    assert "offset-index-mismatch" in ours.stderr
    assert f"Mismatches in :{index}\n  Index offset: 310, log offset: none\n" in ours.stderr


def test_nothing_is_created_or_trimmed(
    dump_log: Callable[..., Run], data_dir: Path, tmp_path: Path, source_snapshot: Callable[[Path], None]
) -> None:
    copy = shutil.copytree(data_dir / "kafka-4.3-single/node-1/orders-0", tmp_path / "orders-0")
    (copy / f"{FIRST}.index").unlink()
    other = copy / "00000000000000009999.index"
    other.write_bytes(bytes(range(11)))
    write_segment(copy, 9999, batches(1, 9999))
    source_snapshot(copy)
    ours = dump_log("--files", copy / f"{FIRST}.timeindex")
    assert ours.code == 0
    assert ours.stdout.count("timestamp: ") > 3
    kafkas = dump_log("--emulate", "4.3.1", "--files", copy / f"{FIRST}.timeindex")
    assert (kafkas.code, kafkas.stdout) == (1, f"Dumping {copy / FIRST}.timeindex\n")
    for emulate in ((), ("--emulate", "4.3.1"), ("--emulate", "3.9.1")):
        dump_log(*emulate, "--index-sanity-check", "--files", other)


def test_an_index_that_fails_the_sanity_check_does_not_end_the_run(
    dump_log: Callable[..., Run], data_dir: Path
) -> None:
    ledger = data_dir / "kafka-4.3/node-1/ledger-0"
    files = f"{ledger / FIRST}.timeindex,{ledger / FIRST}.index"
    ours = dump_log("--index-sanity-check", "--files", files)
    assert f"{ledger / FIRST}.timeindex failed sanity check.\n" in ours.stdout
    assert ours.stdout.endswith(f"{ledger / FIRST}.index passed sanity check.\n")
    kafkas = dump_log("--emulate", "4.3.1", "--index-sanity-check", "--files", files)
    assert (kafkas.code, kafkas.stdout) == (1, f"Dumping {ledger / FIRST}.timeindex\n")


def test_output_ends_quietly_when_its_reader_does(data_dir: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    log = data_dir / "kafka-4.3-single/node-1/orders-0" / f"{FIRST}.log"
    done = subprocess.run(
        [sys.executable, "-m", "kafkalog_cli", "dump-log", "--print-data-log", "--files", str(log)],
        stdout=writer,
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_control_characters_are_escaped_on_a_terminal_only(tmp_path: Path) -> None:
    hostile = "\x1b]52;c;QQ==\x07\u202e\x9b2J".encode()
    log = write_segment(tmp_path / "t-0", 0, [batch(0, [hostile])])
    command = [sys.executable, "-m", "kafkalog_cli", "dump-log", "--print-data-log", "--files", str(log)]
    piped = subprocess.run(command, capture_output=True, timeout=60, check=True).stdout
    assert hostile in piped
    master, slave = pty.openpty()
    with subprocess.Popen(command, stdout=slave, stderr=subprocess.DEVNULL) as process:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the program has ended
            while part := os.read(master, 65536):
                shown += part
    os.close(master)
    assert process.returncode == 0
    assert not [code for code in (b"\x1b", b"\x07", b"\xc2\x9b", "\u202e".encode()) if code in shown]
    assert b"\\x1b]52;c;QQ==\\x07\\u202e\\u009b2J" in shown
    assert shown.replace(b"\r\n", b"\n").count(b"\n") == piped.count(b"\n")
