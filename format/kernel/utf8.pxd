# The functions of utf8.py in C.
cdef inline bint is_utf8(const unsigned char* source, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    cdef int byte, second, more
    cdef Py_ssize_t at = start
    while at < end:
        byte = source[at]
        if byte < 0x80:
            at += 1
            continue
        if byte < 0xC2 or byte > 0xF4:
            return False
        more = 1 if byte < 0xE0 else (2 if byte < 0xF0 else 3)
        if end - at <= more:
            return False
        second = source[at + 1]
        if second & 0xC0 != 0x80:
            return False
        if (
            (byte == 0xE0 and second < 0xA0)
            or (byte == 0xED and second > 0x9F)
            or (byte == 0xF0 and second < 0x90)
            or (byte == 0xF4 and second > 0x8F)
        ):
            return False
        if more > 1 and source[at + 2] & 0xC0 != 0x80:
            return False
        if more > 2 and source[at + 3] & 0xC0 != 0x80:
            return False
        at += more + 1
    return True

cdef inline (long long, Py_ssize_t) read_character(const unsigned char* source, Py_ssize_t at,
                                                   Py_ssize_t end) noexcept nogil:
    cdef long long byte = source[at]
    cdef long long point
    cdef Py_ssize_t after
    if byte < 0xC2:
        return -1, at
    after = at + (2 if byte < 0xE0 else (3 if byte < 0xF0 else 4))
    if after > end or not is_utf8(source, at, after):
        return -1, at
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | source[at + 1] & 0x3F, after
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | (source[at + 1] & 0x3F) << 6 | source[at + 2] & 0x3F, after
    point = (byte & 0x07) << 18 | (source[at + 1] & 0x3F) << 12
    return point | (source[at + 2] & 0x3F) << 6 | source[at + 3] & 0x3F, after
