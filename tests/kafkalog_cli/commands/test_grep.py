"""``kafkalog grep``: how it is asked, what it shows, and what it exits with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.building import BASE_TIMESTAMP, batch, write_segment
from tests.kafkalog_cli.reading import assert_screen_safe, from_json, read_text_line
from tests.running import Run, Word

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
JSON = ("--format", "jsonl")
JSON_COLUMNS = {"headers", "is_transactional", "is_control"}


def partition_of(tmp_path: Path) -> Path:
    """Offsets 0 to 5 in two segments: keys, values and headers that differ, a null value, bytes that are no text."""
    partition = tmp_path / "orders-0"
    write_segment(
        partition,
        0,
        [
            batch(0, [b"apple", b"Banana"], key=b"user-1", producer_id=7, producer_epoch=1, base_sequence=0),
            batch(2, [None], key=b"user-2", headers=((b"trace", b"apple"), (b"other", b"x"))),
        ],
    )
    write_segment(
        partition,
        3,
        [
            batch(3, [b"\xff\x00\x1b[31mred", b"pineapple"], key=b"-x", codec=4),
            batch(5, [b"last"], key=None, producer_id=7, producer_epoch=2, base_sequence=2),
        ],
    )
    return partition


def offsets(run: Run) -> list[int]:
    return [row["offset"] for row in run.rows("record")]


#: The words of a search, and the offsets that it finds.
SEARCHES = (
    (("apple",), [0, 2, 4]),
    (("apple", "--in", "value"), [0, 4]),
    (("apple", "--in", "header"), [2]),
    (("user", "--in", "key", "--in", "header"), [0, 1, 2]),
    (("trace", "--in", "any"), [2]),
    (("-i", "BANANA"), [1]),
    (("--regex", "^.pple$"), [0, 2]),
    (("--regex", "-i", "^BAN"), [1]),
    (("--header", "trace", "apple"), [2]),
    (("--header", "other", "apple"), []),
    (("--header", "trace", "--header", "other", "x"), [2]),
    (("--header", "other", "--in", "value", "pine"), [4]),
    (("--all", "--header", "trace"), [2]),
    (("--all", "--header", "trace", "--invert"), [0, 1, 3, 4, 5]),
    (("--bytes", "ff 00"), [3]),
    (("--bytes", "0xFF00"), [3]),
    (("apple", "--invert"), [1, 3, 5]),
    (("--all", "--tombstones"), [2]),
    (("user", "--tombstones"), [2]),
    (("--all", "--producer-id", "7"), [0, 1, 5]),
    (("--all", "--producer-id", "7", "--producer-epoch", "2"), [5]),
    (("apple", "--from-offset", "1", "--to-offset", "4"), [2, 4]),
    (("apple", "--from-time", str(BASE_TIMESTAMP + 1), "--to-time", str(BASE_TIMESTAMP + 2)), [2]),
    (("apple", "--limit", "2"), [0, 2]),
    (("apple", "-m", "2"), [0, 2]),
    (("apple", "-v"), [1, 3, 5]),
    (("-e", "apple", "-e", "anana", "--in", "value"), [0, 1, 4]),
    (("-e", "-x"), [3, 4]),
    (("--regex", "-e", "^a", "-e", "t$", "--in", "value"), [0, 5]),
    (("-v", "-e", "apple", "-e", "last"), [1, 3]),
    (("",), [0, 1, 2, 3, 4, 5]),
    (("--all",), [0, 1, 2, 3, 4, 5]),
    (("nothing of it",), []),
)


@pytest.fixture(scope="module")
def searches(tmp_path_factory: pytest.TempPathFactory, run_kafkalog_many: RunMany) -> dict[tuple[str, ...], Run]:
    """The run of each search."""
    partition = partition_of(tmp_path_factory.mktemp("searches"))
    runs = run_kafkalog_many(("grep", *JSON, *words, partition) for words, _ in SEARCHES)
    return {words: run for (words, _), run in zip(SEARCHES, runs, strict=True)}


@pytest.mark.parametrize(("words", "expected"), SEARCHES)
def test_what_is_found(searches: dict[tuple[str, ...], Run], words: tuple[str, ...], expected: list[int]) -> None:
    """The offsets, 0 or 1 for found or not, and a summary that counts them."""
    run = searches[words]
    assert offsets(run.check(0 if expected else 1)) == expected
    assert run.summary["counts"].get("record", 0) == len(expected)
    assert run.summary["conditions"] == ([] if expected else ["nothing-found"])
    assert run.summary["complete"] is True


def test_rows_are_those_of_dump(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Each format writes the very lines that dump writes of the same records."""
    partition = partition_of(tmp_path)
    for name in ("jsonl", "logfmt", "csv", "text", "table"):
        found, dumped = run_kafkalog_many(
            [
                ("grep", "--all", "--format", name, partition),
                ("dump", "--records", "--format", name, partition),
            ]
        )
        assert found.check(0).stdout.replace('"grep"', '"dump"') == dumped.check(0).stdout


