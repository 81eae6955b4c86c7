"""The incidents of one node."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.oracle.incidents.cluster import ENDLESS, HOUR, Lab, Running, copied, keep, offsets_of, turn
from tests.oracle.incidents.incident import Incident, Truth
from tests.oracle.incidents.judging import Cause, Fact, fact, number, word
from tests.oracle.transaction_trials import produce

NODE = "node-1"
_OF_CUSTOMERS = (b"Mustermann", b"DE021203", b"Hildesheim")


def iso(milliseconds: int) -> str:
    """A time as options take it."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:23]


def now_ms() -> int:
    return int(time.time() * 1000)


def by_partition(records: list[list[int]]) -> dict[int, list[int]]:
    """The offsets of records by partition."""
    return {number: offsets_of(records, number) for number in sorted({each[0] for each in records})}


class Hanging(Incident):
    number, name = 2, "hanging transaction"
    question = "Consumers with read_committed of payments get nothing new. Who holds them back, and how do I end it?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        settings = {"transaction.partition.verification.enable": "false"}
        with lab.cluster(start=lab.shop(1), settings=settings) as cluster:
            return self._happen(cluster, folder)

    @staticmethod
    def _happen(cluster: Running, folder: Path) -> Truth:
        sale = {
            "do": "send",
            "topic": "payments",
            "partition": 1,
            "count": 20,
            "transaction": "commit",
            "value": '{"customer":"Erika Mustermann","n":%d}',
        }
        told = cluster.do(
            sale | {"transactional_id": "refunds-service"},
            {"do": "transactions"},
            {"do": "producers", "partition": "payments-1"},
        )
        (producer_id,) = [each for name, each in told[1] if name == "refunds-service"]
        ((_, epoch, _),) = [each for each in told[2] if each[0] == producer_id]
        produce(cluster.node(1).port, "payments", 1, "refunds-service", producer_id, epoch, 3 * HOUR)
        told = cluster.do(
            sale | {"transactional_id": "payments-service", "from": 500},
            {"do": "producers", "partition": "payments-1"},
            {"do": "consume", "partition": "payments-1", "isolation": "read_committed", "seconds": 5},
            {"do": "consume", "partition": "payments-1", "seconds": 5},
        )
        ((_, epoch, first),) = [each for each in told[1] if each[0] == producer_id]
        assert told[2]["end"] == first
        tool = "org.apache.kafka.tools.TransactionsCommand"
        words = ["--bootstrap-server", cluster.bootstrap, "find-hanging", "--topic", "payments"]
        hanging = [line for line in cluster.tool(tool, *words).splitlines() if line.startswith("payments")]
        assert len(hanging) == 1, hanging
        assert str(producer_id) in hanging[0]
        cluster.stop()
        keep(cluster, folder)
        return {
            "producer_id": producer_id,
            "epoch": epoch,
            "first": first,
            "end": told[3]["end"],
            "waiting": len([each for each in told[3]["offsets"] if each >= first]),
        }

    def command(self, truth: Truth) -> Sequence[str]:
        return ["txns", "--hanging", NODE]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("payments-1"),
            fact("producer", number(truth["producer_id"])),
            fact("first offset", number(truth["first"])),
            fact("refunds-service"),
            fact("how to end it", r"kafka-transactions\S* .*abort .*--start-offset " + str(truth["first"])),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"none (of them )?hangs?", r"no open transaction"]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause("hang|transaction|stable", word("payments-1"), (fact("first offset", number(truth["first"])),))


