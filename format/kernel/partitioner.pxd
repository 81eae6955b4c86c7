# The C types of partitioner.py.
cimport cython
from format.kernel.memory cimport bytes_at
from format.kernel.numbers cimport MAX_I32
from format.kernel.tables cimport B_MAGIC, B_ATTRIBUTES, R_BATCH, R_KEY_START, R_KEY_LENGTH
from format.kernel.header_layout cimport CONTROL_BIT

cdef long long _MURMUR2_SEED, _MURMUR2_MULTIPLIER, _MURMUR2_MASK

@cython.locals(row=cython.Py_ssize_t, batch=cython.longlong, digest=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t find_misplaced_record(const unsigned char[::1] buffer, const long long[:, ::1] records,
                                       const long long[:, ::1] batches, long long partition, long long partition_count,
                                       Py_ssize_t first)

cpdef long long hash_of_key(const unsigned char[::1] buffer, Py_ssize_t at, Py_ssize_t length) noexcept nogil

@cython.locals(digest=cython.longlong, word=cython.longlong, left=cython.Py_ssize_t)
cdef long long _murmur2(const unsigned char* source, Py_ssize_t at, Py_ssize_t length) noexcept nogil
