"""What happens to logs: each scenario fills topics on a cluster and does something to it."""

from __future__ import annotations

import random
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.field.cluster import Layout
from tests.field.java_programs import run_java_program, tiered_storage_jars
from tests.field.migration import Migration
from tests.field.trial import Ending, Field, Scenario
from tests.field.workbench import BenchError

#: Small segments by the times of records: releases from 4.0 on take none below 1 MiB by size.
SMALL = {"segment.ms": "60000", "index.interval.bytes": "512"}
COMPACTED = {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
NOT_CLEANED = {"min.compaction.lag.ms": str(2**62)}
ONE, THREE = Layout(), Layout(nodes=3)
EXPIRING = {"producer.id.expiration.ms": "2000", "producer.id.expiration.check.interval.ms": "500"}
_REMOTE = "org.apache.kafka.server.log.remote"
_CODECS = ("none", "gzip", "snappy", "lz4")


def clients(field: Field) -> None:
    """Every client writes in every way that it knows."""
    field.write_with_clients(SMALL)


def client_replicas(field: Field) -> None:
    """The same with three replicas; one follower is away for a while, another fetches everything again."""
    field.write_with_clients(SMALL, replicas=[1, 2, 3])
    _fetch_anew(field, 3, list(field.topics))


def _fetch_anew(field: Field, node: int, topics: list[str]) -> None:
    field.cluster.stop(node)
    for topic in topics:
        for order in range(len(field.cluster.node(node).log_dirs)):
            shutil.rmtree(field.log_dir(node, order) / f"{topic}-0", ignore_errors=True)
    field.cluster.start(node)
    for topic in topics:
        field.until_in_sync(topic, len(field.cluster.nodes))


def _transactions(field: Field, topic: str, count: int, seed: int) -> None:
    """Transactions of several producers that commit, abort and overlap."""
    rng = random.Random(seed)
    for number in range(count):
        producer = f"t{rng.randrange(3)}"
        ending = rng.choice(("commit", "commit", "abort"))
        field.send(topic, rng.randint(1, 25), producer=producer, transaction="open", seed=number)
        if rng.random() < 0.4:
            field.send(topic, rng.randint(1, 12), producer=f"t{3 + rng.randrange(2)}", transaction=ending, seed=number)
        field.send(topic, rng.randint(1, 9), producer=producer, transaction=ending, resumed=True, seed=number)
        if rng.random() < 0.3:
            field.send(topic, rng.randint(1, 9), codec=rng.choice(_CODECS), seed=number)


def transactions(field: Field) -> None:
    """Transactions that commit, abort, overlap, are fenced, and one that stays open."""
    topic = field.topic("payments", SMALL)
    _transactions(field, topic, 14, 1)
    field.send(topic, 5, producer="fenced", transaction="open")
    field.send(topic, 5, producer="fenced", codec="gzip", transaction="commit")  # the same id: the first is fenced
    field.send(topic, 5, producer="hangs", transaction="open")
    field.send(topic, 20)


def head_deletion(field: Field) -> None:
    """The head goes by time, by size and by request, amid transactions."""
    for name in ("by-time", "by-size", "by-request"):
        topic = field.topic(name, {**SMALL, "file.delete.delay.ms": "1000"})
        field.send(topic, 30, producer=f"early-{name}", transaction="open")
        began = field.base
        _transactions(field, topic, 8, len(name))
        middle = field.send(topic, 10, producer=f"long-{name}", transaction="open")
        cut = field.base
        field.send(topic, 130)
        if name == "by-time":
            field.configure(topic, {"retention.ms": str(int(time.time() * 1000) - (began + cut) // 2)})
        elif name == "by-size":
            field.configure(topic, {"retention.bytes": "9000"})
        else:
            field.bench("delete_records", topic, before=middle - 4)
        field.until_head_gone(topic)
        field.until_quiet(topic)
        field.configure(topic, {"retention.bytes": "-1", "retention.ms": "-1"})
        with suppress(BenchError):  # older releases forget producers whose records are gone
            field.send(topic, 10, producer=f"long-{name}", transaction="commit", resumed=True)
            field.send(topic, 10, producer=f"early-{name}", transaction="abort", resumed=True)
        field.send(topic, 70)


def compaction(field: Field) -> None:
    """Compaction with tombstones, transactions and codecs; batches of one record; more after it."""
    for name, words in (("plain", {}), ("single", {"each": True}), ("transactional", {"transaction": "commit"})):
        topic = field.topic(f"compacted-{name}", COMPACTED)
        for number in range(6):
            count = 30 if "each" in words else 120
            codec = _CODECS[number % 4]
            field.send(topic, count, keys=25, tombstones=0.2, codec=codec, seed=number, **words)
            if "transaction" in words and number % 2:
                field.send(topic, 20, keys=25, transaction="abort", codec=codec)
        field.until_quiet(topic, 5)
        field.configure(topic, NOT_CLEANED)
        field.send(topic, 40, keys=25, seed=99)


def compact_and_delete(field: Field) -> None:
    """A compacted topic that is switched to delete and back, cleaned each time it is compacted."""
    topic = field.topic("switched", COMPACTED)
    field.send(topic, 400, keys=40, tombstones=0.1)
    field.until_quiet(topic, 4)
    field.configure(topic, {"cleanup.policy": "delete", "retention.ms": "-1"})
    field.send(topic, 200, keys=40)
    field.configure(topic, {"cleanup.policy": "compact"})
    field.send(topic, 200, keys=40, tombstones=0.1, seed=2)
    field.until_quiet(topic, 4)
    field.configure(topic, {"cleanup.policy": "delete", "retention.ms": "-1"})
    field.send(topic, 100, keys=40)
    both = field.topic("both", {**COMPACTED, "cleanup.policy": "compact,delete", "retention.ms": "-1"})
    field.send(both, 400, keys=40, tombstones=0.1)
    field.until_quiet(both, 4)
    start = field.bench("ends", both)["end"]
    field.bench("delete_records", both, before=start - 150)
    field.until_quiet(both, 2)
    field.configure(both, NOT_CLEANED)


def replicas(field: Field) -> None:
    """Followers, reassigned and re-fetched replicas of transactional, compacted and trimmed topics."""
    topics = []
    for name, configs in (
        ("plain", SMALL),
        ("compacted", COMPACTED),
        ("trimmed", {**SMALL, "file.delete.delay.ms": "1000"}),
    ):
        topic = field.topic(name, configs, replicas=[1, 2])
        topics.append(topic)
        words = {"keys": 30, "tombstones": 0.1} if name == "compacted" else {}
        field.send(topic, 200, **words)
        if name != "compacted":
            _transactions(field, topic, 8, 5)
        else:
            for number in range(6):
                field.send(topic, 30, transaction=("commit", "abort")[number % 2], producer="c", **words)
            field.until_quiet(topic, 4)
        if name == "trimmed":
            field.bench("delete_records", topic, before=230)
        field.bench("reassign", topic, replicas=[1, 3])
        field.send(topic, 60, **words)
    field.cluster.stop(3)
    for topic in topics:
        field.send(topic, 90, keys=30)
    field.cluster.start(3)
    for topic in topics:
        field.until_in_sync(topic, 2)
    for topic in topics:
        field.send(topic, 30, keys=30)
    _fetch_anew_two(field, 3, topics)
    for topic in topics:
        field.send(topic, 30, keys=30)
        field.bench("reassign", topic, replicas=[3, 2])
    field.configure("compacted", NOT_CLEANED)
    field.loose.add("compacted-0")


def _fetch_anew_two(field: Field, node: int, topics: list[str]) -> None:
    field.cluster.stop(node)
    for topic in topics:
        shutil.rmtree(field.log_dir(node) / f"{topic}-0", ignore_errors=True)
    field.cluster.start(node)
    for topic in topics:
        field.until_in_sync(topic, 2)


def jbod(field: Field) -> None:
    """Replicas that are moved between two log directories of a node, while they are written to."""
    for name, configs in (("plain", SMALL), ("compacted", COMPACTED)):
        topic = field.topic(f"moved-{name}", configs)
        field.send(topic, 300, keys=30, tombstones=0.1)
        _transactions(field, topic, 6, 3) if name == "plain" else field.until_quiet(topic, 4)
        here = next(order for order in (0, 1) if (field.log_dir(1, order) / f"{topic}-0").is_dir())
        for target in (1 - here, here, 1 - here):
            field.bench("move", topic, broker=1, dir=str(field.log_dir(1, target)))
            field.send(topic, 40, keys=30)
        field.configure(topic, NOT_CLEANED)


def unclean_election(field: Field) -> None:
    """A leader that nobody followed dies, another with less is elected, and the first comes back."""
    topic = field.topic("ledger", {**SMALL, "unclean.leader.election.enable": "true"}, replicas=[1, 2])
    field.send(topic, 150, acks="all")
    _transactions(field, topic, 4, 2)
    field.until_in_sync(topic, 2)
    field.cluster.pause(2)
    field.send(topic, 90, acks="1", producer="lost")
    time.sleep(8)  # out of the set of replicas in sync
    field.send(topic, 30, acks="1", producer="lost")
    field.cluster.kill(1)
    field.cluster.resume(2)
    for attempt in range(60):
        if field.bench("leader", topic)["leader"] == 2:
            break
        if attempt % 10 == 9:  # KRaft of 3.6 elects none by itself
            with suppress(BenchError):
                field.bench("elect", topic, unclean=True)
        time.sleep(1)
    field.send(topic, 200, acks="1", producer="after")
    field.cluster.start(1)
    field.until_in_sync(topic, 2)
    field.send(topic, 50, acks="all", producer="end")


def preallocated(field: Field) -> None:
    """Preallocated segments and a clean stop."""
    topic = field.topic("preallocated", {**SMALL, "preallocate": "true", "segment.bytes": "1048576"})
    field.send(topic, 250)
    _transactions(field, topic, 4, 8)


def preallocated_killed(field: Field) -> None:
    """Preallocated segments and a crash."""
    preallocated(field)
    field.ending = Ending.KILL


def append_time(field: Field) -> None:
    """LogAppendTime that is switched on and off midway, with codecs."""
    topic = field.topic("times", {"index.interval.bytes": "512", "segment.ms": "1500"})
    for kind in ("LogAppendTime", "CreateTime", "LogAppendTime"):
        for codec in _CODECS:
            field.send(topic, 25, codec=codec)
            field.send(topic, 1, codec=codec)
        field.configure(topic, {"message.timestamp.type": kind})
        time.sleep(2)
    for codec in _CODECS:
        field.send(topic, 25, codec=codec)


def formats(field: Field) -> None:
    """The message format is switched midway, with transactions once there are any."""
    topic = field.topic(
        "formats", {"index.interval.bytes": "512", "segment.bytes": "20000", "message.format.version": "0.8.2"}
    )
    compacted = field.topic(
        "formats-compacted", {**COMPACTED, "segment.bytes": "20000", "message.format.version": "0.8.2"}
    )
    for number, version in enumerate(("0.8.2", "0.10.0", "0.11.0", "0.10.0", "0.11.0")):
        if field.cluster.numbers < [int(each) for each in version.split(".")]:
            continue
        for each in (topic, compacted):
            field.configure(each, {"message.format.version": version})
            for codec in _CODECS:
                field.send(each, 60, codec=codec, keys=30, seed=number)
                field.send(each, 1, codec=codec, keys=30)
    field.until_quiet(compacted, 4)
    field.configure(compacted, NOT_CLEANED)


def expired_producers(field: Field) -> None:
    """Producers whose state expires, and which come back; a segment is rolled between."""
    topic = field.topic("expired", SMALL)
    for number in range(4):
        field.send(topic, 20, producer="i", idempotent=True, seed=number)
        field.send(topic, 10, producer="t", transaction=("commit", "abort")[number % 2])
        time.sleep(4)  # expired
        if number % 2:
            field.send(topic, 130)
    field.send(topic, 20, producer="i", idempotent=True)


def killed(field: Field) -> None:
    """kill -9 at random moments while producers write, three times over."""
    rng = random.Random(field.cluster.version)
    topic = field.topic("busy", SMALL)
    compacted = field.topic("busy-compacted", COMPACTED)
    for number in range(3):
        base = field.base

        def write(number: int = number, base: int = base) -> None:
            with suppress(BenchError):
                for turn in range(200):
                    words = {"start": base + turn * 40_000, "step": 1000, "lossy": True, "seed": turn}
                    field.bench("send", topic, count=30, producer=f"a{number}", idempotent=True, **words)
                    field.bench("send", compacted, count=30, keys=20, tombstones=0.1, producer=f"b{number}", **words)
                    if field.has_transactions:
                        ending = ("commit", "abort")[turn % 2]
                        field.bench("send", topic, count=10, producer=f"t{number}", transaction=ending, **words)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        time.sleep(rng.uniform(2, 7))
        field.cluster.kill()
        field.base = base + 200 * 40_000
        if number < 2:
            field.fresh_bench(writer)
            field.cluster.start()
    field.cluster.settings["log.cleaner.enable"] = "false"  # the cleaner would work before clients look
    field.ending = Ending.KILL


def tiered(field: Field) -> None:
    """Tiered storage with a local part: the head is remote only."""
    remote = {"remote.storage.enable": "true", "local.retention.ms": "1000", "retention.ms": "-1"}
    for name in ("tiered", "tiered-transactional"):
        topic = field.topic(name, {**SMALL, **remote})
        field.send(topic, 300)
        if name != "tiered":
            _transactions(field, topic, 5, 4)
        field.until_quiet(topic, 8)
        field.configure(topic, {"local.retention.ms": "-2"})
        field.send(topic, 100)


def tiered_settings(work: Path) -> dict[str, str]:
    """The settings of a broker with LocalTieredStorage below a directory."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": f"{_REMOTE}.storage.LocalTieredStorage",
        "remote.log.metadata.manager.class.name": f"{_REMOTE}.metadata.storage.TopicBasedRemoteLogMetadataManager",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "rsm.config.dir": str(work / "remote"),
        "remote.log.manager.task.interval.ms": "500",
        "log.retention.check.interval.ms": "1000",
    }


def dynamic_voters(field: Field) -> None:
    """Controllers that join and leave the quorum (KIP-853)."""
    topic = field.topic("voted", SMALL)
    field.send(topic, 50)
    for number in (2, 3):
        node = field.cluster.node(number)
        field.bench("voter", id=number, directory=field.directory_id(number), port=node.controller_port)
        field.send(topic, 30)
    for number in range(12):
        field.topic(f"more-{number}", SMALL)
    field.bench("voter", id=3, directory=field.directory_id(3), remove=True)
    field.send(topic, 50)


def groups(field: Field) -> None:
    """Classic and new consumer groups whose offsets are compacted."""
    topic = field.topic("read", SMALL)
    field.send(topic, 300)
    field.bench("commit", topic, group="classic", polls=6)
    if field.cluster.numbers >= [4, 0]:
        field.bench("commit", topic, group="consumer", protocol="consumer", polls=12)
    field.send(topic, 100)
    field.bench("commit", topic, group="classic", polls=6)


def share_groups(field: Field) -> None:
    """Share groups: records acknowledged, released and rejected."""
    topic = field.topic("shared", SMALL)
    field.send(topic, 300)
    field.notes["java bench"] = run_java_program(field.cluster, "ShareGroup", field.cluster.bootstrap, topic)
    field.send(topic, 60)


def streams(field: Field) -> None:
    """A Streams application, exactly once, with a changelog and a repartition topic."""
    topic = field.topic("streams-input", SMALL)
    field.topic("streams-output", SMALL)
    field.send(topic, 400, keys=30)
    field.notes["java bench"] = run_java_program(
        field.cluster, "CountingStream", field.cluster.bootstrap, str(field.cluster.work)
    )
    for name in field.bench("list", pattern="field-stream-.*"):
        field.topics[name] = "java bench"
        field.configure(name, NOT_CLEANED)


def migrating(field: Field) -> None:
    """A cluster on its way from ZooKeeper to KRaft: its metadata is in both."""
    _fill_and_migrate(field)


def migrated(field: Field) -> None:
    """A cluster that has left ZooKeeper behind."""
    migration = _fill_and_migrate(field)
    migration.finish()
    field.send("kept", 70)
    field.topic("created-after", SMALL)
    field.send("created-after", 70)


def _fill_and_migrate(field: Field) -> Migration:
    topic = field.topic("kept", SMALL)
    field.send(topic, 150)
    _transactions(field, topic, 6, 7)
    compacted = field.topic("kept-compacted", COMPACTED)
    field.send(compacted, 200, keys=30, tombstones=0.1)
    field.until_quiet(compacted, 4)
    field.configure(compacted, NOT_CLEANED)
    migration = Migration(field.cluster)
    migration.begin()
    _transactions(field, topic, 4, 8)
    field.topic("created-meanwhile", SMALL)
    field.send("created-meanwhile", 90)
    return migration


SCENARIOS = [
    Scenario("clients", clients, ONE),
    Scenario("groups", groups, ONE, since=(0, 11)),
    Scenario("transactions", transactions, ONE, since=(0, 11)),
    Scenario("head deletion", head_deletion, ONE, since=(0, 11)),
    Scenario("compaction", compaction, ONE, since=(0, 11)),
    Scenario("compact and delete", compact_and_delete, ONE, since=(0, 11)),
    Scenario("LogAppendTime", append_time, ONE, since=(0, 10)),
    Scenario("formats", formats, ONE, since=(0, 10), until=(2, 8), modes=("ZooKeeper",)),
    Scenario("preallocated", preallocated, ONE, since=(0, 11)),
    Scenario("streams", streams, ONE, since=(2, 8)),
    Scenario("share groups", share_groups, ONE, since=(4, 1), modes=("KRaft",)),
    Scenario(
        "preallocated, killed", preallocated_killed, since=(0, 11), is_alone=True,
        shared={"tail-zeros": "a broker cuts the zeros off when it starts"},
    ),
    Scenario("kill -9", killed, since=(0, 11), is_alone=True),
    Scenario("expired producers", expired_producers, Layout(settings=EXPIRING), since=(3, 5)),
    Scenario("jbod moves", jbod, Layout(dirs=2), since=(3, 9)),
    Scenario("jbod moves", jbod, Layout(dirs=2), since=(1, 1), until=(2, 8), modes=("ZooKeeper",)),
    Scenario(
        "tiered storage", tiered, Layout(extra_jars=tiered_storage_jars, settings_of=tiered_settings), since=(3, 9),
    ),
    Scenario("dynamic voters", dynamic_voters, Layout(nodes=3, dynamic_voters=True), since=(3, 9), modes=("KRaft",)),
    Scenario("migrating to KRaft", migrating, since=(3, 6), until=(3, 9), modes=("ZooKeeper",), is_alone=True),
    Scenario("migrated to KRaft", migrated, since=(3, 6), until=(3, 9), modes=("ZooKeeper",), is_alone=True),
    Scenario("replicas", replicas, THREE, since=(2, 4)),
    Scenario("clients, three replicas", client_replicas, THREE, since=(0, 11)),
    Scenario("unclean election", unclean_election, THREE, since=(2, 4)),
]  # fmt: skip
