# The functions of numbers.py in C.

cdef extern from *:
    """
    #include <stdint.h>
    /* The numbers from 00 to 99, two digits each. */
    static const char kafkalog_digits[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    """
    const long long MAX_I64 "INT64_MAX"
    const long long MIN_I64 "INT64_MIN"
    const long long MAX_I32 "INT32_MAX"
    const long long TWO_31 "INT64_C(0x80000000)"
    const char* kafkalog_digits

cdef inline long long read_i16(const unsigned char* source, Py_ssize_t at) noexcept nogil:
    cdef long long value = source[at] << 8 | source[at + 1]
    return value - 0x10000 if value >= 0x8000 else value

cdef inline long long read_u32(const unsigned char* source, Py_ssize_t at) noexcept nogil:
    cdef long long value = source[at]
    value = (value << 8) | source[at + 1]
    value = (value << 8) | source[at + 2]
    return (value << 8) | source[at + 3]

cdef inline long long read_i32(const unsigned char* source, Py_ssize_t at) noexcept nogil:
    cdef long long value = read_u32(source, at)
    return value - 0x100000000LL if value >= 0x80000000LL else value

cdef inline long long read_i64(const unsigned char* source, Py_ssize_t at) noexcept nogil:
    return read_i32(source, at) * 0x100000000LL + read_u32(source, at + 4)

cdef inline (long long, Py_ssize_t) read_varint(const unsigned char* source, Py_ssize_t at,
                                                Py_ssize_t end) noexcept nogil:
    cdef int shift = 0
    cdef long long value = 0
    cdef long long half
    cdef long long byte
    if end - at > 1:  # nearly all have one byte or two
        byte = source[at]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), at + 1
        if source[at + 1] < 0x80:
            value = (byte & 0x7F) | (<long long> source[at + 1] << 7)
            return (value >> 1) ^ -(value & 1), at + 2
    while at < end:
        byte = source[at]
        at += 1
        if shift == 28 and byte > 0x0F:
            return 0, (-1 if byte & 0x80 else -2)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            half = value >> 1
            return (-half - 1 if value & 1 else half), at
        shift += 7
    return 0, -1

cdef inline Py_ssize_t put_number(unsigned char* out, Py_ssize_t at, long long value) noexcept nogil:
    cdef long long rest
    cdef Py_ssize_t stop, two
    if value < 0:
        out[at] = c"-"
        at += 1
        if value == MIN_I64:  # its negation does not fit in 64 bits: write the first digit, then the rest
            out[at] = c"9"
            at += 1
            value = -(value + 9000000000000000000LL)
        else:
            value = -value
    rest = value
    stop = at + 1
    while rest >= 10000:
        rest = rest // 10000
        stop += 4
    while rest >= 10:
        rest = rest // 10
        stop += 1
    at = stop
    while value >= 100:
        rest = value // 100
        two = 2 * (value - rest * 100)
        value = rest
        at -= 2
        out[at] = kafkalog_digits[two]
        out[at + 1] = kafkalog_digits[two + 1]
    if value >= 10:
        out[at - 2] = <unsigned char> (c"0" + value // 10)
        value = value % 10
    out[at - 1] = <unsigned char> (c"0" + value)
    return stop