class Poison(Incident):
    number, name = 3, "poison record"
    question = "A consumer fails at one record of orders. Who wrote it, and what else did that producer write?"
    unseen = "a value that one application cannot read is an ordinary record to Kafka"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(start=lab.shop(1)) as cluster:
            send = {"do": "send", "transactional_id": "legacy-importer-7", "transaction": "commit"}
            told = cluster.do(
                send | {"topic": "orders", "count": 40, "key": "customer-%d", "value": '{"order":"import-%d"}'},
                send | {"topic": "orders", "count": 1, "partition": 1, "value": "<?xml version='1.0'?>"},
                send | {"topic": "payments", "count": 25, "partition": 0, "value": '{"import":%d}'},
                {"do": "transactions"},
            )
            cluster.stop()
            keep(cluster, folder)
        (producer_id,) = [each for name, each in told[3] if name == "legacy-importer-7"]
        return {
            "poison": told[1][0][1],
            "orders": by_partition(told[0] + told[1]),
            "payments": by_partition(told[2]),
            "producer_id": producer_id,
        }

    def command(self, truth: Truth) -> Sequence[str]:
        return ["producers", "--record", f"orders-1:{truth['poison']}", NODE]

    def facts(self, truth: Truth) -> list[Fact]:
        found = [
            fact("producer", number(truth["producer_id"])),
            fact("legacy-importer-7", r"legacy-importer-7|legac\S*…\S*7"),
        ]
        for topic in ("orders", "payments"):
            for at, offsets in truth[topic].items():
                ends = rf"({number(offsets[-1])}|{number(offsets[-1] + 1)})"  # or its marker
                words = f"{topic}-{at} {offsets[0]} to {offsets[-1]}"
                found.append(fact(words, rf"{topic}(-| +){at}\b.{{0,200}}?{number(offsets[0])}.{{0,80}}?{ends}"))
        return found


class Storm(Incident):
    number, name = 4, "one large __consumer_offsets"
    question = "Why is one partition of __consumer_offsets ten times as large as its siblings, and who commits most?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(start=lab.shop(1), settings={"log.cleaner.backoff.ms": "3600000"}) as cluster:
            cluster.do(
                {"do": "create", "topic": "metrics", "configs": {}},
                {"do": "send", "topic": "metrics", "count": 500},
                {"do": "storm", "group": "metrics-poller", "partition": "metrics-0", "count": 150_000},
                timeout=500,
            )
            cluster.stop()
            keep(cluster, folder)
        sizes = {
            each.name: sum(log.stat().st_size for log in each.glob("*.log"))
            for each in (folder / NODE).glob("__consumer*")
        }
        largest = max(sizes, key=lambda name: sizes[name])
        assert sizes[largest] > 10 * sorted(sizes.values())[-2]
        return {"partition": largest, "sizes": sizes, "commits": 150_000 + 150_000 // 200}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["groups", NODE]

    def facts(self, truth: Truth) -> list[Fact]:
        at = truth["partition"].rpartition("-")[2]
        size = truth["sizes"][truth["partition"]]
        mib, mb = size / 2**20, size / 1e6
        near = [rf"{value:.0f}(\.\d)? ?M" for value in (mib, mb)] + [rf"{int(value)}(\.\d)? ?M" for value in (mib, mb)]
        count = truth["commits"]
        return [
            fact("metrics-poller"),
            fact("partition", rf"__consumer_offsets(-| partition )?{at}\b", rf"metrics-poller.{{0,150}}\b{at}\b"),
            fact("size or commits", *near, number(count), number(count + 1), rf"{count // 1000}(\.\d)?k"),
        ]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause(".", f"{word(truth['partition'])}|metrics-poller", (fact("metrics-poller"),))


class Lag(Incident):
    number, name = 5, "lag, and a deleted group"
    question = "The cluster is down. How far behind is billing-app?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(start=lab.shop(1)) as cluster:
            offsets = {"orders-0": 111, "orders-1": 222, "orders-2": 33, "clicks-0": 44}
            told = cluster.do(
                {"do": "commit", "group": "reports-app", "offsets": offsets},
                {"do": "sleep", "ms": 3000},
                {"do": "delete_group", "group": "reports-app"},
                {"do": "send", "topic": "orders", "partition": 0, "count": 4000, "value": '{"late":%d}', "quiet": True},
                *({"do": "consume", "partition": f"orders-{at}", "seconds": 5} for at in range(3)),
            )
            time.sleep(6)  # the high watermark is checkpointed
            cluster.kill()
            keep(cluster, folder)
        return {
            "offsets": offsets,
            "committed": told[0],
            "deleted": told[2],
            "lag": 4000,
            "ends": [each["end"] for each in told[4:7]],
        }

    def command(self, truth: Truth) -> Sequence[str]:
        return ["groups", "--group", "billing-app", NODE]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("lag 4,000", number(4000)),
            fact("billing-app"),
            fact("orders-0"),
            fact("committed", number(truth["ends"][0] - 4000)),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"up to date", r"no lag"]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause(".", "billing-app", (fact("lag 4,000", number(4000)),))


