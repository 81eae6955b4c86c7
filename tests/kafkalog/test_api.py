"""The Python API against the command line: the same rows, findings and answers; and what it promises besides."""

from __future__ import annotations

import base64
import builtins
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import kafkalog
from format.columns import BATCH, FINDING, MATCH, RECORD, SCHEMAS
from tests.building import BASE_TIMESTAMP, batch, batches, write_segment
from tests.conftest import unavailable
from tests.corpora import DATA_DIR, REPOSITORY
from tests.decoded_node import write_node
from tests.running import Run

try:
    import pyarrow as pa
except ImportError:
    pa = None

RunMany = Callable[..., list[Run]]
NODE = DATA_DIR / "kafka-4.3-single" / "node-1"
ORDERS = NODE / "orders-0"
NODES = [DATA_DIR / "kafka-4.3" / f"node-{number}" for number in (1, 2)]
OLD = DATA_DIR / "kafka-0.8-to-2.8"


@pytest.fixture(autouse=True)
def _needs_arrow() -> None:
    if pa is None:
        unavailable("pyarrow is not installed: pip install 'kafkalog[arrow]'")


def damaged(tmp_path: Path) -> Path:
    """Offsets 0 to 11 in four batches, the second with a wrong CRC."""
    content = batches(4)
    content[1] = content[1][:-1] + bytes([content[1][-1] ^ 1])
    return write_segment(tmp_path / "t-0", 0, content).parent


def plain(value: Any) -> Any:
    """A value of JSON lines as the API gives it."""
    if isinstance(value, dict) and set(value) == {"base64"}:
        return base64.b64decode(value["base64"])
    return value.encode() if isinstance(value, str) else value


def cli_records(run: Run) -> list[dict[str, Any]]:
    rows = run.check(0).rows("record")
    for row in rows:
        row.pop("type")
        row["key"], row["value"] = plain(row["key"]), plain(row["value"])
        if row["headers"] is not None:
            row["headers"] = [{"key": plain(key), "value": plain(value)} for key, value in row["headers"]]
    return rows


def numbered(rows: kafkalog.Rows) -> list[dict[str, Any]]:
    """The rows of the API, with times as milliseconds, as JSON lines have them."""
    table = rows.table()
    for number, field in enumerate(table.schema):
        if field.type == pa.timestamp("ms", "UTC"):
            table = table.set_column(number, field.name, table.column(number).cast(pa.int64()))
    return list(table.to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("path", [NODE, ORDERS, ORDERS / f"{1102:020d}.log", OLD], ids=lambda path: path.name)
def test_rows_are_those_of_dump(path: Path, run_kafkalog_many: RunMany) -> None:
    records, batches_, verified = run_kafkalog_many(
        [
            ("dump", path, "--records", "--raw", "--format", "jsonl"),
            ("dump", path, "--format", "jsonl"),
            ("verify", path, "--format", "jsonl"),
        ]
    )
    log = kafkalog.open(path)
    rows = log.records()
    assert numbered(rows) == cli_records(records)
    assert rows.is_complete
    listed = [{"type": "batch", **row} for row in numbered(log.batches())]
    assert listed == batches_.check(0).rows("batch")
    found = [{"type": "finding"} | {name: getattr(each, name) for name in FINDING.names} for each in log.verify()]
    assert found == verified.check(0).rows("finding")


def test_ranges_and_columns(run_kafkalog_many: RunMany) -> None:
    log = kafkalog.open(ORDERS)
    start, end = datetime(2026, 11, 3, tzinfo=UTC), 1793695395691
    ways: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"from_offset": 300, "to_offset": 320}, ("--from-offset", "300", "--to-offset", "320")),
        ({"from_time": start, "to_time": end}, ("--from-time", "2026-11-03", "--to-time", str(end))),
        ({"read_committed": True}, ("--read-committed",)),
    ]
    runs = run_kafkalog_many(("dump", ORDERS, "--records", "--raw", "--format", "jsonl", *words) for _, words in ways)
    for (asked, _), run in zip(ways, runs, strict=True):
        offsets = log.records(columns=["offset"], **asked).table().column("offset").to_pylist()
        assert offsets == [row["offset"] for row in run.rows("record")]
        assert offsets
    assert log.records(columns=["value", "offset"]).schema.names == ["value", "offset"]
    assert log.batches(columns=["crc"]).table().schema.names == ["crc"]
    assert log.records().schema.names == list(RECORD.names)
    assert log.batches().schema.names == list(BATCH.names)


