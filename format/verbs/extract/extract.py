"""extract: the records of logs as files that other programs read, one directory per topic and partition.

The records come from the scan of dump, which runs in this process, since most of the time goes into writing. On a
cluster each partition is a unit, written by the task that reads it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from format.errors import InputError
from format.files import meta_properties
from format.findings import Finding
from format.io.session import is_remote
from format.location import Location
from format.node.log_dir import Kind, LogDir
from format.node.partition import location_of_file, parse_partition_dir, read_partition
from format.node.target import Target
from format.rewriting.publishing.publication import Publication
from format.rewriting.sources import job_of
from format.rows.finding_rows import finding_as_json, finding_from_json
from format.scan.cluster import Cluster, cluster_of
from format.scan.progress import no_progress
from format.verbs.extract.files import ExtractedFile
from format.verbs.extract.terms import Extraction, ExtractSource, Key
from format.verbs.extract.units import ExtractScan, ExtractUnit, PartitionDone, extract_unit

__all__ = ["ExtractSource", "Extraction", "extract", "extract_job", "extract_sources"]


def extract_sources(paths: Sequence[Path], terms: Extraction) -> list[ExtractSource]:
    """The partitions and logs at these paths, in order; left out and unread ones are noted in ``terms``.

    Raises InputError for a path without records, and if records would be extracted twice: a partition from two
    directories, or a file together with the directory that contains it.
    """
    found: list[ExtractSource] = []
    for path in paths:
        target = Target(path)
        kind = target.kind
        if kind is Kind.LOG_DIR:
            terms.unread += target.link_findings()
            for log_dir in target.log_dirs:
                terms.unread += log_dir.unread_findings()
                found += _sources_in(log_dir, terms)
        elif kind is Kind.PARTITION:
            partition = read_partition(path)
            found.append(ExtractSource((partition.topic, partition.number), path, kind))
        elif kind is Kind.LOG:
            location = location_of_file(path)
            found.append(ExtractSource((location.topic, location.partition), path, kind))
        else:
            raise InputError(
                "holds no records to extract: give log directories, partitions or .log files", Location(str(path))
            )
    found = _by_broker(found)
    _check_for_doubles(found)
    return found


def _sources_in(log_dir: LogDir, terms: Extraction) -> Iterator[ExtractSource]:
    broker_id = meta_properties.node_id_in(log_dir.meta_properties)
    for directory in log_dir.partitions:
        topic, number, mark = parse_partition_dir(directory.name) or (None, None, None)
        if mark is None:
            yield ExtractSource((topic, number), directory, Kind.PARTITION, broker_id)
        else:
            terms.left_out.append(f"{directory.name}: marked {mark}; give it by itself to extract it")


def _by_broker(sources: list[ExtractSource]) -> list[ExtractSource]:
    """The sources; each broker gets a directory of its own if several brokers have the same partition."""
    brokers: dict[Key, set[int]] = {}
    for source in sources:
        if source.broker_id is not None:
            brokers.setdefault(source.key, set()).add(source.broker_id)
    if all(len(each) < 2 for each in brokers.values()):
        return [replace(each, broker_id=None) for each in sources]
    return sources


def _check_for_doubles(sources: list[ExtractSource]) -> None:
    directories: dict[str, str] = {}
    seen: set[str] = set()
    for source in sources:
        real = str(source.path) if is_remote(source.path) else os.path.realpath(source.path)
        directory = os.path.dirname(real) if source.kind is Kind.LOG else real
        other = directories.setdefault(source.directory, directory)
        if other != directory:
            topic, partition = source.key
            name = "files outside partition directories" if topic is None else f"{topic}-{partition}"
            raise InputError(f"{name} would come from two directories, here and {other}", Location(str(source.path)))
        if real in seen or (source.kind is Kind.LOG and directory in seen):
            raise InputError("the log is given twice", Location(str(source.path)))
        if source.kind is Kind.PARTITION and any(os.path.dirname(each) == real for each in seen):
            raise InputError("the directory is given, and also a file in it", Location(str(source.path)))
        seen.add(real)


def extract(
    sources: Sequence[ExtractSource], publication: Publication, terms: Extraction
) -> Iterator[Finding | ExtractedFile]:
    """Write the selected records into the open publication and finish it; yields files and findings.

    Records of batches with a wrong CRC are left out. Raises OutputError.
    """
    yield from terms.unread
    by_directory: dict[str, list[ExtractSource]] = {}
    for source in sources:
        by_directory.setdefault(source.directory, []).append(source)
    units = [ExtractUnit(directory, tuple(each)) for directory, each in by_directory.items()]
    files: list[ExtractedFile] = []
    cluster = cluster_of(sources[0].path) if sources else None
    left = [each for each in units if not publication.is_step_finished(each.directory)]
    made = _here(left, publication, terms) if cluster is None else _on(cluster, left, publication, terms)
    with contextlib.closing(made):  # the cluster's directory is removed before the output is published
        for unit in units:
            if publication.is_step_finished(unit.directory):
                result = publication.step_result(unit.directory)
                yield from map(finding_from_json, result["findings"])
                done = [ExtractedFile(**values) for values in result["files"]]
                yield from done
                files += done
                terms.advance(sum(each.bytes_to_read(terms.selection) for each in unit.sources))
                continue
            findings: list[Finding] = []
            for item in made:
                if isinstance(item, PartitionDone):
                    break
                if isinstance(item, Finding):
                    findings.append(item)
                else:
                    files.append(item)
                yield item
            publication.finish_step(
                unit.directory,
                {
                    "files": [each.as_json() for each in files if each.path.startswith(f"{unit.directory}/")],
                    "findings": [finding_as_json(each) for each in findings],
                },
            )
    publication.finish({"files_of_records": [each.as_json() for each in files]})


def _here(
    units: Sequence[ExtractUnit], publication: Publication, terms: Extraction
) -> Generator[Finding | ExtractedFile | PartitionDone, None, None]:
    """Extract partitions in this process, each as one step of the publication."""
    for unit in units:
        yield from extract_unit(unit, publication, terms)


def _on(
    cluster: Cluster, units: Sequence[ExtractUnit], publication: Publication, terms: Extraction
) -> Generator[Finding | ExtractedFile | PartitionDone, None, None]:
    """Extract partitions on a cluster: its tasks write to directories of their own, from which files are moved."""
    sent = replace(terms, advance=no_progress, left_out=[], unread=[])  # without what stays here
    scan = ExtractScan(publication.path.absolute(), sent)
    try:
        for item in cluster.results(scan, units, terms.advance):
            if isinstance(item, PartitionDone):
                publication.move_in(scan.tasks / item.task, item.entries)
            yield item
    finally:
        shutil.rmtree(scan.tasks, ignore_errors=True)


def extract_job(paths: Sequence[Path], sources: Sequence[ExtractSource], **options: Any) -> dict[str, Any]:
    """The description of a run, for its manifest and for resuming."""
    return job_of("extract", options, paths, (file for each in sources for file in each.files))
