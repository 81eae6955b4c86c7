"""redact: the structure stays, the content goes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from format.columns import RECORD
from format.decoding.decoder import Decoding
from format.decoding.schemas import find_schemas
from format.errors import OutputError
from format.findings import Finding, Severity
from format.internal_topics.decoder import decoder_for
from format.io.source import FileSource
from format.layout import COORDINATOR_TOPICS
from format.limits import DEFAULT_LIMITS
from format.log.encode_batches import encode_message, encode_wrapper, reseal
from format.log.walker import batch_chunks
from format.node.target import targets_at
from format.rewriting.publication import Publication
from format.rewriting.read_back import Became, OutputRange
from format.rewriting.rewriter import RewritingResult, WrittenSegment
from format.rewriting.sources import read_write_sources
from format.verbs.redact.batches import ContentDigest, payload_of, read_back, redact_chunk
from format.verbs.redact.redact import LEFT_OUT_TOPICS, Redaction, redact
from format.verbs.redact.replacements import Mode, Redactor
from format.verbs.verify.verify import Level, VerifyTerms, verify
from tests.building import BASE_TIMESTAMP, batch, wrapper
from tests.corpora import Corpus
from tests.decoded_node import CUT, order, write_node
from tests.dumping import dump

pytestmark = pytest.mark.slow

KEY = b"a key that only this test knows."
Row = tuple[Any, ...]
AT = {name: number for number, name in enumerate(RECORD.names)}
CONTENT = ("key", "value", "headers")


def run_redact(
    source: Path, output: Path, *, mode: Mode = Mode.HASH, key: bytes = KEY, **terms_of: Any
) -> tuple[RewritingResult, list[Finding], list[WrittenSegment]]:
    """The redacted copy of one path; what was found and written."""
    redactor = Redactor(mode, key if mode is Mode.HASH else b"")
    terms = Redaction(redactor=redactor, **terms_of)
    result = RewritingResult()
    sources = read_write_sources([source], takes_files=True)
    with Publication(output, [source], job=sources.job("redact", **terms.options())) as publication:
        items = list(redact(sources, publication, terms, result))
    findings = [each for each in items if isinstance(each, Finding)]
    return result, findings, [each for each in items if isinstance(each, WrittenSegment)]


def rows_of(path: Path) -> list[Row]:
    rows: list[Row] = []
    for item in dump(path, records=True):
        assert not isinstance(item, Finding), item
        rows.extend(item.rows)
    return rows


def user_rows(path: Path) -> list[Row]:
    return [row for row in rows_of(path) if row[AT["topic"]] not in LEFT_OUT_TOPICS]


def shape(row: Row) -> Row:
    """A row without its content: lengths instead, and without its place in the file."""
    headers = row[AT["headers"]]
    lengths = (
        *(None if row[AT[name]] is None else len(row[AT[name]]) for name in ("key", "value")),
        None if headers is None else [(len(key), None if value is None else len(value)) for key, value in headers],
    )
    return (
        *(value for name, value in zip(RECORD.names, row, strict=True) if name not in (*CONTENT, "position")),
        lengths,
    )


def contents(rows: list[Row]) -> Iterator[bytes]:
    """The keys, values and header values of records that are neither control records nor a coordinator's."""
    for row in rows:
        if row[AT["is_control"]] or row[AT["topic"]] in COORDINATOR_TOPICS:
            continue
        yield from (row[AT[name]] for name in ("key", "value") if row[AT[name]])
        yield from (value for _, value in row[AT["headers"]] or () if value)


def eights(parts: Iterator[bytes]) -> np.ndarray[Any, Any]:
    """Every run of eight bytes in the parts, as numbers."""
    found = [np.empty(0, np.uint64)]
    for part in {each for each in parts if len(each) >= 8}:
        codes = np.frombuffer(part, np.uint8).astype(np.uint64)
        count = len(codes) - 7
        found.append(sum(codes[at : at + count] << np.uint64(8 * at) for at in range(8)))  # type: ignore[arg-type]
    return np.unique(np.concatenate(found))