def test_look_ups_are_those_of_find(run_kafkalog_many: RunMany) -> None:
    ways: list[dict[str, Any]] = [{"offset": 170}, {"timestamp": 1793695373700}, {"max_timestamp": True}]
    words = [("--offset", "170"), ("--timestamp", "1793695373700"), ("--max-timestamp",)]
    runs = run_kafkalog_many(("find", ORDERS, *way, "--format", "jsonl") for way in words)
    for way, run in zip(ways, runs, strict=True):
        found = kafkalog.open(ORDERS).find(**way)
        assert found
        assert found.match is not None
        of_cluster = ("is_leader", "node_id", "leader", "isr", "eligible_leader_replicas")
        assert {getattr(found.match, name) for name in of_cluster} == {None}  # find of the API reads no metadata log
        assert {name: getattr(found.match, name) for name in MATCH.names if name not in of_cluster} == {
            name: value for name, value in run.rows("match")[0].items() if name not in ("type", *of_cluster)
        }
        assert found.bytes_read == run.summary["counts"]["bytes_read"]
    missing = kafkalog.open(ORDERS).find(offset=10**6)
    assert not missing
    assert missing.answer is not None
    assert missing.answer.visibility == "past_end"
    assert "log end offset 1264" in missing.reason


def test_answers_are_those_of_the_commands(run_kafkalog_many: RunMany) -> None:
    node, other = DATA_DIR / "trials" / "transactions" / "node-1", ORDERS
    txns, groups, diff, doctor = run_kafkalog_many(
        [
            ("txns", node, "--format", "jsonl"),
            ("groups", NODE, "--format", "jsonl", "--at", "2026-11-22"),
            ("diff", NODES[0], NODES[1], "--format", "jsonl"),
            ("doctor", node, "--format", "jsonl"),
        ]
    )
    log = kafkalog.open(NODE)
    for rows, run in (
        (kafkalog.open(node).txns(), txns),
        (log.groups(at=datetime(2026, 11, 22, tzinfo=UTC)), groups),
        (log.groups(rows="group_offset", at=datetime(2026, 11, 22, tzinfo=UTC)), groups),
        (kafkalog.open(NODES[0]).diff(NODES[1]), diff),
        (kafkalog.open(node).doctor(), doctor),
        (kafkalog.open(NODES[0]).diff(kafkalog.open(NODES[1]), rows="replica"), diff),
    ):
        row_type = repr(rows).split()[2].rstrip(",")
        json_columns = {column.name for each in SCHEMAS if each.type == row_type for column in each.columns}
        expected = run.rows(row_type)
        found = numbered(rows)
        assert len(found) == len(expected) > 0
        for own, printed in zip(found, expected, strict=True):
            printed.pop("type")
            assert set(own) == set(printed) == json_columns
            for name, value in printed.items():
                is_any = isinstance(value, (list, dict))
                if name not in ("duration_ms", "is_hanging", "abort_command"):  # by the clock
                    assert (json.loads(own[name]) if is_any else own[name]) == value
        assert rows.not_checked == run.summary["not_checked"]
    with pytest.raises(ValueError, match="rows is one of group, group_offset, not 'commit'"):
        log.groups(rows="commit")
    with pytest.raises(kafkalog.InputError, match="are different partitions"):
        kafkalog.open(other).diff(NODE / "payments-0").table()


def test_a_partition_by_its_name(tmp_path: Path) -> None:
    node = kafkalog.open(NODE)
    assert node["orders-0"].path == ORDERS
    assert ("orders-0" in node, "orders-9" in node) == (True, False)
    assert [each.path for each in node] == [each.path for each in node.partitions()]
    with pytest.raises(KeyError, match=r"no partition order-0 is at .*\. Did you mean orders-0"):
        node["order-0"]
    with pytest.raises(TypeError, match="the name of a partition"):
        node[0]  # type: ignore[index]
    for disk in ("a", "b"):
        write_segment(tmp_path / disk / "t-0", 0, batches(1))
        (tmp_path / disk / "meta.properties").write_text("version=1\n")
    with pytest.raises(KeyError, match="2 log directories have t-0: "):
        kafkalog.open(tmp_path)["t-0"]


def test_data_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = kafkalog.open(NODE).txns()
    frame = rows.to_pandas()
    assert len(frame) == rows.to_polars().height == rows.table().num_rows
    assert str(frame["start_timestamp"].dtype) == "datetime64[ms, UTC]"
    assert str(frame["coordinator_epoch"].dtype) == "Int64"  # with nulls, and exact all the same
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ImportError, match=f"pip install {library}"):
            getattr(rows, f"to_{library}")()


