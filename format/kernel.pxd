# The C types of kernel.py, for Cython; the Python file runs without them.
cimport cython
from format.kernel_memory cimport bytes_at, copy_bytes, copy_piece, copy_escaped, find_bytes, is_ascii, room_at
from format.kernel_memory cimport same_bytes, words_at

cdef long long _STOP_END, _STOP_MORE, _STOP_FULL, _STOP_BAD_LENGTH, _STOP_BAD_MAGIC, _STOP_SUSPICIOUS

cdef int _LENGTH_AT, _OVERHEAD, _MAGIC_AT, _EPOCH_AT, _CRC_AT, _ATTRIBUTES_AT, _LAST_DELTA_AT
cdef int _BASE_TIMESTAMP_AT, _MAX_TIMESTAMP_AT, _PRODUCER_ID_AT, _PRODUCER_EPOCH_AT, _BASE_SEQUENCE_AT, _COUNT_AT
cdef int _HEADER_V2, _LEGACY_CRC_AT, _LEGACY_ATTRIBUTES_AT, _LEGACY_TIMESTAMP_AT, _HEADER_V0, _HEADER_V1
cdef int _MIN_V0, _MIN_V1, _MIN_V2
cdef int _B_POSITION, _B_SIZE, _B_MAGIC, _B_BASE_OFFSET, _B_LAST_DELTA, _B_COUNT, _B_ATTRIBUTES, _B_CRC, _B_EPOCH
cdef int _B_BASE_TIMESTAMP, _B_MAX_TIMESTAMP, _B_PRODUCER_ID, _B_PRODUCER_EPOCH, _B_BASE_SEQUENCE
cdef int _R_BATCH, _R_OFFSET, _R_TIMESTAMP, _R_ATTRIBUTES, _R_START, _R_SIZE, _R_KEY_START, _R_KEY_LENGTH
cdef int _R_VALUE_START, _R_VALUE_LENGTH, _R_HEADERS_START, _R_HEADER_COUNT
cdef int _S_BATCH, _S_START, _S_END, _S_COUNT, _S_BASE_OFFSET, _S_BASE_TIMESTAMP, _S_APPEND_TIMESTAMP, _S_IS_APPEND_TIME
cdef unsigned int _U32_MAX
cdef long long _MAX_I64, _MIN_I64, _TWO_31, _TWO_32
cdef int _ERROR_LENGTH_VARINT, _ERROR_LENGTH, _ERROR_PAST_BATCH, _ERROR_VARINT, _ERROR_VARINT_OVERFLOW, _ERROR_KEY
cdef int _ERROR_VALUE, _ERROR_HEADER_COUNT, _ERROR_HEADER_KEY, _ERROR_HEADER_VALUE, _ERROR_LEFT_OVER, _ERROR_OFFSET
cdef int _ERROR_TIMESTAMP, _ERROR_MESSAGE_CUT, _ERROR_MESSAGE_SIZE, _ERROR_MESSAGE_MAGIC

cdef int _CONTROL_KEY_BYTES, _CONTROL_TYPE_AT, _END_MARKER_BYTES, _LAST_END_MARKER_TYPE, _CRC_START_V2, _CRC_START_LEGACY
cdef int _LEGACY_TABLES
cdef long long _CODEC_MASK, _TIMESTAMP_TYPE_BIT, _CONTROL_BIT, _KNOWN_V0, _KNOWN_V1, _KNOWN_V2

cdef int _F_END, _F_V2, _F_TIMED, _F_COUNT, _F_LAST_OFFSET, _F_BASE_TIMESTAMP, _F_DELETE_HORIZON, _F_CODEC
cdef int _F_TIMESTAMP_TYPE, _F_BIT, _F_CRC_VALID, _F_RECORD, _F_RECORD_TIMESTAMP, _F_RECORD_SEQUENCE, _F_RECORD_BYTES
cdef int _F_RECORD_HEADERS
cdef int _L_NULL, _L_FALSE, _L_TIMESTAMP_TYPES, _L_CODECS
cdef int _TEXT_CLASSES, _BARE_CLASSES, _JSON_NULL, _ALPHABET, _BASE64_START, _BASE64_END, _UNSAFE
cdef unsigned char _LETTER_U, _LETTER_X
cdef long long _DELETE_HORIZON_BIT, _MAX_SEQUENCE, _MOST_NUMBERS, _MOST_PER_BYTE, _MOST_PER_HEADER, _NINE_E18

