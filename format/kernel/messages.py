"""Walking over Kafka's generated messages by a program: whether the bytes of a record are such a message, to the end.

A program is a table of steps, which ``format.internal_topics.record_check`` makes of the schemas. Each step is a number
and two operands. What is not plainly sound is left to the decoder of ``format.internal_topics``, which says what is
wrong.
"""

from __future__ import annotations

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.tables import *

#: The steps of a program. A program ends with STEP_END.
STEP_END = 0
STEP_SKIP = 1  # so many bytes
STEP_SMALL = 2  # a signed integer of so many bytes, 1 or 2, from 0 to the second operand
STEP_STRING = 3  # with a length of 16 bits; the first operand is 1 where null is allowed, for the next ones too
STEP_BYTES = 4  # with a length of 32 bits
STEP_COMPACT_STRING = 5  # with the length plus one as an unsigned varint
STEP_COMPACT_BYTES = 6
STEP_ARRAY = 7  # with a count of 32 bits; the second operand is the program of an element
STEP_COMPACT_ARRAY = 8
STEP_NULLABLE = 9  # a byte, negative for null, and else the program of the second operand
STEP_NULLABLE_TAGGED = 10  # an unsigned varint, 0 for null, and else the program of the second operand
STEP_STRUCT = 11  # the program of the second operand
STEP_TAGS = 12  # tagged fields; so many steps follow, each a known tag and the program of its value
_END = STEP_END
_SKIP = STEP_SKIP
_SMALL = STEP_SMALL
_STRING = STEP_STRING
_BYTES = STEP_BYTES
_COMPACT_STRING = STEP_COMPACT_STRING
_COMPACT_BYTES = STEP_COMPACT_BYTES
_ARRAY = STEP_ARRAY
_COMPACT_ARRAY = STEP_COMPACT_ARRAY
_NULLABLE = STEP_NULLABLE
_NULLABLE_TAGGED = STEP_NULLABLE_TAGGED
_STRUCT = STEP_STRUCT
_TAGS = STEP_TAGS
_MOST_TEXT_BYTES = 0x7FFF
_NOT_SOUND = -1


def find_odd_coordinator_record(
    buffer: Bytes, records: Table, messages: Table, versions: int, steps: Table, first: int
) -> int:
    """The first record row from ``first`` on that is not plainly sound, -1 for none.

    A row of ``messages`` has the programs of a record type: of its key, then of its value in each of so many
    ``versions``, -1 for none.
    """
    source = bytes_at(buffer)
    for row in range(first, len(records)):
        at = records[row, R_KEY_START]
        end = at + records[row, R_KEY_LENGTH]
        if end - at < 2:
            return row
        kind = read_i16(source, at)
        if not 0 <= kind < len(messages) or messages[kind, 0] < 0:
            return row
        if _walk(source, at + 2, end, steps, messages[kind, 0]) != end:
            return row
        if records[row, R_VALUE_LENGTH] < 0:
            continue
        at = records[row, R_VALUE_START]
        end = at + records[row, R_VALUE_LENGTH]
        if end - at < 2:
            return row
        version = read_i16(source, at) + 1
        if not 1 <= version <= versions or messages[kind, version] < 0:
            return row
        if _walk(source, at + 2, end, steps, messages[kind, version]) != end:
            return row
    return -1


def find_odd_framed_record(
    buffer: Bytes, records: Table, messages: Table, versions: int, steps: Table, first: int
) -> int:
    """As the other one, for records without a key whose value begins with a frame version of 1, a type and a version.

    The first column of ``messages`` is not used.
    """
    source = bytes_at(buffer)
    for row in range(first, len(records)):
        if records[row, R_KEY_LENGTH] >= 0 or records[row, R_VALUE_LENGTH] < 0:
            return row
        at = records[row, R_VALUE_START]
        end = at + records[row, R_VALUE_LENGTH]
        frame, at = read_unsigned(source, at, end)
        if at < 0 or frame != 1:
            return row
        kind, at = read_unsigned(source, at, end)
        if at < 0 or kind >= len(messages):
            return row
        version, at = read_unsigned(source, at, end)
        if at < 0 or version >= versions or messages[kind, version + 1] < 0:
            return row
        if _walk(source, at, end, steps, messages[kind, version + 1]) != end:
            return row
    return -1


def _walk(source: Bytes, at: int, end: int, steps: Table, number: int) -> int:
    """The index after a message of the program that begins with this step, -1 if it is not plainly sound."""
    while True:
        step = steps[number, 0]
        first = steps[number, 1]
        second = steps[number, 2]
        number += 1
        if step == _END:
            return at
        if step == _SKIP:
            if first > end - at:
                return _NOT_SOUND
            at += first
        elif step == _SMALL:
            if first > end - at:
                return _NOT_SOUND
            length = source[at] if first == 1 else read_i16(source, at)
            if length < 0 or length > second:
                return _NOT_SOUND
            at += first
        elif step == _NULLABLE:
            if end - at < 1:
                return _NOT_SOUND
            at += 1
            if source[at - 1] < 0x80:
                at = _walk(source, at, end, steps, second)
        elif step == _NULLABLE_TAGGED:
            length, at = read_unsigned(source, at, end)
            if at >= 0 and length > 0:
                at = _walk(source, at, end, steps, second)
        elif step == _STRUCT:
            at = _walk(source, at, end, steps, second)
        elif step == _TAGS:
            at = _walk_tags(source, at, end, steps, number, first)
            number += first
        else:
            length, at = _read_size(source, at, end, step)
            if at < 0 or length < (-1 if first else 0) or length > end - at:
                return _NOT_SOUND
            if step == _ARRAY or step == _COMPACT_ARRAY:  # noqa: SIM109
                while length > 0 and at >= 0:
                    at = _walk(source, at, end, steps, second)
                    length -= 1
            elif (step == _STRING or step == _COMPACT_STRING) and length > _MOST_TEXT_BYTES:  # noqa: SIM109
                return _NOT_SOUND
            elif length > 0:
                at += length
        if at < 0:
            return _NOT_SOUND


def _walk_tags(source: Bytes, at: int, end: int, steps: Table, number: int, known: int) -> int:
    """The index after tagged fields, -1 if one is unknown, out of order, or not of its size."""
    last = -1
    count, at = read_unsigned(source, at, end)
    while at >= 0 and count > 0:
        tag, at = read_unsigned(source, at, end)
        if at < 0 or tag <= last:
            return _NOT_SOUND
        last = tag
        size, at = read_unsigned(source, at, end)
        if at < 0 or size > end - at:
            return _NOT_SOUND
        row = 0
        while row < known and steps[number + row, 1] != tag:
            row += 1
        if row == known or _walk(source, at, end, steps, steps[number + row, 2]) != at + size:
            return _NOT_SOUND
        at += size
        count -= 1
    return at


def _read_size(source: Bytes, at: int, end: int, step: int) -> tuple[int, int]:
    """The length or count of a string, bytes or an array, -1 for null, and the index after it, -1 if cut off."""
    if step == _STRING:
        if end - at < 2:
            return 0, _NOT_SOUND
        return read_i16(source, at), at + 2
    if step == _BYTES or step == _ARRAY:  # noqa: SIM109
        if end - at < 4:
            return 0, _NOT_SOUND
        return read_i32(source, at), at + 4
    length, at = read_unsigned(source, at, end)
    return length - 1, at
