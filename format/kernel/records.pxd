# The C types of records.py.
cimport cython
from format.kernel.memory cimport bytes_at, end_turn, take_turn
from format.kernel.numbers cimport read_i32, read_i64, read_varint, MAX_I64, MIN_I64
from format.kernel.tables cimport R_BATCH, R_OFFSET, R_TIMESTAMP, R_ATTRIBUTES, R_START, R_SIZE, R_KEY_START
from format.kernel.tables cimport R_KEY_LENGTH, R_VALUE_START, R_VALUE_LENGTH, R_HEADERS_START, R_HEADER_COUNT, S_BATCH
from format.kernel.tables cimport S_START, S_END, S_COUNT, S_BASE_OFFSET, S_BASE_TIMESTAMP, S_APPEND_TIMESTAMP
from format.kernel.tables cimport S_IS_APPEND_TIME
from format.kernel.header_layout cimport LENGTH_AT, OVERHEAD, MAGIC_AT, LEGACY_ATTRIBUTES_AT, LEGACY_TIMESTAMP_AT
from format.kernel.header_layout cimport HEADER_V0, HEADER_V1, MIN_V0, MIN_V1

cdef int _ERROR_LENGTH_VARINT, _ERROR_LENGTH, _ERROR_PAST_BATCH, _ERROR_VARINT, _ERROR_VARINT_OVERFLOW, _ERROR_KEY
cdef int _ERROR_VALUE, _ERROR_HEADER_COUNT, _ERROR_HEADER_KEY, _ERROR_HEADER_VALUE, _ERROR_LEFT_OVER, _ERROR_OFFSET
cdef int _ERROR_TIMESTAMP, _ERROR_MESSAGE_CUT, _ERROR_MESSAGE_SIZE, _ERROR_MESSAGE_MAGIC

@cython.locals(row=cython.Py_ssize_t, turn=cython.p_void)
cpdef Py_ssize_t index_records(const unsigned char[::1] buffer, const long long[:, ::1] spans, Py_ssize_t first,
                               Py_ssize_t last, long long[:, ::1] table, Py_ssize_t first_row,
                               long long[:, ::1] results)

@cython.locals(row=cython.Py_ssize_t, capacity=cython.Py_ssize_t, span=cython.Py_ssize_t, batch=cython.longlong,
               at=cython.Py_ssize_t, end=cython.Py_ssize_t, stop=cython.Py_ssize_t, start=cython.Py_ssize_t,
               error_at=cython.Py_ssize_t, count=cython.longlong, base_offset=cython.longlong,
               base_timestamp=cython.longlong, append_timestamp=cython.longlong, is_append_time=cython.longlong,
               done=cython.longlong, error=cython.int, length=cython.longlong, attributes=cython.longlong,
               timestamp_delta=cython.longlong, offset_delta=cython.longlong, timestamp=cython.longlong,
               key_length=cython.longlong, key_start=cython.Py_ssize_t, value_length=cython.longlong,
               value_start=cython.Py_ssize_t, header_count=cython.longlong, headers_start=cython.Py_ssize_t,
               header=cython.longlong, part_length=cython.longlong, source=cython.p_const_uchar)
cdef Py_ssize_t _index_spans(const unsigned char[::1] buffer, const long long[:, ::1] spans, Py_ssize_t first,
                             Py_ssize_t last, long long[:, ::1] table, Py_ssize_t first_row,
                             long long[:, ::1] results) noexcept nogil

@cython.locals(shift=cython.int, low=cython.longlong, high=cython.longlong, half=cython.longlong, byte=cython.longlong)
cdef (long long, Py_ssize_t) _read_varlong(const unsigned char* source, Py_ssize_t at, Py_ssize_t end) noexcept nogil

@cython.locals(at=cython.Py_ssize_t, row=cython.Py_ssize_t, length=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t index_headers(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count,
                               long long[:, ::1] table)

@cython.locals(end=cython.Py_ssize_t, row=cython.Py_ssize_t, record=cython.Py_ssize_t, at=cython.Py_ssize_t,
               length=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t index_record_headers(const unsigned char[::1] buffer, const long long[:, ::1] records,
                                      long long[:, ::1] table)

@cython.locals(row=cython.Py_ssize_t, capacity=cython.Py_ssize_t, at=cython.Py_ssize_t, error=cython.int,
               error_at=cython.Py_ssize_t, length=cython.longlong, magic=cython.int, stop=cython.Py_ssize_t,
               timestamp=cython.longlong, field=cython.Py_ssize_t, key_length=cython.longlong,
               key_start=cython.Py_ssize_t, value_length=cython.longlong, value_start=cython.Py_ssize_t,
               source=cython.p_const_uchar)
cpdef Py_ssize_t index_messages(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end,
                                long long[:, ::1] table, Py_ssize_t first_row, long long[::1] result)
