# The C types of kafka_lines.py.
cimport cython
from format.kernel.memory cimport PIECE_BYTES, bytes_at, room_at, words_at, copy_ascii, copy_piece
from format.kernel.numbers cimport read_u32, read_varint, put_number, MAX_I64, MAX_I32, TWO_31
from format.kernel.crc cimport crc_of, LEGACY_TABLES
from format.kernel.utf8 cimport is_utf8
from format.kernel.tables cimport B_POSITION, B_SIZE, B_MAGIC, B_BASE_OFFSET, B_LAST_DELTA, B_COUNT, B_ATTRIBUTES
from format.kernel.tables cimport B_CRC, B_EPOCH, B_BASE_TIMESTAMP, B_MAX_TIMESTAMP, B_PRODUCER_ID, B_PRODUCER_EPOCH
from format.kernel.tables cimport B_BASE_SEQUENCE, R_BATCH, R_OFFSET, R_TIMESTAMP, R_START, R_SIZE, R_KEY_START
from format.kernel.tables cimport R_KEY_LENGTH, R_VALUE_START, R_VALUE_LENGTH, R_HEADERS_START, R_HEADER_COUNT
from format.kernel.header_layout cimport LEGACY_CRC_AT, CRC_START_LEGACY, CODEC_MASK, TIMESTAMP_TYPE_BIT
from format.kernel.header_layout cimport TRANSACTIONAL_BIT, CONTROL_BIT, DELETE_HORIZON_BIT

cdef const unsigned char[::1] _WORDS
cdef int _WORD_BYTES
cdef int _W_BASE_OFFSET, _W_LAST_OFFSET, _W_COUNT, _W_BASE_SEQUENCE, _W_LAST_SEQUENCE, _W_PRODUCER_ID, _W_PRODUCER_EPOCH
cdef int _W_LEADER_EPOCH, _W_IS_TRANSACTIONAL, _W_IS_CONTROL, _W_HORIZON, _W_EMPTY, _W_POSITION, _W_SIZE, _W_MAGIC, _W_CODEC
cdef int _W_CRC, _W_IS_VALID_BATCH, _W_TRUE, _W_FALSE, _W_OFFSET, _W_BAR, _W_KEY_SIZE, _W_VALUE_SIZE, _W_SEQUENCE
cdef int _W_HEADER_KEYS, _W_IS_VALID_RECORD, _W_KEY, _W_PAYLOAD, _W_SPACE, _W_CREATE_TIME, _W_APPEND_TIME, _W_NO_TIME
cdef int _W_CODEC_NONE
cdef long long _WANTS_METADATA, _WANTS_CONTENTS, _WANTS_3_9_1
cdef int _DUMP_DONE, _DUMP_FULL, _DUMP_ODD_BATCH, _DUMP_ODD_RECORD
cdef int _LINE_BYTES
cdef long long _CODEC_COUNT

@cython.locals(batch=cython.Py_ssize_t, is_begun=cython.bint, row=cython.Py_ssize_t, count=cython.Py_ssize_t,
               room=cython.Py_ssize_t, at=cython.Py_ssize_t, end=cython.Py_ssize_t, stop=cython.int,
               line=cython.p_uchar,
               words=cython.p_const_uchar, source=cython.p_const_uchar, source_bytes=cython.Py_ssize_t,
               crc_words=cython.p_const_uint)
cpdef Py_ssize_t write_dump_log(const long long[:, ::1] batches, const signed char[::1] crc_valid,
                                const unsigned char[::1] buffer, const long long[:, ::1] records,
                                const unsigned int[::1] tables, Py_ssize_t last, long long wants, long long[::1] state,
                                unsigned char[::1] out)

@cython.locals(magic=cython.longlong, attributes=cython.longlong, sequence=cython.longlong)
cdef Py_ssize_t _put_batch(const unsigned char* words, const long long[:, ::1] batches, Py_ssize_t row, bint is_valid,
                           unsigned char* out,
                           Py_ssize_t at) noexcept nogil

@cython.locals(magic=cython.longlong, is_first=cython.bint, sequence=cython.longlong, start=cython.Py_ssize_t,
               stop=cython.Py_ssize_t, crc=cython.longlong, is_valid=cython.bint)
cdef inline Py_ssize_t _put_record(const unsigned char* words, const unsigned char* source, Py_ssize_t end,
                            const long long[:, ::1] records, Py_ssize_t row,
                            const long long[:, ::1] batches, Py_ssize_t batch, const unsigned int* tables,
                            long long wants, unsigned char* out, Py_ssize_t at) noexcept nogil

@cython.locals(number=cython.Py_ssize_t, length=cython.longlong)
cdef Py_ssize_t _put_header_keys(const unsigned char* source, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count,
                                 unsigned char* out, Py_ssize_t at) noexcept nogil

cdef Py_ssize_t _put_text(const unsigned char* source, Py_ssize_t start, Py_ssize_t length, Py_ssize_t limit,
                          unsigned char* out, Py_ssize_t at) noexcept nogil

cdef Py_ssize_t _put_time(const unsigned char* words, long long magic, long long attributes, unsigned char* out,
                          Py_ssize_t at) noexcept nogil

cdef Py_ssize_t _put_boolean(const unsigned char* words, int word, bint value, unsigned char* out,
                             Py_ssize_t at) noexcept nogil

cdef inline Py_ssize_t _put_field(const unsigned char* words, int word, long long number, unsigned char* out,
                                  Py_ssize_t at) noexcept nogil

@cython.locals(start=cython.Py_ssize_t)
cdef inline Py_ssize_t _put_word(const unsigned char* words, int word, unsigned char* out, Py_ssize_t at) noexcept nogil
