"""Writes healthy but odd logs to a broker: ``python odd_logs.py BOOTSTRAP``. Prints the steps that failed."""

from __future__ import annotations

import socket
import struct
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

BOOTSTRAP = sys.argv[1]
ADMIN = AdminClient({"bootstrap.servers": BOOTSTRAP})
OPEN = []  # producers whose transactions stay open until the end
LONG = {"transaction_timeout_ms": 900_000}


def topic(name, partitions=1, **config):
    options = {key.replace("_", "."): str(value) for key, value in config.items()}
    ADMIN.create_topics([NewTopic(name, partitions, 1, config=options)])[name].result()
    time.sleep(0.3)


def alter(name, **config):
    entries = [
        ConfigEntry(key.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for key, value in config.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=entries)
    ADMIN.incremental_alter_configs([resource])[resource].result()
    time.sleep(0.4)


def producer(**config):
    options = {key.replace("_", "."): value for key, value in config.items()}
    return Producer({"bootstrap.servers": BOOTSTRAP, "linger.ms": 2, **options})


def send(through, name, count, key=lambda i: b"k%d" % i, value=lambda i: b"v%d" % i * 5, **options):
    for number in range(count):
        through.produce(name, key=key(number), value=value(number), **options)
    through.flush(20)


def begin(**config):
    """A transactional producer with a transaction."""
    found = producer(**config)
    found.init_transactions(20)
    found.begin_transaction()
    return found


def delete_up_to(name, offset):
    ADMIN.delete_records([TopicPartition(name, 0, offset)])[TopicPartition(name, 0)].result()


# -- batches that no client library writes ---------------------------------------------------------------------

_CRC_TABLE = []
for _value in range(256):
    for _ in range(8):
        _value = (_value >> 1) ^ 0x82F63B78 if _value & 1 else _value >> 1
    _CRC_TABLE.append(_value)


def crc32c(data):
    crc = 0xFFFFFFFF
    for each in data:
        crc = _CRC_TABLE[(crc ^ each) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def varint(number):
    number = (number << 1) ^ (number >> 63)
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def raw_batch(count, producer_id, epoch, sequence, timestamp):
    records = b""
    for number in range(count):
        body = b"\0" + varint(number) + varint(number) + varint(2) + b"k%d" % (number % 10) + varint(3) + b"vvv\0"
        records += varint(len(body)) + body
    last = timestamp + count - 1
    tail = struct.pack(">hiqqqhii", 0, count - 1, timestamp, last, producer_id, epoch, sequence, count) + records
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc32c(tail)) + tail


def produce_raw(name, batch):
    """One Produce request of version 8 with one batch. Raises an error where the broker refuses it."""
    host, port = BOOTSTRAP.split(":")
    body = struct.pack(">hhihhhi", 0, 8, 1, -1, -1, -1, 10_000)
    body += struct.pack(">ih", 1, len(name)) + name.encode() + struct.pack(">iii", 1, 0, len(batch)) + batch
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(body)) + body)
        answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    (code,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(name) + 4 + 4)
    if code:
        raise RuntimeError(f"the broker refused a batch for {name}: error {code}")


# -- the steps -------------------------------------------------------------------------------------------------


def sequences():
    """Sequences that pass 2^31 - 1 within a batch and between two, the largest epochs, producers without an id."""
    now = int(time.time() * 1000)
    topic("seqwrap")
    for count, sequence in ((20, 2147483637), (5, 9), (3, 14)):
        produce_raw("seqwrap", raw_batch(count, 900001, 0, sequence, now))
    topic("seqexact")
    for count, epoch, sequence in ((8, 0, 2147483640), (4, 0, 0), (4, 1, 0), (1, 32766, 0), (1, 32767, 0)):
        produce_raw("seqexact", raw_batch(count, 900002, epoch, sequence, now))
    topic("noid")
    for epoch, sequence, timestamp in ((0, 0, now), (-1, -1, now), (5, 7, now), (-1, -1, 0), (-1, -1, -1)):
        produce_raw("noid", raw_batch(3, -1, epoch, sequence, timestamp))
    topic("oddtimes", message_timestamp_before_max_ms=2**63 - 1, message_timestamp_after_max_ms=2**63 - 1)
    for timestamp in (2**62, 5, now):
        produce_raw("oddtimes", raw_batch(2, -1, -1, -1, timestamp))


def timed_out():
    topic("txtimeout")
    late = begin(transactional_id="tt", transaction_timeout_ms=2000)
    send(late, "txtimeout", 30)
    late.commit_transaction(20)
    late.begin_transaction()
    send(late, "txtimeout", 30)
    time.sleep(5)
    send(producer(), "txtimeout", 10)
    again = begin(transactional_id="tt")
    send(again, "txtimeout", 7)
    again.commit_transaction(20)


def fenced():
    topic("txfence", 2)
    for _ in range(3):
        last = begin(transactional_id="ff")
        send(last, "txfence", 20)
    last.abort_transaction(20)
    for _ in range(6):
        last = producer(transactional_id="ff")
        last.init_transactions(20)
    last.begin_transaction()
    send(last, "txfence", 1, partition=1)
    last.commit_transaction(20)


