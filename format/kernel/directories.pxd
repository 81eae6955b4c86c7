# The C types of directories.py.
cimport cython
from format.kernel.descriptors cimport NAME_DIGITS, size_of_file
from format.kernel.memory cimport bytes_at, same_bytes
from format.kernel.numbers cimport MAX_I64
from format.kernel.tables cimport F_BASE_OFFSET, F_SUFFIXES, F_LOG_BYTES, O_NUMBER, O_SIZE

cdef int _LOG, _INDEX, _TIME_INDEX, _TXN_INDEX, _SNAPSHOT

@cython.locals(source=cython.p_const_uchar, start=cython.Py_ssize_t, end=cython.Py_ssize_t, stop=cython.Py_ssize_t,
               number=cython.Py_ssize_t, row=cython.Py_ssize_t, other=cython.Py_ssize_t, total=cython.longlong,
               size=cython.longlong, suffix=cython.int, base_offset=cython.longlong)
cpdef Py_ssize_t group_files(int directory_fd, const unsigned char[::1] names, long long[:, ::1] segments,
                             long long[:, ::1] others, long long[::1] counts)

@cython.locals(base_offset=cython.longlong, at=cython.Py_ssize_t, digit=cython.int)
cdef long long _base_offset_at(const unsigned char* source, Py_ssize_t start) noexcept

@cython.locals(length=cython.Py_ssize_t)
cdef int _suffix_at(const unsigned char* source, Py_ssize_t start, Py_ssize_t stop) noexcept
