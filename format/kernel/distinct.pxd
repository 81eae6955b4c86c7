# The C types of distinct.py.
cimport cython
from format.kernel.memory cimport bytes_at, same_bytes

cdef long long _MULTIPLIER, _MASK

@cython.locals(row=cython.Py_ssize_t, start=cython.Py_ssize_t, length=cython.longlong, slot=cython.longlong,
               mask=cython.longlong, number=cython.longlong, first=cython.longlong, count=cython.longlong,
               source=cython.p_const_uchar)
cpdef long long number_strings(const unsigned char[::1] buffer, const long long[:, ::1] spans, long long seed,
                               long long[::1] slots, long long[::1] firsts, long long[::1] numbers)

@cython.locals(row=cython.Py_ssize_t, column=cython.Py_ssize_t, slot=cython.longlong, mask=cython.longlong,
               number=cython.longlong, count=cython.longlong)
cpdef long long number_rows(const long long[:, ::1] rows, Py_ssize_t width, long long seed, long long[::1] slots,
                            long long[:, ::1] known, long long known_count, long long[::1] numbers)

@cython.locals(row=cython.Py_ssize_t, slot=cython.longlong, mask=cython.longlong)
cpdef void place_rows(const long long[:, ::1] known, long long known_count, Py_ssize_t width, long long seed,
                      long long[::1] slots)

@cython.locals(at=cython.Py_ssize_t, digest=cython.longlong)
cdef long long _hash_of_string(const unsigned char* source, Py_ssize_t start, long long length,
                               long long seed) noexcept nogil

@cython.locals(column=cython.Py_ssize_t, digest=cython.longlong, value=cython.longlong)
cdef long long _hash_of_row(const long long[:, ::1] rows, Py_ssize_t row, Py_ssize_t width,
                            long long seed) noexcept nogil
