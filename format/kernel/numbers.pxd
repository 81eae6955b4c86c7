# The functions of numbers.py in C.

cdef extern from *:
    """
    #include <stdint.h>
    /* The numbers from 00 to 99, two digits each. */
    static const char kafkalog_digits[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    #if defined(__GNUC__) || defined(__clang__)
    #define KAFKALOG_RARE __attribute__((noinline, cold))
    #else
    #define KAFKALOG_RARE
    #endif
    /* A zigzag varint of any length. It is no part of the loops that call it, so that their code stays small. */
    KAFKALOG_RARE static int64_t kafkalog_read_long_varint(const unsigned char *source, Py_ssize_t *at, Py_ssize_t end) {
        Py_ssize_t next = *at;
        uint64_t value = 0;
        int shift = 0;
        while (next < end) {
            unsigned char byte = source[next++];
            if (shift == 28 && byte > 0x0F) {
                *at = byte & 0x80 ? -1 : -2;
                return 0;
            }
            value |= (uint64_t)(byte & 0x7F) << shift;
            if (byte < 0x80) {
                *at = next;
                return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
            }
            shift += 7;
        }
        *at = -1;
        return 0;
    }
    /* Nearly all have one byte or two. */
    static inline int64_t kafkalog_read_varint(const unsigned char *source, Py_ssize_t *at, Py_ssize_t end) {
        Py_ssize_t first = *at;
        if (end - first > 1) {
            uint64_t value = source[first];
            if (value < 0x80) {
                *at = first + 1;
                return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
            }
            if (source[first + 1] < 0x80) {
                value = (value & 0x7F) | (uint64_t)source[first + 1] << 7;
                *at = first + 2;
                return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
            }
        }
        return kafkalog_read_long_varint(source, at, end);
    }
    """
    long long kafkalog_read_varint(const unsigned char* source, Py_ssize_t* at, Py_ssize_t end) noexcept nogil
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
    cdef long long value = kafkalog_read_varint(source, &at, end)
    return value, at

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