def test_offsets_below_0_are_refused() -> None:
    log = kafkalog.open(ORDERS)
    for refused in (
        lambda: log.records(from_offset=-1),
        lambda: log.batches(to_offset=-5),
        lambda: log.find(offset=-1),
    ):
        with pytest.raises(ValueError, match="offsets begin at 0"):
            refused()


def test_rows_say_what_they_are() -> None:
    rows = kafkalog.open(ORDERS).records(columns=["offset", "value"], from_offset=3, to_offset=None)
    assert repr(rows) == f"<kafkalog.Rows of record, {ORDERS}, from_offset=3; columns offset, value>"
    assert ", all offsets; columns topic, " in repr(kafkalog.open(ORDERS).batches())
    assert repr(kafkalog.open(NODE).txns(at=0)).startswith(f"<kafkalog.Rows of transaction, {NODE}, as of 1970-01-01T")


@pytest.mark.parametrize("name", ["format.py", "format/__init__.py"])
def test_a_foreign_format_is_named(tmp_path: Path, name: str) -> None:
    hiding = tmp_path / name
    hiding.parent.mkdir(exist_ok=True)
    hiding.write_text("x = 1\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"}
    words = [sys.executable, "-S", "-c", "import kafkalog"]  # an editable installation finds its own modules
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: {hiding} hides the package 'format' of kafkalog")


def test_damage_is_collected_or_raised(tmp_path: Path) -> None:
    log = kafkalog.open(damaged(tmp_path))
    rows = log.records()
    assert not rows.is_complete, "nothing was read yet"
    assert rows.table().column("offset").to_pylist() == [0, 1, 2, 6, 7, 8, 9, 10, 11]
    assert not rows.is_complete
    assert rows.finding_count == 1
    assert [(each.code, each.lost_offsets) for each in rows.findings] == [("batch-crc-mismatch", [3, 5])]
    with pytest.raises(kafkalog.DamageFound) as raised:
        log.records(on_damage="raise").table()
    assert raised.value.finding == rows.findings[0]
    assert raised.value.code == "batch-crc-mismatch"
    assert isinstance(raised.value, kafkalog.CorruptDataError)
    assert "batch-crc-mismatch" in [each.code for each in log.verify()]
    assert list(log.verify("headers")) == []
    assert [each.code for each in log.verify("crc")] == ["batch-crc-mismatch"]
    assert list(log.verify(jobs=2)) == list(log.verify())


def test_findings_are_bounded_and_each_pass_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalog.log.MOST_FINDINGS", 2)
    content = [each[:-1] + bytes([each[-1] ^ 1]) for each in batches(5)]
    rows = kafkalog.open(write_segment(tmp_path / "t-0", 0, content).parent).records()
    for _pass in range(2):
        assert rows.table().num_rows == 0
        assert (len(rows.findings), rows.finding_count) == (2, 5)


def test_a_log_that_grows_is_listed_anew(tmp_path: Path) -> None:
    log = kafkalog.open(write_segment(tmp_path / "t-0", 0, batches(1)).parent)
    rows = log.records(columns=["offset"])
    assert rows.table().num_rows == 3
    write_segment(tmp_path / "t-0", 3, batches(1, 3))
    assert rows.table().num_rows == 6
    assert len(log.segments()) == 2


def test_arrow_s_own_interface(tmp_path: Path) -> None:
    rows = kafkalog.open(write_segment(tmp_path / "t-0", 0, batches(2)).parent).records(columns=["offset", "value"])
    assert pa.table(rows).column("offset").to_pylist() == list(range(6))
    assert rows.reader().schema == rows.schema
    assert rows.reader().read_all().column("offset").to_pylist() == list(range(6))


