"""Batch and message headers: reading and adding them up, and searching for the next one after damage."""

from __future__ import annotations

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.descriptors import *
    from format.kernel.header_layout import *
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.tables import *

#: Reasons why hop stopped, by number.
HOP_STOPS = ("end", "more-bytes", "table-full", "bad-length", "bad-magic", "suspicious")
_STOP_END = 0
_STOP_MORE = 1
_STOP_FULL = 2
_STOP_BAD_LENGTH = 3
_STOP_BAD_MAGIC = 4
_STOP_SUSPICIOUS = 5

_PLAIN_SUFFIXES = 11  # a log, an offset index and a time index, as in tables.SEGMENT_SUFFIXES


def hop(buffer: Bytes, start: int, end: int, file_position: int, table: Table, first_row: int, status: Row) -> int:
    """Read the batch headers in ``buffer[start:end]`` one after the other; write one table row for each.

    ``file_position`` is the position of buffer[0] in the file. Returns the number of the row after the last one
    written. ``status[0]`` gets the reason why it stopped (HOP_STOPS), and ``status[1]`` the index of the next header,
    which is past ``end`` if the batch of the last row ends there.

    ``status[2]`` is the least base offset that the next batch may have; it rises from batch to batch. It is for callers
    that check no CRCs: a smaller base offset, or a v0 or v1 header with attributes that no version has, stops the walk
    as suspicious. If it is negative, every header with a known magic and a possible length is accepted.
    """
    source = bytes_at(buffer)
    at = start
    row = first_row
    capacity = len(table)
    stop = _STOP_END
    least_offset = status[2]
    while at < end:
        if row >= capacity:
            stop = _STOP_FULL
            break
        if end - at < MAGIC_AT + 1:
            stop = _STOP_MORE
            break
        magic = buffer[at + MAGIC_AT]
        length = read_i32(source, at + LENGTH_AT)
        if magic > 2:
            # A zero or negative length describes the damage better than the magic byte does.
            stop = _STOP_BAD_MAGIC if length >= MIN_V0 else _STOP_BAD_LENGTH
            break
        base_offset = read_i64(source, at)
        if least_offset >= 0 and (
            base_offset < least_offset
            or (magic < 2 and end - at > LEGACY_ATTRIBUTES_AT and buffer[at + LEGACY_ATTRIBUTES_AT] > 0x0F)
        ):
            stop = _STOP_SUSPICIOUS if length >= MIN_V0 else _STOP_BAD_LENGTH
            break
        if magic == 2:
            if length < MIN_V2:
                stop = _STOP_BAD_LENGTH
                break
            if end - at < HEADER_V2:
                stop = _STOP_MORE
                break
            table[row, B_LAST_DELTA] = read_i32(source, at + LAST_DELTA_AT)
            table[row, B_COUNT] = read_i32(source, at + COUNT_AT)
            table[row, B_ATTRIBUTES] = read_i16(source, at + ATTRIBUTES_AT)
            table[row, B_CRC] = read_u32(source, at + CRC_AT)
            table[row, B_EPOCH] = read_i32(source, at + EPOCH_AT)
            table[row, B_BASE_TIMESTAMP] = read_i64(source, at + BASE_TIMESTAMP_AT)
            table[row, B_MAX_TIMESTAMP] = read_i64(source, at + MAX_TIMESTAMP_AT)
            table[row, B_PRODUCER_ID] = read_i64(source, at + PRODUCER_ID_AT)
            table[row, B_PRODUCER_EPOCH] = read_i16(source, at + PRODUCER_EPOCH_AT)
            table[row, B_BASE_SEQUENCE] = read_i32(source, at + BASE_SEQUENCE_AT)
        else:
            if length < (MIN_V1 if magic == 1 else MIN_V0):
                stop = _STOP_BAD_LENGTH
                break
            if end - at < (HEADER_V1 if magic == 1 else HEADER_V0):
                stop = _STOP_MORE
                break
            attributes = buffer[at + LEGACY_ATTRIBUTES_AT]
            table[row, B_LAST_DELTA] = 0
            table[row, B_COUNT] = -1 if attributes & 7 else 1
            table[row, B_ATTRIBUTES] = attributes
            table[row, B_CRC] = read_u32(source, at + LEGACY_CRC_AT)
            table[row, B_EPOCH] = -1
            timestamp = -1
            if magic == 1:
                timestamp = read_i64(source, at + LEGACY_TIMESTAMP_AT)
            table[row, B_BASE_TIMESTAMP] = timestamp
            table[row, B_MAX_TIMESTAMP] = timestamp
            table[row, B_PRODUCER_ID] = -1
            table[row, B_PRODUCER_EPOCH] = -1
            table[row, B_BASE_SEQUENCE] = -1
        table[row, B_POSITION] = file_position + at
        table[row, B_SIZE] = OVERHEAD + length
        table[row, B_MAGIC] = magic
        table[row, B_BASE_OFFSET] = base_offset
        if least_offset >= 0 and base_offset < MAX_I64:
            least_offset = base_offset + 1
        row += 1
        at += OVERHEAD + length
    status[0] = stop
    status[1] = at
    status[2] = least_offset
    return row