class DeletedGroup(Lag):
    name = "a deleted group"
    question = "Someone deleted the group reports-app. Which offsets did it have, so that they can be applied again?"

    def making(self, truth: Truth) -> Sequence[str] | None:
        return None

    def command(self, truth: Truth) -> Sequence[str]:
        return [
            "groups",
            "--group",
            "reports-app",
            "--at",
            iso(truth["deleted"] - 1000),
            "--reset-csv",
            "reset.csv",
            NODE,
        ]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("reports-app"),
            *(fact(f"{name} {offset}", number(offset)) for name, offset in truth["offsets"].items()),
            fact("the command that applies them", r"kafka-consumer-groups\S* .*--reset-offsets.*--from-file"),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"no such group", r"no group"]

    def checked(self, truth: Truth, folder: Path) -> list[str]:
        path = folder / "reset.csv"
        if not path.exists():
            return ["no reset.csv"]
        rows = list(csv.reader(io.StringIO(path.read_text())))
        path.unlink()
        found = {f"{row[-3]}-{row[-2]}": int(row[-1]) for row in rows if row}
        return [] if found == truth["offsets"] else [f"reset.csv has {found}"]

    def cause(self, truth: Truth) -> Cause | None:
        return None


class FutureTime(Incident):
    number, name = 6, "a future timestamp"
    question = "Retention of audit is one hour, and records of hours ago are still there. Why?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(start=lab.shop(1), settings={"log.retention.check.interval.ms": "3600000"}) as cluster:
            configs = {"retention.ms": "-1", "segment.bytes": "1048576", "message.timestamp.after.max.ms": ENDLESS}
            send = {"do": "send", "topic": "audit", "size": 50_000, "batch": 1}
            start, future = now_ms() - 8 * HOUR, 1_956_528_000_000  # 2032
            told = cluster.do(
                {"do": "create", "topic": "audit", "configs": configs},
                send | {"count": 50, "time": start, "every_ms": 60_000},
                send | {"count": 1, "time": future, "transactional_id": "sensor-gateway", "transaction": "commit"},
                send | {"count": 60, "time": start + HOUR, "every_ms": 60_000},
                {"do": "config", "topic": "audit", "configs": {"retention.ms": str(HOUR)}},
            )
            cluster.stop()
            log_dir = cluster.log_dir()
            kept = lab.work / "future"
            copied(log_dir, kept)
        with lab.cluster(start={1: kept}) as cluster:
            time.sleep(12)
            cluster.stop()
            keep(cluster, folder)
        subprocess.run(["rm", "-rf", str(kept)], check=True)
        left = sorted(int(path.stem) for path in (folder / NODE / "audit-0").glob("*.log"))
        offset = told[2][0][1]
        base = max(each for each in left if each <= offset)
        assert base == left[0], left
        assert base > 0, left
        return {"offset": offset, "base": base, "left": left, "future": future}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["retention", f"{NODE}/audit-0"]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("audit-0"),
            fact("the record", number(truth["offset"])),
            fact("its time", r"\b2032\b|2032-01-01|1956528000000"),
            fact("its segment", number(truth["base"]), f"{truth['base']:020}"),
        ]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause("future|retention|timestamp", word("audit-0"), (fact("the record", number(truth["offset"])),))