def test_times(tmp_path: Path) -> None:
    log = kafkalog.open(write_segment(tmp_path / "t-0", 0, [batch(0)]).parent)
    at = datetime.fromtimestamp(BASE_TIMESTAMP // 1000, UTC).replace(microsecond=1999)
    assert log.records(columns=["offset"], from_time=at).table().column(0).to_pylist() == [1, 2]
    with pytest.raises(ValueError, match="without a time zone"):
        log.records(from_time=datetime(2026, 1, 1))
    for wrong in ("2026-01-01", 1.5):
        with pytest.raises(TypeError, match="epoch milliseconds or a datetime"):
            log.records(from_time=wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="epoch milliseconds or a datetime"):
            log.find(timestamp=wrong)  # type: ignore[arg-type]


def test_wrong_use_is_an_error_of_a_documented_kind(tmp_path: Path) -> None:
    partition = damaged(tmp_path)
    log = kafkalog.open(partition)
    with pytest.raises(ValueError, match="'nope' is not a column of record; there are topic, "):
        log.records(columns=["nope"])
    with pytest.raises(TypeError, match=r"columns are a list of names, such as \['offset'\]"):
        log.records(columns="offset")
    with pytest.raises(TypeError, match="from_ofset"):
        log.records(from_ofset=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="exactly one of"):
        log.find()
    with pytest.raises(ValueError, match="is not one of headers"):
        log.verify("deep")
    with pytest.raises(ValueError, match="'collect' or 'raise'"):
        log.batches(on_damage="ignore")
    for wrong, words in (("nothing-0", "no such file"), ("t", "t is a topic, and its partition is t-0")):
        with pytest.raises(kafkalog.InputError, match=words):
            kafkalog.open(tmp_path / wrong)
    with pytest.raises(kafkalog.InputError, match="there is no kind 'logs'"):
        kafkalog.open(partition, kind="logs")
    (tmp_path / "empty").mkdir()
    with pytest.raises(kafkalog.NotALogDir):
        kafkalog.open(tmp_path / "empty")
    with pytest.raises(kafkalog.InputError, match="give one partition directory"):
        kafkalog.open(tmp_path).find(offset=1)
    with pytest.raises(kafkalog.InputError, match="holds no batches"):
        kafkalog.open(NODE / "meta.properties").records()


@pytest.mark.slow
def test_a_wrong_address_is_named(upload: Callable[[Path, str], str], tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    upload(tmp_path, "api/here")
    for address, words in (
        ("s3://lgos/api", "there is no bucket lgos"),
        ("s3://logs/api/heer", "Did you mean s3://logs/api/here?"),
        ("s3://logs/api?colour=red", "unknown option colour"),
    ):
        with pytest.raises(kafkalog.InputError, match=re.escape(words)):
            kafkalog.open(address)


@pytest.mark.slow
def test_an_address_is_read_as_a_path_is(tmp_path: Path, upload: Callable[[Path, str], str]) -> None:
    (tmp_path / "orders-0").symlink_to(ORDERS)
    (tmp_path / "damaged").mkdir()
    shutil.copytree(damaged(tmp_path / "made"), tmp_path / "damaged" / "t-0")
    there, here = kafkalog.open(upload(tmp_path / "orders-0", "api/orders-0")), kafkalog.open(ORDERS)
    assert (there.kind, there.topic, there.partition) == ("partition", "orders", 0)
    assert [each.base_offset for each in there.segments()] == [each.base_offset for each in here.segments()]
    assert there.records().table().equals(here.records().table())
    assert there.segments()[1].batches().table().num_rows == here.segments()[1].batches().table().num_rows
    found, known = there.find(timestamp=1_793_695_373_700).match, here.find(timestamp=1_793_695_373_700).match
    assert found is not None
    assert known is not None
    assert (found.offset, found.position) == (known.offset, known.position)
    address = upload(tmp_path / "damaged", "api/node")
    assert "batch-crc-mismatch" in [each.code for each in kafkalog.open(address).verify(jobs=2)]
    new = shutil.copytree(ORDERS, tmp_path / "damaged" / "u-0")
    log = kafkalog.open(address)
    upload(new.parent, "api/node")
    assert [each.topic for each in log.partitions()] == ["t", "u"]
    with pytest.raises(kafkalog.InputError, match="no such file"):
        kafkalog.open(f"{address}/absent-0")


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = kafkalog.open(write_segment(tmp_path / "t-0", 0, batches(1)).parent)
    real = builtins.__import__

    def without_arrow(name: str, *arguments: Any) -> Any:
        if name.split(".")[0] == "pyarrow":
            raise ImportError("No module named 'pyarrow'")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_arrow)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'kafkalog\[arrow\]'"):
        log.records()
    assert list(log.verify("records")) == []
    assert log.find(offset=1)


def test_opening_needs_neither_arrow_nor_the_command_line() -> None:
    code = (
        f"import kafkalog, sys, json; kafkalog.open({str(ORDERS)!r}).find(offset=1); "
        "print(json.dumps([name for name in ('pyarrow', 'typer', 'rich', 'kafkalog_cli') if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert json.loads(done.stdout) == []


def test_the_stable_names() -> None:
    """Each of these is a promise: take none away, and add new ones here and to docs/python.md."""
    assert kafkalog.__all__ == [
        "Answer",
        "CorruptDataError",
        "DamageFound",
        "Finding",
        "InputError",
        "KafkaLogError",
        "LimitExceeded",
        "Log",
        "Lookup",
        "Match",
        "NotALogDir",
        "Rows",
        "UnreadableFile",
        "UnsupportedError",
        "__version__",
        "open",
    ]
    page = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
    for owner, names in {
        kafkalog.Log: [
            "batches",
            "decoding",
            "diff",
            "doctor",
            "find",
            "groups",
            "partitions",
            "records",
            "segments",
            "sql",
            "txns",
            "verify",
        ],
        kafkalog.Rows: ["reader", "table", "to_pandas", "to_polars"],
    }.items():
        assert [name for name in vars(owner) if not name.startswith("_")] == sorted(names, key=list(vars(owner)).index)
        assert all(f"{name}(" in page for name in names)
    assert tuple(kafkalog.Finding.__dataclass_fields__) == FINDING.names
    assert tuple(kafkalog.Match.__dataclass_fields__) == MATCH.names


def test_decoded_records(tmp_path: Path) -> None:
    log = kafkalog.open(write_node(tmp_path))
    columns = ["offset", "value_decoded", "value_schema_id", "value_format"]
    rows = log.records(columns=columns, decoding=log.decoding())
    assert rows.table().to_pylist()[1] == {
        "offset": 1,
        "value_decoded": '{"id":4712,"customer":"Zoë","is_paid":true}',
        "value_schema_id": "8",
        "value_format": "avro",
    }
    assert [each.code for each in rows.findings] == ["value-undecodable"] * 2
    assert not rows.is_complete or rows.finding_count == 2
    assert "value_decoded" not in log.records().schema.names
    by_kind = log.records(columns=["value_format"], decoding=log.decoding(value_as="string", key_as="raw")).table()
    assert by_kind.column("value_format").to_pylist()[2] == "string"
    with pytest.raises(ValueError, match="value_as is one of auto, raw"):
        log.decoding(value_as="avor")
    with pytest.raises(ValueError, match="is not TOPIC=FILE"):
        log.decoding(schema_of={"orders": ""})
    with pytest.raises(kafkalog.InputError):
        log.decoding(schemas=tmp_path / "nowhere")
    with pytest.raises(TypeError, match="schema_of is a dict, such as"):
        log.decoding(schema_of="orders=order.proto")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="are in the directory of schemas: give that too"):
        log.decoding(schema_of={"orders": "order.proto"})
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "order.avsc").write_text('"string"')
    with pytest.raises(kafkalog.InputError, match=r"there is no file oder\.avsc .* Did you mean order\.avsc\?"):
        log.decoding(schemas=tmp_path / "files", schema_of={"orders": "oder.avsc"})


