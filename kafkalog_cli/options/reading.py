"""Input: paths, the kind of file to read them as, and whether they are followed."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from format.errors import InputError
from format.io.session import BUNDLE_SUFFIX, Session, is_bundle, is_on_disk, is_remote, is_there, path_of
from format.io.store import without_query
from format.limits import Limits
from format.node.log_dir import Kind
from format.node.partition import named
from format.node.target import Target, absent_words, link_words, targets_at
from format.timestamps import iso_time
from kafkalog_cli.command_table import COMMANDS
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.groups import first_given, option, session_in
from kafkalog_cli.options.parsers import COUNT, MOMENT, one_of, parse_time, usage_errors
from kafkalog_cli.render.text import printable
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.io.bundles.bundle import Bundle
    from format.state.cluster_context import ContextTerms
    from format.state.tiered_logs import TieredLogs
    from format.verbs.producers import RecordPlace
    from format.verbs.txns.replicas import LongestReplicas


def file_of(path: str) -> tuple[str, str] | None:
    """The bundle that a path names or lies in, and the path inside it; None for any other path."""
    path = str(path_of(path)) if path.lower().startswith("file:") else path
    end = path.find(BUNDLE_SUFFIX)
    while end >= 0:
        end += len(BUNDLE_SUFFIX)
        if path[end : end + 1] in ("", "/") and is_bundle(path[:end]):
            return path[:end], path[end:].strip("/")
        end = path.find(BUNDLE_SUFFIX, end)
    return None


def are_read_by(command_path: str) -> bool:
    """Whether a command, such as ``kafkalog ls``, reads bundles."""
    words = command_path.split()
    return len(words) == 2 and any(each.name == words[1] and each.reads_bundles for each in COMMANDS)


def opened_paths(session: Session, own: str, inner: str) -> Sequence[str]:
    """The paths that were bundled, or the path inside the bundle, which the session opens. Raises a usage error."""
    from format.io.bundles.unpacking import open_bundle

    if own not in session.bundles:
        with usage_errors(InputError, own):
            session.bundles[own] = open_bundle(own)
    sources = [f"{own}/{each}" for each in session.bundles[own].sources]
    if not inner:
        return sources
    place = session.path(f"{own}/{inner}")
    if not is_there(place):
        words = absent_words(place).replace("there is no such file or directory", "", 1)
        meant = [each for each in (f"{source}/{inner}" for source in sources) if is_there(session.path(each))]
        words = f". Did you mean {' or '.join(meant)}?" if meant else words
        raise typer.BadParameter(printable(f"{place}: the bundle has no such path{words}"))
    return (str(place),)


def bundles_of(session: Session, paths: Sequence[str]) -> tuple[Bundle, ...]:
    """The bundles that the paths are in, each once. Raises a usage error if only some of the paths are in one."""
    found = [session.bundle_of(path) for path in paths]
    if any(each is not None for each in found) and None in found:
        raise typer.BadParameter("give bundles or log directories, not both: their findings are of different times")
    return tuple({each[0].path: each[0] for each in found if each is not None}.values())


def check_paths(context: typer.Context, paths: list[str] | None) -> list[str] | None:
    """The paths. Raises a usage error, before any work begins, if one of them does not exist.

    For a command that reads bundles, a bundle is replaced by the paths that were bundled.
    """
    absent = next((each for each in paths or () if each and not is_remote(each) and not os.path.lexists(each)), None)
    if absent is not None:
        meant = [each for each in (os.path.join(other, absent) for other in paths or ()) if os.path.lexists(each)]
        if meant:
            words = "there is no such file or directory. Did you mean"
            raise typer.BadParameter(printable(f"{absent}: {words} {' or '.join(meant)}?"))
    return paths and [each for path in paths for each in _paths_at(context, path)]


def _paths_at(context: typer.Context, path: str) -> Sequence[str]:
    found = file_of(path)
    if found is not None and are_read_by(context.command_path):
        return opened_paths(session_in(context), *found)
    return (check_path(session_in(context), path),)


def check_if_given(context: typer.Context, path: str | None) -> str | None:
    """The value of an option, as ``check_path``."""
    return None if path is None else check_path(session_in(context), path)


def check_path(session: Session, path: str) -> str:
    """The path. Raises a usage error if it does not exist; the verb reports a path that cannot be read.

    An address is not checked here, as only its store knows what exists. It is returned without its options and keys,
    which must not be shown.
    """
    if not path:
        raise typer.BadParameter("a path is empty; the current directory is '.'")
    if is_remote(path):
        address = without_query(path)
        if f"{BUNDLE_SUFFIX}/" in f"{address}/":
            raise typer.BadParameter(printable(f"{address}: an archive is only read on this host: copy it here first"))
        session.stores.give([path])
        return address
    found = file_of(path)
    if found is not None:
        words = "this is a bundle, which holds no keys, values or headers; this command needs the logs"
        if found[1]:
            words += f". Side files are in it as they are: tar --zstd -xf {found[0]}"
        raise typer.BadParameter(printable(f"{path}: {words}"))
    try:
        os.lstat(path_of(path))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            words = os.strerror(error.errno) if error.errno == errno.ENAMETOOLONG else absent_words(path_of(path))
            raise typer.BadParameter(printable(f"{path}: {words}")) from None
    return path


def existing_paths(help: str, metavar: str = "PATH...") -> Any:
    """An argument of paths that exist."""
    return typer.Argument(metavar=metavar, help=help, callback=check_paths, show_default=False)


#: The paths of a command, whose help says what it takes: see ``made_command``.
Paths = Annotated[list[str], existing_paths("")]


def parse_place(text: str) -> RecordPlace:
    """The place of a record, such as ``orders-0:4711``. Raises a usage error."""
    from format.verbs.producers import record_place

    with usage_errors(ValueError):
        return record_place(text)


def check_place_and_paths(context: typer.Context, words: list[str] | None) -> list[str] | None:
    """The words: paths that exist, before them perhaps the place of a record. Raises a usage error."""
    if not words or not _is_place(words[0]):
        return check_paths(context, words)
    if len(words) == 1:
        raise typer.BadParameter(f"no PATH after {printable(words[0])}: give the log directories to look in")
    return [words[0], *(check_paths(context, words[1:]) or ())]


def _is_place(word: str) -> bool:
    return re.fullmatch(r"[^/]+-[0-9]+:[0-9]+", word) is not None and not os.path.lexists(word)


class PlaceAndPaths(msgspec.Struct, frozen=True):
    """The place of a record, or none, and the paths at which it is looked for."""

    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[TOPIC-P:OFFSET] PATH...",
            help="A log directory, a partition directory (TOPIC-PARTITION), or one file of any kind; also an address, "
            "such as s3://bucket/node-1. With TOPIC-P:OFFSET, such as orders-0:4711, only that record of the replicas "
            "at the paths; with --limit N, N from it on.",
            callback=check_place_and_paths,
            show_default=False,
        ),
    ]
    session: Session = msgspec.field(default_factory=Session)

    @property
    def place(self) -> RecordPlace | None:
        return parse_place(self.words[0]) if self.words and _is_place(self.words[0]) else None

    @property
    def paths(self) -> list[str]:
        return self.words if self.place is None else self.words[1:]

    def targets(self, run: Run, kind: Kind | None = None) -> list[Target]:
        """The readable targets at the paths, with a place those of its replicas: a usage error where there is none."""
        targets = run.readable(targets_at([self.session.path(each) for each in self.paths], kind))
        if self.place is None:
            return targets
        name = f"{self.place.topic}-{self.place.partition}"
        with usage_errors(InputError):
            at_paths = [each.path for each in targets if each.kind is Kind.PARTITION]
            below = [path for each in targets for log_dir in each.log_dirs for path in log_dir.partitions]
        replicas = [Target(path, Kind.PARTITION) for path in (*at_paths, *below) if named(path).name == name]
        if not replicas:
            raise typer.BadParameter(printable(f"there is no {name} at the paths{link_words(targets, name)}"))
        return replicas


class AsKind(msgspec.Struct, frozen=True):
    """The kind of file or directory to read a path as."""

    as_kind: Annotated[
        str | None,
        option(
            "Read the path as this kind, whatever its name",  # see made_command
            "--as",
            **one_of(*(kind.value for kind in Kind), metavar="KIND"),
        ),
    ] = None

    @property
    def kind(self) -> Kind | None:
        return None if self.as_kind is None else Kind(self.as_kind)


class Reading(msgspec.Struct, frozen=True):
    """The paths to read, and the kind to read them as."""

    paths: Paths
    as_kind: AsKind = msgspec.field(default_factory=AsKind)
    session: Session = msgspec.field(default_factory=Session)

    def targets(self) -> list[Target]:
        """The targets at the paths. Each is read once, at its first use."""
        return targets_at(map(self.session.path, self.paths), self.as_kind.kind)


class Following(msgspec.Struct, frozen=True):
    """Whether the logs are followed as they grow."""

    follow: Annotated[
        bool,
        option(
            "Follow the logs until Ctrl-C: read what is appended, from the end of each log on unless another option "
            "sets the start. Partitions that appear later are read from their start.",
            "-f",
        ),
    ] = False

    def check(self, excluded: Mapping[str, Any]) -> None:
        """Raise a usage error for options that exclude --follow: values in ``excluded`` other than None and False."""
        name = first_given(excluded)
        if self.follow and name is not None:
            raise typer.BadParameter(f"{name} and --follow exclude each other")


def check_followable(targets: Sequence[Target]) -> None:
    """Raise a usage error for a target that cannot be followed: an address, a file, a directory without logs."""
    for target in targets:
        if not is_on_disk(target.path):
            raise typer.BadParameter(printable(f"{target.path}: --follow takes log directories of this host"))
        with usage_errors(InputError, target.path):
            kind = target.kind
        if kind not in (Kind.LOG_DIR, Kind.PARTITION):
            raise typer.BadParameter(
                printable(f"{target.path}: --follow takes log directories and partition directories, not single files")
            )


class Tiering(msgspec.Struct, frozen=True):
    """The place of the objects of remote storage."""

    remote: Annotated[
        str | None,
        option(
            "Read tiered logs from their start, with the objects of remote storage at this path or address.",
            metavar="PATH",
            callback=check_if_given,
            show_default=False,
        ),
    ] = None
    session: Session = msgspec.field(default_factory=Session)

    @contextmanager
    def joined(self, run: Run, targets: Sequence[Target], limits: Limits) -> Iterator[TieredLogs | None]:
        """The context in which partitions include their remote segments. Findings about these are written first."""
        if self.remote is None:
            yield None
            return
        from format.state.tiered_logs import tiered_logs

        found = tiered_logs(targets, self.session.path(self.remote), limits)
        run.findings(found.findings)
        run.not_checked(*found.not_checked)
        self.session.tier = found.tier
        try:
            yield found
        finally:
            self.session.tier = None


class AsOf(msgspec.Struct, frozen=True):
    """The time up to which logs are replayed."""

    at: Annotated[
        int | None,
        option(
            "Show the state as of this time: epoch milliseconds, ISO-8601 (UTC unless it names an offset), or relative "
            "(-2h).",
            show_default="the end of the logs",
            **MOMENT,
        ),
    ] = None

    @property
    def words(self) -> str:
        """A sentence that the answer is of this time; empty where none was given."""
        return "" if self.at is None else f"This is as of {iso_time(self.at)}; later records are not counted."


class Writers(msgspec.Struct, frozen=True):
    """The producers and the topics of interest, and the time up to which their logs are read."""

    producer_id: Annotated[int | None, option("Only this producer.", **COUNT)] = None
    transactional_id: Annotated[str | None, option("Only this transactional id.", metavar="ID")] = None
    topic: Annotated[
        list[str] | None,
        option("Only this topic; may be repeated. Others are not read.", metavar="TOPIC", show_default="all"),
    ] = None
    as_of: AsOf = msgspec.field(default_factory=AsOf)

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(self.topic or ())


class JudgedAt(msgspec.Struct, frozen=True):
    """The time at which the broker's check is assumed to run. Ages are measured back from it."""

    at: Annotated[
        int | None,
        option(
            "Assume that it is this time: epoch milliseconds, ISO-8601, or relative such as +2d.",
            show_default="now",
            **MOMENT,
        ),
    ] = None

    @property
    def now_ms(self) -> int:
        """The time in epoch milliseconds."""
        return parse_time("now") if self.at is None else self.at


