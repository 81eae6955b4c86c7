# The numbers of tables.py as C constants.
cdef enum:
    B_POSITION = 0
    B_SIZE = 1
    B_MAGIC = 2
    B_BASE_OFFSET = 3
    B_LAST_DELTA = 4
    B_COUNT = 5
    B_ATTRIBUTES = 6
    B_CRC = 7
    B_EPOCH = 8
    B_BASE_TIMESTAMP = 9
    B_MAX_TIMESTAMP = 10
    B_PRODUCER_ID = 11
    B_PRODUCER_EPOCH = 12
    B_BASE_SEQUENCE = 13

    R_BATCH = 0
    R_OFFSET = 1
    R_TIMESTAMP = 2
    R_ATTRIBUTES = 3
    R_START = 4
    R_SIZE = 5
    R_KEY_START = 6
    R_KEY_LENGTH = 7
    R_VALUE_START = 8
    R_VALUE_LENGTH = 9
    R_HEADERS_START = 10
    R_HEADER_COUNT = 11

    S_BATCH = 0
    S_START = 1
    S_END = 2
    S_COUNT = 3
    S_BASE_OFFSET = 4
    S_BASE_TIMESTAMP = 5
    S_APPEND_TIMESTAMP = 6
    S_IS_APPEND_TIME = 7

    G_ERROR = 0
    G_TYPE = 1
    G_GROUP_START = 2
    G_GROUP_LENGTH = 3
    G_NAME_START = 4
    G_NAME_LENGTH = 5
    G_PARTITION = 6
    G_NUMBER = 7
    G_DETAIL = 8
    G_TIMESTAMP = 9
    G_EXPIRE = 10
    G_TEXT_START = 11
    G_TEXT_LENGTH = 12
