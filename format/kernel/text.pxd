# The C types of text.py.
cimport cython
from format.kernel.memory cimport PIECE_BYTES, bytes_at, room_at, copy_bytes, copy_piece, copy_escaped
from format.kernel.numbers cimport read_varint, put_number, MAX_I32
from format.kernel.utf8 cimport read_character
from format.kernel.tables cimport B_MAGIC, B_BASE_OFFSET, B_LAST_DELTA, B_ATTRIBUTES, B_BASE_SEQUENCE, R_BATCH
from format.kernel.tables cimport R_OFFSET, R_SIZE, R_HEADER_COUNT
from format.kernel.header_layout cimport CODEC_MASK, TIMESTAMP_TYPE_BIT, DELETE_HORIZON_BIT

cdef int _F_END, _F_V2, _F_TIMED, _F_COUNT, _F_LAST_OFFSET, _F_BASE_TIMESTAMP, _F_DELETE_HORIZON, _F_CODEC
cdef int _F_TIMESTAMP_TYPE, _F_BIT, _F_CRC_VALID, _F_RECORD, _F_RECORD_TIMESTAMP, _F_RECORD_SEQUENCE, _F_RECORD_BYTES
cdef int _F_RECORD_HEADERS, _F_BELOW_LOG_START, _F_DECODED
cdef int _JSON_LINES, _LOGFMT_LINES
cdef int _L_NULL, _L_FALSE, _L_TIMESTAMP_TYPES, _L_CODECS
cdef int _TEXT_CLASSES, _BARE_CLASSES, _JSON_NULL, _ALPHABET, _BASE64_START, _BASE64_END, _UNSAFE
cdef int _JSON_CLASSES
cdef unsigned char _LETTER_U, _LETTER_X
cdef long long _MOST_NUMBERS, _MOST_PER_BYTE, _MOST_PER_HEADER

@cython.locals(at=cython.Py_ssize_t, row=cython.Py_ssize_t, line=cython.p_uchar, texts=cython.p_const_uchar)
cpdef Py_ssize_t put_batches(unsigned char[::1] out, const long long[:, ::1] fields, const long long[:, ::1] literals,
                             const unsigned char[::1] pieces, const long long[:, ::1] batches,
                             const signed char[::1] crc_valid, Py_ssize_t first, Py_ssize_t most_bytes,
                             long long[::1] bounds, long long[::1] status)

@cython.locals(at=cython.Py_ssize_t, row=cython.Py_ssize_t, known=cython.longlong, fixed=cython.longlong,
               magic=cython.longlong, batch=cython.longlong, count=cython.longlong,
               field=cython.Py_ssize_t, kind=cython.longlong, column=cython.Py_ssize_t, start=cython.Py_ssize_t,
               length=cython.longlong, sequence=cython.longlong, line=cython.p_uchar, texts=cython.p_const_uchar,
               words=cython.p_const_uchar,
               source=cython.p_const_uchar, fixed_text=cython.p_uchar, end=cython.Py_ssize_t,
               made=cython.p_const_uchar, made_bytes=cython.longlong, most=cython.longlong)
cpdef Py_ssize_t put_records(unsigned char[::1] out, const long long[:, ::1] fields,
                             const long long[:, ::1] record_fields, const long long[:, ::1] literals,
                             const unsigned char[::1] pieces, const unsigned char[::1] tables, int style,
                             const unsigned char[::1] buffer,
                             const long long[:, ::1] records, const long long[:, ::1] batches,
                             const signed char[::1] crc_valid, const unsigned char[::1] decoded,
                             const long long[::1] decoded_ends, Py_ssize_t first, unsigned char[::1] scratch,
                             long long[::1] bounds, long long[::1] status)

@cython.locals(magic=cython.longlong, attributes=cython.longlong, segment=cython.Py_ssize_t, field=cython.Py_ssize_t,
               kind=cython.longlong, column=cython.Py_ssize_t, literal=cython.Py_ssize_t)
cdef Py_ssize_t _put_batch_fields(unsigned char* out, Py_ssize_t at, const long long[:, ::1] fields,
                                  const long long[:, ::1] literals, const unsigned char* pieces,
                                  const long long[:, ::1] batches, const signed char[::1] crc_valid, Py_ssize_t batch,
                                  long long[::1] bounds) noexcept nogil

cdef inline Py_ssize_t _put_literal(unsigned char* out, Py_ssize_t at, const unsigned char* pieces,
                             const long long[:, ::1] literals, Py_ssize_t number) noexcept nogil

@cython.locals(header=cython.longlong, length=cython.longlong)
cdef Py_ssize_t _put_headers(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                             Py_ssize_t end, long long count, const unsigned char* tables) noexcept nogil

@cython.locals(at=cython.Py_ssize_t, index=cython.Py_ssize_t, byte=cython.int, escape=cython.int,
               point=cython.longlong, after=cython.Py_ssize_t)
cdef inline Py_ssize_t _put_json(unsigned char* out, Py_ssize_t first, const unsigned char* source,
                                 Py_ssize_t start, Py_ssize_t end, Py_ssize_t limit,
                                 const unsigned char* tables) noexcept nogil

@cython.locals(bits=cython.int)
cdef Py_ssize_t _put_base64(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                            Py_ssize_t end, const unsigned char* tables) noexcept nogil

@cython.locals(count=cython.Py_ssize_t, at=cython.Py_ssize_t, after=cython.Py_ssize_t, index=cython.Py_ssize_t)
cdef Py_ssize_t _quote_cell(unsigned char* out, Py_ssize_t start, Py_ssize_t end) noexcept nogil

@cython.locals(index=cython.Py_ssize_t)
cdef Py_ssize_t _put_word(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                          Py_ssize_t end, Py_ssize_t limit, const unsigned char* tables) noexcept nogil

@cython.locals(index=cython.Py_ssize_t, is_quoted=cython.bint, point=cython.longlong, _after=cython.Py_ssize_t)
cdef Py_ssize_t _put_cell(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                          Py_ssize_t end, Py_ssize_t limit, const unsigned char* tables) noexcept nogil

@cython.locals(index=cython.Py_ssize_t, byte=cython.int, escape=cython.int, point=cython.longlong,
               after=cython.Py_ssize_t)
cdef inline Py_ssize_t _put_text(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                                 Py_ssize_t end, Py_ssize_t limit, const unsigned char* tables,
                                 bint doubles) noexcept nogil

@cython.locals(shift=cython.int, nibble=cython.int)
cdef Py_ssize_t _put_hex(unsigned char* out, Py_ssize_t at, long long value, int digits) noexcept nogil
