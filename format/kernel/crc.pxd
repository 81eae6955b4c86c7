# The function of crc.py in C.
cdef enum:
    LEGACY_TABLES = 4096

cdef inline long long crc_of(const unsigned char* source, Py_ssize_t at, Py_ssize_t end, const unsigned int* tables,
                             Py_ssize_t first) noexcept nogil:
    cdef unsigned int crc = 0xFFFFFFFF
    while end - at >= 16:
        crc ^= source[at] | source[at + 1] << 8 | source[at + 2] << 16 | (<unsigned int> source[at + 3] << 24)
        crc = (
            tables[first + 3840 + (crc & 0xFF)]
            ^ tables[first + 3584 + (crc >> 8 & 0xFF)]
            ^ tables[first + 3328 + (crc >> 16 & 0xFF)]
            ^ tables[first + 3072 + (crc >> 24)]
            ^ tables[first + 2816 + source[at + 4]]
            ^ tables[first + 2560 + source[at + 5]]
            ^ tables[first + 2304 + source[at + 6]]
            ^ tables[first + 2048 + source[at + 7]]
            ^ tables[first + 1792 + source[at + 8]]
            ^ tables[first + 1536 + source[at + 9]]
            ^ tables[first + 1280 + source[at + 10]]
            ^ tables[first + 1024 + source[at + 11]]
            ^ tables[first + 768 + source[at + 12]]
            ^ tables[first + 512 + source[at + 13]]
            ^ tables[first + 256 + source[at + 14]]
            ^ tables[first + source[at + 15]]
        )
        at += 16
    while at < end:
        crc = crc >> 8 ^ tables[first + (crc & 0xFF ^ source[at])]
        at += 1
    return crc ^ 0xFFFFFFFFu