@cython.locals(value=cython.longlong)
cdef long long _u32(const unsigned char* source, Py_ssize_t at) noexcept nogil

@cython.locals(value=cython.longlong)
cdef long long _i32(const unsigned char* source, Py_ssize_t at) noexcept nogil

cdef long long _i64(const unsigned char* source, Py_ssize_t at) noexcept nogil

@cython.locals(value=cython.longlong)
cdef long long _i16(const unsigned char* source, Py_ssize_t at) noexcept nogil

@cython.locals(at=cython.Py_ssize_t, row=cython.Py_ssize_t, capacity=cython.Py_ssize_t, stop=cython.longlong,
               magic=cython.int, length=cython.longlong, attributes=cython.longlong, timestamp=cython.longlong,
               base_offset=cython.longlong, least_offset=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t hop(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end, long long file_position,
                     long long[:, ::1] table, Py_ssize_t first_row, long long[::1] status)

@cython.locals(at=cython.Py_ssize_t, before=cython.Py_ssize_t, outcome=cython.int, magic=cython.int,
               length=cython.longlong, header_bytes=cython.Py_ssize_t, least=cython.longlong,
               source=cython.p_const_uchar)
cpdef int skip_batches(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end, long long room,
                       long long target, long long[::1] status)

@cython.locals(at=cython.Py_ssize_t, last=cython.Py_ssize_t, magic=cython.int, length=cython.longlong,
               base_offset=cython.longlong, attributes=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t find_candidate(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end,
                                long long min_base_offset, long long max_size_bytes)

@cython.locals(shift=cython.int, value=cython.longlong, half=cython.longlong, byte=cython.longlong)
cdef (long long, Py_ssize_t) _varint(const unsigned char* source, Py_ssize_t at, Py_ssize_t end) noexcept nogil

@cython.locals(shift=cython.int, low=cython.longlong, high=cython.longlong, half=cython.longlong, byte=cython.longlong)
cdef (long long, Py_ssize_t) _varlong(const unsigned char* source, Py_ssize_t at, Py_ssize_t end) noexcept nogil

@cython.locals(row=cython.Py_ssize_t, capacity=cython.Py_ssize_t, span=cython.Py_ssize_t, batch=cython.longlong,
               at=cython.Py_ssize_t, end=cython.Py_ssize_t, stop=cython.Py_ssize_t, start=cython.Py_ssize_t,
               error_at=cython.Py_ssize_t, count=cython.longlong, base_offset=cython.longlong,
               base_timestamp=cython.longlong, append_timestamp=cython.longlong, is_append_time=cython.longlong,
               done=cython.longlong, error=cython.int, length=cython.longlong, attributes=cython.longlong,
               timestamp_delta=cython.longlong, offset_delta=cython.longlong, timestamp=cython.longlong,
               key_length=cython.longlong, key_start=cython.Py_ssize_t, value_length=cython.longlong,
               value_start=cython.Py_ssize_t, header_count=cython.longlong, headers_start=cython.Py_ssize_t,
               header=cython.longlong, part_length=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t index_records(const unsigned char[::1] buffer, const long long[:, ::1] spans, Py_ssize_t first,
                               Py_ssize_t last, long long[:, ::1] table, Py_ssize_t first_row,
                               long long[:, ::1] results)

@cython.locals(at=cython.Py_ssize_t, row=cython.Py_ssize_t, length=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t index_headers(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count,
                               long long[:, ::1] table)

@cython.locals(end=cython.Py_ssize_t, row=cython.Py_ssize_t, record=cython.Py_ssize_t, at=cython.Py_ssize_t,
               length=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t index_record_headers(const unsigned char[::1] buffer, const long long[:, ::1] records,
                                      long long[:, ::1] table)

@cython.locals(row=cython.Py_ssize_t, capacity=cython.Py_ssize_t, at=cython.Py_ssize_t, error=cython.int,
               error_at=cython.Py_ssize_t, length=cython.longlong, magic=cython.int, stop=cython.Py_ssize_t,
               timestamp=cython.longlong, field=cython.Py_ssize_t, key_length=cython.longlong,
               key_start=cython.Py_ssize_t, value_length=cython.longlong, value_start=cython.Py_ssize_t,
               source=cython.p_const_uchar)
cpdef Py_ssize_t index_messages(const unsigned char[::1] buffer, Py_ssize_t start, Py_ssize_t end,
                                long long[:, ::1] table, Py_ssize_t first_row, long long[::1] result)

@cython.locals(byte=cython.int, second=cython.int, more=cython.int)
cdef bint _is_utf8(const unsigned char* source, Py_ssize_t at, Py_ssize_t end) noexcept nogil

@cython.locals(crc=cython.uint)
cdef long long _crc(const unsigned char* source, Py_ssize_t at, Py_ssize_t end, const unsigned int* tables,
                    Py_ssize_t first) noexcept nogil

@cython.locals(left=cython.Py_ssize_t, row=cython.Py_ssize_t, at=cython.Py_ssize_t, size_bytes=cython.longlong,
               crc=cython.longlong, source=cython.p_const_uchar, words=cython.p_const_uint)
cpdef Py_ssize_t check_crcs(const unsigned char[::1] buffer, long long buffer_position, const long long[:, ::1] table,
                            long long largest_bytes, const unsigned int[::1] tables, signed char[::1] valid)

@cython.locals(row=cython.Py_ssize_t, magic=cython.longlong, attributes=cython.longlong, base_offset=cython.longlong,
               last_delta=cython.longlong, timestamp=cython.longlong)
cpdef Py_ssize_t find_doubtful_header(const long long[:, ::1] table, long long latest_timestamp)

@cython.locals(row=cython.Py_ssize_t, end=cython.Py_ssize_t, count=cython.Py_ssize_t, first=cython.Py_ssize_t,
               batch=cython.longlong, magic=cython.longlong, attributes=cython.longlong, base_offset=cython.longlong,
               last_delta=cython.longlong, is_control=cython.bint, is_inner=cython.bint, previous=cython.longlong,
               largest=cython.longlong, at=cython.Py_ssize_t, crc=cython.longlong, source=cython.p_const_uchar,
               words=cython.p_const_uint)
cpdef Py_ssize_t find_doubtful_record(const unsigned char[::1] buffer, const long long[:, ::1] records,
                                      const long long[:, ::1] batches, long long max_record_bytes,
                                      const unsigned int[::1] tables)

cdef long long _MURMUR2_SEED, _MURMUR2_MULTIPLIER, _MURMUR2_MASK

@cython.locals(row=cython.Py_ssize_t, batch=cython.longlong, digest=cython.longlong, source=cython.p_const_uchar)
cpdef Py_ssize_t find_misplaced_record(const unsigned char[::1] buffer, const long long[:, ::1] records,
                                       const long long[:, ::1] batches, long long partition, long long partition_count,
                                       Py_ssize_t first)

@cython.locals(digest=cython.longlong, word=cython.longlong, left=cython.Py_ssize_t)
cdef long long _murmur2(const unsigned char* source, Py_ssize_t at, Py_ssize_t length) noexcept nogil

cpdef long long murmur2(const unsigned char[::1] buffer, Py_ssize_t at, Py_ssize_t length) noexcept nogil

@cython.locals(at=cython.Py_ssize_t)
cdef bint _is_control_record(const unsigned char* source, const long long[:, ::1] records,
                             Py_ssize_t row) noexcept nogil

@cython.locals(header=cython.longlong, length=cython.longlong)
cdef bint _are_header_keys_utf8(const unsigned char* source, Py_ssize_t at, Py_ssize_t end,
                                long long count) noexcept nogil

@cython.locals(end=cython.Py_ssize_t, row=cython.Py_ssize_t, source=cython.p_const_uchar)
cpdef Py_ssize_t find_bad_header_key(const unsigned char[::1] buffer, const long long[:, ::1] table, Py_ssize_t first)

@cython.locals(row=cython.Py_ssize_t, length=cython.Py_ssize_t, source=cython.p_const_uchar,
               needle=cython.p_const_uchar)
cpdef void find_in_fields(const unsigned char[::1] buffer, const long long[:, ::1] fields,
                          const unsigned char[::1] wanted, long long[::1] found)

@cython.locals(row=cython.Py_ssize_t, length=cython.Py_ssize_t, at=cython.Py_ssize_t, other_at=cython.Py_ssize_t,
               source=cython.p_const_uchar, other=cython.p_const_uchar)
cpdef Py_ssize_t find_other_record(const unsigned char[::1] buffer, const long long[:, ::1] records,
                                   const unsigned char[::1] other_buffer, const long long[:, ::1] others,
                                   Py_ssize_t first)

@cython.locals(rest=cython.longlong, size=cython.Py_ssize_t)
cdef inline Py_ssize_t _varint_bytes(long long value) noexcept nogil

@cython.locals(rest=cython.longlong, low=cython.longlong)
cdef inline Py_ssize_t _put_varint(unsigned char* out, Py_ssize_t at, long long value) noexcept nogil

@cython.locals(row=cython.Py_ssize_t, at=cython.Py_ssize_t, timestamp_delta=cython.longlong,
               offset_delta=cython.longlong, key_start=cython.Py_ssize_t, key_length=cython.Py_ssize_t,
               value_start=cython.Py_ssize_t, value_length=cython.Py_ssize_t, header_count=cython.longlong,
               headers_start=cython.Py_ssize_t, headers_end=cython.Py_ssize_t, attributes=cython.longlong,
               size=cython.Py_ssize_t, source=cython.p_const_uchar, target=cython.p_uchar)
cpdef Py_ssize_t put_v2_records(unsigned char[::1] out, const unsigned char[::1] buffer,
                                const long long[:, ::1] records, long long base_offset, long long base_timestamp)

cdef const unsigned char[::1] _DIGITS

@cython.locals(rest=cython.longlong, stop=cython.Py_ssize_t, two=cython.Py_ssize_t)
cdef inline Py_ssize_t _put_number(unsigned char* out, Py_ssize_t at, long long value) noexcept nogil

@cython.locals(shift=cython.int, nibble=cython.int)
cdef Py_ssize_t _put_hex(unsigned char* out, Py_ssize_t at, long long value, int digits) noexcept nogil

@cython.locals(byte=cython.longlong, after=cython.Py_ssize_t, point=cython.longlong)
cdef (long long, Py_ssize_t) _code_point(const unsigned char* source, Py_ssize_t at, Py_ssize_t end) noexcept nogil

@cython.locals(at=cython.Py_ssize_t, index=cython.Py_ssize_t, byte=cython.int, escape=cython.int,
               point=cython.longlong, after=cython.Py_ssize_t)
cdef inline Py_ssize_t _put_json(unsigned char* out, Py_ssize_t first, const unsigned char* source,
                                 Py_ssize_t start, Py_ssize_t end, const unsigned char* tables) noexcept nogil

@cython.locals(bits=cython.int)
cdef Py_ssize_t _put_base64(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                            Py_ssize_t end, const unsigned char* tables) noexcept nogil

@cython.locals(index=cython.Py_ssize_t, byte=cython.int, escape=cython.int, point=cython.longlong,
               after=cython.Py_ssize_t)
cdef Py_ssize_t _put_quoted(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                            Py_ssize_t end, const unsigned char* tables) noexcept nogil

@cython.locals(header=cython.longlong, length=cython.longlong)
cdef Py_ssize_t _put_headers(unsigned char* out, Py_ssize_t at, const unsigned char* source, Py_ssize_t start,
                             Py_ssize_t end, long long count, const unsigned char* tables) noexcept nogil

cdef inline Py_ssize_t _put_literal(unsigned char* out, Py_ssize_t at, const unsigned char* pieces,
                             const long long[:, ::1] literals, Py_ssize_t number) noexcept nogil

@cython.locals(magic=cython.longlong, attributes=cython.longlong, segment=cython.Py_ssize_t, field=cython.Py_ssize_t,
               kind=cython.longlong, column=cython.Py_ssize_t, literal=cython.Py_ssize_t)
cdef Py_ssize_t _put_batch_fields(unsigned char* out, Py_ssize_t at, const long long[:, ::1] fields,
                                  const long long[:, ::1] literals, const unsigned char* pieces,
                                  const long long[:, ::1] batches, const signed char[::1] crc_valid, Py_ssize_t batch,
                                  long long[::1] bounds) noexcept nogil

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
               source=cython.p_const_uchar, fixed_text=cython.p_uchar, end=cython.Py_ssize_t)
cpdef Py_ssize_t put_records(unsigned char[::1] out, const long long[:, ::1] fields,
                             const long long[:, ::1] record_fields, const long long[:, ::1] literals,
                             const unsigned char[::1] pieces, const unsigned char[::1] tables, bint is_json,
                             const unsigned char[::1] buffer,
                             const long long[:, ::1] records, const long long[:, ::1] batches,
                             const signed char[::1] crc_valid, Py_ssize_t first, unsigned char[::1] scratch,
                             long long[::1] bounds, long long[::1] status)

# The lines of kafka-dump-log.
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
cdef long long _TRANSACTIONAL_BIT, _HORIZON_BIT, _CODEC_COUNT, _MAX_I32

@cython.locals(start=cython.Py_ssize_t)
cdef inline Py_ssize_t _put_word(const unsigned char* words, int word, unsigned char* out, Py_ssize_t at) noexcept nogil

cdef Py_ssize_t _put_text(const unsigned char* source, Py_ssize_t start, Py_ssize_t length, unsigned char* out,
                          Py_ssize_t at) noexcept nogil

@cython.locals(number=cython.Py_ssize_t, length=cython.longlong)
cdef Py_ssize_t _put_header_keys(const unsigned char* source, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count,
                                 unsigned char* out, Py_ssize_t at) noexcept nogil

cdef Py_ssize_t _put_time(const unsigned char* words, long long magic, long long attributes, unsigned char* out,
                          Py_ssize_t at) noexcept nogil

cdef Py_ssize_t _put_boolean(const unsigned char* words, int word, bint value, unsigned char* out,
                             Py_ssize_t at) noexcept nogil

@cython.locals(magic=cython.longlong, attributes=cython.longlong, sequence=cython.longlong)
cdef Py_ssize_t _put_batch(const unsigned char* words, const long long[:, ::1] batches, Py_ssize_t row, bint is_valid,
                           unsigned char* out,
                           Py_ssize_t at) noexcept nogil

@cython.locals(magic=cython.longlong, is_first=cython.bint, sequence=cython.longlong, start=cython.Py_ssize_t,
               stop=cython.Py_ssize_t, crc=cython.longlong, is_valid=cython.bint)
cdef Py_ssize_t _put_record(const unsigned char* words, const unsigned char* source, Py_ssize_t end,
                            const long long[:, ::1] records, Py_ssize_t row,
                            const long long[:, ::1] batches, Py_ssize_t batch, const unsigned int* tables,
                            long long wants, unsigned char* out, Py_ssize_t at) noexcept nogil

@cython.locals(batch=cython.Py_ssize_t, is_begun=cython.bint, row=cython.Py_ssize_t, count=cython.Py_ssize_t,
               room=cython.Py_ssize_t, at=cython.Py_ssize_t, end=cython.Py_ssize_t, stop=cython.int,
               line=cython.p_uchar,
               words=cython.p_const_uchar, source=cython.p_const_uchar, source_bytes=cython.Py_ssize_t,
               crc_words=cython.p_const_uint)
cpdef Py_ssize_t write_dump_log(const long long[:, ::1] batches, const signed char[::1] crc_valid,
                                const unsigned char[::1] buffer, const long long[:, ::1] records,
                                const unsigned int[::1] tables, Py_ssize_t last, long long wants, long long[::1] state,
                                unsigned char[::1] out)
