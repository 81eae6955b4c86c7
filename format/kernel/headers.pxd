# The C types of headers.py.
cimport cython
from format.kernel.memory cimport bytes_at, room_at
from format.kernel.descriptors cimport read_log
from format.kernel.numbers cimport read_i16, read_u32, read_i32, read_i64, MAX_I64, MIN_I64
from format.kernel.tables cimport B_POSITION, B_SIZE, B_MAGIC, B_BASE_OFFSET, B_LAST_DELTA, B_COUNT, B_ATTRIBUTES
from format.kernel.tables cimport B_CRC, B_EPOCH, B_BASE_TIMESTAMP, B_MAX_TIMESTAMP, B_PRODUCER_ID, B_PRODUCER_EPOCH
from format.kernel.tables cimport B_BASE_SEQUENCE
from format.kernel.tables cimport H_COUNT, H_FIRST_OFFSET, H_LAST_OFFSET, H_FIRST_TIMESTAMP, H_MAX_TIMESTAMP, H_MAGICS
from format.kernel.tables cimport H_LEAST_OFFSET, H_CODEC_COUNTS, H_CODEC_BYTES, H_IN_TRANSACTIONS, H_GAPS
from format.kernel.tables cimport T_MAGICS, T_COUNT, T_SIZE, T_LEAST_OFFSET, T_GREATEST_OFFSET, T_LEAST_DELTA
from format.kernel.tables cimport T_GREATEST_DELTA, T_MAX_TIMESTAMP, T_LOWEST_EPOCH, T_HIGHEST_EPOCH, T_RISES
from format.kernel.tables cimport T_FOLLOWS, T_RIGHT_CRCS
from format.kernel.tables cimport T_WRONG_CRCS, T_WRAPPERS, T_CONTROLS, T_TRANSACTIONALS, T_WITH_PRODUCER
from format.kernel.tables cimport T_IN_TRANSACTIONS, T_PRODUCER_CHANGES, T_CODEC_COUNTS, T_CODEC_BYTES
from format.kernel.tables cimport F_BASE_OFFSET, F_SUFFIXES, F_LOG_BYTES
from format.kernel.header_layout cimport CODEC_MASK, DELETE_HORIZON_BIT, MAX_RELATIVE_OFFSET
from format.kernel.header_layout cimport CONTROL_BIT, TRANSACTIONAL_BIT
from format.kernel.header_layout cimport LENGTH_AT, OVERHEAD, MAGIC_AT, EPOCH_AT, CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT
from format.kernel.header_layout cimport BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT, PRODUCER_ID_AT, PRODUCER_EPOCH_AT
from format.kernel.header_layout cimport BASE_SEQUENCE_AT, COUNT_AT, LEGACY_CRC_AT, LEGACY_ATTRIBUTES_AT
from format.kernel.header_layout cimport LEGACY_TIMESTAMP_AT, HEADER_V0, HEADER_V1, HEADER_V2, MIN_V0, MIN_V1, MIN_V2

cdef long long _STOP_END, _STOP_MORE, _STOP_FULL, _STOP_BAD_LENGTH, _STOP_BAD_MAGIC, _STOP_SUSPICIOUS
cdef int _PLAIN_SUFFIXES

@cython.locals(at=cython.Py_ssize_t, row=cython.Py_ssize_t, capacity=cython.Py_ssize_t, stop=cython.longlong,
               magic=cython.int, length=cython.longlong, attributes=cython.longlong, timestamp=cython.longlong,
               base_offset=cython.longlong, least_offset=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t hop(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end, long long file_position,
                     long long[:, ::1] table, Py_ssize_t first_row, long long[::1] status)

@cython.locals(at=cython.Py_ssize_t, magic=cython.int, length=cython.longlong, base_offset=cython.longlong,
               delta=cython.longlong, attributes=cython.longlong, timestamp=cython.longlong,
               max_timestamp=cython.longlong, source=cython.p_const_uchar)
cdef Py_ssize_t _sum_headers(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end, long long least,
                             long long most, long long[::1] sums) noexcept

@cython.locals(log=cython.p_uchar, row=cython.Py_ssize_t, size=cython.longlong, base_offset=cython.longlong,
               most=cython.longlong, column=cython.Py_ssize_t)
cpdef Py_ssize_t sum_logs(int directory_fd, long long[:, ::1] segments, Py_ssize_t start, Py_ssize_t end,
                          unsigned char[::1] room, long long[::1] sums, long long[::1] kept)

@cython.locals(row=cython.Py_ssize_t, magic=cython.longlong, attributes=cython.longlong, codec=cython.longlong,
               size=cython.longlong, base_offset=cython.longlong, delta=cython.longlong, last_offset=cython.longlong,
               producer_id=cython.longlong)
cpdef void sum_table(const long long[:, ::1] table, const signed char[::1] crc_valid,
                     long long[::1] sums) noexcept

@cython.locals(at=cython.Py_ssize_t, before=cython.Py_ssize_t, outcome=cython.int, magic=cython.int,
               length=cython.longlong, header_bytes=cython.Py_ssize_t, least=cython.longlong,
               source=cython.p_const_uchar)
cpdef int skip_batches(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end, long long room,
                       long long target, long long[::1] status)

@cython.locals(at=cython.Py_ssize_t, last=cython.Py_ssize_t, magic=cython.int, length=cython.longlong,
               base_offset=cython.longlong, attributes=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t find_candidate(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end,
                                long long min_base_offset, long long max_size_bytes)
