# The functions of numbers.py in C.

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
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
    /* Reads a zigzag varint of any length. Never inlined, so that the loops that call it stay small. */
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
    /* Reads a zigzag varint. Nearly all have one or two bytes. */
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
    /* Returns the eight digits of a number below 10^8 as one word. Each step splits all its groups of digits at once. */
    static inline uint64_t kafkalog_eight_digits(uint32_t value) {
        const uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
        const uint64_t hundreds = (fours * 10486 >> 20) & UINT64_C(0x0000007F0000007F);
        const uint64_t twos = hundreds + ((fours - 100 * hundreds) << 16);
        const uint64_t tens = (twos * 103 >> 10) & UINT64_C(0x000F000F000F000F);
        return (tens + ((twos - 10 * tens) << 8)) | UINT64_C(0x3030303030303030);
    }
    /* Writes the lowest bytes of a word first, on every machine. */
    static inline void kafkalog_put_word(unsigned char *out, uint64_t word) {
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        memcpy(out, &word, 8);
    #else
        int byte;
        for (byte = 0; byte < 8; byte++)
            out[byte] = (unsigned char)(word >> 8 * byte);
    #endif
    }
    /* Writes a number below 10^8 without leading zeros; returns the number of digits. It may write up to 8 bytes.
       Branches find the number of digits, so the processor predicts it and need not wait for it. */
    static inline int kafkalog_put_short(unsigned char *out, uint32_t value) {
        uint64_t digits;
        if (value < 100) {
            if (value < 10) {
                *out = (unsigned char)(0x30 + value);
                return 1;
            }
            memcpy(out, kafkalog_digits + 2 * value, 2);
            return 2;
        }
        if (value < 10000) {
            const uint32_t high = value / 100;
            if (high < 10) {
                *out = (unsigned char)(0x30 + high);
                memcpy(out + 1, kafkalog_digits + 2 * (value - 100 * high), 2);
                return 3;
            }
            memcpy(out, kafkalog_digits + 2 * high, 2);
            memcpy(out + 2, kafkalog_digits + 2 * (value - 100 * high), 2);
            return 4;
        }
        digits = kafkalog_eight_digits(value);
        if (value >= 10000000) {
            kafkalog_put_word(out, digits);
            return 8;
        }
        if (value >= 1000000) {
            kafkalog_put_word(out, digits >> 8);
            return 7;
        }
        if (value >= 100000) {
            kafkalog_put_word(out, digits >> 16);
            return 6;
        }
        kafkalog_put_word(out, digits >> 24);
        return 5;
    }
    /* Writes a number; returns the number of bytes. It may write up to 8 bytes past them. */
    static inline int kafkalog_put_number(unsigned char *out, long long number) {
        const uint32_t eight = 100000000;
        uint64_t value = (uint64_t)number;
        unsigned char *at = out;
        if (number < 0) {
            *at++ = 0x2D;
            value = 0 - value;
        }
        if (value < eight)
            return (int)(at - out) + kafkalog_put_short(at, (uint32_t)value);
        if (value < (uint64_t)eight * eight)
            at += kafkalog_put_short(at, (uint32_t)(value / eight));
        else {
            const uint64_t high = value / eight;
            at += kafkalog_put_short(at, (uint32_t)(high / eight));
            kafkalog_put_word(at, kafkalog_eight_digits((uint32_t)(high % eight)));
            at += 8;
        }
        kafkalog_put_word(at, kafkalog_eight_digits((uint32_t)(value % eight)));
        return (int)(at - out) + 8;
    }
    /* Reads the lowest byte first, on every machine. */
    static inline double kafkalog_read_f64(const unsigned char *source) {
        uint64_t bits = 0;
        double value;
        int byte;
        for (byte = 7; byte >= 0; byte--)
            bits = bits << 8 | source[byte];
        memcpy(&value, &bits, 8);
        return value;
    }
    static inline double kafkalog_read_f32(const unsigned char *source) {
        const uint32_t bits = (uint32_t)source[3] << 24 | (uint32_t)source[2] << 16 | (uint32_t)source[1] << 8 | source[0];
        float value;
        memcpy(&value, &bits, 4);
        return value;
    }
    """
    double kafkalog_read_f64(const unsigned char* source) noexcept nogil
    double kafkalog_read_f32(const unsigned char* source) noexcept nogil
    long long kafkalog_read_varint(const unsigned char* source, Py_ssize_t* at, Py_ssize_t end) noexcept nogil
    const long long MAX_I64 "INT64_MAX"
    const long long MIN_I64 "INT64_MIN"
    const long long MAX_I32 "INT32_MAX"
    const long long TWO_31 "INT64_C(0x80000000)"
    int kafkalog_put_number(unsigned char* out, long long number) noexcept nogil

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
    return at + kafkalog_put_number(out + at, value)

cdef inline (long long, Py_ssize_t) read_unsigned(const unsigned char* source, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    cdef int shift = 0
    cdef long long value = 0
    cdef long long byte
    while at < end and shift < 35:
        byte = source[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > MAX_I32:
                return 0, -1
            return value, at
        shift += 7
    return 0, -1

cdef inline double read_f64(const unsigned char* source, Py_ssize_t at) noexcept nogil:
    return kafkalog_read_f64(source + at)

cdef inline double read_f32(const unsigned char* source, Py_ssize_t at) noexcept nogil:
    return kafkalog_read_f32(source + at)