class StoppedCleaner(Incident):
    number, name = 7, "a damaged batch stops the cleaner"
    question = "inventory is compacted, and grows all the same. Why?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        kept = lab.work / "cleaner"
        configs = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
        with lab.cluster(start=lab.shop(1), settings={"log.cleaner.backoff.ms": "3600000"}) as cluster:
            told = cluster.do(
                {"do": "create", "topic": "inventory", "configs": configs},
                {
                    "do": "send",
                    "topic": "inventory",
                    "count": 600,
                    "key": "item-%d",
                    "keys": 50,
                    "size": 10_000,
                    "batch": 5,
                },
            )
            cluster.stop()
            copied(cluster.log_dir(), kept)
        log = sorted((kept / "inventory-0").glob("*.log"))[1]
        batch = lab.batches(log)[4]
        turn(log, batch["position"] + 61, 0x7F)
        with lab.cluster(start={1: kept}) as cluster:
            end = time.monotonic() + 60
            while not re.search(r"inventory-0.*uncleanable|uncleanable.*inventory-0", cluster.node(1).log_text):
                assert time.monotonic() < end, cluster.node(1).log_text[-3000:]
                time.sleep(0.5)
            cluster.stop()
            keep(cluster, folder)
        subprocess.run(["rm", "-rf", str(kept)], check=True)
        return {
            "segment": log.name,
            "position": batch["position"],
            "first": batch["baseOffset"],
            "last": batch["lastOffset"],
            "end": told[1][-1][1] + 1,
        }

    def command(self, truth: Truth) -> Sequence[str]:
        return ["compaction", NODE]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("inventory-0"),
            fact("damaged", r"damage|corrupt"),
            fact("the batch", number(truth["first"]), number(truth["position"])),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"no log (here )?is (stopped|blocked)", r"nothing (stops|blocks)"]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause(".", word("inventory-0"), (fact("the batch", number(truth["first"]), number(truth["position"])),))


class WrongPartition(Incident):
    number, name = 13, "records in the wrong partition"
    question = "Since partitions were added to shipments, updates of a key arrive in two of them. Of how many?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(start=lab.shop(1)) as cluster:
            send = {"do": "send", "topic": "shipments", "key": "parcel-%d", "keys": 120, "count": 360}
            told = cluster.do(
                {"do": "create", "topic": "shipments", "count": 3, "configs": {}},
                send,
                {"do": "partitions", "topic": "shipments", "count": 5},
                {"do": "sleep", "ms": 3000},
                send | {"from": 360},
            )
            cluster.stop()
            keep(cluster, folder)
        new = {at % 120: each[0] for at, each in enumerate(told[4])}
        wrong = [[each[0], each[1]] for at, each in enumerate(told[1]) if each[0] != new[at % 120]]
        assert wrong
        return {"misplaced": len(wrong), "by_partition": Counter(str(each[0]) for each in wrong), "time": told[2]}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["verify", "--partitioner", "murmur2", NODE]

    def facts(self, truth: Truth) -> list[Fact]:
        counts = [fact(f"{count} in shipments-{at}", number(count)) for at, count in truth["by_partition"].items()]
        return [fact("shipments"), fact("5 partitions", r"5 partitions|partitions?[^.]{0,30}\b5\b"), *counts]

    def false(self, truth: Truth) -> list[str]:
        return [r"no findings", r"no damage found"]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause("partition", "shipments")


class Evidence(Hanging):
    number, name = 14, "evidence for support"
    question = "Support needs evidence, and must not see customers. What does the archive say to them?"

    def making(self, truth: Truth) -> Sequence[str] | None:
        return ["bundle", NODE, "--output", "evidence.tar.zst"]

    def command(self, truth: Truth) -> Sequence[str]:
        return ["txns", "--hanging", "evidence.tar.zst"]

    def checked(self, truth: Truth, folder: Path) -> list[str]:
        import zstandard

        path = folder / "evidence.tar.zst"
        if not path.exists():
            return ["no archive"]
        found = []
        with (
            path.open("rb") as file,
            zstandard.ZstdDecompressor().stream_reader(file) as plain,
            tarfile.open(fileobj=plain, mode="r|") as archive,
        ):
            for member in archive:
                content = archive.extractfile(member)
                data = content.read() if content is not None else b""
                found += [f"{member.name} has {each!r}" for each in _OF_CUSTOMERS if each in data]
        return found

    def paths(self, truth: Truth, folder: Path) -> list[str]:
        return ["evidence.tar.zst"]