def _sum_headers(buffer: Bytes, start: int, end: int, least: int, most: int, sums: Row) -> int:
    """Add the batch headers in ``buffer[start:end]``, one after the other, to a row of HEADER_SUMS.

    ``sums[H_LEAST_OFFSET]`` must be 0 before the first header of a log. Offsets may be from ``least`` to ``most``.

    Returns the index of the first header that is not whole in the buffer, or the end of the last batch, which may be
    past ``end``. Returns -1, and leaves undefined sums, at a header that needs more than this loop: one that no sound
    log has (``hop`` would stop there, or its offsets or timestamps are impossible), or the header of a compressed v0 or
    v1 message at the start of a log, which does not contain the first offset.
    """
    source = bytes_at(buffer)
    at = start
    while end - at > MAGIC_AT:
        magic = buffer[at + MAGIC_AT]
        length = read_i32(source, at + LENGTH_AT)
        base_offset = read_i64(source, at)
        if base_offset < sums[H_LEAST_OFFSET] or base_offset < least or base_offset > most:
            return -1
        if magic == 2:
            if length < MIN_V2:
                return -1
            if end - at < HEADER_V2:
                break
            delta = read_i32(source, at + LAST_DELTA_AT)
            attributes = read_i16(source, at + ATTRIBUTES_AT)
            max_timestamp = read_i64(source, at + MAX_TIMESTAMP_AT)
            timestamp = read_i64(source, at + BASE_TIMESTAMP_AT)
            if attributes & DELETE_HORIZON_BIT:
                timestamp = -1
            if attributes & (CONTROL_BIT | TRANSACTIONAL_BIT):
                sums[H_IN_TRANSACTIONS] += 1
        elif magic < 2:
            if length < (MIN_V1 if magic == 1 else MIN_V0):
                return -1
            if end - at < (HEADER_V1 if magic == 1 else HEADER_V0):
                break
            delta = 0
            attributes = buffer[at + LEGACY_ATTRIBUTES_AT]
            timestamp = -1
            if magic == 1:
                timestamp = read_i64(source, at + LEGACY_TIMESTAMP_AT)
            max_timestamp = timestamp
            if attributes > 0x0F or (attributes & CODEC_MASK and sums[H_LEAST_OFFSET] == 0):
                return -1
        else:
            return -1
        if delta < 0 or delta > most - base_offset or timestamp < -1 or max_timestamp < -1:
            return -1
        if sums[H_COUNT] == 0:
            sums[H_FIRST_OFFSET] = base_offset
            sums[H_FIRST_TIMESTAMP] = timestamp
            sums[H_MAX_TIMESTAMP] = max_timestamp
        else:
            if max_timestamp > sums[H_MAX_TIMESTAMP]:
                sums[H_MAX_TIMESTAMP] = max_timestamp
            if base_offset != sums[H_LAST_OFFSET] + 1:
                sums[H_GAPS] += 1
        sums[H_COUNT] += 1
        sums[H_LAST_OFFSET] = base_offset + delta
        sums[H_MAGICS] |= 1 << magic
        sums[H_LEAST_OFFSET] = base_offset + 1
        sums[H_CODEC_COUNTS + (attributes & CODEC_MASK)] += 1
        sums[H_CODEC_BYTES + (attributes & CODEC_MASK)] += OVERHEAD + length
        at += OVERHEAD + length
    return at


