"""Write with librdkafka (confluent-kafka): with_confluent.py BOOTSTRAP TOPIC VERSION plain|all."""

import json
import sys
import time

from confluent_kafka import Producer

address, topic, version, mode = sys.argv[1:5]
numbers = [int(each) for each in version.split(".")]
old = {"api.version.request": False, "broker.version.fallback": version} if numbers < [0, 10] else {}
base = int(time.time() * 1000) - 86_400_000
sent, ways = 0, []


def send(producer, count):
    global sent
    failed = []
    for number in range(count):
        words = {}
        if mode == "all" and number % 3 == 0:
            words["headers"] = [("source", b"python"), ("null", None), ("source", b"again")]
        producer.produce(
            topic,
            partition=0,
            key=None if number % 4 == 3 else f"key-{number}".encode(),
            value=None if number % 10 == 8 else bytes([97 + number % 26]) * (number * 37 % 900),
            timestamp=base + (sent + number) * 1000,
            on_delivery=lambda error, _: failed.append(error) if error else None,
            **words,
        )
    assert producer.flush(30) == 0, "not all were delivered"
    assert not failed, failed[0]
    sent += count


codecs = ["none", "gzip", "snappy", "lz4"] + (["zstd"] if numbers >= [2, 1] else [])
for codec in codecs:
    for idempotent in (False,) if mode == "plain" else (False, True):
        settings = {"bootstrap.servers": address, "compression.type": codec, "linger.ms": 20, **old}
        if idempotent:
            settings["enable.idempotence"] = True
        producer = Producer(settings)
        send(producer, 1)
        send(producer, 70)
        ways.append(codec + (" idempotent" if idempotent else ""))
if mode == "all":
    producer = Producer({"bootstrap.servers": address, "transactional.id": f"confluent-{topic}"})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        send(producer, 7)
        if number % 3 == 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    ways.append("transactions")
print(json.dumps({"sent": sent, "ways": ways}))
