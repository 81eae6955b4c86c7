# What a type checker sees of kernel.py: its C types stand in kernel.pxd, so the Python file itself carries none.
from typing import Final, TypeAlias

_Bytes: TypeAlias = bytes | bytearray | memoryview
_Table: TypeAlias = memoryview  # of int64, two-dimensional
_Row: TypeAlias = memoryview  # of int64

BATCH_COLUMNS: Final[tuple[str, ...]]
RECORD_COLUMNS: Final[tuple[str, ...]]
NEW_RECORD_BYTES: Final[int]
SPAN_COLUMNS: Final[tuple[str, ...]]
RESULT_COLUMNS: Final[tuple[str, ...]]
STOPS: Final[tuple[str, ...]]
ERRORS: Final[tuple[str, ...]]
FIELDS: Final[tuple[str, ...]]
LITERALS: Final[tuple[str, ...]]
CHARACTER_WORDS: Final[tuple[bytes, ...]]

def hop(
    buffer: _Bytes, start: int, end: int, file_position: int, table: _Table, first_row: int, status: _Row
) -> int: ...
def skip_batches(buffer: _Bytes, start: int, end: int, room: int, target: int, status: _Row) -> int: ...
def find_candidate(buffer: _Bytes, start: int, end: int, min_base_offset: int, max_size_bytes: int) -> int: ...
def check_crcs(
    buffer: _Bytes, buffer_position: int, table: _Table, largest_bytes: int, tables: memoryview, valid: memoryview
) -> int: ...
def find_doubtful_header(table: _Table, latest_timestamp: int) -> int: ...
def find_doubtful_record(
    buffer: _Bytes, records: _Table, batches: _Table, max_record_bytes: int, tables: memoryview
) -> int: ...
def find_misplaced_record(
    buffer: _Bytes, records: _Table, batches: _Table, partition: int, partition_count: int, first: int
) -> int: ...
def find_in_fields(buffer: _Bytes, fields: _Table, wanted: _Bytes, found: _Row) -> None: ...
def find_other_record(buffer: _Bytes, records: _Table, other_buffer: _Bytes, others: _Table, first: int) -> int: ...
def put_v2_records(
    out: bytearray | memoryview, buffer: _Bytes, records: _Table, base_offset: int, base_timestamp: int
) -> int: ...
def murmur2(buffer: _Bytes, at: int, length: int) -> int: ...
def index_records(
    buffer: _Bytes, spans: _Table, first: int, last: int, table: _Table, first_row: int, results: _Table
) -> int: ...
def index_headers(buffer: _Bytes, start: int, end: int, count: int, table: _Table) -> int: ...
def index_record_headers(buffer: _Bytes, records: _Table, table: _Table) -> int: ...
def index_messages(buffer: _Bytes, start: int, end: int, table: _Table, first_row: int, result: _Row) -> int: ...
def find_bad_header_key(buffer: _Bytes, table: _Table, first: int) -> int: ...
def put_batches(
    out: bytearray | memoryview,
    fields: _Table,
    literals: _Table,
    pieces: _Bytes,
    batches: _Table,
    crc_valid: memoryview,
    first: int,
    most_bytes: int,
    bounds: _Row,
    status: _Row,
) -> int: ...
def put_records(
    out: bytearray | memoryview,
    fields: _Table,
    record_fields: _Table,
    literals: _Table,
    pieces: _Bytes,
    tables: _Bytes,
    is_json: bool,
    buffer: _Bytes,
    records: _Table,
    batches: _Table,
    crc_valid: memoryview,
    first: int,
    scratch: bytearray | memoryview,
    bounds: _Row,
    status: _Row,
) -> int: ...

DUMP_LOG_METADATA: Final[int]
DUMP_LOG_CONTENTS: Final[int]
DUMP_LOG_3_9_1: Final[int]
DUMP_LOG_STOPS: Final[tuple[str, ...]]

def write_dump_log(
    batches: _Table,
    crc_valid: memoryview,
    buffer: _Bytes,
    records: _Table,
    tables: memoryview,
    last: int,
    wants: int,
    state: _Row,
    out: memoryview,
) -> int: ...