MetadataPath = Annotated[
    str | None,
    option(
        "Take configs, replicas and leaders from this metadata log; PATH may be a log directory.",
        "--metadata",
        metavar="PATH",
        callback=check_if_given,
        show_default="the newest __cluster_metadata-0 at or beside the paths",
    ),
]


class ClusterMetadata(msgspec.Struct, frozen=True):
    """A metadata log that is not beside the logs."""

    metadata: MetadataPath = None
    session: Session = msgspec.field(default_factory=Session)

    def terms(self, limits: Limits) -> ContextTerms:
        """The terms for the verbs."""
        from format.state.cluster_context import ContextTerms

        return ContextTerms(metadata=None if self.metadata is None else self.session.path(self.metadata), limits=limits)


class ConfigSources(msgspec.Struct, frozen=True):
    """A metadata log and a server.properties that are not beside the logs."""

    metadata: MetadataPath = None
    broker_properties: Annotated[
        str | None,
        option(
            "The broker's server.properties, for configs that are set neither by topic nor dynamically.",
            metavar="FILE",
            callback=check_if_given,
        ),
    ] = None
    session: Session = msgspec.field(default_factory=Session)

    def terms(self, options: Mapping[str, str | int | float | None], limits: Limits) -> ContextTerms:
        """The terms for the verbs; ``options`` are configs by name that override all others."""
        from format.state.cluster_context import ContextTerms

        return ContextTerms(
            metadata=None if self.metadata is None else self.session.path(self.metadata),
            broker_properties=None if self.broker_properties is None else self.session.path(self.broker_properties),
            options={name: str(value) for name, value in options.items() if value is not None},
            limits=limits,
        )


def say_absent_topics(run: Run, replicas: LongestReplicas[Any], wanted: frozenset[str]) -> None:
    """Say of which wanted topics there is no partition at the paths: then not everything was found."""
    for words in replicas.absent_words(wanted):
        run.say_now(words)
        run.condition(Condition.NOTHING_FOUND)


def unknown_id_words(
    run: Run, replicas: LongestReplicas[Any], transactional_id: str | None, limits: Limits
) -> str | None:
    """The answer where no producer of the wanted transactional id is known; adds the condition. None for another."""
    absence = None if transactional_id is None else replicas.no_producer_words(transactional_id, limits)
    if absence is None:
        return None
    words, is_proven = absence
    run.condition(Condition.NOTHING_FOUND if is_proven else Condition.INCOMPLETE)
    return words
