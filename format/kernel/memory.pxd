# The functions of memory.py in C, on addresses.
from libc.string cimport memcmp, memcpy

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* Every C library but Microsoft's has it, but declares it only on request. */
    extern void *memmem(const void *, size_t, const void *, size_t);
    #define KAFKALOG_EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))
    /* Copies a word of 8 bytes of printable ASCII, with a backslash before each quote and backslash. Returns how many
       bytes it wrote: 0 if the word holds any other byte, and always 0 on a big-endian machine. It may write to all 16
       bytes of out. */
    static inline int kafkalog_copy_word(unsigned char *out, const unsigned char *source) {
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        uint64_t word, quote, backslash, stops;
        int byte;
        memcpy(&word, source, 8);
        if (((word - KAFKALOG_EACH_BYTE(0x20)) | (word + KAFKALOG_EACH_BYTE(1)) | word) & KAFKALOG_EACH_BYTE(0x80))
            return 0;
        /* No byte has its top bit set, so adding 0x7F to each carries nothing over, and sets it in all that are not 0. */
        quote = (word ^ KAFKALOG_EACH_BYTE(0x22)) + KAFKALOG_EACH_BYTE(0x7F);
        backslash = (word ^ KAFKALOG_EACH_BYTE(0x5C)) + KAFKALOG_EACH_BYTE(0x7F);
        stops = ~(quote & backslash) & KAFKALOG_EACH_BYTE(0x80);
        if (!stops) {
            memcpy(out, &word, 8);
            return 8;
        }
        stops = (stops >> 7) * KAFKALOG_EACH_BYTE(1); /* each byte: the number of backslashes before it */
        memset(out, 0x5C, 16);
        for (byte = 0; byte < 8; byte++)
            out[byte + ((stops >> 8 * byte) & 0xFF)] = source[byte];
        return 8 + (int)(stops >> 56);
    #else
        (void)out;
        (void)source;
        return 0;
    #endif
    }
    /* Starts to bring bytes into the cache; reads none, so that they may lie behind the end of a buffer. */
    #if defined(__GNUC__) || defined(__clang__)
    #define kafkalog_prefetch(address) __builtin_prefetch(address)
    #else
    #define kafkalog_prefetch(address) ((void)(address))
    #endif
    """
    void kafkalog_prefetch(const void* address) noexcept nogil
    int kafkalog_copy_word(unsigned char* out, const unsigned char* source) noexcept nogil
    void* memmem(const void* source, size_t source_bytes, const void* wanted, size_t wanted_bytes) noexcept nogil

cdef enum:
    PIECE_BYTES = 16

cdef inline void bring_near(const unsigned char* source, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    kafkalog_prefetch(source + start)  # no loop for short records: how often it runs would be hard to predict
    kafkalog_prefetch(source + start + 64)
    kafkalog_prefetch(source + start + 128)
    start += 192
    while start < end:
        kafkalog_prefetch(source + start)
        start += 64

cdef inline const unsigned char* bytes_at(const unsigned char[::1] view) noexcept nogil:
    return &view[0] if view.shape[0] else NULL

cdef inline unsigned char* room_at(unsigned char[::1] view) noexcept nogil:
    return &view[0] if view.shape[0] else NULL

cdef inline const unsigned int* words_at(const unsigned int[::1] view) noexcept nogil:
    return &view[0] if view.shape[0] else NULL

cdef inline Py_ssize_t copy_bytes(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                                  Py_ssize_t end) noexcept nogil:
    if end > start:
        memcpy(out + at, source + start, end - start)
        return at + (end - start)
    return at

cdef inline Py_ssize_t copy_piece(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                                  Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t stop = at + (end - start)
    while start < end:
        memcpy(out + at, source + start, 16)
        at += 16
        start += 16
    return stop

cdef inline (Py_ssize_t, Py_ssize_t) copy_escaped(unsigned char* out, Py_ssize_t at, const unsigned char* source,
                                                  Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    cdef int length
    while end - start >= 8:
        length = kafkalog_copy_word(out + at, source + start)
        if length == 0:
            break
        at += length
        start += 8
    return at, start

cdef inline Py_ssize_t find_bytes(const unsigned char* source, Py_ssize_t start, Py_ssize_t end,
                                  const unsigned char* wanted, Py_ssize_t length) noexcept nogil:
    cdef const unsigned char* at = NULL
    if length == 0:
        return start
    if end - start >= length:
        at = <const unsigned char*> memmem(source + start, end - start, wanted, length)
    return -1 if at == NULL else at - source

cdef inline bint same_bytes(const unsigned char* first, Py_ssize_t first_at, const unsigned char* second,
                            Py_ssize_t second_at, Py_ssize_t length) noexcept nogil:
    return length == 0 or memcmp(first + first_at, second + second_at, length) == 0
