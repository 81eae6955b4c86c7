"""The topic of a schema registry: subjects, versions and ids as the registry itself would have them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from format.decoding.schemas import Schemas, find_schemas, schemas_at
from format.errors import InputError, UnreadableFile
from format.location import Location
from format.node.partition import Partition
from format.node.target import targets_at
from tests.building import BASE_TIMESTAMP
from tests.format.decoding.registry_log import (
    Record,
    clearing,
    deletion,
    registry_batches,
    schema,
    tombstone,
    write_node,
)


def read(tmp_path: Path, *records: Record, until_ms: int | None = None) -> Schemas:
    node = write_node(tmp_path / "node", registry_batches(records))
    return find_schemas(targets_at([node]), until_ms)


def states(schemas: Schemas) -> dict[str, str]:
    return {f"{each.subject} {each.version}": each.state for each in schemas.versions}


def test_versions_and_what_deletes_them(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        ({"keytype": "NOOP", "magic": 0}, None),
        schema("a-value", 1, 1, '"int"'),
        schema("a-value", 2, 2, '"long"'),
        schema("b-value", 1, 2, '"long"'),
        schema("c-value", 1, 3, '"string"'),
        schema("c-value", 1, 3, '"string"', deleted=True),
        schema("c-value", 2, 4, '"bytes"'),
        deletion("a-value", 1),
        tombstone("b-value", 1),
    )
    assert not found.findings
    assert states(found) == {
        "a-value 1": "deleted",
        "a-value 2": "active",
        "b-value 1": "purged",
        "c-value 1": "deleted",
        "c-value 2": "active",
    }
    by_id = {number: [each.subject for each in found.with_id(number)] for number in range(1, 5)}
    assert by_id == {1: ["a-value"], 2: ["a-value", "b-value"], 3: ["c-value"], 4: ["c-value"]}
    [purged] = [each for each in found.versions if each.state == "purged"]
    assert (purged.offset, purged.timestamp, purged.text) == (8, BASE_TIMESTAMP + 8000, '"long"')


def test_a_deleted_version_can_be_registered_again(tmp_path: Path) -> None:
    again = schema("a-value", 1, 1, '"int"')
    assert states(read(tmp_path, again, deletion("a-value", 1), again)) == {"a-value 1": "active"}


def test_as_of_a_time(tmp_path: Path) -> None:
    records = (schema("a-value", 1, 1, '"int"'), schema("a-value", 2, 2, '"long"'), deletion("a-value", 2))
    assert states(read(tmp_path, *records, until_ms=BASE_TIMESTAMP + 1000)) == {
        "a-value 1": "active",
        "a-value 2": "active",
    }
    assert states(read(tmp_path, *records, until_ms=BASE_TIMESTAMP + 999)) == {"a-value 1": "active"}
    assert not read(tmp_path, *records, until_ms=BASE_TIMESTAMP - 1)


@pytest.mark.parametrize(
    ("subject", "purged"),
    [
        ("a-value", {"a-value 1"}),
        ("", {"a-value 1", "b-value 1"}),
        (":.lab:", {":.lab:c-value 1"}),
        (":.lab:c-value", {":.lab:c-value 1"}),
        (":.other:", set()),
    ],
)
def test_clearing_purges_what_is_deleted(tmp_path: Path, subject: str, purged: set[str]) -> None:
    found = read(
        tmp_path,
        schema("a-value", 1, 1, '"int"', deleted=True),
        schema("a-value", 2, 2, '"long"'),
        schema("b-value", 1, 1, '"int"', deleted=True),
        schema(":.lab:c-value", 1, 1, '"bytes"', deleted=True),
        clearing(subject),
    )
    assert {name for name, state in states(found).items() if state == "purged"} == purged


def test_contexts_have_ids_of_their_own(tmp_path: Path) -> None:
    found = read(tmp_path, schema("a-value", 1, 1, '"int"'), schema(":.lab:a-value", 1, 1, '"string"'))
    assert not found.findings
    assert {each.context: each.text for each in found.with_id(1)} == {".": '"int"', ".lab": '"string"'}


def test_an_id_that_is_used_is_not_given_again(tmp_path: Path) -> None:
    first, second = schema("a-value", 1, 1, '"int"'), schema("b-value", 1, 1, '"long"')
    found = read(tmp_path, first, second)
    assert [each.subject for each in found.with_id(1)] == ["a-value"]
    assert [(each.code, each.location.offset) for each in found.findings] == [("internal-record-invalid", 1)]
    found = read(tmp_path, first, tombstone("a-value", 1), second)
    assert not found.findings
    assert [each.subject for each in found.with_id(1)] == ["a-value", "b-value"]


def test_compatibility(tmp_path: Path) -> None:
    def config(subject: str | None, value: dict[str, Any] | None) -> Record:
        return {"keytype": "CONFIG", "subject": subject, "magic": 0}, value

    found = read(
        tmp_path,
        schema("a-value", 1, 1, '"int"'),
        config(None, {"compatibilityLevel": "BACKWARD"}),
        config("a-value", {"compatibilityLevel": "NONE", "normalize": True}),
        config("b-value", {"compatibilityLevel": "FULL"}),
        config("b-value", None),
    )
    assert found.compatibility == {("cluster-a", None): "BACKWARD", ("cluster-a", "a-value"): "NONE"}


def test_the_guid_is_the_md5_of_all_that_belongs_to_a_schema(tmp_path: Path) -> None:
    """In the order of the registry's own hash, which its regression data was held against (docs/values.md)."""
    references = [{"name": "N", "subject": "s-value", "version": 3}]
    metadata = {"tags": {"b": ["PII"], "a": ["Y", "X"]}, "properties": {"owner": "x"}, "sensitive": ["z", "k"]}
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "disabled": True}]}
    found = read(
        tmp_path,
        schema("a-value", 1, 1, "é"),
        schema("a-value", 2, 2, "x", references=references, metadata=metadata, ruleSet=rules),
        schema("a-value", 3, 3, "x", md5="AAAAAAAAAAAAAAAAAAAAAA=="),
    )
    words = b"xNs-value\0\0\0\x03" + b"\x01aXYbPIIownerxkz" + b"\x01rCONDITIONWRITECEL\x01"
    assert [each.guid for each in found.versions] == [
        str(UUID(bytes=hashlib.md5("é".encode()).digest())),
        str(UUID(bytes=hashlib.md5(words).digest())),
        str(UUID(int=0)),
    ]
    assert found.with_id(found.versions[0].guid) == [found.versions[0]]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ((None, b"{}"), "internal-record-invalid"),
        ((b"\xff", b"{}"), "internal-record-invalid"),
        ((b"[]", b"{}"), "internal-record-invalid"),
        (({"keytype": "SCHEMA", "subject": "a", "version": 0, "magic": 1}, b"{}"), "internal-record-invalid"),
        (({"keytype": "SCHEMA", "subject": "a", "version": 1, "magic": 7}, b"{}"), "internal-record-invalid"),
        (({"keytype": "SCHEMA", "subject": "a", "version": 1, "magic": 1}, b"{}"), "internal-record-invalid"),
        (({"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0}, b"[[[["), "internal-record-invalid"),
        (({"keytype": "SCHEMA", "subject": "a", "version": 1}, b"[" * 100_000), "internal-record-invalid"),
        (({"keytype": "NEW", "magic": 0}, b"{}"), "version-unknown"),
    ],
)
def test_what_no_registry_writes_is_reported_and_left_out(tmp_path: Path, record: Record, code: str) -> None:
    found = read(tmp_path, schema("a-value", 1, 1, '"int"'), record, schema("b-value", 1, 2, '"long"'))
    assert [(each.code, each.location.offset) for each in found.findings] == [(code, 1)]
    assert len(found.versions) == 2


def test_what_one_replica_has_lost_another_has(tmp_path: Path) -> None:
    batches = registry_batches(schema(f"s{number}-value", 1, number, '"int"') for number in range(8))
    nodes = []
    for number, lost in enumerate((range(4), range(4, 8))):
        own = [each[:-1] + b"\xff" if place in lost else each for place, each in enumerate(batches)]
        nodes.append(write_node(tmp_path / f"node-{number}", own))
    found = find_schemas(targets_at(nodes))
    assert [each.id for each in found.versions] == list(range(8))
    assert {each.code for each in found.findings} == {"batch-crc-mismatch"}
    assert len(find_schemas(targets_at(nodes[:1])).versions) == 4


def test_registries_of_two_clusters_stay_apart(tmp_path: Path) -> None:
    nodes = [
        write_node(tmp_path / name, registry_batches([schema("a-value", 1, 1, text)]), cluster=name)
        for name, text in (("x", '"int"'), ("y", '"long"'))
    ]
    assert [(each.registry, each.text) for each in find_schemas(targets_at(nodes)).versions] == [
        ("x", '"int"'),
        ("y", '"long"'),
    ]


def test_a_partition_that_cannot_be_listed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = write_node(tmp_path / "node", registry_batches([schema("a-value", 1, 1, '"int"')]))

    def refuse(path: Path) -> Partition:
        raise UnreadableFile("cannot access", Location(str(path)))

    monkeypatch.setattr("format.decoding.schemas.read_partition", refuse)
    found = find_schemas(targets_at([node]))
    assert [each.code for each in found.findings] == ["file-unreadable"]
    assert not found


def test_where_schemas_are_looked_for(tmp_path: Path) -> None:
    node = write_node(tmp_path / "node", registry_batches([schema("a-value", 1, 1, '"int"')]))
    write_node(node, registry_batches([schema("b-value", 1, 1, '"int"')]), topic="_own_schemas-0")
    (node / "orders-0").mkdir()
    (node / "orders-0" / "00000000000000000000.log").touch()
    for path in (node, node / "_schemas-0", node / "orders-0", node / "orders-0" / "00000000000000000000.log"):
        assert [each.subject for each in find_schemas(targets_at([path])).versions] == ["a-value"]
    assert [each.subject for each in schemas_at(targets_at([node / "_own_schemas-0"])).versions] == ["b-value"]
    with pytest.raises(InputError, match="there are no schemas here"):
        schemas_at(targets_at([node / "orders-0"]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        schemas_at(targets_at([tmp_path / "empty"]))
    assert not find_schemas(targets_at([]))
