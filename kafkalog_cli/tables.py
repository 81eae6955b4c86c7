"""Parquet tables of the rows of a run, beside its output. ``kafkalog scan`` sets them, and ``Run`` fills them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from format.columns import RowSchema
    from kafkalog_cli.summary import Summary


class TableWriter(Protocol):
    """Takes the rows of a run, and publishes them at its end."""

    def add(self, schema: RowSchema, row: tuple[Any, ...]) -> None: ...

    def finish(self, summary: Summary) -> None:
        """Publish; raises OutputError."""
        ...

    def discard(self) -> None:
        """Remove what was not published."""
        ...


#: Opens the tables of a command about some paths.
OpenTables = Callable[[str, Sequence[str]], TableWriter]

_open: ContextVar[OpenTables | None] = ContextVar("tables", default=None)


@contextmanager
def writing_tables(open_tables: OpenTables | None) -> Iterator[None]:
    """The context in which runs also write tables. With None they write none."""
    token = _open.set(open_tables)
    try:
        yield
    finally:
        _open.reset(token)


def tables_of(command: str, paths: Sequence[str]) -> TableWriter | None:
    """The tables of a new run, None where it writes none. Raises OutputInsideSource and OutputError."""
    open_tables = _open.get()
    return None if open_tables is None else open_tables(command, paths)
