# The C types of encode.py.
cimport cython
from format.kernel.memory cimport bytes_at, room_at, copy_bytes, end_turn, take_turn
from format.kernel.tables cimport R_OFFSET, R_TIMESTAMP, R_ATTRIBUTES, R_START, R_SIZE, R_KEY_START, R_KEY_LENGTH
from format.kernel.tables cimport R_VALUE_START, R_VALUE_LENGTH, R_HEADERS_START, R_HEADER_COUNT

@cython.locals(row=cython.Py_ssize_t, at=cython.Py_ssize_t, timestamp_delta=cython.longlong,
               offset_delta=cython.longlong, key_start=cython.Py_ssize_t, key_length=cython.Py_ssize_t,
               value_start=cython.Py_ssize_t, value_length=cython.Py_ssize_t, header_count=cython.longlong,
               headers_start=cython.Py_ssize_t, headers_end=cython.Py_ssize_t, attributes=cython.longlong,
               size=cython.Py_ssize_t, source=cython.p_const_uchar, target=cython.p_uchar)
cpdef Py_ssize_t put_v2_records(unsigned char[::1] out, const unsigned char[::1] buffer,
                                const long long[:, ::1] records, long long base_offset, long long base_timestamp)

@cython.locals(end=cython.Py_ssize_t, turn=cython.p_void)
cpdef Py_ssize_t join_fields(unsigned char[::1] out, unsigned int[::1] ends, const unsigned char[::1] buffer,
                             const long long[:] starts, const long long[:] lengths)

@cython.locals(row=cython.Py_ssize_t, at=cython.Py_ssize_t, size=cython.Py_ssize_t, room=cython.Py_ssize_t,
               start=cython.longlong, length=cython.longlong, source=cython.p_const_uchar, target=cython.p_uchar)
cdef Py_ssize_t _join_fields(unsigned char[::1] out, unsigned int[::1] ends, const unsigned char[::1] buffer,
                             const long long[:] starts, const long long[:] lengths) noexcept nogil

@cython.locals(rest=cython.longlong, size=cython.Py_ssize_t)
cdef inline Py_ssize_t _varint_bytes(long long value) noexcept nogil

@cython.locals(rest=cython.longlong, low=cython.longlong)
cdef inline Py_ssize_t _put_varint(unsigned char* out, Py_ssize_t at, long long value) noexcept nogil
