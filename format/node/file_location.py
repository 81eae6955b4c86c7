"""Locations of files and directories: topic, partition and segment, from their names."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from format import layout
from format.io.session import absolute, is_there, path_of
from format.location import Location
from format.node.partition import is_offset, parse_partition_dir


def location_of_directory(path: Path) -> Location:
    """The location of a partition directory, with the topic and partition in its name."""
    parsed = parse_partition_dir(path.name if path.name not in ("", "..") else absolute(path).name)
    return Location(str(path)) if parsed is None else Location(str(path), parsed[0], parsed[1])


def location_of_file(path: str | os.PathLike[str]) -> Location:
    """The location of a file, with the topic, partition and segment in the names of its directory and itself.

    A file of the log directory itself has none of these, even if that directory is called ``node-1``.
    """
    place = path_of(path)
    parent = place.parent if place.parent.name not in ("", "..") else absolute(place.parent)
    parsed = parse_partition_dir(parent.name)
    match = layout.SEGMENT_FILE.match(place.name)
    location = Location(str(place))
    if parsed is not None and place.name.removesuffix(layout.TEMPORARY_SUFFIX) not in layout.LOG_DIR_FILES:
        location = replace(location, topic=parsed[0], partition=parsed[1])
    if match is not None and is_offset(int(match["base_offset"])):
        location = replace(location, base_offset=int(match["base_offset"]))
    return location


def proven_topic_of_file(path: str | os.PathLike[str]) -> str | None:
    """The topic of a file in a partition directory that has a partition.metadata file, None for other files.

    The name of the directory alone proves nothing: a file may have been copied to ``case-42``.
    """
    place = path_of(path)
    if not is_there(place.parent / layout.PARTITION_METADATA):
        return None
    return location_of_file(place).topic
