"""Questions of an incident in SQL: each answer is that of the verb that answers the same question."""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.running import Run

pytest.importorskip("datafusion")
pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]
_SINGLE = "kafka-4.3-single/node-1"
_GROUPS = "groups/node-1"
_TXNS = "trials/transactions/node-1"
_BOTH = "kafka-4.3/node-1 kafka-4.3/node-2"


@dataclass(frozen=True)
class Question:
    """A question in SQL about some paths, and the answer from the rows of a verb."""

    paths: str
    sql: str
    verb: str
    answer: Callable[[Rows], Iterable[tuple[Any, ...]]]
    is_ordered: bool = False


def _columns(*names: str, where: Callable[[dict[str, Any]], bool] = lambda row: True) -> Callable[[Rows], Any]:
    return lambda rows: [tuple(row[name] for name in names) for row in rows if where(row)]


def _of(kind: str, made: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
    return lambda rows: made([row for row in rows if row["type"] == kind])


def _count_by(*names: str) -> Callable[[Rows], Any]:
    return lambda rows: [(*key, n) for key, n in Counter(tuple(row[name] for name in names) for row in rows).items()]


def _sums_by(name: str, *sums: str) -> Callable[[Rows], Any]:
    def made(rows: Rows) -> list[tuple[Any, ...]]:
        return [
            (key, *(sum(row[each] or 0 for row in rows if row[name] == key) for each in sums))
            for key in {row[name] for row in rows}
        ]

    return made


def _json_text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_DUMP = "dump --records --raw"
QUESTIONS = (
    # records: dump, grep, find
    Question(_SINGLE, "SELECT topic, count(*) AS n FROM records GROUP BY topic", _DUMP, _count_by("topic")),
    Question(_SINGLE, "SELECT topic, partition, offset, timestamp FROM records", _DUMP,
             _columns("topic", "partition", "offset", "timestamp"), is_ordered=True),
    Question(_SINGLE, "SELECT * FROM records WHERE topic = 'orders' AND partition = 0 AND offset BETWEEN 300 AND 320",
             f"{_DUMP} --value-as auto --with path --with is_below_log_start --from-offset 300 --to-offset 320 =/orders-0",
             lambda rows: [tuple(_json_text(value) if name.endswith("_decoded") else value
                                 for name, value in list(row.items())[1:]) for row in rows], is_ordered=True),
    Question(_SINGLE, "SELECT key, value FROM records WHERE topic = 'users' AND partition = 0 AND offset IN (5, 600)",
             f"{_DUMP} =/users-0", _columns("key", "value", where=lambda row: row["offset"] in (5, 600))),
    Question(_SINGLE, "SELECT offset FROM records WHERE topic = 'orders' AND partition = 1 AND timestamp BETWEEN "
             "'2026-11-03T00:00:00Z' AND '2026-11-04T00:00:00Z'",
             f"{_DUMP} --from-time 2026-11-03 --to-time 2026-11-04 =/orders-1", _columns("offset"), is_ordered=True),
    Question(_SINGLE, "SELECT min(offset) AS first FROM records WHERE topic = 'orders' AND partition = 0 AND timestamp >= "
             "'2026-11-03T00:00:00Z'", "find --timestamp 2026-11-03 =/orders-0", _of("match", _columns("offset"))),
    Question(_SINGLE, "SELECT offset, is_control, producer_id FROM records WHERE offset = 111 AND topic = 'payments' "
             "AND partition = 0", "find --offset 111 =/payments-0",
             _of("match", _columns("offset", "is_control", "producer_id"))),
    Question(_SINGLE, "SELECT offset FROM records WHERE topic = 'orders' AND partition = 0 AND key = 'customer-646'",
             "grep --regex --in key ^customer-646$ =/orders-0", _of("record", _columns("offset")), is_ordered=True),
    Question(_SINGLE, "SELECT topic, offset FROM records WHERE text(value) LIKE '%SKU-0486%'",
             "grep SKU-0486 --in value", _of("record", _columns("topic", "offset"))),
    Question(_SINGLE, "SELECT offset, json_value(text(value), '$.qty') AS q FROM records WHERE topic = 'orders' AND "
             "json_value(text(value), '$.qty') = '7'", "grep --regex --in value '\"qty\": 7,' =/orders-0 =/orders-1 =/orders-2",
             _of("record", lambda rows: [(row["offset"], "7") for row in rows])),
    Question(_SINGLE, "SELECT offset, value_format FROM records WHERE topic = 'orders' AND partition = 0 AND "
             "json_value(value_decoded, '$.qty') = '7'", f"{_DUMP} --value-as auto =/orders-0",
             lambda rows: [(row["offset"], "json") for row in rows if (row["value_decoded"] or {}).get("qty") == 7],
             is_ordered=True),
    Question(_SINGLE, "SELECT offset FROM records WHERE is_control AND topic = 'payments'", _DUMP,
             _columns("offset", where=lambda row: row["is_control"] and row["topic"] == "payments")),
    Question(_SINGLE, "SELECT topic, offset FROM records WHERE value IS NULL", _DUMP,
             _columns("topic", "offset", where=lambda row: row["value"] is None)),
    Question(_SINGLE, "SELECT topic, sum(size_bytes) AS b, max(offset) AS last FROM records GROUP BY topic", _DUMP,
             lambda rows: [(topic, size, max(row["offset"] for row in rows if row["topic"] == topic))
                           for topic, size in _sums_by("topic", "size_bytes")(rows)]),
    Question(_SINGLE, "SELECT producer_id, count(*) AS n FROM records WHERE producer_id >= 0 GROUP BY producer_id", _DUMP,
             lambda rows: _count_by("producer_id")([row for row in rows if (row["producer_id"] or 0) >= 0])),
    Question(_SINGLE, "SELECT offset, headers FROM records WHERE topic = 'clients' AND cardinality(headers) > 0",
             f"{_DUMP} =/clients-0", _columns("offset", "headers", where=lambda row: bool(row["headers"])), is_ordered=True),
    Question(_BOTH, "SELECT path, count(*) AS n FROM records GROUP BY path", f"{_DUMP} --with path", _count_by("path")),
    Question(_BOTH, "SELECT a.offset FROM records AS a LEFT ANTI JOIN records AS b ON a.offset = b.offset AND a.leader_epoch = b.leader_epoch AND b.path LIKE "
             "'%node-2/%' AND b.topic = 'ledger' WHERE a.topic = 'ledger' AND a.path LIKE '%node-1/%'", "diff",
             _of("divergence", lambda rows: [(offset,) for row in rows if row["topic"] == "ledger"
                                             for offset in range(row["unique_from"][0], row["unique_to"][0] + 1)])),
    # batches
    Question(_SINGLE, "SELECT codec, count(*) AS n FROM batches GROUP BY codec", "dump", _of("batch", _count_by("codec"))),
    Question(_SINGLE, "SELECT topic, sum(size_bytes) AS b, sum(record_count) AS n FROM batches GROUP BY topic", "dump",
             _of("batch", _sums_by("topic", "size_bytes", "record_count"))),
    Question(_SINGLE, "SELECT base_offset, crc, crc_valid FROM batches WHERE topic = 'orders' AND partition = 0",
             "dump =/orders-0", _of("batch", _columns("base_offset", "crc", "crc_valid")), is_ordered=True),
    Question(_SINGLE, "SELECT base_offset FROM batches WHERE topic = 'orders' AND partition = 0 AND base_offset <= 400 AND "
             "last_offset >= 400", "dump --from-offset 400 --to-offset 400 =/orders-0", _of("batch", _columns("base_offset"))),
    Question("kafka-0.8-to-2.8/data", "SELECT magic, codec, sum(record_count) AS n FROM batches GROUP BY magic, codec",
             f"{_DUMP}", _count_by("magic", "codec")),
    Question(_SINGLE, "SELECT topic, max(max_timestamp) AS t FROM batches WHERE max_timestamp >= '2026-11-08T00:00:00Z' "
             "GROUP BY topic", "dump", _of("batch", lambda rows: [
                 (topic, max(times)) for topic in {row["topic"] for row in rows}
                 if (times := [row["max_timestamp"] for row in rows
                               if row["topic"] == topic and row["max_timestamp"] >= 1794096000000])])),
    # ls
    Question(_SINGLE, "SELECT * FROM segments", "ls --segments",
             _of("segment", lambda rows: [tuple(row.values())[1:] for row in rows]), is_ordered=True),
    Question(_SINGLE, "SELECT path, size_bytes FROM segments WHERE topic = 'trimmed'", "ls --segments",
             _of("segment", _columns("path", "size_bytes", where=lambda row: row["topic"] == "trimmed"))),
    Question(_SINGLE, "SELECT topic, partition, log_start_offset, log_end_offset, high_watermark FROM partitions", "ls",
             _of("partition", _columns("topic", "partition", "log_start_offset", "log_end_offset", "high_watermark"))),
    Question(_SINGLE, "SELECT topic, sum(size_bytes) AS b FROM partitions GROUP BY topic", "ls",
             _of("partition", _sums_by("topic", "size_bytes"))),
    Question(_SINGLE, "SELECT segment_base_offset, offset, position FROM index_entries WHERE kind = 'offset_index_entry' AND "
             "topic = 'orders' AND partition = 0 AND segment_base_offset = 0",
             "dump =/orders-0/00000000000000000000.index",
             _of("offset_index_entry", _columns("segment_base_offset", "offset", "position")), is_ordered=True),
    # verify
    Question(_SINGLE, "SELECT code, severity, topic, partition, offset FROM findings", "verify",
             _of("finding", _columns("code", "severity", "topic", "partition", "offset"))),
    Question("DAMAGED", "SELECT code, position, lost_offsets FROM findings WHERE severity = 'fatal'", "verify",
             _of("finding", lambda rows: [(row["code"], row["position"], json.dumps(row["lost_offsets"])) for row in rows
                                          if row["severity"] == "fatal"])),
    Question("DAMAGED", "SELECT count(*) AS n FROM records", _DUMP,
             _of("record", lambda rows: [(len(rows),)])),
    # txns
    Question(_TXNS, "SELECT transactional_id, first_offset, state FROM transactions WHERE state = 'open'", "txns --open",
             _of("transaction", _columns("transactional_id", "first_offset", "state"))),
    Question(_TXNS, "SELECT topic, partition, state, count(*) AS n FROM transactions GROUP BY topic, partition, state",
             "txns", _of("transaction", _count_by("topic", "partition", "state"))),
    Question(_TXNS, "SELECT producer_id, abort_command FROM transactions WHERE is_hanging", "txns --hanging",
             _of("transaction", _columns("producer_id", "abort_command", where=lambda row: row["is_hanging"]))),
    # groups
    Question(_GROUPS, 'SELECT "group", state, total_lag FROM groups', "groups",
             _of("group", _columns("group", "state", "total_lag"))),
    Question(_GROUPS, 'SELECT "group" FROM groups WHERE total_lag > 1000 ORDER BY total_lag DESC, 1 LIMIT 5', "groups",
             _of("group", lambda rows: [(row["group"],) for row in sorted(
                 (row for row in rows if (row["total_lag"] or 0) > 1000), key=lambda row: (-row["total_lag"], row["group"]))[:5]]),
             is_ordered=True),
    Question(_GROUPS, 'SELECT topic, partition, sum(lag) AS lag FROM group_offsets WHERE lag > 0 GROUP BY 1, 2', "groups",
             _of("group_offset", lambda rows: [(*key, sum(row["lag"] for row in rows if (row["topic"], row["partition"]) == key
                                                          and (row["lag"] or 0) > 0))
                                               for key in {(row["topic"], row["partition"]) for row in rows
                                                           if (row["lag"] or 0) > 0}])),
    # producers, metadata, retention
    Question(_SINGLE, "SELECT producer_id, topic, partition, gap_count, duplicate_count FROM producers WHERE topic = 'orders'",
             "producers --topic orders",
             _of("producer", _columns("producer_id", "topic", "partition", "gap_count", "duplicate_count"))),
    Question(_SINGLE, "SELECT topic, topic_id, partition_count FROM topics", "metadata",
             _of("topic", _columns("topic", "topic_id", "partition_count"))),
    Question(_SINGLE, "SELECT resource_name, value FROM configs WHERE name = 'cleanup.policy'", "metadata",
             _of("config", _columns("resource_name", "value", where=lambda row: row["name"] == "cleanup.policy"))),
    Question(_SINGLE, "SELECT s.topic, s.partition, s.segment_base_offset FROM segments s JOIN configs c ON c.resource_name = "
             "s.topic AND c.name = 'retention.ms' AND c.value = '-1'", "retention",
             _of("segment_retention", _columns("topic", "partition", "segment_base_offset",
                                               where=lambda row: row["retention_ms"] == -1
                                               and row["config_source"] != "metadata.max.retention.ms"))),
)  # fmt: skip


@pytest.fixture(scope="module")
def answered(
    run_kafkalog_many: Callable[..., list[Run]], tmp_path_factory: pytest.TempPathFactory, data_dir: Path
) -> dict[str, tuple[Run, Run]]:
    """The run of sql and that of the verb, by question."""
    damaged = tmp_path_factory.mktemp("damaged") / "orders-0"
    shutil.copytree(data_dir / _SINGLE / "orders-0", damaged)
    log = damaged / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[40000] ^= 1  # in a body
    log.write_bytes(content)
    commands: list[tuple[Any, ...]] = []
    for each in QUESTIONS:
        paths = [damaged if path == "DAMAGED" else data_dir / path for path in each.paths.split()]
        words = shlex.split(each.verb)
        own = [f"{paths[0]}{word[1:]}" for word in words if word.startswith("=/")]
        verb = [word for word in words if not word.startswith("=/")]
        commands.append(("sql", "--format", "jsonl", each.sql, *paths))
        commands.append((verb[0], "--format", "jsonl", *verb[1:], *(own or paths)))
    runs = run_kafkalog_many(commands)
    return {each.sql: pair for each, pair in zip(QUESTIONS, zip(runs[::2], runs[1::2], strict=True), strict=True)}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.sql[:60])
def test_sql_answers_as_the_verb(question: Question, answered: dict[str, tuple[Run, Run]]) -> None:
    sql, verb = answered[question.sql]
    verb.check(0, 1)
    is_damaged = question.paths == "DAMAGED"
    sql.check(1 if is_damaged else verb.code if question.verb.startswith(("verify", "txns")) else 0)
    got = [tuple(row.values())[1:] for row in sql.rows("row")]
    expected = [tuple(row) for row in question.answer(verb.rows())]
    assert expected, "the verb answers nothing"
    if question.is_ordered:
        assert got == expected
    else:
        assert Counter(map(repr, got)) == Counter(map(repr, expected))
