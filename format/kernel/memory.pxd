# The functions of memory.py in C, on addresses.
from libc.string cimport memcmp, memcpy

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* All C libraries except Microsoft's have memmem, but some declare it only with a feature macro. */
    extern void *memmem(const void *, size_t, const void *, size_t);
    #define KAFKALOG_EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))
    /* Copies a word of 8 bytes of printable ASCII, with a backslash before each quote and backslash. Returns how many
       bytes it wrote: 0 if the word holds any other byte, or with doubles a quote or backslash, and always 0 on a
       big-endian machine. It may write to all 16 bytes of out. */
    static inline int kafkalog_copy_word(unsigned char *out, const unsigned char *source, int doubles) {
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
        if (doubles)
            return 0;
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
    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    #include <tmmintrin.h>
    #define KAFKALOG_MAY_SHUFFLE 1
    /* The bytes that are not printable ASCII, those of 0x80 and more are negative here; and quotes and backslashes. */
    #define KAFKALOG_STOPS(bytes) ((unsigned)_mm_movemask_epi8(_mm_or_si128( \
        _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)), _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7F)))))
    #define KAFKALOG_MARKS(bytes) ((unsigned)_mm_movemask_epi8(_mm_or_si128( \
        _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x22)), _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x5C)))))
    /* Writes 16 bytes, with a backslash before each that is marked or, by the second half of text.EXPANSIONS, the byte
       itself: up to 32. */
    __attribute__((target("ssse3,popcnt"))) static inline void kafkalog_expand(
            unsigned char *out, __m128i bytes, unsigned marks, const unsigned char *expansions) {
        const __m128i backslash = _mm_set1_epi8(0x5C);
        const __m128i low = _mm_loadu_si128((const __m128i *)(expansions + 16 * (marks & 0xFF)));
        const __m128i high = _mm_loadu_si128((const __m128i *)(expansions + 16 * (marks >> 8)));
        _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(_mm_unpacklo_epi64(bytes, backslash), low));
        out += 8 + __builtin_popcount(marks & 0xFF);
        _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(_mm_unpackhi_epi64(bytes, backslash), high));
    }
    /* Copies as kafkalog_copy_word does, 16 bytes at a time, while 16 bytes may be read. It may write up to 32 bytes
       past the end that it returns. */
    __attribute__((target("ssse3,popcnt"))) static inline size_t kafkalog_expand_all(
            unsigned char *out, const unsigned char *source, size_t length, size_t readable,
            const unsigned char *expansions, size_t *taken) {
        size_t at = 0, index = 0;
        __m128i bytes;
        unsigned stops = 0, marks, count;
        for (; length - index >= 16; index += 16) {
            bytes = _mm_loadu_si128((const __m128i *)(source + index));
            stops = KAFKALOG_STOPS(bytes);
            if (stops)
                break;
            marks = KAFKALOG_MARKS(bytes);
            kafkalog_expand(out + at, bytes, marks, expansions);
            at += 16 + (size_t)__builtin_popcount(marks);
        }
        if (index < length && readable - index >= 16) {
            bytes = _mm_loadu_si128((const __m128i *)(source + index));
            stops = KAFKALOG_STOPS(bytes);
            if (length - index < 16)
                stops |= 0xFFFFU << (length - index);
            count = (unsigned)__builtin_ctz(stops);
            marks = KAFKALOG_MARKS(bytes) & ((1U << count) - 1);
            kafkalog_expand(out + at, bytes, marks, expansions);
            at += count + (size_t)__builtin_popcount(marks);
            index += count;
        }
        *taken = index;
        return at;
    }
    #endif
    static inline size_t kafkalog_copy_escaped(
            unsigned char *out, const unsigned char *source, size_t length, size_t readable,
            const unsigned char *expansions, int doubles, size_t *taken) {
        size_t at = 0, index = 0;
    #ifdef KAFKALOG_MAY_SHUFFLE
        if (__builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt")) {
            at = kafkalog_expand_all(out, source, length, readable, expansions + (doubles ? 4096 : 0), &index);
            if (readable - index >= 16) {
                *taken = index;
                return at;
            }
        }
    #else
        (void)readable;
        (void)expansions;
    #endif
        while (length - index >= 8) {
            const int written = kafkalog_copy_word(out + at, source + index, doubles);
            if (!written)
                break;
            at += (size_t)written;
            index += 8;
        }
        *taken = index;
        return at;
    }
    /* Copies bytes and returns whether they are ASCII. It may write up to 16 bytes past them, and may read past them
       as far as bytes are readable. */
    static inline int kafkalog_copy_ascii(
            unsigned char *out, const unsigned char *source, size_t length, size_t readable) {
        uint64_t seen = 0, pair[2];
        size_t at = 0;
        for (; length - at >= 16; at += 16) {
            memcpy(pair, source + at, 16);
            memcpy(out + at, pair, 16);
            seen |= pair[0] | pair[1];
        }
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (at < length && readable - at >= 16) {
            const size_t bits = 8 * (length - at);
            memcpy(pair, source + at, 16);
            memcpy(out + at, pair, 16);
            if (bits < 64)
                seen |= pair[0] & ((UINT64_C(1) << bits) - 1);
            else if (bits == 64)
                seen |= pair[0];
            else
                seen |= pair[0] | (pair[1] & ((UINT64_C(1) << (bits - 64)) - 1));
            at = length;
        }
    #else
        (void)readable;
    #endif
        for (; at < length; at++) {
            out[at] = source[at];
            seen |= source[at];
        }
        return !(seen & KAFKALOG_EACH_BYTE(0x80));
    }
    /* Prefetches a cache line. It reads nothing, so the address may be past the end of a buffer. */
    #if defined(__GNUC__) || defined(__clang__)
    #define kafkalog_prefetch(address) __builtin_prefetch(address)
    #else
    #define kafkalog_prefetch(address) ((void)(address))
    #endif
    """
    void kafkalog_prefetch(const void* address) noexcept nogil
    size_t kafkalog_copy_escaped(unsigned char* out, const unsigned char* source, size_t length, size_t readable,
                                 const unsigned char* expansions, bint doubles, size_t* taken) noexcept nogil
    bint kafkalog_copy_ascii(unsigned char* out, const unsigned char* source, size_t length,
                             size_t readable) noexcept nogil
    void* memmem(const void* source, size_t source_bytes, const void* wanted, size_t wanted_bytes) noexcept nogil

cdef extern from *:
    void* end_turn "PyEval_SaveThread" () noexcept
    void take_turn "PyEval_RestoreThread" (void* turn) noexcept

cdef enum:
    PIECE_BYTES = 32

cdef inline void bring_near(const unsigned char* source, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    kafkalog_prefetch(source + start)  # no loop for short records: the processor mispredicts its end
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
    memcpy(out + at, source + start, 16)
    while end - start > 16:
        at += 16
        start += 16
        memcpy(out + at, source + start, 16)
    return stop

cdef inline (Py_ssize_t, Py_ssize_t) copy_escaped(unsigned char* out, Py_ssize_t at, const unsigned char* source,
                                                  Py_ssize_t start, Py_ssize_t end, Py_ssize_t limit,
                                                  const unsigned char* expansions, bint doubles) noexcept nogil:
    cdef size_t taken = 0
    at += kafkalog_copy_escaped(out + at, source + start, end - start, limit - start, expansions, doubles,
                                &taken)
    return at, start + <Py_ssize_t> taken

cdef inline bint copy_ascii(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                            Py_ssize_t end, Py_ssize_t limit) noexcept nogil:
    return kafkalog_copy_ascii(out + at, source + start, end - start, limit - start)

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
