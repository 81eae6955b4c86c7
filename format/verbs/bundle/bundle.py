"""bundle: one pass of verify over the logs, and one archive with its findings, the batch headers and the side files.

The same sources give the same bytes: the time of the run is not written, and members are in order.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from format import layout
from format.errors import KafkaLogError
from format.findings import Finding
from format.io.bundles import schemas
from format.io.live_broker import probe
from format.io.session import path_of
from format.io.source import FileSource
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.limits import DEFAULT_LIMITS, Limits
from format.node.partition import allocated_bytes, location_of_file
from format.node.target import Target
from format.rows.finding_rows import finding_as_json
from format.scan.progress import Advance, no_progress
from format.verbs.bundle import contents
from format.verbs.bundle.secrets import Names, Overwritten, may_hold_secrets, secrets_of, understood, without
from format.verbs.report.report import ReportRun
from format.verbs.report.terms import Report, ReportTerms
from format.verbs.verify.verify import Coverage, VerifyTerms, verify_all
from format.wording import counted

#: Makes the page of a report.
Render = Callable[[Report], str]


class BundleTerms(msgspec.Struct, frozen=True):
    """The options of a bundle.

    ``render`` None leaves out the report, for the reason in ``no_report``. ``names`` None keeps all names.
    ``directory`` is that of temporary files, which have no names.
    """

    limits: Limits = DEFAULT_LIMITS
    jobs: int = 1
    advance: Advance = no_progress
    render: Render | None = None
    no_report: str = ""
    names: Names | None = None
    compacted_topics: Mapping[str, bool] = msgspec.field(default_factory=dict)
    directory: str | None = None
    version: str = ""  # of the program


class Bundled(msgspec.Struct):
    """The counts of a bundle's content, and notes about what was left out."""

    counts: dict[str, int] = msgspec.field(default_factory=dict)
    left_out: list[str] = msgspec.field(default_factory=list)


_PIECE_BYTES = 4 * 1024 * 1024
_WITHOUT_TIME_MS = 0


