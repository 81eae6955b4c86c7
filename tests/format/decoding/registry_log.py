"""Logs of a schema registry's topic, with the records that a registry writes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.building import BASE_TIMESTAMP, batch, write_segment

Record = tuple[dict[str, Any] | bytes | None, dict[str, Any] | bytes | None]


def schema(
    subject: str, version: int, schema_id: int, text: str, kind: str | None = None, **more: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record of a version; ``more`` is part of the value."""
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": schema_id, "schema": text, "deleted": False, **more}
    return key, value if kind is None else {**value, "schemaType": kind}


def tombstone(subject: str, version: int) -> tuple[dict[str, Any], None]:
    """The record that purges a version."""
    return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}, None


def deletion(subject: str, version: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record that deletes a subject up to a version."""
    key = {"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}
    return key, {"subject": subject, "version": version}


def clearing(subject: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record that purges what is deleted of a subject, or of a context."""
    return {"keytype": "CLEAR_SUBJECT", "subject": subject, "magic": 0}, {"subject": subject}


def registry_batches(records: Iterable[Record]) -> list[bytes]:
    """A batch for each record, a second apart."""
    return [
        batch(offset, [_json(value)], key=_json(key), timestamp=BASE_TIMESTAMP + 1000 * offset)
        for offset, (key, value) in enumerate(records)
    ]


def write_node(
    folder: Path, batches: Iterable[bytes], *, cluster: str = "cluster-a", topic: str = "_schemas-0"
) -> Path:
    """A node with such a topic; returns its log directory."""
    write_segment(folder / topic, 0, batches)
    (folder / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={cluster}\n")
    return folder


def _json(value: dict[str, Any] | bytes | None) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
