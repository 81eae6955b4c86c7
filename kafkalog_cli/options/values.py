"""Options of decoded keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from format.columns import DECODED_NAMES
from format.decoding.plain import KINDS
from format.errors import InputError
from format.io.session import Session, is_remote
from format.limits import Limits
from format.node.target import Target
from kafkalog_cli.failures import needing
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.parsers import one_of, usage_errors
from kafkalog_cli.options.reading import check_if_given
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.decoding.decoder import Decoding
    from format.decoding.schemas import SchemaOf

_RAW = "raw"


def _check_schema_of(words: list[str] | None) -> list[str] | None:
    for word in words or ():
        _schema_of(word)
    return words


def _schema_of(word: str) -> tuple[str, SchemaOf]:
    from format.decoding.schemas import schema_of_topic

    with usage_errors(ValueError):
        return schema_of_topic(word)


class ValueOptions(msgspec.Struct, frozen=True):
    """What keys and values are decoded as, and by which schemas."""

    value_as: Annotated[
        str | None,
        option(
            f"Decode values as {', '.join(KINDS)}. auto goes by the schema id in the value or its headers, else "
            "by what the bytes prove.",
            show_default="raw",  # see made_command
            **one_of(*KINDS, metavar="KIND"),
        ),
    ] = None
    key_as: Annotated[
        str | None,
        option(
            "Decode keys, in the same way.",
            show_default="auto where values are decoded, else raw",
            **one_of(*KINDS, metavar="KIND"),
        ),
    ] = None
    schemas: Annotated[
        str | None,
        option(
            "Take schemas from here: a registry's topic (_schemas-0), a log directory that has it, or a directory of "
            ".avsc, .proto and .json files.",
            metavar="PATH",
            callback=check_if_given,
            show_default="_schemas-0 at or beside the paths",
        ),
    ] = None
    schema_of: Annotated[
        list[str] | None,
        option(
            "Decode a topic's values by a file of the directory --schemas, and a message of a .proto file; may be "
            "repeated.",
            metavar="TOPIC=FILE[:MESSAGE]",
            callback=_check_schema_of,
            show_default=False,
        ),
    ] = None
    session: Session = msgspec.field(default_factory=Session)

    @property
    def is_asked(self) -> bool:
        """Whether decoding was asked for."""
        kinds = {each for each in (self.value_as, self.key_as) if each is not None}
        return bool(kinds - {_RAW}) or self.schemas is not None or self.schema_of is not None

    @property
    def columns(self) -> frozenset[str]:
        """The columns that rows of records have besides, where it was asked for."""
        return DECODED_NAMES if self.is_asked else frozenset()

    @property
    def job(self) -> dict[str, Any]:
        """The options that were given, by name, for the description of a run."""
        given = {each: getattr(self, each) for each in ("value_as", "key_as", "schemas", "schema_of")}
        return {name: value for name, value in given.items() if value is not None}

    def decoding(self, run: Run, targets: Sequence[Target], limits: Limits) -> Decoding | None:
        """What is decoded; None for nothing. Findings about schemas are written."""
        is_for_people = run.width is not None and run.shows_records
        found = self.decoding_at(targets, limits, is_for_people=is_for_people)
        if found is not None:
            run.findings(found.schemas.findings)
        return found

    def decoding_at(self, targets: Sequence[Target], limits: Limits, *, is_for_people: bool) -> Decoding | None:
        """What is decoded of the logs at some targets; None for nothing."""
        if not self.is_asked:
            is_left_out = _RAW in (self.value_as, self.key_as) or any(is_remote(each.path) for each in targets)
            if not is_for_people or is_left_out:
                return None
        found = self.by_options(targets, limits)
        return found if self.is_asked or found.schemas else None

    def by_options(self, targets: Sequence[Target], limits: Limits) -> Decoding:
        """What the options say, with ``auto`` for a kind that is not given, and the schemas at hand."""
        from format.decoding.decoder import Decoding
        from format.decoding.schemas import check_files, schemas_for

        if "protobuf" in (self.value_as, self.key_as):
            with needing("Protobuf needs the package protobuf", "decode"):
                import google.protobuf  # noqa: F401
        if self.schema_of and self.schemas is None:
            raise typer.BadParameter(
                "its files are in the directory of --schemas: give that too", param_hint="--schema-of"
            )
        with usage_errors(InputError, option=None if self.schemas is None else "--schemas"):
            given = None if self.schemas is None else Target(self.session.path(self.schemas))
            schemas = schemas_for(targets, given, limits)
        schema_of = dict(map(_schema_of, self.schema_of or ()))
        with usage_errors(InputError, option="--schema-of"):
            check_files(schemas, schema_of)
        return Decoding(
            key_as=self.key_as or "auto", value_as=self.value_as or "auto", schemas=schemas, schema_of=schema_of
        )
