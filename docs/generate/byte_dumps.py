"""Annotated dumps of files that real brokers wrote: each run of bytes with the field that owns it and its value."""

from __future__ import annotations

from pathlib import Path

from docs.generate.tables import layout_named
from format.log.regions import Region, fixed_regions, regions_of_batch
from tests.corpora import DATA_DIR

_BYTES_SHOWN = 14


# -- the parts that pages ask for --------------------------------------------------------------------------------


def batch_dump(name: str, position: str = "0", records: str = "1") -> str:
    """A v2 batch of a file below ``tests/_data``: its header and its first records."""
    content = (DATA_DIR / name).read_bytes()
    return _shown(name, content, list(regions_of_batch(content, int(position), int(records))))


def message_dump(name: str, position: str = "0") -> str:
    """A v0 or v1 message of a file below ``tests/_data``."""
    content = (DATA_DIR / name).read_bytes()
    return _shown(name, content, list(regions_of_batch(content, int(position))))


def entries_dump(name: str, count: str, *layouts: str) -> str:
    """Structures of fixed size one after the other: the first of each layout but the last, then ``count`` of that."""
    content = (DATA_DIR / name).read_bytes()
    *heads, entry = (layout_named(each) for each in layouts)
    regions: list[Region] = []
    position = 0
    for each in [*heads, *[entry] * int(count)]:
        regions += fixed_regions(each, content, position)
        position += each.size_bytes
    return _shown(name, content, regions, rest=len(content) - position)


def text_file(name: str) -> str:
    """A text file below ``tests/_data``, as it is."""
    content = (DATA_DIR / name).read_text(encoding="utf-8")
    return f"`{name}`:\n\n```text\n{content.rstrip()}\n```"


# -- on the page -------------------------------------------------------------------------------------------------


def _shown(name: str, content: bytes, regions: list[Region], rest: int = 0) -> str:
    hexes = [
        content[each.position : each.end_position][:_BYTES_SHOWN].hex(" ")
        + (" …" if each.length > _BYTES_SHOWN else "")
        for each in regions
    ]
    widths = (
        max(len("position"), *(len(str(each.position)) for each in regions)),
        max(map(len, hexes)),
        max(len(each.field) for each in regions),
    )
    lines = [f"{'position':>{widths[0]}}  {'bytes':<{widths[1]}}  {'field':<{widths[2]}}  value"]
    for each, octets in zip(regions, hexes, strict=True):
        lines.append(f"{each.position:>{widths[0]}}  {octets:<{widths[1]}}  {each.field:<{widths[2]}}  {each.value}")
    if rest > 0:
        lines.append(f"… and {rest} more bytes")
    folder = Path(name).parent.name
    return f"`{folder}/{Path(name).name}`, written by {written_by(name)}:\n\n```text\n" + "\n".join(lines) + "\n```"


def written_by(name: str) -> str:
    """The broker that wrote a file below ``tests/_data``, from the folder's name."""
    return {
        "kafka-4.3": "a Kafka 4.3.1 broker",
        "kafka-4.3-single": "a Kafka 4.3.1 broker",
        "kafka-0.8-to-2.8": "brokers from 0.8.2.2 to 2.8.2",
    }[Path(name).parts[0]]
