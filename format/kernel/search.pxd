# The C types of search.py.
cimport cython
from format.kernel.memory cimport bytes_at, find_bytes, same_bytes
from format.kernel.tables cimport R_START, R_SIZE, R_KEY_START, R_KEY_LENGTH, R_VALUE_START, R_VALUE_LENGTH
from format.kernel.tables cimport R_HEADERS_START, R_HEADER_COUNT

@cython.locals(row=cython.Py_ssize_t, length=cython.Py_ssize_t, source=cython.p_const_uchar,
               needle=cython.p_const_uchar)
cpdef void find_in_fields(const unsigned char[::1] buffer, const long long[:, ::1] fields,
                          const unsigned char[::1] wanted, long long[::1] found)

@cython.locals(row=cython.Py_ssize_t, length=cython.Py_ssize_t, at=cython.Py_ssize_t, other_at=cython.Py_ssize_t,
               source=cython.p_const_uchar, other=cython.p_const_uchar)
cpdef Py_ssize_t find_other_record(const unsigned char[::1] buffer, const long long[:, ::1] records,
                                   const unsigned char[::1] other_buffer, const long long[:, ::1] others,
                                   Py_ssize_t first)