def deleted_heads():
    """DeleteRecords in the midst of a transaction that is aborted later, and of all records."""
    topic("delmid", segment_ms=1000)
    plain = producer(enable_idempotence=True)
    send(plain, "delmid", 50)
    time.sleep(1.1)
    aborted = begin(transactional_id="dm", **LONG)
    send(aborted, "delmid", 30)
    time.sleep(1.1)
    send(plain, "delmid", 20)
    send(aborted, "delmid", 10)
    delete_up_to("delmid", 65)
    send(plain, "delmid", 5)
    time.sleep(1.1)
    aborted.abort_transaction(20)
    OPEN.append(begin(transactional_id="dm2", **LONG))
    send(OPEN[-1], "delmid", 10)
    send(plain, "delmid", 3)
    for name, more in (("delall", 0), ("delall2", 2)):
        topic(name)
        send(plain, name, 30)
        delete_up_to(name, 30)
        send(plain, name, more)


def retained():
    topic("retain", retention_ms=1, segment_ms=1000, file_delete_delay_ms=500)
    plain = producer(enable_idempotence=True)
    for _ in range(4):
        send(plain, "retain", 20)
        time.sleep(1.3)
    topic("retbytes", retention_bytes=100, segment_bytes=1048576, segment_ms=1000)
    send(plain, "retbytes", 50)
    time.sleep(1.2)
    send(plain, "retbytes", 5)


def converted():
    """Both kinds of timestamps in turn, and codecs that the broker changes."""
    topic("stamps")
    zstd = producer(compression_type="zstd")
    for kind in ("CreateTime", "LogAppendTime", "CreateTime"):
        alter("stamps", message_timestamp_type=kind)
        send(zstd, "stamps", 40, timestamp=1000)
    for codec in ("gzip", "snappy", "lz4", "zstd", "uncompressed", "producer"):
        alter("stamps", compression_type=codec)
        send(producer(compression_type="lz4"), "stamps", 40)
        send(producer(), "stamps", 9)


def shapes():
    """Records without key, value or headers, and large ones."""
    topic("shapes", max_message_bytes=20_000_000)
    plain = producer(message_max_bytes=20_000_000, compression_type="none")
    plain.produce("shapes", None, None)
    plain.produce("shapes", b"", b"", headers=[("", None), ("", b"")])
    plain.produce("shapes", b"x" * 9_000_000, None)
    plain.produce("shapes", None, key=b"a" * 1_000_000)
    plain.flush(30)
    for _ in range(300):
        plain.produce("shapes", None, headers=[("h", b"")] * 50)
    plain.flush(30)
    send(
        producer(compression_type="zstd", message_max_bytes=20_000_000), "shapes", 1, value=lambda _: bytes(12_000_000)
    )


def switched():
    """A compacted topic that is no longer compacted, and then has records without keys."""
    topic("switched", cleanup_policy="compact", min_cleanable_dirty_ratio=0.01, segment_ms=1000,
          max_compaction_lag_ms=1000)  # fmt: skip
    plain = producer(enable_idempotence=True)
    for _ in range(3):
        send(plain, "switched", 100, key=lambda i: b"s%d" % (i % 7))
        time.sleep(1.3)
    time.sleep(5)
    alter("switched", cleanup_policy="delete")
    for _ in range(2):
        send(plain, "switched", 20, key=lambda _: None)
        time.sleep(1.2)


def compacted_transactions():
    """Tombstones, control batches and empty batches that the cleaner keeps or removes."""
    topic("txcompact", cleanup_policy="compact", min_cleanable_dirty_ratio=0.01, delete_retention_ms=0,
          segment_ms=1500, max_compaction_lag_ms=1000)  # fmt: skip
    for _ in range(4):
        for number in range(4):
            each = begin(transactional_id=f"tc{number}")
            send(each, "txcompact", 15, key=lambda i: b"same%d" % (i % 3), value=lambda i: b"x" * 30 if i % 4 else None)
            each.abort_transaction(20) if number % 2 else each.commit_transaction(20)
        send(producer(enable_idempotence=True), "txcompact", 5, key=lambda i: b"same%d" % i)
        time.sleep(2)
    time.sleep(6)


def groups():
    for name in ("g1", "weird group \u00e9"):
        consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": name, "auto.offset.reset": "earliest",
                             "enable.auto.commit": False})  # fmt: skip
        consumer.subscribe(["stamps", "shapes"])
        consumer.consume(20, 8)
        consumer.commit(asynchronous=False)
        consumer.close()


def main():
    failed = 0
    for step in (sequences, timed_out, fenced, deleted_heads, retained, converted, shapes, switched,
                 compacted_transactions, groups):  # fmt: skip
        try:
            step()
        except Exception as error:
            print(f"{step.__name__}: {error!r}", flush=True)
            failed += 1
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