class Killed(Incident):
    number, name = 15, "killed while writing"
    question = "The machine lost power while it wrote. Does a broker start here, and what is lost?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(start=lab.shop(1)) as cluster:
            spec = cluster.work / "endless.json"
            spec.write_text(
                json.dumps(
                    [
                        {
                            "do": "send",
                            "topic": "orders",
                            "partition": 0,
                            "count": 1_000_000,
                            "batch": 20,
                            "pause_ms": 1,
                            "quiet": True,
                            "value": '{"written":%d}',
                        }
                    ]
                )
            )
            writer = subprocess.Popen(cluster.client(spec), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(12)
            cluster.kill()
            writer.kill()
            writer.wait()
            keep(cluster, folder)
        (log,) = (folder / NODE / "orders-0").glob("*.log")
        before = lab.batches(log)
        with log.open("r+b") as file:  # what had not reached the disk
            file.truncate(before[-1]["position"] + before[-1]["size"] - 37)
        with lab.cluster(start={1: folder / NODE}) as cluster:
            text = cluster.node(1).log_text
            told = cluster.do({"do": "consume", "partition": "orders-0", "seconds": 1})
            recovered = sorted(set(re.findall(r"partition=(\S+?), .*Recovering unflushed segment", text)))
            cluster.stop()
        assert told[0]["end"] == before[-1]["baseOffset"], (told[0]["end"], before[-1])
        return {"end": told[0]["end"], "lost": before[-1]["count"], "recovered": recovered}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["boot", NODE]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("orders-0"),
            fact("truncated at", number(truth["end"])),
            fact("truncate", r"truncat|cuts? "),
            fact("it starts", r"starts?\b"),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"would refuse to start|does not start|refuses to start", r"change nothing", r"loses nothing"]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause(".", word("orders-0"), (fact("truncated at", number(truth["end"])),))


class Order(Incident):
    number, name = 16, "an order by its id"
    question = "Where is order-4711, what stands beside it, and who could see it?"
    unseen = "an aborted transaction is nothing unusual, and nobody asked for this order"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(start=lab.shop(1)) as cluster:
            send = {"do": "send", "topic": "orders", "partition": 1, "transactional_id": "checkout-3"}
            order = {"value": '{"order":"order-%d","customer":"Erika Mustermann"}', "key": "customer-%d"}
            told = cluster.do(
                send | order | {"count": 2, "from": 4709, "transaction": "commit"},
                send | order | {"count": 3, "from": 4711, "transaction": "abort"},
                send | order | {"count": 2, "from": 4714, "transaction": "commit"},
                {"do": "consume", "partition": "orders-1", "isolation": "read_committed"},
            )
            cluster.stop()
            keep(cluster, folder)
        offset = told[1][0][1]
        assert offset not in told[3]["offsets"]
        return {"offset": offset}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["grep", "-C", "1", "order-4711", NODE]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("orders-1"),
            fact("its offset", number(truth["offset"])),
            fact("what stands after it", "order-4712"),
            fact("who could see it", r"abort|read_uncommitted"),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"visible to every consumer"]


