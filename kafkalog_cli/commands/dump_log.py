"""kafkalog dump-log: the flags and the output of Kafka's own kafka-dump-log."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import typer

from format.findings import Finding, Severity
from format.io.session import Session, is_remote
from format.io.store import WrongAddress
from format.node.target import absent_words
from format.verbs.dump_log.contents import decoder_class
from format.verbs.dump_log.java_text import split_files
from format.verbs.dump_log.options import Contents, DumpLogOptions, ErrorLine, KafkaStops, Release
from format.wording import did_you_mean
from kafkalog_cli.command_table import HelpfulCommand
from kafkalog_cli.exit_codes import Condition, combined, conditions_of
from kafkalog_cli.failures import OPTION_HINTS, UsageError, condition_of, report, say
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import Judging
from kafkalog_cli.options.parsers import FlagError, Takes, integer_of, one_of, parse_flags
from kafkalog_cli.options.reading import check_path
from kafkalog_cli.options.work import Guards, Sharing
from kafkalog_cli.output import open_output
from kafkalog_cli.render.text import printable, shown_on_terminal

EXAMPLES = (
    ("kafkalog dump-log --files 00000000000000000000.log", "every batch of a segment"),
    ("kafkalog dump-log --print-data-log --files 00000000000000000000.log", "and every record, with key and value"),
    ("kafkalog dump-log --offsets-decoder --files 00000000000000000000.log", "committed offsets, decoded"),
    ("kafkalog dump-log --index-sanity-check --files 0000.index,0000.timeindex", "would a broker keep these indexes?"),
    ("kafkalog dump-log --emulate 3.9.1 --print-data-log --files 0000.log", "exactly what that release prints"),
)

RELEASES = ("4.3.1", "3.9.1")
STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"

#: Flags of Kafka's whose value may be left out.
_OPTIONAL_VALUES = frozenset(("key-decoder-class", "value-decoder-class"))
#: How options of 'kafkalog dump' begin that narrow what is shown.
_OF_DUMP = ("from-", "to-", "last", "limit")


class DumpLogCommand(HelpfulCommand):
    """The command, whose flags are parsed as Kafka's tool parses them."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the words as Kafka's tool does, and pass them to click in the form that it expects."""
        known = _known_flags(self.get_params(ctx))
        try:
            return super().parse_args(ctx, _as_click_reads(args, known))
        except (FlagError, UsageError) as error:
            if ctx.resilient_parsing:  # a shell asks for completions of a line that is not finished
                return super().parse_args(ctx, args)
            if isinstance(error, FlagError):
                words = str(error) if error.unknown is None else _unknown_words(error.unknown, known)
                raise typer.BadParameter(words, ctx=ctx) from None
            raise


COMMAND_CLASS = DumpLogCommand


def _unknown_words(name: str, known: Mapping[str, Takes]) -> str:
    """The message about a flag that does not exist, with similar ones, or how to get what it asks for."""
    flag = f"--{name}" if len(name) > 1 else f"-{name}"
    suggested = did_you_mean(flag, [f"--{each}" for each in known if len(each) > 1])
    hint = OPTION_HINTS.get(flag)
    if not suggested and hint is None and name.startswith(_OF_DUMP):
        hint = f"For ranges: 'kafkalog dump --records {flag} …'."
    return f"no such option: {flag}{f'. {hint}' if hint else f'.{suggested}' if suggested else ''}"


def _known_flags(parameters: Sequence[Any]) -> dict[str, Takes]:
    """The flags of this command by name, without dashes."""
    known = {}
    for each in parameters:
        for flag in each.opts:
            name = flag.lstrip("-")
            takes = Takes.OPTIONAL_VALUE if name in _OPTIONAL_VALUES else Takes.VALUE
            known[name] = Takes.NOTHING if each.is_flag else takes
    return known


def _as_click_reads(words: list[str], known: Mapping[str, Takes]) -> list[str]:
    """The flags, each with two dashes and its value after ``=``. Other words are ignored, with a message."""
    flags, other_words = parse_flags(words, known)
    if other_words:
        say(f"kafkalog: ignored, as Kafka does: {' '.join(other_words)} (files go into --files A,B,C)")
    shown = []
    for name, value in flags:
        if known[name] is Takes.NOTHING:
            shown.append(f"-{name}" if len(name) == 1 else f"--{name}")
        else:
            shown.append(f"--{name}={STRING_DECODER if value is None else value}")
    return shown


def _int32(text: str) -> int:
    number = integer_of(text, -(2**31), 2**31 - 1)
    if number is None:
        raise typer.BadParameter(f"Cannot parse argument '{text}' as a 32-bit number")
    return number


_CLASS_HELP = (
    "a class of Kafka: StringDecoder, IntegerDecoder, LongDecoder or DefaultDecoder of the package "
    "org.apache.kafka.tools.api."
)


class Decoders(msgspec.Struct, frozen=True):
    """The decoders of keys and values, by Kafka's flags."""

    key_decoder_class: Annotated[str | None, option(f"The decoder of keys, {_CLASS_HELP}", metavar="[CLASS]")] = None
    value_decoder_class: Annotated[str | None, option(f"The decoder of values, {_CLASS_HELP}", metavar="[CLASS]")] = (
        None
    )
    offsets_decoder: Annotated[bool, option("Decode records of __consumer_offsets.")] = False
    transaction_log_decoder: Annotated[bool, option("Decode records of __transaction_state.")] = False
    cluster_metadata_decoder: Annotated[bool, option("Decode records of __cluster_metadata.")] = False
    remote_log_metadata_decoder: Annotated[bool, option("Decode records of __remote_log_metadata.")] = False
    share_group_state_decoder: Annotated[bool, option("Decode records of __share_group_state.")] = False

    @property
    def contents(self) -> Contents:
        """The kind of records to decode: by the first of the flags that is given."""
        given = {
            Contents.OFFSETS: self.offsets_decoder,
            Contents.TRANSACTION_LOG: self.transaction_log_decoder,
            Contents.CLUSTER_METADATA: self.cluster_metadata_decoder,
            Contents.REMOTE_LOG_METADATA: self.remote_log_metadata_decoder,
            Contents.SHARE_GROUP_STATE: self.share_group_state_decoder,
        }
        return next((contents for contents, is_given in given.items() if is_given), Contents.CLASSES)

    @property
    def has_class(self) -> bool:
        return self.key_decoder_class is not None or self.value_decoder_class is not None