def test_rows_are_not_pickled_and_an_empty_path_is_none(tmp_path: Path) -> None:
    log = kafkalog.open(write_node(tmp_path))
    assert repr(pickle.loads(pickle.dumps(log))) == repr(log)
    with pytest.raises(TypeError, match=r"cannot be pickled: send the path, or table\(\)"):
        pickle.dumps(log.records())
    with pytest.raises(ValueError, match="the path is empty"):
        kafkalog.open("")
    with pytest.raises(TypeError, match="a path is text or a Path, not b'x'"):
        kafkalog.open(b"x")  # type: ignore[arg-type]


@pytest.mark.parametrize("memory_bytes", [-5, 0])
def test_an_impossible_memory_of_sql(memory_bytes: int) -> None:
    pytest.importorskip("datafusion")
    with pytest.raises(kafkalog.InputError, match=f"memory_bytes must be more than 0, and is {memory_bytes}"):
        kafkalog.open(ORDERS).sql("SELECT 1", memory_bytes=memory_bytes)


def test_a_bundle_is_not_to_be_unpacked(run_kafkalog_many: RunMany, tmp_path: Path) -> None:
    bundle = tmp_path / "incident.tar.zst"
    run_kafkalog_many([("bundle", ORDERS, "--output", bundle, "--no-report", "--jobs", "1")])[0].check(0, 1, 3)
    with pytest.raises(kafkalog.InputError, match="a bundle, which holds no keys, values or headers"):
        kafkalog.open(bundle)
