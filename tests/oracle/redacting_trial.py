"""Values written by Confluent's serializers, redacted but for some fields, and read by their deserializers.

    pip install 'confluent-kafka[avro,protobuf,json]' grpcio-tools
    python -m tests.oracle.redacting_trial [--values 20000] [--seed 1]

The deserializer must return the fields that were kept as they were, and no string or bytes of another field may be left
in the redacted bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from format.columns import RECORD
from format.decoding.schemas import find_schemas
from format.findings import Finding
from format.node.target import targets_at
from tests.building import batch, write_segment
from tests.dumping import dump
from tests.oracle.decoding_schemas import AVRO, PROTOBUF, Family
from tests.oracle.decoding_trial import (
    Registered,
    Written,
    registry_records,
    with_guid,
    write_avro,
    write_protobuf,
)
from tests.oracle.decoding_trial import as_json as typed_json

_VERSIONS = 5
_LEAST_BYTES = 6
_PER_BATCH = 50
_TYPES = {"bytes", "Decimal", "UUID", "datetime", "date", "time"}
Names = tuple[str, ...]


def as_json(value: Any) -> Any:
    """What a deserializer returned as JSON; bytes, decimals and times are strings."""
    return _untyped(typed_json(value))


def _untyped(value: Any) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and not _TYPES.isdisjoint(value) and isinstance(next(iter(value.values())), str):
            return next(iter(value.values()))
        return {name: _untyped(each) for name, each in value.items()}
    return [_untyped(each) for each in value] if isinstance(value, list) else value


def values_in(path: Path) -> Iterator[tuple[bytes, list[tuple[str, bytes | None]]]]:
    """The values of a partition with their headers."""
    value_at, headers_at = RECORD.names.index("value"), RECORD.names.index("headers")
    for item in dump(path, records=True):
        if isinstance(item, Finding):
            raise TypeError(str(item))
        for row in item.rows:
            yield row[value_at], [(name.decode(), value) for name, value in row[headers_at]]


def names_in(value: Any, path: Names = ()) -> Iterator[Names]:
    """The paths of all fields in JSON."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield (*path, name)
            yield from names_in(each, (*path, name))
    elif isinstance(value, list):
        for each in value:
            yield from names_in(each, path)


def kept_in(value: Any, keep: set[Names], path: Names = ()) -> Iterator[tuple[Names, str]]:
    """The fields of JSON that are kept, with their values."""
    if path in keep:
        yield path, json.dumps(value, sort_keys=True)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from kept_in(each, keep, (*path, name))
    elif isinstance(value, list):
        for each in value:
            yield from kept_in(each, keep, path)


def parts_in(value: Any, keep: set[Names], path: Names = (), *, is_kept: bool = False) -> Iterator[tuple[bool, bytes]]:
    """The strings and bytes in JSON, and whether they are kept."""
    is_kept |= path in keep
    if isinstance(value, dict):
        for name, each in value.items():
            if name != "@type":
                is_name_kept = is_kept or any((*path, name) == one[: len(path) + 1] for one in keep)
                yield is_name_kept, name.encode()
                yield from parts_in(each, keep, (*path, name), is_kept=is_kept)
    elif isinstance(value, list):
        for each in value:
            yield from parts_in(each, keep, path, is_kept=is_kept)
    elif isinstance(value, str):
        yield is_kept, value.encode()
        try:
            yield is_kept, b64decode(value, validate=True)
        except ValueError:
            return


def write_logs(folder: Path, families: list[Family], written: list[Written], guids: dict[str, str]) -> None:
    """A partition for each family."""
    for family in families:
        own = [each for each in written if each.topic == family.name]
        batches, offset = [], 0
        while offset < len(own):
            some = own[offset : offset + _PER_BATCH]
            headers = [(name, with_guid(value, guids)) for name, value in some[0].headers]
            if headers:  # those of one value are not those of another
                some = some[:1]
            batches.append(
                batch(
                    offset,
                    [each.data for each in some],
                    key=None,
                    codec=len(batches) % 5,
                    headers=tuple((name.encode(), value) for name, value in headers),
                )
            )
            offset += len(some)
        write_segment(folder / f"{family.name}-0", 0, batches)


def main() -> int:
    """Run the trial; the exit status is 1 where anything is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    registered = Registered()
    families = [*AVRO, *PROTOBUF]
    writers = {"avro": write_avro, "protobuf": write_protobuf}
    version_count = sum(each.version_count(_VERSIONS) for each in families)
    for family in families:
        writers[family.kind](family, registered, -(-options.values // version_count), chance)
    names = {path for each in registered.written for path in names_in(as_json(each.expected))}
    plain = sorted(path for path in names if all(name.replace("_", "").isalnum() and name.isascii() for name in path))
    keep = set(chance.sample(plain, min(len(plain) // 3, 300)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = enumerate(registry_records(registered, set()))
        write_segment(
            folder / "logs" / "_schemas-0", 0, [batch(offset, [value], key=key) for offset, (key, value) in records]
        )
        schemas = find_schemas(targets_at([folder / "logs" / "_schemas-0"]))
        ids = {each.schema_id: each.guid for each in registered.client._store.schema_id_index.values()}
        write_logs(
            folder / "logs", families, registered.written, {ids[each.id]: each.guid for each in schemas.versions}
        )
        redact = [sys.executable, "-m", "kafkalog_cli", "redact", folder / "logs", "--output", folder / "out"]
        redact += ["--keep-fields", ",".join(map(".".join, sorted(keep)))]
        run = subprocess.run([*redact, "--format", "jsonl", "--quiet"], stdout=subprocess.PIPE, check=False)
        print(run.stdout.splitlines()[-1].decode())
        subprocess.run([sys.executable, "-m", "kafkalog_cli", "verify", folder / "out", "--quiet"], check=True)
        back = {each.guid: ids[each.id] for each in schemas.versions}
        good: Counter[str] = Counter()
        for family in families:
            own = [each for each in registered.written if each.topic == family.name]
            for each, (value, headers) in zip(own, values_in(folder / "out" / f"{family.name}-0"), strict=True):
                good[family.kind] += _is_good(each, value, [(n, with_guid(v, back)) for n, v in headers], keep)
    tried = Counter(next(one.kind for one in families if one.name == each.family) for each in registered.written)
    for kind, count in tried.items():
        print(f"{kind:12} {good[kind]:>7,} of {count:>7,}")
    return int(good != tried)


def _is_good(written: Written, value: bytes, headers: list[tuple[str, bytes | None]], keep: set[Names]) -> bool:
    before = as_json(written.expected)
    try:
        after = as_json(written.read(value, headers))
    except Exception as error:
        print("not readable:", written.family, repr(error), before, sep="\n  ")
        return False
    if Counter(kept_in(before, keep)) - Counter(kept_in(after, keep)):  # a short key of a map can become a kept name
        print("not kept:", written.family, list(kept_in(before, keep)), list(kept_in(after, keep)), sep="\n  ")
        return False
    parts = list(parts_in(before, keep))
    kept = b"\0".join(  # after its length, as Protobuf and Avro write it
        bytes((size & 0xFF,)) + part
        for is_kept, part in parts
        for size in ((len(part), 2 * len(part)) if is_kept else ())
    )
    left = [p for is_kept, p in parts if not is_kept and len(p) >= _LEAST_BYTES and p not in kept and p in value]
    if left:
        print("left:", written.family, left, before, after, sep="\n  ")
    return not left


if __name__ == "__main__":
    raise SystemExit(main())
