# The C types of checks.py.
cimport cython
from format.kernel.memory cimport bring_near, bytes_at, words_at
from format.kernel.numbers cimport read_i16, read_varint, MAX_I64, MIN_I64
from format.kernel.crc cimport crc_of, LEGACY_TABLES
from format.kernel.utf8 cimport is_utf8
from format.kernel.tables cimport B_POSITION, B_SIZE, B_MAGIC, B_BASE_OFFSET, B_LAST_DELTA, B_COUNT, B_ATTRIBUTES
from format.kernel.tables cimport B_BASE_TIMESTAMP, S_BATCH, S_START, S_END
from format.kernel.tables cimport B_CRC, B_EPOCH, B_MAX_TIMESTAMP, B_PRODUCER_ID, B_PRODUCER_EPOCH, B_BASE_SEQUENCE
from format.kernel.tables cimport R_BATCH, R_OFFSET, R_HEADERS_START, R_HEADER_COUNT
from format.kernel.header_layout cimport CRC_START_V2, CRC_START_LEGACY, CODEC_MASK, TIMESTAMP_TYPE_BIT
from format.kernel.header_layout cimport TRANSACTIONAL_BIT, CONTROL_BIT, KNOWN_V0, KNOWN_V1, KNOWN_V2

cdef int _CONTROL_KEY_BYTES, _CONTROL_TYPE_AT, _END_MARKER_BYTES, _LAST_END_MARKER_TYPE, _MANY_HEADERS, _NEAR_BYTES

@cython.locals(left=cython.Py_ssize_t, row=cython.Py_ssize_t, at=cython.Py_ssize_t, size_bytes=cython.longlong,
               crc=cython.longlong, source=cython.p_const_uchar, words=cython.p_const_uint)
cpdef Py_ssize_t check_crcs(const unsigned char[::1] buffer, long long buffer_position, const long long[:, ::1] table,
                            long long largest_bytes, const unsigned int[::1] tables, signed char[::1] valid)

@cython.locals(row=cython.Py_ssize_t, magic=cython.longlong, attributes=cython.longlong, base_offset=cython.longlong,
               last_delta=cython.longlong, timestamp=cython.longlong)
cpdef Py_ssize_t find_doubtful_header(const long long[:, ::1] table, long long latest_timestamp)

@cython.locals(row=cython.Py_ssize_t, base_offset=cython.longlong, last_delta=cython.longlong)
cpdef Py_ssize_t find_chain_break(const long long[:, ::1] table, long long next_offset, long long leader_epoch)

@cython.locals(row=cython.Py_ssize_t, batch=cython.longlong, magic=cython.longlong, base_offset=cython.longlong,
               last_delta=cython.longlong, offset=cython.longlong)
cpdef Py_ssize_t find_wrong_offset(const long long[:, ::1] records, const long long[:, ::1] batches, Py_ssize_t first,
                                   long long previous)

@cython.locals(span=cython.Py_ssize_t, row=cython.Py_ssize_t, at=cython.Py_ssize_t, end=cython.Py_ssize_t,
               start=cython.Py_ssize_t, stop=cython.Py_ssize_t, key_at=cython.Py_ssize_t, attributes=cython.longlong,
               base_offset=cython.longlong, base_timestamp=cython.longlong, last_delta=cython.longlong,
               count=cython.longlong, left=cython.longlong, is_control=cython.bint, previous=cython.longlong,
               keyless=cython.longlong, largest=cython.longlong, smallest=cython.longlong, length=cython.longlong,
               timestamp=cython.longlong, delta=cython.longlong, key_length=cython.longlong,
               value_length=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t count_sound_batches(const unsigned char[::1] buffer, const long long[:, ::1] spans,
                                     const long long[:, ::1] batches, long long max_record_bytes, long long[::1] found)

@cython.locals(count=cython.longlong, header=cython.longlong, length=cython.longlong)
cdef bint _are_headers_sound(const unsigned char* source, Py_ssize_t at, Py_ssize_t stop) noexcept nogil

@cython.locals(kind=cython.longlong)
cdef bint _is_control_record(const unsigned char* source, Py_ssize_t key_at, long long key_length, Py_ssize_t value_at,
                             long long value_length) noexcept nogil

@cython.locals(end=cython.Py_ssize_t, row=cython.Py_ssize_t, source=cython.p_const_uchar)
cpdef Py_ssize_t find_bad_header_key(const unsigned char[::1] buffer, const long long[:, ::1] table, Py_ssize_t first)

@cython.locals(header=cython.longlong, length=cython.longlong)
cdef bint _are_header_keys_utf8(const unsigned char* source, Py_ssize_t at, Py_ssize_t end,
                                long long count) noexcept nogil
