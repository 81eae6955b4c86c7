"""Selection of records: ranges of offsets and times, and the number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from msgspec.structs import replace

from format.columns import EXTRA_RECORD_COLUMNS
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.parsers import COUNT, MOMENT, POSITIVE, one_of

if TYPE_CHECKING:
    from format.scan.selection import Selection

#: The two ends of each range, by the name of either.
_RANGES = {name: ends for ends in (("from_offset", "to_offset"), ("from_time", "to_time")) for name in ends}


def check_range(context: typer.Context, parameter: typer.CallbackParam, value: int | None) -> int | None:
    """The value, one end of a range of offsets or times. Raises a usage error if the range is empty."""
    first, last = _RANGES[str(parameter.name)]
    given = context.params | {parameter.name: value}
    start, end = given.get(first), given.get(last)
    if start is not None and end is not None and start > end:
        options = (f"--{name.replace('_', '-')}" for name in (first, last))
        raise typer.BadParameter(f"the range is empty: {' lies past '.join(options)}")
    return value


class RangeOptions(msgspec.Struct, frozen=True):
    """Ranges of offsets and times, both ends included."""

    from_offset: Annotated[int | None, option("Start at this offset.", callback=check_range, **COUNT)] = None
    to_offset: Annotated[int | None, option("Stop after this offset.", callback=check_range, **COUNT)] = None
    from_time: Annotated[
        int | None,
        option(
            "Start at this time: epoch milliseconds, ISO-8601 (UTC unless it names an offset), or relative (-2h, now).",
            callback=check_range,
            **MOMENT,
        ),
    ] = None
    to_time: Annotated[int | None, option("Stop after this time.", callback=check_range, **MOMENT)] = None

    @property
    def selection(self) -> Selection:
        """The same ranges, half-open."""
        from format.scan.selection import Selection

        return Selection(self.from_offset, _after(self.to_offset), self.from_time, _after(self.to_time))


class RowOptions(msgspec.Struct, frozen=True):
    """Ranges of offsets and times, and the number of rows."""

    range: RangeOptions = msgspec.field(default_factory=RangeOptions)
    limit: Annotated[int | None, option("Stop after N rows.", "-m", **POSITIVE)] = None


class Isolation(msgspec.Struct, frozen=True):
    """The records that consumers receive."""

    read_committed: Annotated[
        bool,
        option(
            "Only the records that read_committed consumers receive: no control records, none of aborted or open "
            "transactions, none past the last stable offset."
        ),
    ] = False

    from_log_start: Annotated[
        bool, option("Leave out records below the log start offset, which consumers never receive.")
    ] = False

    def of(self, range_: RangeOptions) -> Selection:
        """The selection of the ranges, narrowed to these records."""
        return replace(range_.selection, read_committed=self.read_committed, from_log_start=self.from_log_start)


class ExtraColumns(msgspec.Struct, frozen=True):
    """Columns that rows of records have on request."""

    with_columns: Annotated[
        list[str] | None,
        option(
            "Add a column to rows of records: the log file, or whether the record is below the log start offset; may "
            "be repeated.",
            "--with",
            show_default="none",
            **one_of(*(column.name for column in EXTRA_RECORD_COLUMNS)),
        ),
    ] = None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.with_columns or ())


def _after(last: int | None) -> int | None:
    return None if last is None else last + 1
