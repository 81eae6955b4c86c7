"""Write with aiokafka: with_aiokafka.py BOOTSTRAP TOPIC VERSION plain|all."""

import asyncio
import json
import sys
import time

from aiokafka import AIOKafkaProducer

address, topic, version, mode = sys.argv[1:5]
numbers = tuple(int(each) for each in version.split("."))
base = int(time.time() * 1000) - 86_400_000
sent, ways = 0, []


async def send(producer, count):
    global sent
    futures = []
    for number in range(count):
        words = {}
        if mode == "all" and number % 3 == 0:
            words["headers"] = [("source", b"python"), ("empty", b"")]
        futures.append(
            await producer.send(
                topic,
                partition=0,
                key=None if number % 4 == 3 else f"key-{number}".encode(),
                value=None if number % 10 == 8 else bytes([97 + number % 26]) * (number * 37 % 900),
                timestamp_ms=base + (sent + number) * 1000,
                **words,
            )
        )
    for future in futures:
        await future
    sent += count


async def main():
    codecs = [None, "gzip", "snappy", "lz4"] + (["zstd"] if numbers >= (2, 1) else [])
    for codec in codecs:
        for idempotent in (False,) if mode == "plain" else (False, True):
            settings = {"bootstrap_servers": address, "compression_type": codec, "linger_ms": 20, "acks": "all"}
            producer = AIOKafkaProducer(**settings, enable_idempotence=idempotent)
            await producer.start()
            await send(producer, 1)
            await send(producer, 60)
            await producer.stop()
            ways.append((codec or "none") + (" idempotent" if idempotent else ""))
    if mode == "all":
        producer = AIOKafkaProducer(bootstrap_servers=address, transactional_id=f"aiokafka-{topic}")
        await producer.start()
        for number in range(6):
            await producer.begin_transaction()
            await send(producer, 7)
            if number % 3 == 2:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
        await producer.stop()
        ways.append("transactions")
    print(json.dumps({"sent": sent, "ways": ways}))


asyncio.run(main())
