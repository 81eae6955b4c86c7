# What a type checker sees of kernel.py: its C types stand in kernel.pxd, so the Python file itself carries none.
from typing import Final, TypeAlias

_Bytes: TypeAlias = bytes | bytearray | memoryview
_Table: TypeAlias = memoryview  # of int64, two-dimensional
_Row: TypeAlias = memoryview  # of int64

BATCH_COLUMNS: Final[tuple[str, ...]]
RECORD_COLUMNS: Final[tuple[str, ...]]
SPAN_COLUMNS: Final[tuple[str, ...]]
RESULT_COLUMNS: Final[tuple[str, ...]]
STOPS: Final[tuple[str, ...]]
ERRORS: Final[tuple[str, ...]]

def hop(
    buffer: _Bytes, start: int, end: int, file_position: int, table: _Table, first_row: int, status: _Row
) -> int: ...
def find_candidate(buffer: _Bytes, start: int, end: int, min_base_offset: int, max_size_bytes: int) -> int: ...
def index_records(
    buffer: _Bytes, spans: _Table, first: int, last: int, table: _Table, first_row: int, results: _Table
) -> int: ...
def index_headers(buffer: _Bytes, start: int, end: int, count: int, table: _Table) -> int: ...
def index_messages(buffer: _Bytes, start: int, end: int, table: _Table, first_row: int, result: _Row) -> int: ...
def find_bad_header_key(buffer: _Bytes, table: _Table, first: int) -> int: ...