class KafkaFlags(msgspec.Struct, frozen=True):
    """The flags of kafka-dump-log, and the release to emulate."""

    files: Annotated[list[str] | None, option("What to dump: logs and their side files.", metavar="FILE,FILE,…")] = None
    print_data_log: Annotated[bool, option("Print records with their keys and values.")] = False
    deep_iteration: Annotated[bool, option("Print records, without contents.")] = False
    skip_record_metadata: Annotated[bool, option("Print only the keys and values of records.")] = False
    max_bytes: Annotated[int, option("Read at most this many bytes of a log.", metavar="N", parser=_int32)] = 2**31 - 1
    max_message_size: Annotated[
        int, option("The size of the largest batch; only used with --emulate.", metavar="N", parser=_int32)
    ] = 5 * 1024 * 1024
    index_sanity_check: Annotated[bool, option("Print only whether a broker would keep an index.")] = False
    verify_index_only: Annotated[bool, option("Compare an index with its log without printing it.")] = False
    decoders: Decoders = msgspec.field(default_factory=Decoders)
    emulate: Annotated[
        str | None,
        option(
            "Print what this release prints of the files, with its mistakes; the exit status is Kafka's (0 or 1).",
            **one_of(*RELEASES),
        ),
    ] = None
    version: Annotated[bool, option("Show the version and exit.")] = False


