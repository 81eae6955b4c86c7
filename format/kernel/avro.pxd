# The C types of avro.py.
cimport cython
from format.kernel.memory cimport bytes_at, room_at, copy_bytes
from format.kernel.numbers cimport put_number, read_f32, read_f64, MAX_I32, MAX_I64, TWO_31
from format.kernel.utf8 cimport is_utf8

cdef int _N_NULL, _N_BOOLEAN, _N_INT, _N_LONG, _N_FLOAT, _N_DOUBLE, _N_BYTES, _N_STRING, _N_FIXED, _N_ENUM, _N_ARRAY
cdef int _N_MAP, _N_UNION, _N_RECORD, _N_DECIMAL, _N_UUID, _N_DATE, _N_TIME, _N_TIMESTAMP, _N_ALL_BYTES
cdef int _NO_ROOM, _CUT_OFF, _OVER_64_BITS, _OVER_32_BITS, _NO_BOOLEAN, _NEGATIVE, _NOT_UTF8, _NO_BRANCH, _NO_SYMBOL
cdef int _TOO_DEEP, _BYTES_FOLLOW, _LONG_DECIMAL, _TOO_LONG, _MOST_DEPTH
cdef long long _MOST_DECIMAL_BYTES, _MOST_TEXT, _MOST_TEXT_PER_BYTE, _SPARE_BYTES, _DAY_S
cdef long long _EPOCH_DAY, _FIRST_DAY, _LAST_DAY

cdef class _Reader:
    cdef const long long[:, ::1] nodes
    cdef const unsigned char* pieces
    cdef const unsigned char* source
    cdef unsigned char* out
    cdef Py_ssize_t at, end, next, limit
    cdef int depth, error

    @cython.locals(value=cython.ulonglong, half=cython.longlong, byte=cython.ulonglong, shift=cython.int)
    cdef long long read_long(self) noexcept

    @cython.locals(length=cython.longlong)
    cdef long long read_length(self) noexcept

    cdef bint has_room(self, long long size) noexcept

    cdef void put(self, int byte) noexcept

    @cython.locals(kind=cython.longlong, number=cython.longlong, branch=cython.longlong, size=cython.int)
    cdef int put_node(self, Py_ssize_t row) except -1

    cdef void put_word(self, int first, int second, int third, int fourth) noexcept

    cdef void put_boolean(self) noexcept

    cdef bint goes_down(self) noexcept

    @cython.locals(start=cython.longlong, end=cython.longlong)
    cdef void put_piece(self, Py_ssize_t row) noexcept

    @cython.locals(field=cython.Py_ssize_t, last=cython.Py_ssize_t)
    cdef int put_record(self, Py_ssize_t row) except -1

    @cython.locals(count=cython.longlong, is_first=cython.bint)
    cdef int put_blocks(self, Py_ssize_t item, bint is_map) except -1

    @cython.locals(length=cython.longlong, stop=cython.Py_ssize_t, byte=cython.int)
    cdef void put_string(self) noexcept

    @cython.locals(length=cython.longlong)
    cdef int put_bytes(self, Py_ssize_t row, long long kind) except -1

    @cython.locals(length=cython.Py_ssize_t)
    cdef int put_text(self, bytes text) except -1

    @cython.locals(unit=cython.longlong, shown=cython.longlong, days=cython.longlong, rest=cython.longlong,
                   second=cython.longlong)
    cdef void put_moment(self, long long value, long long kind, long long digits, bint is_utc) noexcept

    @cython.locals(era=cython.longlong, year=cython.longlong, month=cython.longlong)
    cdef void put_date(self, long long day) noexcept

    @cython.locals(at=cython.Py_ssize_t)
    cdef void put_digits(self, long long value, long long digits) noexcept

@cython.locals(reader=_Reader, row=cython.Py_ssize_t, written=cython.Py_ssize_t, most=cython.longlong,
               is_whole=cython.bint)
cpdef Py_ssize_t write_avro(const long long[:, ::1] nodes, const unsigned char[::1] pieces,
                            const unsigned char[::1] buffer, const long long[:, ::1] spans, Py_ssize_t first,
                            unsigned char[::1] out, long long[:, ::1] results) except -1

cpdef bytes number_text(double value)
