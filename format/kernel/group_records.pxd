# The C types of group_records.py.
cimport cython
from format.kernel.memory cimport bytes_at
from format.kernel.numbers cimport read_i16, read_i32, read_i64, read_unsigned
from format.kernel.tables cimport R_KEY_START, R_KEY_LENGTH, R_VALUE_START, R_VALUE_LENGTH, G_ERROR, G_TYPE
from format.kernel.tables cimport G_GROUP_START, G_GROUP_LENGTH, G_NAME_START, G_NAME_LENGTH, G_PARTITION, G_NUMBER
from format.kernel.tables cimport G_DETAIL, G_TIMESTAMP, G_EXPIRE, G_TEXT_START, G_TEXT_LENGTH

cdef int _ERROR_KEY, _ERROR_TYPE, _ERROR_VALUE, _ERROR_VERSION, _ERROR_LENGTH
cdef int _LEAST_FLEXIBLE_VERSION, _UUID_BYTES, _MOST_TEXT_BYTES, _SHARE_STATE_TYPES

@cython.locals(row=cython.Py_ssize_t, at=cython.Py_ssize_t, error=cython.int, source=cython.p_const_uchar)
cpdef void read_group_records(const unsigned char[::1] buffer, const long long[:, ::1] records, long long first_type,
                              long long[:, ::1] table)

@cython.locals(kind=cython.longlong, length=cython.longlong)
cdef int _read_key(const unsigned char* source, Py_ssize_t at, Py_ssize_t end, long long first_type,
                   long long[:, ::1] table, Py_ssize_t row) noexcept nogil

@cython.locals(kind=cython.longlong, version=cython.longlong)
cdef int _read_value(const unsigned char* source, Py_ssize_t at, Py_ssize_t end, long long[:, ::1] table,
                     Py_ssize_t row) noexcept nogil

@cython.locals(length=cython.longlong)
cdef int _read_commit(const unsigned char* source, Py_ssize_t at, Py_ssize_t end, long long version,
                      long long[:, ::1] table, Py_ssize_t row) noexcept nogil

@cython.locals(length=cython.longlong, is_flexible=cython.bint)
cdef int _read_classic_group(const unsigned char* source, Py_ssize_t at, Py_ssize_t end, long long version,
                             long long[:, ::1] table, Py_ssize_t row) noexcept nogil

@cython.locals(count=cython.longlong, is_snapshot=cython.bint)
cdef int _read_share_state(const unsigned char* source, Py_ssize_t at, Py_ssize_t end, long long[:, ::1] table,
                           Py_ssize_t row) noexcept nogil

@cython.locals(length=cython.longlong)
cdef (long long, Py_ssize_t) _read_length(const unsigned char* source, Py_ssize_t at, Py_ssize_t end,
                                          bint is_flexible) noexcept nogil

@cython.locals(count=cython.longlong, tag=cython.longlong, size=cython.longlong)
cdef Py_ssize_t _find_first_tag(const unsigned char* source, Py_ssize_t at, Py_ssize_t end) noexcept nogil

@cython.locals(count=cython.longlong, size=cython.longlong)
cdef Py_ssize_t _after_tags(const unsigned char* source, Py_ssize_t at, Py_ssize_t end) noexcept nogil
