# The C types of kernel.py, for Cython; the Python file runs without them.
cimport cython

cdef long long _STOP_END, _STOP_MORE, _STOP_FULL, _STOP_BAD_LENGTH, _STOP_BAD_MAGIC

cdef int _LENGTH_AT, _OVERHEAD, _MAGIC_AT, _EPOCH_AT, _CRC_AT, _ATTRIBUTES_AT, _LAST_DELTA_AT
cdef int _BASE_TIMESTAMP_AT, _MAX_TIMESTAMP_AT, _PRODUCER_ID_AT, _PRODUCER_EPOCH_AT, _BASE_SEQUENCE_AT, _COUNT_AT
cdef int _HEADER_V2, _LEGACY_CRC_AT, _LEGACY_ATTRIBUTES_AT, _LEGACY_TIMESTAMP_AT, _HEADER_V0, _HEADER_V1
cdef int _MIN_V0, _MIN_V1, _MIN_V2
cdef int _B_POSITION, _B_SIZE, _B_MAGIC, _B_BASE_OFFSET, _B_LAST_DELTA, _B_COUNT, _B_ATTRIBUTES, _B_CRC, _B_EPOCH
cdef int _B_BASE_TIMESTAMP, _B_MAX_TIMESTAMP, _B_PRODUCER_ID, _B_PRODUCER_EPOCH, _B_BASE_SEQUENCE
cdef int _R_BATCH, _R_OFFSET, _R_TIMESTAMP, _R_ATTRIBUTES, _R_START, _R_SIZE, _R_KEY_START, _R_KEY_LENGTH
cdef int _R_VALUE_START, _R_VALUE_LENGTH, _R_HEADERS_START, _R_HEADER_COUNT
cdef int _S_BATCH, _S_START, _S_END, _S_COUNT, _S_BASE_OFFSET, _S_BASE_TIMESTAMP, _S_APPEND_TIMESTAMP, _S_IS_APPEND_TIME
cdef long long _MAX_I64, _MIN_I64, _TWO_31, _TWO_32
cdef int _ERROR_LENGTH_VARINT, _ERROR_LENGTH, _ERROR_PAST_BATCH, _ERROR_VARINT, _ERROR_VARINT_OVERFLOW, _ERROR_KEY
cdef int _ERROR_VALUE, _ERROR_HEADER_COUNT, _ERROR_HEADER_KEY, _ERROR_HEADER_VALUE, _ERROR_LEFT_OVER, _ERROR_OFFSET
cdef int _ERROR_TIMESTAMP, _ERROR_MESSAGE_CUT, _ERROR_MESSAGE_SIZE, _ERROR_MESSAGE_MAGIC

@cython.locals(value=cython.longlong)
cdef long long _u32(const unsigned char[::1] buffer, Py_ssize_t at) noexcept nogil

@cython.locals(value=cython.longlong)
cdef long long _i32(const unsigned char[::1] buffer, Py_ssize_t at) noexcept nogil

cdef long long _i64(const unsigned char[::1] buffer, Py_ssize_t at) noexcept nogil

@cython.locals(value=cython.longlong)
cdef long long _i16(const unsigned char[::1] buffer, Py_ssize_t at) noexcept nogil

@cython.locals(at=cython.Py_ssize_t, row=cython.Py_ssize_t, capacity=cython.Py_ssize_t, stop=cython.longlong,
               magic=cython.int, length=cython.longlong, attributes=cython.longlong, timestamp=cython.longlong)
cpdef Py_ssize_t hop(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end, long long file_position,
                     long long[:, ::1] table, Py_ssize_t first_row, long long[::1] status)

@cython.locals(at=cython.Py_ssize_t, last=cython.Py_ssize_t, magic=cython.int, length=cython.longlong,
               base_offset=cython.longlong, attributes=cython.longlong)
cpdef Py_ssize_t find_candidate(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end,
                                long long min_base_offset, long long max_size_bytes)

@cython.locals(shift=cython.int, value=cython.longlong, half=cython.longlong, byte=cython.longlong)
cdef (long long, Py_ssize_t) _varint(const unsigned char[::1] buffer, Py_ssize_t at, Py_ssize_t end) noexcept nogil

@cython.locals(shift=cython.int, low=cython.longlong, high=cython.longlong, half=cython.longlong, byte=cython.longlong)
cdef (long long, Py_ssize_t) _varlong(const unsigned char[::1] buffer, Py_ssize_t at, Py_ssize_t end) noexcept nogil

@cython.locals(row=cython.Py_ssize_t, capacity=cython.Py_ssize_t, span=cython.Py_ssize_t, batch=cython.longlong,
               at=cython.Py_ssize_t, end=cython.Py_ssize_t, stop=cython.Py_ssize_t, start=cython.Py_ssize_t,
               error_at=cython.Py_ssize_t, count=cython.longlong, base_offset=cython.longlong,
               base_timestamp=cython.longlong, append_timestamp=cython.longlong, is_append_time=cython.longlong,
               done=cython.longlong, error=cython.int, length=cython.longlong, attributes=cython.longlong,
               timestamp_delta=cython.longlong, offset_delta=cython.longlong, timestamp=cython.longlong,
               key_length=cython.longlong, key_start=cython.Py_ssize_t, value_length=cython.longlong,
               value_start=cython.Py_ssize_t, header_count=cython.longlong, headers_start=cython.Py_ssize_t,
               header=cython.longlong, part_length=cython.longlong)
cpdef Py_ssize_t index_records(const unsigned char[::1] buffer, const long long[:, ::1] spans, Py_ssize_t first,
                               Py_ssize_t last, long long[:, ::1] table, Py_ssize_t first_row,
                               long long[:, ::1] results)

@cython.locals(at=cython.Py_ssize_t, row=cython.Py_ssize_t, length=cython.longlong)
cpdef Py_ssize_t index_headers(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count,
                               long long[:, ::1] table)

@cython.locals(row=cython.Py_ssize_t, capacity=cython.Py_ssize_t, at=cython.Py_ssize_t, error=cython.int,
               error_at=cython.Py_ssize_t, length=cython.longlong, magic=cython.int, stop=cython.Py_ssize_t,
               timestamp=cython.longlong, field=cython.Py_ssize_t, key_length=cython.longlong,
               key_start=cython.Py_ssize_t, value_length=cython.longlong, value_start=cython.Py_ssize_t)
cpdef Py_ssize_t index_messages(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end,
                                long long[:, ::1] table, Py_ssize_t first_row, long long[::1] result)

@cython.locals(byte=cython.int, second=cython.int, more=cython.int)
cdef bint _is_utf8(const unsigned char[::1] buffer, Py_ssize_t at, Py_ssize_t end) noexcept nogil

@cython.locals(end=cython.Py_ssize_t, row=cython.Py_ssize_t, at=cython.Py_ssize_t, count=cython.longlong,
               header=cython.longlong, length=cython.longlong)
cpdef Py_ssize_t find_bad_header_key(const unsigned char[::1] buffer, long long[:, ::1] table, Py_ssize_t first)
