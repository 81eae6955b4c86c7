# The C types of messages.py.
cimport cython
from format.kernel.memory cimport bytes_at
from format.kernel.numbers cimport read_i16, read_i32, read_unsigned
from format.kernel.tables cimport R_KEY_START, R_KEY_LENGTH, R_VALUE_START, R_VALUE_LENGTH

cdef long long _END, _SKIP, _SMALL, _STRING, _BYTES, _COMPACT_STRING, _COMPACT_BYTES, _ARRAY, _COMPACT_ARRAY
cdef long long _NULLABLE, _NULLABLE_TAGGED, _STRUCT, _TAGS, _MOST_TEXT_BYTES, _NOT_SOUND

@cython.locals(row=cython.Py_ssize_t, at=cython.Py_ssize_t, end=cython.Py_ssize_t, kind=cython.longlong,
               version=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t find_odd_coordinator_record(const unsigned char[::1] buffer, const long long[:, ::1] records,
                                             const long long[:, ::1] messages, long long versions, const long long[:, ::1] steps,
                                             Py_ssize_t first)

@cython.locals(row=cython.Py_ssize_t, at=cython.Py_ssize_t, end=cython.Py_ssize_t, kind=cython.longlong,
               version=cython.longlong, frame=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t find_odd_framed_record(const unsigned char[::1] buffer, const long long[:, ::1] records,
                                        const long long[:, ::1] messages, long long versions, const long long[:, ::1] steps,
                                        Py_ssize_t first)

@cython.locals(step=cython.longlong, first=cython.longlong, second=cython.longlong, length=cython.longlong)
cdef Py_ssize_t _walk(const unsigned char* source, Py_ssize_t at, Py_ssize_t end, const long long[:, ::1] steps,
                      long long number) noexcept nogil

@cython.locals(last=cython.longlong, count=cython.longlong, tag=cython.longlong, size=cython.longlong,
               row=cython.longlong)
cdef Py_ssize_t _walk_tags(const unsigned char* source, Py_ssize_t at, Py_ssize_t end,
                           const long long[:, ::1] steps, long long number, long long known) noexcept nogil

@cython.locals(length=cython.longlong)
cdef (long long, Py_ssize_t) _read_size(const unsigned char* source, Py_ssize_t at, Py_ssize_t end,
                                        long long step) noexcept nogil