@dataclass(slots=True)
class BundleRun:
    """One bundle while it is made: ``findings`` yields the findings of verify, and ``finish`` writes the archive."""

    targets: Sequence[Target]
    terms: BundleTerms
    _archive: contents.NewArchive = field(init=False)
    _findings: contents.NewMember = field(init=False)
    _paths: contents.InnerPaths = field(init=False)
    _files: list[tuple[str, contents.SourceFile]] = field(init=False)
    _report: ReportRun | None = None
    _wrong_crcs: dict[str, set[int]] = field(default_factory=dict)
    _masked_files: int = 0
    _bundled: Bundled = field(default_factory=Bundled)

    def __post_init__(self) -> None:
        """Raises InputError for a path that is no log directory and no partition."""
        for target in self.targets:
            target.require_partitions("a bundle is made of whole logs")
        self._archive = contents.NewArchive(self.terms.directory)
        self._findings = self._archive.stream(schemas.FINDINGS)
        self._paths = contents.InnerPaths(self.targets, self.terms.names)
        files = {self._paths.of(each.path): each for each in contents.source_files(self.targets)}
        files.pop("", None)  # the root of the file system
        self._files = sorted(files.items())

    @property
    def listed_bytes(self) -> int:
        """The bytes of all files, which are read for their digests."""
        return sum(each.status.st_size for _, each in self._files if each.type == schemas.FILE)

    def findings(self) -> Iterator[Finding]:
        """Read everything once, as verify does; yields its findings."""
        for found in self._verified():
            values = finding_as_json(found)
            for each in (values, values.get("caused_by", {})):
                if each.get("path"):
                    each["path"] = self._paths.of(path_of(each["path"]))
            if self.terms.names is not None:
                values = self.terms.names.finding(values)
            self._findings.write(schemas.json_line(values))
            if found.code == "batch-crc-mismatch" and found.location.position is not None:
                self._wrong_crcs.setdefault(values["path"], set()).add(found.location.position)
            yield found

    def _verified(self) -> Iterator[Finding]:
        terms = self.terms
        if terms.render is not None:
            coverage = Coverage()
            report_terms = ReportTerms(self._newest_ms(), terms.limits, jobs=terms.jobs, advance=terms.advance)
            self._report = ReportRun(self.targets, report_terms, coverage)
            yield from self._report.findings()
        else:
            verify_terms = VerifyTerms(
                limits=terms.limits, compacted_topics=terms.compacted_topics, jobs=terms.jobs, advance=terms.advance
            )
            verified = verify_all(self.targets, verify_terms)
            yield from verified
            coverage = verified.coverage
        self._bundled.counts = coverage.counts

    def _newest_ms(self) -> int:
        """The modification time of the newest file in ms: the report judges at this time, not at that of the clock."""
        times = [each.status.st_mtime_ns for _, each in self._files if each.type == schemas.FILE]
        return max(times, default=_WITHOUT_TIME_MS) // 1_000_000

    def finish(self, write: contents.Write) -> Bundled:
        """Write the archive, after the findings were consumed."""
        covered = dict(self._bundled.counts)
        self._add_report()
        self._add_files()
        manifest = {
            "kind": "kafkalog-bundle",
            "format": schemas.BUNDLE_FORMAT,
            "version": self.terms.version,
            "kernel": "compiled" if KERNEL_IS_COMPILED else "python",
            "sources": [{"path": self._paths.of(target.path)} for target in self.targets],
            "names_redacted": self.terms.names is not None,
            "key_fingerprint": None if self.terms.names is None else self.terms.names.key_fingerprint,
            "verified": covered,
            "left_out": self._bundled.left_out,
        }
        self._archive.write(manifest, write)
        return self._bundled

    def _add_report(self) -> None:
        left_out = self._bundled.left_out
        if self._report is None or self.terms.render is None:
            left_out.append(f"the report page: {self.terms.no_report}")
            return
        self._archive.file(schemas.REPORT).write(self.terms.render(self._report.finish()).encode())

    def _add_files(self) -> None:
        file_list, damage = self._archive.stream(schemas.FILE_LIST), self._archive.stream(schemas.DAMAGE)
        headers = contents.HeaderWriter(
            self._archive.stream(schemas.BATCHES), self._archive.stream(schemas.OUTLINES), damage, self.terms.limits
        )
        same: dict[tuple[int, int], str] = {}
        unread = 0
        for inner, each in self._files:
            entry = self._entry(inner, each, same)
            entry, is_read = self._read(entry, each, headers)
            unread += not is_read
            file_list.write(entry.line())
        headers.close()
        if self.terms.names is not None:
            self._bundled.left_out.append(
                "the records of Kafka's own topics, and the words of findings: names are redacted"
            )
        if self._masked_files:
            self._bundled.left_out.append(
                f"passwords, and what is not understood, in {counted(self._masked_files, 'file')} of the cluster's "
                "metadata or properties: they are overwritten"
            )
        if unread:
            files = "1 file or directory" if unread == 1 else f"{unread:,} files or directories"
            self._bundled.left_out.append(f"{files} that cannot be read")
        self._bundled.counts |= {"files": len(self._files), "batch_headers": headers.batch_count}

    def _entry(self, inner: str, each: contents.SourceFile, same: dict[tuple[int, int], str]) -> schemas.BundledEntry:
        status = each.status
        same_as = None
        if each.type == schemas.FILE and status.st_nlink > 1:
            same_as = same.setdefault((status.st_dev, status.st_ino), inner)
        return schemas.BundledEntry(
            inner,
            each.type,
            status.st_size if each.type == schemas.FILE else 0,
            allocated_bytes(status),
            status.st_mtime_ns,
            kept=each.kept if self.terms.names is None else contents.kept_without_names(each),
            link_count=status.st_nlink if each.type == schemas.FILE else 1,
            same_as=None if same_as == inner else same_as,
            error=each.error,
        )

    def _read(
        self, entry: schemas.BundledEntry, each: contents.SourceFile, headers: contents.HeaderWriter
    ) -> tuple[schemas.BundledEntry, bool]:
        """The entry with the facts that were read from the file, and whether it could be read."""
        if entry.type != schemas.FILE:
            return entry, entry.error is None
        if self.terms.names is not None and entry.kept == schemas.KEPT_WHOLE:
            return self._rewritten(entry, each.path, self.terms.names)
        member = self._archive.file(schemas.WHOLE + entry.path) if entry.kept == schemas.KEPT_WHOLE else None
        changes: dict[str, object] = {}
        try:
            with FileSource(each.path) as source:
                changes["size_bytes"], changes["mtime_ns"] = source.size_bytes, source.mtime_ns
                is_masked = member is not None and may_hold_secrets(each.path)
                secrets = secrets_of(source, self.terms.limits) if is_masked else []
                self._masked_files += bool(secrets)
                digest = self._copied(source, member, secrets)
                # With the digest of a file that lacks only a password here, whoever has the bundle could guess it.
                changes["sha256"] = None if secrets or entry.kept is None else digest
                if entry.kept == schemas.KEPT_HEADERS:
                    place = location_of_file(each.path)
                    topic = place.topic
                    if self.terms.names is not None and topic is not None:
                        topic = self.terms.names.topic(topic)
                    wrong_crcs = frozenset(self._wrong_crcs.get(entry.path, ()))
                    headers.add(contents.LogPlace(each.path, entry.path, topic, place.partition), source, wrong_crcs)
        except KafkaLogError as error:
            if member is not None:
                self._archive.drop(member)
            return replace(entry, error=error.message, kept=None), False
        if member is not None:
            changes["stored_bytes"] = member.size_bytes
        return _with_lock(replace(entry, **changes), each.path), True

    def _rewritten(self, entry: schemas.BundledEntry, path: Path, names: Names) -> tuple[schemas.BundledEntry, bool]:
        """The entry of a side file that is written anew without names; only its time is that of the file."""
        content = understood(path, names, self.terms.limits)
        if content is None:
            return replace(entry, kept=None, error="it is not wholly understood, and may hold names"), False
        stored = content.rstrip(b"\0")
        self._archive.file(schemas.WHOLE + entry.path).write(stored)
        return _with_lock(replace(entry, size_bytes=len(content), stored_bytes=len(stored)), path), True

    def _copied(self, source: FileSource, member: contents.NewMember | None, secrets: Sequence[Overwritten]) -> str:
        """The SHA-256 of a file; copies it into the member without zeros at its end, and with secrets overwritten."""
        digest = hashlib.sha256()
        position = zeros = 0
        while position < source.size_bytes:
            piece = source.read_at(position, _PIECE_BYTES)
            position += len(piece)
            digest.update(piece)
            self.terms.advance(len(piece))
            if member is None:
                continue
            stored = without(secrets, position - len(piece), piece).rstrip(b"\0")
            if stored:
                while zeros:
                    some = min(zeros, _PIECE_BYTES)
                    member.write(bytes(some))
                    zeros -= some
                member.write(stored)
            zeros += len(piece) - len(stored)
        return digest.hexdigest()


def _with_lock(entry: schemas.BundledEntry, path: Path) -> schemas.BundledEntry:
    """The entry with the process that holds the file, where it is the lock of a log directory."""
    if path.name != layout.LOCK:
        return entry
    lock = probe(path)
    return replace(entry, lock_holder=(lock.pid or 0) if lock.is_held else None)


def temporary_directory(output: str) -> str | None:
    """The directory for temporary files: that of the output, on whose disk there must be room anyway."""
    directory = os.path.dirname(os.path.realpath(output))
    return directory if os.path.isdir(directory) else None
