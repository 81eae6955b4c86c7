"""Options of states and judgements: their time, the producers and topics of interest, and the sources of configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from format.io.session import Session
from kafkalog_cli.options.parsers import parse_count, parse_moment
from kafkalog_cli.options.reading import check_if_given

if TYPE_CHECKING:
    from format.limits import Limits
    from format.state.cluster_context import ContextTerms
    from format.verbs.txns.replicas import Replicas
    from kafkalog_cli.runner import Run


class AsOf(msgspec.Struct, frozen=True):
    """The time up to which logs are replayed."""

    at: Annotated[
        int | None,
        typer.Option(
            "--at",
            metavar="T",
            parser=parse_moment,
            help="Show the state as of this time: epoch milliseconds, ISO-8601 (UTC unless it "
            "names an offset), or relative (-2h).",
            show_default="the end of the logs",
        ),
    ] = None


class Writers(msgspec.Struct, frozen=True):
    """The producers and the topics of interest, and the time up to which their logs are read."""

    producer_id: Annotated[
        int | None, typer.Option("--producer-id", metavar="N", parser=parse_count, help="Only this producer.")
    ] = None
    transactional_id: Annotated[
        str | None, typer.Option("--transactional-id", metavar="ID", help="Only this transactional id.")
    ] = None
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="Only this topic; may be repeated. Others are not read.",
            show_default="all",
        ),
    ] = None
    as_of: AsOf = msgspec.field(default_factory=AsOf)

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(self.topic or ())


class JudgedAt(msgspec.Struct, frozen=True):
    """The time at which the broker's check is assumed to run. Ages are measured back from it."""

    at: Annotated[
        int | None,
        typer.Option(
            "--at",
            "--now",
            metavar="T",
            parser=parse_moment,
            help="Assume that it is this time: epoch milliseconds, ISO-8601, or relative such as +2d.",
            show_default="now",
        ),
    ] = None

    @property
    def now_ms(self) -> int:
        """The time in epoch milliseconds."""
        from kafkalog_cli.options.times import parse_time

        return parse_time("now") if self.at is None else self.at


class ClusterMetadata(msgspec.Struct, frozen=True):
    """A metadata log that is not beside the logs."""

    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata",
            metavar="PATH",
            callback=check_if_given,
            help="Take the replicas, leader and ISR of partitions from this metadata log; PATH may be a log directory.",
            show_default="the newest __cluster_metadata-0 at or beside the paths",
        ),
    ] = None
    session: Session = msgspec.field(default_factory=Session)

    def terms(self, limits: Limits) -> ContextTerms:
        """The terms for the verbs."""
        from format.state.cluster_context import ContextTerms

        return ContextTerms(metadata=None if self.metadata is None else self.session.path(self.metadata), limits=limits)


class ConfigSources(msgspec.Struct, frozen=True):
    """A metadata log and a server.properties that are not beside the logs."""

    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata",
            metavar="PATH",
            callback=check_if_given,
            help="Take topic configs from this metadata log.",
            show_default="__cluster_metadata-0 at or beside the paths",
        ),
    ] = None
    broker_properties: Annotated[
        str | None,
        typer.Option(
            "--broker-properties",
            metavar="FILE",
            callback=check_if_given,
            help="The broker's server.properties, for configs that are set neither by topic nor dynamically.",
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


def say_absent_topics(run: Run, replicas: Replicas[Any], wanted: frozenset[str]) -> None:
    """Say of which wanted topics there is no partition at the paths: then not everything was found."""
    from kafkalog_cli.exit_codes import Condition

    for words in replicas.absent_words(wanted):
        run.say_now(words)
        run.condition(Condition.NOTHING_FOUND)