def dump_log(flags: KafkaFlags, judging: Judging, guards: Guards, sharing: Sharing) -> None:
    """Print what kafka-dump-log prints, to the byte, for the same flags; for scripts that parse it.

    Known mistakes of Kafka's tool are corrected; docs/dump-log.md lists them. Text is written as UTF-8. On a terminal,
    and only there, control characters of keys and values are shown as escapes.
    """
    emulate, decoders = flags.emulate, flags.decoders
    if flags.version:
        from kafkalog_cli.main import version_text

        typer.echo(emulate or version_text())
        return

    if not flags.files:
        raise UsageError("Missing option '--files'.")
    if flags.max_bytes < 0:
        raise typer.BadParameter("--max-bytes must not be negative")
    for name in (decoders.key_decoder_class, decoders.value_decoder_class):
        if name is not None and decoder_class(name) is None:
            raise typer.BadParameter(f"{name} is not one of Kafka's own decoders, and no Java class can be loaded here")
    if emulate == Release.V3_9_1.value and decoders.share_group_state_decoder:
        raise typer.BadParameter(f"kafka-dump-log of {emulate} has no --share-group-state-decoder")
    paths = [_checked(sharing.session, path) for value in flags.files for path in split_files(value)]
    contents = decoders.contents
    options = DumpLogOptions(
        prints_contents=flags.print_data_log or decoders.has_class or contents is not Contents.CLASSES,
        is_deep=flags.deep_iteration,
        skips_record_metadata=flags.skip_record_metadata,
        max_bytes=flags.max_bytes,
        max_message_size=flags.max_message_size,
        checks_sanity_only=flags.index_sanity_check,
        verifies_only=flags.verify_index_only,
        contents=contents,
        key_decoder=decoders.key_decoder_class or STRING_DECODER,
        value_decoder=decoders.value_decoder_class or STRING_DECODER,
        emulate=None if emulate is None else Release(emulate),
        session=sharing.session,
        limits=guards.limits,
    )
    _print(paths, options, judging.fail_on, sharing.process_count)


def _checked(session: Session, path: str) -> str:
    """The path; raises a usage error if it does not exist, for an address too: nothing is printed before that."""
    if path[:1].isspace() and path.strip() and not os.path.lexists(path):
        raise typer.BadParameter(
            f"{printable(path.strip())}: --files takes names with commas and no spaces between them"
        )
    shown = check_path(session, path)
    if is_remote(shown):
        try:
            place = session.path(shown)
            words = "" if place.exists() else absent_words(place)
        except WrongAddress as error:
            words = str(error)
        except OSError:  # the verb reports it
            words = ""
        if words:
            raise typer.BadParameter(printable(f"{shown}: {words}"))
    return shown


def _print(paths: list[str], options: DumpLogOptions, fail_on: Severity, jobs: int) -> None:
    """Print everything on standard output and error, and raise typer.Exit with the exit code."""
    from format.verbs.dump_log.dump_log import dump_log

    conditions: set[Condition] = set()
    output = open_output(None)

    def pass_on(items: Iterator[bytes | memoryview | ErrorLine | Finding]) -> None:
        for item in items:
            if isinstance(item, (bytes, memoryview)):
                output.write(shown_on_terminal(item) if output.is_terminal else item)
            elif isinstance(item, Finding):
                conditions.update(conditions_of(item, fail_on))
                if item.severity > Severity.INFO:
                    say(f"kafkalog: {item.severity.label}: {item.location}: {item.message} ({item.code})")
            else:
                say(item.text)

    kafkas_code = 0
    try:
        try:
            pass_on(dump_log(paths, options, jobs=jobs))
        except KafkaStops as stop:
            kafkas_code = 1
            output.flush()
            release = "" if options.emulate is None else f" {options.emulate.value}"
            say(f"kafkalog: kafka-dump-log{release} ends here with an exception: {stop.message}")
        output.publish()
    except BaseException as error:
        report(error)
        conditions.add(condition_of(error))
    if conditions and Condition.READER_GONE not in conditions:
        try:
            output.flush()
        except Exception as error:  # show what came before a failure, as far as possible
            conditions.add(condition_of(error))
    raise typer.Exit(int(combined(conditions)) or kafkas_code)