def sum_logs(directory_fd: int, segments: Table, start: int, end: int, room: Room, sums: Row, kept: Row) -> int:
    """Add the headers of whole logs of ``segments[start:end]`` to a row of HEADER_SUMS; return the row of the next one.

    It stops at the first log that lacks an index, does not fit into ``room`` with a byte to spare, has another size
    than when it was listed, reaches into the next one, or is not plainly sound. Nothing of it is added then. The last
    row may be followed by another segment. ``kept`` is a row to keep sums in.
    """
    log = room_at(room)
    row = start
    while row < end:
        size = segments[row, F_LOG_BYTES]
        base_offset = segments[row, F_BASE_OFFSET]
        if segments[row, F_SUFFIXES] & _PLAIN_SUFFIXES != _PLAIN_SUFFIXES or size >= len(room):
            break
        if read_log(log, size + 1, directory_fd, base_offset) != size:
            break
        most = MAX_I64 - 1
        if base_offset < most - MAX_RELATIVE_OFFSET:
            most = base_offset + MAX_RELATIVE_OFFSET
        for column in range(len(sums)):
            kept[column] = sums[column]
        sums[H_LEAST_OFFSET] = 0
        if _sum_headers(room, 0, size, base_offset, most, sums) != size or (
            size > 0 and row + 1 < len(segments) and sums[H_LAST_OFFSET] >= segments[row + 1, F_BASE_OFFSET]
        ):
            for column in range(len(sums)):
                sums[column] = kept[column]
            break
        row += 1
    return row


def sum_table(table: Table, crc_valid: memoryview, sums: Row) -> None:
    """Add up the rows of a table of batches; ``sums`` is a row of TABLE_SUMS, all 0."""
    last_offset = MIN_I64
    producer_id = 0
    if len(table) > 0:
        sums[T_RISES] = sums[T_FOLLOWS] = 1
        sums[T_LEAST_OFFSET] = sums[T_GREATEST_OFFSET] = table[0, B_BASE_OFFSET]
        sums[T_LEAST_DELTA] = sums[T_GREATEST_DELTA] = table[0, B_LAST_DELTA]
        sums[T_MAX_TIMESTAMP] = table[0, B_MAX_TIMESTAMP]
        sums[T_LOWEST_EPOCH] = sums[T_HIGHEST_EPOCH] = table[0, B_EPOCH]
        producer_id = table[0, B_PRODUCER_ID]
    for row in range(len(table)):
        magic = table[row, B_MAGIC]
        attributes = table[row, B_ATTRIBUTES]
        codec = attributes & CODEC_MASK
        size = table[row, B_SIZE]
        sums[T_MAGICS] |= 1 << magic
        sums[T_SIZE] += size
        sums[T_CODEC_COUNTS + codec] += 1
        sums[T_CODEC_BYTES + codec] += size
        if table[row, B_COUNT] > 0:
            sums[T_COUNT] += table[row, B_COUNT]
        if crc_valid[row] == 1:
            sums[T_RIGHT_CRCS] += 1
        elif crc_valid[row] == 0:
            sums[T_WRONG_CRCS] += 1

        base_offset = table[row, B_BASE_OFFSET]
        delta = table[row, B_LAST_DELTA]
        if base_offset < sums[T_LEAST_OFFSET]:
            sums[T_LEAST_OFFSET] = base_offset
        elif base_offset > sums[T_GREATEST_OFFSET]:
            sums[T_GREATEST_OFFSET] = base_offset
        if delta < sums[T_LEAST_DELTA]:
            sums[T_LEAST_DELTA] = delta
        elif delta > sums[T_GREATEST_DELTA]:
            sums[T_GREATEST_DELTA] = delta
        # A last offset that does not fit into 64 bits ends the rise.
        if (base_offset > MAX_I64 - delta) if delta >= 0 else (base_offset < MIN_I64 - delta):
            sums[T_RISES] = sums[T_FOLLOWS] = 0
        else:
            if row > 0 and base_offset + delta <= last_offset:
                sums[T_RISES] = sums[T_FOLLOWS] = 0
            if row > 0 and base_offset <= last_offset:
                sums[T_FOLLOWS] = 0
            last_offset = base_offset + delta

        if table[row, B_MAX_TIMESTAMP] > sums[T_MAX_TIMESTAMP]:
            sums[T_MAX_TIMESTAMP] = table[row, B_MAX_TIMESTAMP]
        if table[row, B_EPOCH] > sums[T_HIGHEST_EPOCH]:
            sums[T_HIGHEST_EPOCH] = table[row, B_EPOCH]
        elif table[row, B_EPOCH] < sums[T_LOWEST_EPOCH]:
            sums[T_LOWEST_EPOCH] = table[row, B_EPOCH]
        if table[row, B_PRODUCER_ID] != producer_id:
            producer_id = table[row, B_PRODUCER_ID]
            sums[T_PRODUCER_CHANGES] += 1
        if producer_id >= 0:
            sums[T_WITH_PRODUCER] += 1
        if magic >= 2:
            if attributes & CONTROL_BIT:
                sums[T_CONTROLS] += 1
            if attributes & TRANSACTIONAL_BIT:
                sums[T_TRANSACTIONALS] += 1
            if attributes & (CONTROL_BIT | TRANSACTIONAL_BIT) and producer_id >= 0:
                sums[T_IN_TRANSACTIONS] += 1
        elif codec > 0:
            sums[T_WRAPPERS] += 1