class Duplicates(Incident):
    number, name = 17, "duplicates"
    question = "A team downstream gets invoices twice. Are they twice in the log, which, and why?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(start=lab.shop(1)) as cluster:
            cluster.do(
                {"do": "create", "topic": "invoices", "configs": {}},
                {"do": "send", "topic": "invoices", "count": 100, "value": "invoice-%d", "batch": 10},
            )
            spec = cluster.work / "retries.json"
            client = {
                "enable.idempotence": "false",
                "acks": "1",
                "request.timeout.ms": "1500",
                "retries": "9",
                "linger.ms": "30",
                "max.in.flight.requests.per.connection": "5",
                "delivery.timeout.ms": "60000",
            }
            spec.write_text(
                json.dumps(
                    [
                        {
                            "do": "send",
                            "topic": "invoices",
                            "count": 1500,
                            "from": 100,
                            "value": "invoice-%d",
                            "batch": 5000,
                            "pause_ms": 2,
                            "producer": client,
                            "quiet": True,
                        }
                    ]
                )
            )
            writer = subprocess.Popen(cluster.client(spec), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            log = cluster.log_dir() / "invoices-0" / f"{0:020}.log"
            size = log.stat().st_size
            while log.stat().st_size < size + 8000:
                time.sleep(0.05)
            cluster.pause(1)
            time.sleep(4)
            cluster.resume(1)
            writer.wait(120)
            told = cluster.do({"do": "consume", "partition": "invoices-0", "values": True, "seconds": 20})
            cluster.stop()
            keep(cluster, folder)
        first: dict[str, int] = {}
        again = []
        for offset, value in zip(told[0]["offsets"], told[0]["values"], strict=True):
            if value in first:
                again.append([first[value], offset])
            first.setdefault(value, offset)
        assert again, "no duplicates came about"
        return {"duplicates": again, "count": len(again)}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["producers", "--duplicates", NODE]

    def facts(self, truth: Truth) -> list[Fact]:
        runs = [1]  # records that are twice, one after the other
        for (earlier, _), (later, _) in itertools.pairwise(truth["duplicates"]):
            runs = [*runs[:-1], runs[-1] + 1] if later == earlier + 1 else [*runs, 1]
        return [
            fact("invoices-0"),
            fact("how many twice", number(truth["count"]), ".*".join(number(each) for each in runs)),
            fact("where", number(truth["duplicates"][0][1]), number(truth["duplicates"][0][0])),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"\bno duplicates?\b", r"\b0 duplicates?\b"]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause(".", word("invoices-0"), (fact("twice", "duplicat|twice|repeat|equal|again"),))


class TimeRange(Incident):
    number, name = 20, "a time range to Parquet"
    question = "Give the analysts the orders of two hours as Parquet, for DuckDB."
    unseen = "a wish, and nothing that is wrong"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(start=lab.shop(1)) as cluster:
            start = now_ms() - 12 * HOUR
            told = cluster.do(
                *({"do": "consume", "partition": f"orders-{at}", "seconds": 5} for at in range(3)),
                {"do": "create", "topic": "returns", "count": 2, "configs": {}},
                {
                    "do": "send",
                    "topic": "returns",
                    "count": 500,
                    "key": "customer-%d",
                    "time": start,
                    "every_ms": 60_000,
                },
            )
            cluster.stop()
            keep(cluster, folder)
        first, last = start + 2 * HOUR, start + 4 * HOUR
        return {"from": first, "to": last, "count": sum(first <= each[2] <= last for each in told[4])}

    def command(self, truth: Truth) -> Sequence[str]:
        return [
            "extract",
            f"{NODE}/returns-0",
            f"{NODE}/returns-1",
            "--from-time",
            iso(truth["from"]),
            "--to-time",
            iso(truth["to"]),
            "--to",
            "parquet",
            "--output",
            "returns",
        ]

    def facts(self, truth: Truth) -> list[Fact]:
        return [fact("records", number(truth["count"])), fact("where they are", r"returns")]

    def checked(self, truth: Truth, folder: Path) -> list[str]:
        import duckdb

        path = folder / "returns"
        if not path.exists():
            return ["nothing was written"]
        query = f"select count(*), epoch_ms(min(timestamp)), epoch_ms(max(timestamp)) from '{path}/**/*.parquet'"
        count, first, last = duckdb.execute(query).fetchall()[0]
        subprocess.run(["rm", "-rf", str(path)], check=True)
        is_right = count == truth["count"] and first >= truth["from"] and last <= truth["to"]
        return [] if is_right else [f"DuckDB counts {count} records from {first} to {last}"]


SINGLE_NODE: tuple[Incident, ...] = (
    Hanging(),
    Poison(),
    Storm(),
    Lag(),
    DeletedGroup(),
    FutureTime(),
    StoppedCleaner(),
    WrongPartition(),
    Evidence(),
    Killed(),
    Order(),
    Duplicates(),
    TimeRange(),
)
