"""What a consumer sees of a broker of 0.8, which newer Java clients do not speak to: kafka-python does."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.field.clients import cache_folder
from tests.field.cluster import FieldCluster
from tests.field.judge import Seen

_PROGRAM = """
import base64, json, sys
from kafka import KafkaConsumer, TopicPartition
def text(content):
    return None if content is None else base64.b64encode(content).decode()
consumer = KafkaConsumer(bootstrap_servers=sys.argv[1], api_version=(0, 8, 2), enable_auto_commit=False, group_id=None)
for topic in sys.argv[2:]:
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    start, end = consumer.beginning_offsets([place])[place], consumer.end_offsets([place])[place]
    records = []
    consumer.seek(place, start)
    while consumer.position(place) < end:
        for each in consumer.poll(500).get(place, []):
            records.append({"offset": each.offset, "timestamp": -1, "timestamp_type": "NoTimestampType",
                "leader_epoch": -1, "key": text(each.key), "value": text(each.value), "headers": []})
    print(json.dumps({"place": topic + "-0", "start": start, "end": end, "records": records}))
"""


def old_witness(cluster: FieldCluster, topics: list[str]) -> Seen:
    """Every record of the topics; a broker of 0.8 knows no other question."""
    command = [str(cache_folder() / "py" / "bin" / "python"), "-c", _PROGRAM, cluster.bootstrap, *topics]
    done = subprocess.run(command, capture_output=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    seen = Seen({})
    for line in done.stdout.decode().splitlines():
        found: dict[str, Any] = json.loads(line)
        place = found.pop("place")
        seen.records[place] = found.pop("records")
        seen.places[place] = {**found, "leader": -1}
    return seen