def skip_batches(buffer: Bytes, start: int, end: int, room: int, target: int, status: Row) -> int:
    """Find the first batch from ``start`` on that ends after ``target``; write no rows.

    ``room`` is the end of the file, as an index in ``buffer``. Returns 0 if there is such a batch, 1 if the next header
    is not whole in ``buffer[:end]``, and 2 at a header that ``hop`` would not accept or a batch that ends past
    ``room``. ``status`` gets the index where it stopped, the index of the batch before (-1 for none), and the size of
    the batch that was found.
    """
    source = bytes_at(buffer)
    at = start
    before = -1
    outcome = 1
    length = -OVERHEAD
    while end - at > MAGIC_AT:
        magic = buffer[at + MAGIC_AT]
        length = read_i32(source, at + LENGTH_AT)
        header_bytes = HEADER_V2
        least = MIN_V2
        if magic == 0:
            header_bytes = HEADER_V0
            least = MIN_V0
        elif magic == 1:
            header_bytes = HEADER_V1
            least = MIN_V1
        if magic > 2 or length < least or length > room - at - OVERHEAD:
            outcome = 2
            break
        if end - at < header_bytes:
            break
        if length > target - at - OVERHEAD:
            outcome = 0
            break
        before = at
        at += OVERHEAD + length
    status[0] = at
    status[1] = before
    status[2] = OVERHEAD + length
    return outcome


def find_candidate(buffer: Bytes, start: int, end: int, min_base_offset: int, max_size_bytes: int) -> int:
    """The first index in ``buffer[start:end]`` of what may be a batch or message header, else -1.

    It has a known magic (and known attributes in v0 and v1), a base offset of at least ``min_base_offset``, and a size
    that fits into the ``max_size_bytes`` that follow ``start``. The caller must check the CRC.
    """
    source = bytes_at(buffer)
    at = start
    last = end - HEADER_V0
    while at <= last:
        magic = buffer[at + MAGIC_AT]
        if magic <= 2:
            length = read_i32(source, at + LENGTH_AT)
            if length >= MIN_V0 and OVERHEAD + length <= max_size_bytes - (at - start):
                base_offset = read_i64(source, at)
                if base_offset >= min_base_offset:
                    if magic == 2:
                        # If the CRC is valid, the header checks report fields that contradict each other.
                        if length >= MIN_V2 and end - at >= HEADER_V2:
                            return at
                    else:
                        attributes = buffer[at + LEGACY_ATTRIBUTES_AT]
                        if attributes <= 0x0F and (attributes & 7) <= 3 and (magic == 0 or length >= MIN_V1):
                            return at
        at += 1
    return -1