def still_in(raw: bytes, secrets: set[bytes]) -> list[bytes]:
    """The secrets that are somewhere in the bytes; only those are looked for whose first eight bytes are."""
    there = set(eights(iter([raw])).tolist())
    return [each for each in secrets if int.from_bytes(each[:8], "little") in there and each in raw]


def tree(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def levels_of(path: Path) -> set[str]:
    """The codes of what verify holds against a log directory."""
    terms = VerifyTerms(Level.FULL, DEFAULT_LIMITS)
    return {each.code for each in verify(path, terms) if each.severity >= Severity.WARNING}


def test_the_corpus(corpus: Corpus, tmp_path: Path, source_snapshot: Callable[[Path], None]) -> None:
    """Everything but the content is as it was, none of the content is left, and verify has nothing to say."""
    for number, log_dir in enumerate(corpus.log_dirs):
        source_snapshot(log_dir)
        output = tmp_path / str(number)
        result, findings, segments = run_redact(log_dir, output)
        before, after = user_rows(log_dir), user_rows(output)
        assert [shape(row) for row in after] == [shape(row) for row in before]
        assert result.record_count == len(after)
        assert result.lost_bytes == 0
        assert not [each for each in findings if each.severity >= Severity.WARNING]
        assert segments
        left = np.intersect1d(eights(contents(before)), eights(contents(after)))
        assert not len(left), f"{len(left)} runs of eight bytes are still there"
        raw = b"".join(content for name, content in tree(output).items() if name.endswith(".log"))
        assert not still_in(raw, {each for each in contents(before) if len(each) >= 8})
        assert levels_of(output) <= levels_of(log_dir)


def test_equal_content_stays_equal(corpus: Corpus, tmp_path: Path) -> None:
    """Keys that were equal are equal, others differ: compaction and joins work on the copy."""
    run_redact(corpus.log_dirs[0], tmp_path / "out")
    pairs = {
        (old[AT["key"]], new[AT["key"]])
        for old, new in zip(user_rows(corpus.log_dirs[0]), user_rows(tmp_path / "out"), strict=True)
        if old[AT["key"]] is not None
        and len(old[AT["key"]]) >= 4
        and old[AT["topic"]] not in COORDINATOR_TOPICS
        and not old[AT["is_control"]]
    }
    assert len(pairs) > 5
    assert len({old for old, _ in pairs}) == len(pairs) == len({new for _, new in pairs})


@pytest.mark.parametrize("mode", list(Mode))
def test_the_same_key_gives_the_same_copy(tmp_path: Path, data_dir: Path, mode: Mode) -> None:
    source = data_dir / "kafka-4.3-single" / "node-1"
    for name in ("one", "two"):
        run_redact(source, tmp_path / name, mode=mode)
    run_redact(source, tmp_path / "three", mode=mode, key=KEY[::-1])
    one, two, three = (tree(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two
    logs = [name for name in one if name.endswith(".log") and "__" not in name and len(one[name])]
    assert logs
    assert all((one[name] == three[name]) is (mode is Mode.FILL) for name in logs)


def test_filler(tmp_path: Path, data_dir: Path) -> None:
    source = data_dir / "kafka-4.3-single" / "node-1"
    run_redact(source, tmp_path / "out", mode=Mode.FILL, with_header_names=True)
    assert all(set(each) == {ord("x")} for each in contents(user_rows(tmp_path / "out")))
    names = {name for row in user_rows(tmp_path / "out") for name, _ in row[AT["headers"]] or ()}
    assert names
    assert all(set(each) <= {ord("x")} for each in names)


def test_header_names_stay_unless_asked_for(tmp_path: Path) -> None:
    source = write_log(tmp_path / "t-0", [batch(0, [b"value"], headers=((b"trace-id", b"0123456789"),))])
    run_redact(source, tmp_path / "kept")
    run_redact(source, tmp_path / "gone", with_header_names=True)
    (kept,), (gone,) = (rows_of(tmp_path / name / "t-0")[0][AT["headers"]] for name in ("kept", "gone"))
    assert kept[0] == b"trace-id"
    assert gone[0] != b"trace-id"
    assert gone[0].decode("ascii")
    assert kept[1] == gone[1] != b"0123456789"


def test_nothing_is_left_of_group_names(corpus: Corpus, tmp_path: Path) -> None:
    """The coordinators' records decode as before; topics and numbers are the same, other strings are not."""
    run_redact(corpus.log_dirs[0], tmp_path / "out")
    seen = 0
    rows = zip(user_rows(corpus.log_dirs[0]), user_rows(tmp_path / "out"), strict=True)
    for old, new in rows:
        if old[AT["topic"]] not in COORDINATOR_TOPICS or old[AT["is_control"]]:
            continue
        seen += 1
        decoder = decoder_for(old[AT["topic"]])
        keys = [decoder.decode_key(row[AT["key"]]) for row in (old, new)]
        values = [decoder.decode_value(key, row[AT["value"]]) for key, row in zip(keys, (old, new), strict=True)]
        for before, after in (keys, values):
            assert before.type_id == after.type_id
            assert not after.problems
            compare_decoded("", before.data, after.data)
    if not seen:
        pytest.skip("this corpus has no coordinator's topic")


TOPIC_FIELDS = ("topic", "topics", "topicName", "subscribedTopicNames", "topicId", "protocol", "protocolType")


def compare_decoded(name: str, before: Any, after: Any) -> None:
    """Equal but for strings that are not topics: those are as long, and others."""
    if isinstance(before, dict):
        assert list(before) == list(after)
        for key in before:
            compare_decoded(key, before[key], after[key])
    elif isinstance(before, list):
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            compare_decoded(name, one, other)
    elif isinstance(before, str) and before and name not in TOPIC_FIELDS:
        assert len(before.encode()) == len(after.encode())
        assert before != after
    else:
        assert before == after, name


# -- what cannot be redacted ---------------------------------------------------------------------------------


def write_log(partition: Path, batches: list[bytes]) -> Path:
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").write_bytes(b"".join(batches))
    return partition


def test_a_damaged_batch_is_left_out(tmp_path: Path) -> None:
    batches = [batch(3 * number, [b"a secret value"] * 3) for number in range(5)]
    damaged = bytearray(batches[2])
    damaged[-5] ^= 1
    source = write_log(tmp_path / "t-0", [*batches[:2], bytes(damaged), *batches[3:]])
    result, findings, _ = run_redact(source, tmp_path / "out")
    assert [each.code for each in findings] == ["batch-crc-mismatch"]
    assert findings[0].location.position == len(batches[0]) * 2
    assert result.lost_bytes == len(damaged)
    assert [row[AT["offset"]] for row in rows_of(tmp_path / "out" / "t-0")] == [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14]
    assert b"secret" not in b"".join(tree(tmp_path / "out").values())


def test_nothing_but_damaged_batches(tmp_path: Path) -> None:
    damaged = bytearray(batch(0, [b"a secret value"] * 3, codec=1))
    damaged[61:] = b"no gzip" * (len(damaged) // 7)
    source = write_log(tmp_path / "t-0", [reseal(_with_length(damaged))])
    _, findings, _ = run_redact(source, tmp_path / "out")
    assert [each.code for each in findings] == ["decompression-failed"]
    assert rows_of(tmp_path / "out" / "t-0") == []


def _with_length(content: bytearray) -> bytearray:
    content[8:12] = (len(content) - 12).to_bytes(4, "big")
    return content


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_bytes_behind_the_records_are_not_carried(tmp_path: Path, codec: int) -> None:
    """A batch whose records do not fill it could hide anything."""
    whole = batch(0, [b"first value", b"second value"], codec=codec)
    fewer = bytearray(whole)
    fewer[57:61] = (1).to_bytes(4, "big")
    source = write_log(tmp_path / "t-0", [reseal(fewer), batch(2, [b"third value"])])
    result, findings, _ = run_redact(source, tmp_path / "out")
    assert [each.code for each in findings] == ["record-trailing-bytes"]
    assert result.lost_bytes == len(whole)
    assert [row[AT["offset"]] for row in rows_of(tmp_path / "out" / "t-0")] == [2]


def test_a_control_batch_is_no_hiding_place(tmp_path: Path) -> None:
    marker = (0).to_bytes(2, "big") + (1).to_bytes(2, "big")
    sound = batch(0, [bytes(6)], key=marker, attributes=0x30, producer_id=7, producer_epoch=0)
    hiding = batch(1, [bytes(6)], key=marker, attributes=0x30, producer_id=7, headers=((b"secret", b"secret"),))
    longer = batch(2, [bytes(6) + b"secret"], key=marker, attributes=0x30, producer_id=7)
    newer = batch(3, [b"\0\0secret"], key=b"\0\0\0\x63", attributes=0x30, producer_id=7)
    source = write_log(tmp_path / "t-0", [sound, hiding, longer, newer])
    _, findings, segments = run_redact(source, tmp_path / "out")
    assert [each.code for each in findings] == ["control-record-invalid"] * 2 + ["version-unknown"]
    log = (tmp_path / "out" / "t-0" / f"{0:020d}.log").read_bytes()
    assert log == sound
    assert segments[0].copied_count == 1


def test_a_torn_tail(tmp_path: Path) -> None:
    source = write_log(tmp_path / "t-0", [batch(0), batch(3)[:-4]])
    _, findings, _ = run_redact(source, tmp_path / "out")
    assert [each.code for each in findings] == ["tail-torn"]
    assert len(rows_of(tmp_path / "out" / "t-0")) == 3


# -- old formats ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_old_messages(tmp_path: Path, magic: int, codec: int) -> None:
    source = write_log(
        tmp_path / "t-0",
        [encode_message(magic, 0, b"the key", None, timestamp=BASE_TIMESTAMP), wrapper(magic, 1, 4, codec=codec)],
    )
    run_redact(source, tmp_path / "out")
    before, after = rows_of(source), rows_of(tmp_path / "out" / "t-0")
    assert [shape(row) for row in after] == [shape(row) for row in before]
    assert not {b"the key", b"inner-0", b"inner-3"} & {row[at] for row in after for at in (AT["key"], AT["value"])}
    assert levels_of(tmp_path / "out" / "t-0") <= levels_of(source)


def test_a_wrong_inner_checksum_stays_wrong(tmp_path: Path) -> None:
    inner = [encode_message(1, number, b"k", b"some value", timestamp=BASE_TIMESTAMP) for number in range(2)]
    inner[1] = inner[1][:12] + bytes(4) + inner[1][16:]
    source = write_log(tmp_path / "t-0", [encode_wrapper(1, inner, codec=1, last_offset=1, timestamp=BASE_TIMESTAMP)])
    run_redact(source, tmp_path / "out")
    assert "message-invalid" in levels_of(source)
    assert levels_of(tmp_path / "out" / "t-0") - {"index-missing"} == levels_of(source) - {"index-missing"}


def test_the_key_of_a_wrapper(tmp_path: Path) -> None:
    """Nobody reads it, but there may be one."""
    made = wrapper(1, 0)
    value = made[34:]
    keyed = encode_message(1, 2, b"outer secret", value, timestamp=BASE_TIMESTAMP + 2, attributes=1)
    source = write_log(tmp_path / "t-0", [keyed])
    run_redact(source, tmp_path / "out")
    log = (tmp_path / "out" / "t-0" / f"{0:020d}.log").read_bytes()
    assert b"outer secret" not in log
    assert len(rows_of(tmp_path / "out" / "t-0")) == 3


@pytest.mark.parametrize("codec", [0, 4])
def test_a_batch_of_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: int) -> None:
    """One that spreads over several record tables is put together again."""
    monkeypatch.setattr("format.log.read_records.MOST_ROWS", 1000)
    values = [b"v%06d" % number for number in range(3_500)]
    whole = batch(0, values, codec=codec, key=None)
    source = write_log(tmp_path / "t-0", [whole, batch(3500, [b"last value"])])
    _, findings, segments = run_redact(source, tmp_path / "out")
    assert not findings
    assert segments[0].batch_count == 2
    before, after = rows_of(source), rows_of(tmp_path / "out" / "t-0")
    assert [shape(row) for row in after] == [shape(row) for row in before]
    assert not {row[AT["value"]] for row in after} & {*values, b"last value"}


# -- fields that are kept ------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("codec", [0, 4])
def test_kept_fields_of_avro(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, codec: int) -> None:
    """Also where other processes make the batches, and where a damaged batch makes the log be read as a whole."""
    monkeypatch.setattr("format.rewriting.segment_rewriting.Rewriter.chunk_bytes", 2_000, raising=False)
    write_node(tmp_path / "node")
    source = tmp_path / "node" / "orders-0"
    batches = [
        batch(10 * number, [order(number, f"customer {number:04d}"), CUT, b"text of none"], codec=codec)
        for number in range(200)
    ]
    damaged = bytearray(batches[150])
    damaged[-1] ^= 1
    decoding = Decoding(schemas=find_schemas(targets_at([source])))
    for made, lost in ((batches, 0), ([*batches[:150], bytes(damaged), *batches[151:]], 1)):
        (source / f"{0:020d}.log").write_bytes(b"".join(made))
        (source / f"{0:020d}.index").unlink(missing_ok=True)
        (source / f"{0:020d}.timeindex").unlink(missing_ok=True)
        output = tmp_path / f"out-{lost}"
        result, findings, _ = run_redact(source, output, keep_fields=("id", "name"), decoding=decoding, jobs=jobs)
        assert result.found_fields == {"id"}
        [cut] = [each for each in findings if each.code == "value-undecodable"]
        assert cut.message == (
            f"the values of {200 - lost} records do not decode (schema 7): "
            "not of the Avro schema: the value is cut off (byte 2); replaced as a whole"
        )
        assert (cut.location.position, cut.location.offset) == (0, 1)
        assert result.whole_count == (200 - lost) * 5  # the three keys, and the text, too
        assert [each.code for each in findings if each.code != "value-undecodable"] == ["batch-crc-mismatch"] * lost
        values = [row[AT["value"]] for row in rows_of(output / "orders-0")]
        decoder = decoding.topic("orders")
        decoded = [json.loads(decoder["value"].decoded(each, ()).text or "") for each in values[::3]]
        assert [each["id"] for each in decoded] == [number for number in range(200) if not lost or number != 150]
        assert {len(each["customer"]) for each in decoded} == {13}
        assert b"customer" not in b"".join(values)
        assert not {CUT, b"text of none"} & set(values)
        assert levels_of(output / "orders-0") <= {"index-missing"}


def test_a_schema_id_in_a_header_is_kept_where_a_reader_needs_it(tmp_path: Path) -> None:
    write_node(tmp_path / "node")
    source = tmp_path / "node" / "orders-0"
    schema_id, other = b"\0\0\0\0\7", b"\0\0\0\0\x63"
    bare = order(4711, "a customer")[5:]
    headers = ((b"__value_schema_id", b"a secret"), (b"trace", b"a secret"), (b"__value_schema_id", schema_id))
    batches = [
        batch(0, [bare], headers=headers),
        batch(1, [bare], headers=((b"__value_schema_id", other),)),
        batch(2, [None], headers=((b"__value_schema_id", schema_id),)),
    ]
    (source / f"{0:020d}.log").write_bytes(b"".join(batches))
    decoding = Decoding(schemas=find_schemas(targets_at([source])))
    for with_names in (False, True):
        output = tmp_path / f"out-{with_names}"
        run_redact(source, output, keep_fields=("id",), decoding=decoding, with_header_names=with_names)
        first, second, third = rows_of(output / "orders-0")
        kept = [each for each in first[AT["headers"]] if each[1] == schema_id]
        assert kept == [(b"__value_schema_id", schema_id)]
        found = decoding.topic("orders")["value"].decoded(first[AT["value"]], [("__value_schema_id", schema_id)])
        assert found is not None
        assert json.loads(found.text or "")["id"] == 4711
        log = (output / "orders-0" / f"{0:020d}.log").read_bytes()
        assert b"secret" not in log
        assert b"customer" not in log
        assert second[AT["headers"]][0][1] != other
        assert third[AT["headers"]][0][1] != schema_id


# -- reading back --------------------------------------------------------------------------------------------


def digest_of(path: Path) -> ContentDigest:
    digest = ContentDigest()
    with FileSource(path) as source:
        for chunk in batch_chunks(source):
            assert chunk.buffer is not None
            ends = np.cumsum(chunk.table.size_bytes).tolist()
            starts = [0, *ends[:-1]]
            batches = [bytes(chunk.buffer[start:end]) for start, end in zip(starts, ends, strict=True)]
            digest.update(chunk.table, [payload_of(each) for each in batches])
    return digest


def became(path: Path, digest: ContentDigest) -> Became:
    return Became(0, 0, (OutputRange(path, 0, path.stat().st_size),), digest.value())


def test_reading_back_sees_every_change(tmp_path: Path) -> None:
    """Every other byte than those of the CRC in turn, with a new CRC, so that only the comparison can see it."""
    path = tmp_path / "log"
    content = batch(7, [b"value", None], headers=((b"h", b"v"),), leader_epoch=3)
    path.write_bytes(content)
    expected = digest_of(path)
    read_back(became(path, expected))
    chance = random.Random(1)
    for at in [*range(17), *range(21, len(content))]:
        changed = bytearray(content)
        changed[at] ^= 1 << chance.randrange(8)
        path.write_bytes(reseal(changed) if changed[16] == 2 else bytes(changed))
        with pytest.raises(OutputError):
            read_back(became(path, expected))
    path.write_bytes(content + content)
    with pytest.raises(OutputError):
        read_back(became(path, expected))


def test_what_reads_back_otherwise_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_log(tmp_path / "t-0", [batch(0, [b"value"])])

    def write_another(chunk: Any, which: Any, *others: Any, **named: Any) -> Any:
        made = redact_chunk(chunk, which, *others, **named)
        made.batches[0] = reseal(made.batches[0][:-2] + b"??")
        return made

    monkeypatch.setattr("format.verbs.redact.redact.redact_chunk", write_another)
    with pytest.raises(OutputError, match="read back"):
        run_redact(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_that_is_taken_up_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first segment is not written again, and all of the result is as in one go."""
    made = [batch(3 * number, [b"value %d" % number] * 3) for number in range(4)]
    source = write_log(tmp_path / "t-0", made[:2])
    (source / f"{6:020d}.log").write_bytes(b"".join(made[2:]))
    _, _, expected = run_redact(source, tmp_path / "whole")
    sources = read_write_sources([source])
    terms = Redaction(redactor=Redactor(Mode.HASH, KEY))
    job = sources.job("redact", **terms.options())
    with Publication(tmp_path / "out", [source], job=job, keep_partial=True) as publication:
        run = redact(sources, publication, terms)
        next(item for item in run if isinstance(item, WrittenSegment))
        run.close()
    calls = []

    def count(chunk: Any, *others: Any, **named: Any) -> Any:
        calls.append(int(chunk.table.base_offset[0]))
        return redact_chunk(chunk, *others, **named)

    monkeypatch.setattr("format.verbs.redact.redact.redact_chunk", count)
    result = RewritingResult()
    with Publication(tmp_path / "out", [source], job=job, resume=True) as publication:
        items = [each for each in redact(sources, publication, terms, result) if isinstance(each, WrittenSegment)]
    assert calls == [6]
    assert items == expected
    assert result.record_count == 12
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_the_manifest(tmp_path: Path) -> None:
    source = write_log(tmp_path / "t-0", [batch(0)])
    run_redact(source, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["job"]["options"]["mode"] == "hash"
    assert manifest["job"]["options"]["key_fingerprint"] == Redactor(Mode.HASH, KEY).key_fingerprint
    assert KEY.decode() not in (tmp_path / "out" / "manifest.json").read_text()
    assert manifest["left_out_bytes"] == 0