def test_a_pattern_that_starts_with_a_dash(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    (run,) = run_kafkalog_many([("grep", *JSON, "--", "-x", partition_of(tmp_path))])
    assert offsets(run.check(0)) == [3, 4]


def test_hostile_bytes(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """What could move a cursor is escaped in every format; JSON and text lose nothing."""
    partition = partition_of(tmp_path)
    runs = run_kafkalog_many(
        ("grep", "[31m", "--format", name, partition) for name in ("table", "logfmt", "jsonl", "csv")
    )
    for run in runs:
        assert_screen_safe(run.check(0).stdout.encode())
    _, words = read_text_line(runs[1].stdout.rstrip("\n"), JSON_COLUMNS)
    assert words["value"] == b"\xff\x00\x1b[31mred"
    assert from_json(runs[2].rows("record")[0]["value"]) == b"\xff\x00\x1b[31mred"


def test_a_table_shows_what_is_around_the_match(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Of a very long value the part with the match, of characters none cut; the other formats have all of it."""
    partition = tmp_path / "orders-0"
    long = "é" * 5000 + "needle" + "ü" * 5000
    write_segment(partition, 0, [batch(0, [long.encode(), b"a short needle"])])
    table, text = run_kafkalog_many(("grep", "needle", "--format", name, partition) for name in ("table", "text"))
    shown = table.check(0).stdout
    assert "…" + "é" * 30 + "needle" + "ü" * 20 in shown
    assert "é" * 60 not in shown
    assert "\\x" not in shown
    assert "a short needle" in shown
    assert long in text.check(0).stdout


def test_files(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Counts for each log file, none left out; or only the files with a match."""
    partition = partition_of(tmp_path)
    count, files, none, first, text = run_kafkalog_many(
        [
            ("grep", "Banana", "--count", *JSON, tmp_path / "orders-0"),
            ("grep", "Banana", "--files-with-matches", *JSON, partition),
            ("grep", "nothing of it", "--count", *JSON, partition),
            ("grep", "e", "--files-with-matches", "--limit", "1", *JSON, partition),
            ("grep", "Banana", "--count", "--format", "logfmt", partition),
        ]
    )
    paths = [str(partition / f"{base:020d}.log") for base in (0, 3)]
    place = {"type": "file_match", "topic": "orders", "partition": 0}
    assert count.check(0).rows() == [
        {**place, "path": paths[0], "segment_base_offset": 0, "record_count": 1},
        {**place, "path": paths[1], "segment_base_offset": 3, "record_count": 0},
    ]
    assert count.summary["counts"] == {"file_match": 2, "found_record": 1}
    assert files.check(0).rows() == [{**place, "path": paths[0], "segment_base_offset": 0, "record_count": None}]
    assert [row["record_count"] for row in none.check(1).rows()] == [0, 0]
    assert [row["path"] for row in first.check(0).rows()] == paths[:1]
    assert text.check(0).stdout.splitlines()[0].startswith(f"file_match path={paths[0]} topic=orders partition=0 ")


def test_damage(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """A batch that cannot be trusted is not searched: a finding says so, and 1 wins over found."""
    partition = tmp_path / "orders-0"
    broken = bytearray(batch(1, [b"apple"]))
    broken[17] ^= 1  # of its CRC
    write_segment(partition, 0, [batch(0, [b"apple"]), bytes(broken), batch(2, [b"apple"])])
    (run,) = run_kafkalog_many([("grep", "apple", *JSON, partition)])
    assert offsets(run.check(1)) == [0, 2]
    (found,) = run.rows("finding")
    assert (found["code"], found["lost_offsets"]) == ("batch-crc-mismatch", [1, 1])
    assert run.summary["conditions"] == ["damage"]


def test_several_paths(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """In the order given; the limit is for all of them together."""
    partition = partition_of(tmp_path)
    first, second = (partition / f"{base:020d}.log" for base in (0, 3))
    both, limited = run_kafkalog_many(
        [("grep", "apple", *JSON, second, first), ("grep", "apple", "--limit", "2", *JSON, second, first)]
    )
    assert offsets(both.check(0)) == [4, 0, 2]
    assert offsets(limited.check(0)) == [4, 0]


def test_usage(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = partition_of(tmp_path)
    index = partition / f"{0:020d}.index"
    index.write_bytes(b"")
    (tmp_path / "other.txt").write_text("x")
    cases: list[tuple[tuple[Word, ...], str]] = [
        ((), "missing argument"),
        ((partition,), "no PATH after the PATTERN"),
        (("x", tmp_path / "missing-0"), "no such file"),
        (("--regex", "(", partition), "not a regular expression"),
        (("--regex", "[é]", partition), "single bytes"),
        (("--bytes", "f", partition), "hexadecimal"),
        (("--bytes", "", partition), "hexadecimal"),
        (("--bytes", "ff", "--all", partition), "one of -e, --bytes and --all"),
        (("-e", "x", "--all", partition), "one of -e, --bytes and --all"),
        (("--bytes", "ff", "--regex", partition), "go with a PATTERN"),
        (("--all", "--in", "key", partition), "--all looks for nothing"),
        (("--all", "--invert", partition), "--all looks for nothing"),
        (("--in", "body", "x", partition), "one of key, value, header, any"),
        (("--header", "h", "--in", "header", "x", partition), "give one"),
        (("--count", "--files-with-matches", "x", partition), "one of --count"),
        (("--count", "--limit", "1", "x", partition), "leave out --limit"),
        (("--count", "--with", "path", "x", partition), "leave out --count"),
        (("-l", "--with", "path", "x", partition), "leave out --count and --files-with-matches"),
        (("--limit", "0", "x", partition), "from 1 to"),
        (("x", index), "a file of the kind index holds no records"),
        (("x", tmp_path / "other.txt"), "other.txt"),
    ]
    for (_, words), run in zip(cases, run_kafkalog_many(("grep", *each) for each, _ in cases), strict=True):
        assert run.check(2).stdout == ""
        assert words in " ".join(run.stderr.split())


def test_the_source_stays_as_it_was(
    tmp_path: Path, run_kafkalog_many: RunMany, source_snapshot: Callable[[Path], None]
) -> None:
    source_snapshot(partition_of(tmp_path))
    run_kafkalog_many([("grep", "apple", tmp_path / "orders-0", "--count")])


def test_in_a_process_of_its_own(data_dir: Path, run_kafkalog: Callable[..., Run]) -> None:
    """A whole log directory, internal topics too, whose records are searched as the bytes that they are."""
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    run = run_kafkalog("grep", "orders", "--in", "key", *JSON, log_dir).check(0)
    assert {row["topic"] for row in run.rows("record")} == {"__consumer_offsets"}
    assert "EXIT STATUS" in run_kafkalog("grep", "--help").check(0).stdout


def test_records_around_a_match(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = partition_of(tmp_path)
    before, around, across, limited, refused = run_kafkalog_many(
        [
            ("grep", "-B", "1", "Banana", partition, "--with", "path", *JSON),
            ("grep", "-C", "5", "Banana", partition, *JSON),
            ("grep", "-C", "2", "red", partition, "--with", "path", *JSON),
            ("grep", "-C", "1", "-m", "1", "a", "--in", "value", partition, *JSON),
            ("grep", "-C", "1", "--count", "e", partition),
        ]
    )
    assert [(row["offset"], row["is_match"]) for row in before.rows("record")] == [(0, False), (1, True)]
    assert {row["path"] for row in before.rows("record")} == {str(partition / f"{0:020d}.log")}
    assert offsets(around) == [0, 1, 2, 3, 4, 5]
    assert offsets(across) == [1, 2, 3, 4, 5]
    segments = [str(partition / f"{first:020d}.log") for first in (0, 0, 3, 3, 3)]
    assert [row["path"] for row in across.rows("record")] == segments
    assert [(row["offset"], row["is_match"]) for row in limited.rows("record")] == [(0, True)]
    refused.check(2)


def test_records_below_the_log_start(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = partition_of(tmp_path)
    (tmp_path / "meta.properties").write_text("version=1\n")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    marked, left_out, lone = run_kafkalog_many(
        [
            ("grep", "--all", "--with", "is_below_log_start", partition, *JSON),
            ("grep", "--all", "--from-log-start", partition, *JSON),
            ("dump", "--records", "--from-log-start", partition / f"{3:020d}.log", *JSON),
        ]
    )
    assert [row["is_below_log_start"] for row in marked.rows("record")] == [True] * 4 + [False] * 2
    assert offsets(left_out) == [4, 5]
    assert offsets(lone) == [4, 5]


def test_a_range_in_which_nothing_lies_is_said(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = write_segment(tmp_path / "t-0", 0, [batch(0), batch(3)]).parent
    past, narrowed = run_kafkalog_many(
        ("grep", "--all", partition, "--from-offset", "6", *more) for more in ((), ("--producer-id", "5"))
    )
    assert past.check(1).stderr.startswith("No record in the range: the log of t-0 goes from offset 0 to 5.\n")
    assert "No record in the range" not in narrowed.check(1).stderr


def replicas_of(tmp_path: Path) -> list[Path]:
    """The log directories of three nodes: an offset that all have, one that differs, one that a replica lacks."""
    log_dirs = []
    for node_id, values in ((1, [b"same", b"mine", b"more"]), (2, [b"same", b"theirs"]), (3, [b"same", b"theirs"])):
        log_dir = tmp_path / f"node-{node_id}"
        write_segment(log_dir / "t-0", 0, [batch(number, [value]) for number, value in enumerate(values)])
        (log_dir / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={node_id}\n")
        log_dirs.append(log_dir)
    return log_dirs


def test_the_replicas_of_two_clusters_are_named_by_their_paths(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Two nodes with one id looked like one."""
    log_dirs = replicas_of(tmp_path)[:2]
    (log_dirs[1] / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=1\n")
    for run in run_kafkalog_many([("grep", "same", *log_dirs), ("dump", "--records", "t-0:0", *log_dirs)]):
        assert [line.split("[on ")[1].split("]")[0] for line in run.check(0).stdout.splitlines() if "[on" in line] == [
            str(each) for each in log_dirs
        ]


def test_a_record_of_several_replicas_is_shown_once(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """In other formats each replica has a row of its own, and --with path tells them apart."""
    log_dirs = replicas_of(tmp_path)
    table, rows, limited, one = run_kafkalog_many(
        [
            ("grep", "e", "--format", "table", *log_dirs),
            ("grep", "e", *JSON, "--with", "path", *log_dirs),
            ("grep", "e", "-m", "1", tmp_path),
            ("grep", "same", log_dirs[0]),
        ]
    )
    time = "2023-11-14T22:13:20.00"
    assert table.check(0).stdout.splitlines() == [
        f"t-0 @ 0  {time}0Z  k  [on nodes 1, 2 and 3]",
        "    same",
        f"t-0 @ 1  {time}1Z  k  [on node 1; another record on nodes 2 and 3]",
        "    mine",
        f"t-0 @ 1  {time}1Z  k  [on nodes 2 and 3; another record on node 1]",
        "    theirs",
        f"t-0 @ 2  {time}2Z  k  [on node 1]",
        "    more",
        "",
        "more columns: --columns all",
    ]
    assert [(row["offset"], Path(row["path"]).parts[-3]) for row in rows.check(0).rows("record")] == [
        *((offset, "node-1") for offset in range(3)),
        *((offset, node) for node in ("node-2", "node-3") for offset in range(2)),
    ]
    assert limited.check(0).stdout == f"t-0 @ 0  {time}0Z  k  [on nodes 1, 2 and 3]  same\n"
    assert one.check(0).stdout == f"t-0 @ 0  {time}0Z  k  same\n"


def test_counts_and_files_for_people(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """A count for each partition with a match, and the bare paths of files."""
    partition = partition_of(tmp_path)
    write_segment(tmp_path / "other-0", 0, [batch(0, [b"none of it"])])
    count, files = run_kafkalog_many(
        [
            ("grep", "-c", "apple", tmp_path),
            ("grep", "-l", "apple", tmp_path),
        ]
    )
    assert count.check(0).stdout.splitlines() == [
        "topic   partition  record_count  path",
        f"orders          0             3  {partition}",
    ]
    assert "other" not in count.stdout
    assert files.check(0).stdout == "".join(f"{partition / f'{base:020d}.log'}\n" for base in (0, 3))


def test_who_can_see_a_record(data_dir: Path, run_kafkalog_many: RunMany) -> None:
    partition = data_dir / "field" / "4.3.1-transactions-heads-compaction" / "node-1-0" / "payments-0"
    table, rows = run_kafkalog_many(("grep", "--all", "--format", name, partition) for name in ("table", "jsonl"))
    controls = [row["offset"] for row in rows.check(0).rows("record") if row["is_control"]]
    headings = [line for line in table.check(0).stdout.splitlines() if line.startswith("payments-0 @ ")]
    assert [int(each.split()[2]) for each in headings if each.endswith("[control]")] == controls
    assert any(each.endswith("[aborted]") for each in headings)
    assert any(each.endswith("[read_uncommitted only]") for each in headings)
