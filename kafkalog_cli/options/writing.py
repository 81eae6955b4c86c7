"""Options of the commands that write a new directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from format.codecs import COMPRESSION_LEVELS
from format.columns import MERGED_RANGE, WRITTEN_SEGMENT
from format.io.session import Session, is_remote, path_of
from format.io.source import os_reason
from format.layout import CODEC_NAMES, MANIFEST
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import Judging, RowOutput
from kafkalog_cli.options.parsers import SIZE, shown
from kafkalog_cli.options.reading import check_path, existing_paths
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.progress import Progress
from kafkalog_cli.render.table import ShownColumns
from kafkalog_cli.runner import Run, say_published, show_resumed

if TYPE_CHECKING:
    from format.rewriting.publication import Publication


#: The columns of tables of written segments, and of the ranges of a merge.
_SEGMENT_COLUMNS = ShownColumns(
    (
        "path", "source_bytes", "size_bytes", "batch_count", "copied_count", "recompressed_count", "rebuilt_count",
        "lost_bytes",
    ),
    deciding=("lost_bytes",),
)  # fmt: skip
_RANGE_COLUMNS = (
    "topic", "partition", "first_offset", "last_offset", "record_count", "node_id", "path", "segment_base_offset",
    "position", "size_bytes",
)  # fmt: skip


def local_directory(output: str | None) -> str | None:
    """The directory to write, None where none was given. Raises a usage error for an address."""
    if output is None:
        return None
    if is_remote(output):
        raise typer.BadParameter(
            f"{shown(output)} is an address; a new directory can only be written to a file system of this host"
        )
    return str(path_of(output)) if output.startswith("file:") else output


OutputDirectory = Annotated[
    str,
    option(
        "A new directory for the result, outside the sources; it appears only when it is complete.",
        "--output",
        metavar="DIR",
        callback=local_directory,
        show_default=False,
    ),
]


class SourceOptions(msgspec.Struct, frozen=True):
    """The partitions to copy."""

    sources: Annotated[list[str], existing_paths("", "SRC...")]  # see made_command
    session: Session = msgspec.field(default_factory=Session)

    @property
    def paths(self) -> list[Path]:
        return [self.session.path(each) for each in self.sources]


class Resumption(msgspec.Struct, frozen=True):
    """Whether a run continues an interrupted one, and can be continued itself."""

    resume: Annotated[
        bool, option("Continue an interrupted run of the same command, after a check of the files that it finished.")
    ] = False
    keep_partial: Annotated[bool, option("Keep what was written when the run fails, for --resume.")] = False

    def publication(
        self, output: str, sources: Sequence[Path], job: Mapping[str, Any], *, manifest: str = MANIFEST
    ) -> Publication:
        """The publication of a new directory, not opened yet. The arguments are those of ``Publication``."""
        from format.rewriting.publication import Publication

        return Publication(
            output, sources, job=job, manifest=manifest, resume=self.resume, keep_partial=self.keep_partial
        )


class Indexing(msgspec.Struct, frozen=True):
    """The density of new indexes."""

    index_interval: Annotated[
        int | None,
        option(
            "Log bytes between index entries, like the topic's index.interval.bytes.",
            "--index-interval-bytes",
            show_default="4096",
            **SIZE,
        ),
    ] = None

    @property
    def interval_bytes(self) -> int:
        from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES

        return self.index_interval or DEFAULT_INTERVAL_BYTES


class Rewriting(msgspec.Struct, frozen=True):
    """The options of the commands that write partitions anew."""

    resumption: Resumption = msgspec.field(default_factory=Resumption)
    indexing: Indexing = msgspec.field(default_factory=Indexing)
    judging: Judging = msgspec.field(default_factory=Judging)
    output: RowOutput = msgspec.field(default_factory=RowOutput)
    guards: Guards = msgspec.field(default_factory=Guards)
    work: Work = msgspec.field(default_factory=Work)

    def run(self, command: str, columns: ShownColumns | Sequence[str] = _SEGMENT_COLUMNS) -> Run:
        """The run of a command whose rows are written segments; its summary is a result."""
        shown = {WRITTEN_SEGMENT.type: columns, MERGED_RANGE.type: _RANGE_COLUMNS}
        return Run(command, self.output, self.judging, main_schema=WRITTEN_SEGMENT, columns=shown, shows_summary=True)

    @contextmanager
    def publication(
        self, run: Run, output: str, sources: Sequence[Path], job: Mapping[str, Any]
    ) -> Iterator[Publication]:
        """The context in which a new directory is written, whose path is printed at the end."""
        with self.resumption.publication(output, sources, job) as publication:
            show_resumed(run, publication, self.resumption.resume)
            yield publication
        say_published(run, publication.target)

    def terms(self, progress: Progress) -> dict[str, Any]:
        """What ``WriteTerms`` and its kin have of these options."""
        return {
            "limits": self.guards.limits,
            "interval_bytes": self.indexing.interval_bytes,
            "jobs": self.work.process_count,
            "advance": progress.advance,
        }


def check_level(codec: str | None, level: int | None) -> None:
    """Refuse a level that the codec does not have."""
    if level is None:
        return
    number = CODEC_NAMES.index(codec) if codec else -1
    if number not in COMPRESSION_LEVELS:
        other = "" if codec is None else f", not {codec}"
        raise typer.BadParameter(f"--level goes with --codec gzip, lz4 or zstd{other}")
    lowest, highest, default = COMPRESSION_LEVELS[number]
    if not (lowest <= level <= highest or level == default):
        raise typer.BadParameter(f"{codec} has levels {lowest} to {highest}, not {level}")


class Sample(msgspec.Struct, frozen=True):
    """The part of each topic that is measured."""

    sample: Annotated[
        int | None, option("With --estimate: log bytes to measure per topic.", show_default="16MiB", **SIZE)
    ] = None
    whole: Annotated[bool, option("With --estimate: measure everything.")] = False

    @property
    def size_bytes(self) -> int | None:
        """The bytes to measure; None for all."""
        from format.verbs.recompress.estimate import DEFAULT_SAMPLE_BYTES

        return None if self.whole else self.sample or DEFAULT_SAMPLE_BYTES


_MOST_KEY_BYTES = 1024 * 1024

KeyFile = Annotated[
    str | None,
    option(
        "A file with the secret key of the hashes, 16 bytes or more.",
        "--key-file",
        metavar="FILE",
        show_default="a random key, used once",
    ),
]


def key_of(path: str | None) -> bytes:
    """The key from a file, which may be a pipe, or a random key without a file. Raises a usage error."""
    from format.verbs.redact.replacements import LEAST_KEY_BYTES

    if path is None:
        return os.urandom(64)
    try:
        with open(check_path(Session(), path), "rb") as file:
            key = file.read(_MOST_KEY_BYTES + 1)
    except OSError as error:
        raise typer.BadParameter(f"cannot read it: {os_reason(error)}", param_hint="--key-file") from None
    if not LEAST_KEY_BYTES <= len(key) <= _MOST_KEY_BYTES:
        size = f"{len(key)} bytes" if len(key) <= _MOST_KEY_BYTES else "more than 1 MiB"
        raise typer.BadParameter(f"the key has {size}, not 16 bytes to 1 MiB", param_hint="--key-file")
    return key
