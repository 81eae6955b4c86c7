"""Write with kafka-python: with_kafka_python.py BOOTSTRAP TOPIC VERSION plain|all."""

import json
import sys
import time

from kafka import KafkaProducer

address, topic, version, mode = sys.argv[1:5]
numbers = tuple(int(each) for each in version.split("."))
base = int(time.time() * 1000) - 86_400_000
sent, ways = 0, []


def send(producer, count):
    global sent
    futures = []
    for number in range(count):
        words = {}
        if mode == "all" and number % 3 == 0:
            words["headers"] = [("source", b"python"), ("empty", b"")]
        futures.append(
            producer.send(
                topic,
                partition=0,
                key=None if number % 4 == 3 else f"key-{number}".encode(),
                value=None if number % 10 == 8 else bytes([97 + number % 26]) * (number * 37 % 900),
                timestamp_ms=base + (sent + number) * 1000,
                **words,
            )
        )
    producer.flush(30)
    for future in futures:
        future.get(30)
    sent += count


codecs = [None, "gzip", "snappy", "lz4"] + (["zstd"] if numbers >= (2, 1) else [])
for codec in codecs:
    for idempotent in (False,) if mode == "plain" else (False, True):
        settings = {"bootstrap_servers": address, "compression_type": codec, "linger_ms": 20, "acks": "all"}
        if numbers < (0, 10):
            settings["api_version"] = numbers[:3]
        producer = KafkaProducer(**settings, enable_idempotence=idempotent)
        send(producer, 1)
        send(producer, 60)
        producer.close(10)
        ways.append((codec or "none") + (" idempotent" if idempotent else ""))
if mode == "all":
    producer = KafkaProducer(bootstrap_servers=address, transactional_id=f"kafka-python-{topic}")
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        send(producer, 7)
        if number % 3 == 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close(10)
    ways.append("transactions")
print(json.dumps({"sent": sent, "ways": ways}))
