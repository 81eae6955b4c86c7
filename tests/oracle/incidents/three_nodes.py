"""The incidents of a cluster of three nodes."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.oracle.incidents.cluster import HOUR, Lab, Running, keep, turn
from tests.oracle.incidents.incident import Incident, Truth
from tests.oracle.incidents.judging import Cause, Fact, fact, number, span, word
from tests.oracle.incidents.single_node import iso, now_ms

NODES = ["node-1", "node-2", "node-3"]
_LAG_SECONDS = 7  # after so long a replica that fetches nothing is out of the ISR, and its node fenced


def waits(cluster: Running, topic: str, isr: list[int]) -> dict[str, Any]:
    """Wait until the first partition of a topic has this ISR; what the broker says of it."""
    end = time.monotonic() + 90
    while True:
        (told,) = cluster.do({"do": "describe", "topic": topic})
        if told["partitions"][0]["isr"] == isr:
            return dict(told)
        assert time.monotonic() < end, told
        time.sleep(1)


class CorruptLeader(Incident):
    number, name = 1, "a corrupt batch on the leader"
    question = "A consumer of orders stops at one offset and does not go on. What is there, and what do I do?"
    damaged = 1
    false_advice: tuple[str, ...] = ("let this replica fetch anew from the leader",)  # it leads

    def build(self, lab: Lab, folder: Path) -> Truth:
        for number_, path in lab.shop(3).items():
            shutil.copytree(path, lab.work / "corrupt" / f"node-{number_}")
        copies = {number_: lab.work / "corrupt" / f"node-{number_}" for number_ in (1, 2, 3)}
        log = copies[self.damaged] / "orders-0" / f"{0:020}.log"
        batches = lab.batches(log)
        batch = batches[len(batches) // 2]
        turn(log, batch["position"] + 90)
        with lab.cluster(3, start=copies) as cluster:
            waits(cluster, "orders", [1, 2, 3])
            told = cluster.do(
                {"do": "elect"},
                {"do": "sleep", "ms": 2000},
                {"do": "describe", "topic": "orders"},
                {"do": "consume", "partition": "orders-0", "seconds": 12},
            )
            cluster.kill()
            keep(cluster, folder)
        shutil.rmtree(lab.work / "corrupt")
        leader, got = told[2]["partitions"][0]["leader"], told[3]["offsets"]
        assert leader == 1, told[2]
        assert (batch["baseOffset"] in got) == (self.damaged != leader), (batch, len(got), told[3].get("error"))
        return {
            "first": batch["baseOffset"],
            "last": batch["lastOffset"],
            "position": batch["position"],
            "leader": leader,
            "stopped_at": max(got, default=-1) + 1,
            "error": told[3].get("error"),
        }

    def command(self, truth: Truth) -> Sequence[str]:
        return ["verify", *NODES]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("orders-0"),
            fact("node 1", r"node[- ]1\b"),
            fact("offsets", span(truth["first"], truth["last"])),
            fact(
                "an intact replica",
                r"node[- ][23]\b[^.]{0,80}intact",
                r"intact[^.]{0,60}node[- ][23]\b",
            ),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"no damage", r"lost for good|no replica is intact", r"lost offsets"]

    def cause(self, truth: Truth) -> Cause | None:
        where = (fact("node", rf"node[- ]{self.damaged}\b"), fact("offset", number(truth["first"])))
        return Cause(".", word("orders-0"), where, self.false_advice)


class CorruptFollower(CorruptLeader):
    name = "a corrupt batch on a follower"
    question = "A disk of node 2 had errors. Is something damaged there, and do consumers notice?"
    damaged = 2
    false_advice = ()

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("orders-0"),
            fact("node 2", r"node[- ]2\b"),
            fact("offsets", span(truth["first"], truth["last"])),
            fact("the leader is intact", r"node[- ]1\b[^.]{0,80}(intact|lead)|(intact|lead)[^.]{0,60}node[- ]1\b"),
        ]


class LostLeader(Incident):
    number, name = 8, "the leader is lost"
    question = "Node 1 led ledger, and its disk is gone. Which of the other two do I elect, and what is lost?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(3, start=lab.shop(3)) as cluster:
            configs = {"min.insync.replicas": "1"}
            send = {
                "do": "send",
                "topic": "ledger",
                "value": '{"entry":%d}',
                "producer": {"acks": "all"},
                "quiet": True,
            }
            cluster.do(
                {"do": "create", "topic": "ledger", "assignment": [[1, 2, 3]], "configs": configs},
                send | {"count": 1000},
            )
            cluster.pause(3)
            waits(cluster, "ledger", [1, 2])
            cluster.do(send | {"count": 250, "from": 1000})
            time.sleep(7)  # the high watermarks are checkpointed
            cluster.kill()
            keep(cluster, folder, 2, 3)
        with lab.cluster(3, start={at: folder / f"node-{at}" for at in (2, 3)}, running=(2, 3)) as cluster:
            time.sleep(_LAG_SECONDS)
            # Who was killed is no eligible leader; whether it leads by itself hangs on who is fenced first.
            _, told, got = cluster.do(
                {"do": "elect", "type": "UNCLEAN"},
                {"do": "describe", "topic": "ledger"},
                {"do": "consume", "partition": "ledger-0"},
            )
            cluster.kill()
        assert (told["partitions"][0]["leader"], got["end"]) == (2, 1250), (told, got["end"])
        return {"elect": 2, "lost": 250, "first": 1000, "last": 1249}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["diff", "node-2/ledger-0", "node-3/ledger-0"]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("ledger-0"),
            fact("elect node 2"),
            fact("node 3 loses 250", number(250)),
            fact("which", span(1000, 1249), number(1000)),
            fact("node 1 is not here", r"node 1\b[^.]{0,60}not|not here[^.]{0,20}node 1\b|without node 1"),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"elect node 3", r"node 3 (has|loses) (nothing|none)"]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause(".", word("ledger-0"), (fact("node 2", r"node[- ]2\b"),))


class OldBackup(Incident):
    number, name = 9, "an older backup"
    question = "Node 2 was restored. From an older backup? What does it lack?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        shop = lab.shop(3)
        with lab.cluster(3, start=shop) as cluster:
            waits(cluster, "orders", [1, 2, 3])
            send = {"do": "send", "topic": "orders", "value": '{"new":%d}', "producer": {"acks": "all"}}
            told = cluster.do(*(send | {"count": 300, "partition": at} for at in range(3)))
            cluster.stop()
            keep(cluster, folder, 1, 3)
        shutil.copytree(shop[2], folder / "node-2")
        return {"first": [each[0][1] for each in told], "last": [each[-1][1] for each in told]}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["diff", *NODES]

    def facts(self, truth: Truth) -> list[Fact]:
        found = [fact("node 2", r"node[- ]2\b[^.]{0,80}(behind|lacks|loses|older|misses)")]
        return found + [
            fact(f"orders-{at} from {first}", rf"orders-{at}\b.{{0,300}}?{number(first)}")
            for at, first in enumerate(truth["first"])
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"elect node 2\b(?! or)", r"node 2 loses nothing", r"all replicas are identical"]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause(".", r"node[- ]2\b", (fact("its directory is an older one", r"older|restored|backup|went back"),))


class FullDisk(Incident):
    number, name = 10, "the disk is full"
    question = "The disks of three nodes are full. What eats them?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(3, start=lab.shop(3)) as cluster:
            configs = {"retention.ms": "-1", "segment.bytes": "4194304"}
            cluster.do(
                {"do": "create", "topic": "debug-events", "assignment": [[1, 2, 3], [2, 3, 1]], "configs": configs},
                *(
                    {
                        "do": "send",
                        "topic": "debug-events",
                        "partition": at,
                        "count": 150,
                        "size": 100_000,
                        "batch": 5,
                        "quiet": True,
                    }
                    for at in (0, 1)
                ),
            )
            cluster.stop()
            keep(cluster, folder)
        size = sum(path.stat().st_size for path in folder.glob("node-*/debug-events-*/*.log"))
        return {"bytes": size}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["ls", "--by", "topic", *NODES]

    def facts(self, truth: Truth) -> list[Fact]:
        mib = truth["bytes"] / 2**20
        return [
            fact("debug-events"),
            fact("how much", rf"\b{int(mib)}(\.\d+)? ?Mi?B", rf"\b{int(mib) + 1}(\.\d+)? ?Mi?B", rf"\b{mib:.0f}"),
        ]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause(".", "debug-events", ())


class StaleDirectory(Incident):
    number, name = 11, "a stale directory"
    question = "payments was deleted and made again while node 3 was down. Is what node 3 has still good?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        shop = lab.shop(3)
        old = re.search(r"topic_id: (\S+)", (shop[3] / "payments-0" / "partition.metadata").read_text())
        assert old is not None
        with lab.cluster(3, start=shop, running=(1, 2)) as cluster:
            time.sleep(_LAG_SECONDS)
            told = cluster.do(
                {"do": "delete", "topic": "payments"},
                {"do": "sleep", "ms": 2000},
                {"do": "create", "topic": "payments", "assignment": [[1, 2, 3], [2, 3, 1]], "configs": {}},
                {"do": "send", "topic": "payments", "partition": 0, "count": 30},
                {"do": "send", "topic": "payments", "partition": 1, "count": 30},
            )
            time.sleep(2)
            cluster.stop()
            keep(cluster, folder, 1, 2)
        shutil.copytree(shop[3], folder / "node-3")
        return {"old": old[1], "new": told[2]}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["verify", *NODES]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("payments-0"),
            fact("payments-1"),
            fact("node 3", r"node[- ]3\b"),
            fact("the old topic id", re.escape(truth["old"])),
            fact("stray", r"stray|topic id|does not belong|stale"),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"complete and clean", r"no damage"]

    def cause(self, truth: Truth) -> Cause | None:
        old = fact("the old topic id, or that it is stray", re.escape(truth["old"]), "stray|stale|older topic")
        return Cause("stray|topic|stale|foreign", r"payments(-[01])?\b.*node[- ]3\b|node[- ]3\b.*payments", (old,))


class Changes(Incident):
    number, name = 12, "what changed"
    question = "Since this afternoon records of clicks are missing. What was changed in the cluster?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(3, start=lab.shop(3)) as cluster:
            waits(cluster, "orders", [1, 2, 3])
            since = now_ms()
            told = cluster.do(
                {"do": "config", "topic": "clicks", "configs": {"retention.ms": str(HOUR)}},
                {"do": "partitions", "topic": "orders", "count": 6},
                {"do": "delete", "topic": "customers"},
                {"do": "create", "topic": "returns", "count": 2, "replicas": 3, "configs": {}},
            )
            cluster.kill(3)
            time.sleep(_LAG_SECONDS)
            cluster.start(3)
            waits(cluster, "orders", [1, 2, 3])
            cluster.stop()
            keep(cluster, folder)
        return {"since": since, "id": told[3]}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["metadata", "--history", "--from-time", iso(truth["since"]), *NODES]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact(
                "clicks: retention.ms 3600000",
                r"(clicks.{0,80}retention\.ms|retention\.ms.{0,40}clicks).{0,60}(3,?600,?000|1 ?h)",
            ),
            fact(
                "orders has 6 partitions",
                r"orders[^.]{0,60}\b(6|3 more) partitions|orders[^.]{0,60}partitions?[^.]{0,20}\b6\b|orders-[345]",
            ),
            fact(
                "customers was deleted",
                r"customers[^.]{0,60}(deleted|removed|gone)|(deleted?|removed?)[^.]{0,40}customers",
            ),
            fact(
                "returns was created",
                r"returns[^.]{0,60}(created|new|added|topic)|(created?|new|added?)[^.]{0,40}returns",
            ),
            fact("node 3 was away", r"node 3\b|broker 3\b"),
        ]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause(".", "clicks", (fact("retention.ms", r"retention\.ms|retention of"),))


class Behind(Incident):
    number, name = 18, "a follower that is behind"
    question = "Node 3 was slow before the crash. What does it lack, and may it lead?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(3, start=lab.shop(3)) as cluster:
            waits(cluster, "orders", [1, 2, 3])
            cluster.do({"do": "elect"})
            cluster.pause(3)
            waits(cluster, "orders", [1, 2])
            send = {
                "do": "send",
                "topic": "orders",
                "partition": 0,
                "value": '{"late":%d}',
                "count": 640,
                "producer": {"acks": "all"},
            }
            (told,) = cluster.do(send)
            (described,) = cluster.do({"do": "describe", "topic": "orders"})
            time.sleep(7)
            cluster.kill()
            keep(cluster, folder)
        return {"first": told[0][1], "last": told[-1][1], "count": 640, "isr": described["partitions"][0]["isr"]}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["diff", *(f"{each}/orders-0" for each in NODES)]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("orders-0"),
            fact("node 3 lacks 640", r"node[- ]3\b[^.]{0,100}" + number(640)),
            fact("from", number(truth["first"])),
            fact("elect", r"(elect|keep) node [12]\b|node 1 is the leader"),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"elect node 3", r"node 3 loses (nothing|none)"]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause(
            ".", word("orders-0"), (fact("node 3", r"node[- ]3\b"), fact("640", number(640), number(truth["first"])))
        )


class LostVoter(Incident):
    number, name = 19, "a quorum that lost a voter"
    question = "Node 2 and its disk are gone. Can the other two form a quorum, who can lead it, and is metadata lost?"

    def build(self, lab: Lab, folder: Path) -> Truth:
        with lab.cluster(3, start=lab.shop(3)) as cluster:
            waits(cluster, "orders", [1, 2, 3])
            cluster.kill(3)
            time.sleep(_LAG_SECONDS)
            cluster.do({"do": "create", "topic": "late", "assignment": [[1, 2]], "configs": {}})
            time.sleep(1)
            cluster.kill()
            keep(cluster, folder, 1, 3)
        with lab.cluster(3, start={at: folder / f"node-{at}" for at in (1, 3)}, running=(1, 3)) as cluster:
            told = cluster.do({"do": "quorum"}, {"do": "describe", "topic": "late"})
            cluster.kill()
        assert told[0] == 1, told
        return {"leader": told[0]}

    def command(self, truth: Truth) -> Sequence[str]:
        return ["diff", "node-1/__cluster_metadata-0", "node-3/__cluster_metadata-0"]

    def facts(self, truth: Truth) -> list[Fact]:
        return [
            fact("node 1 can lead", r"node 1 (can|must|could|alone)|elect node 1|only node 1"),
            fact(
                "node 2 is missing",
                r"(not here|missing|without|lacks?)[^.]{0,60}node 2\b|node 2\b[^.]{0,60}(not|missing|gone)",
            ),
            fact("of three voters", r"\b(3|three) voters|voters? 1, 2"),
        ]

    def false(self, truth: Truth) -> list[str]:
        return [r"node 3 can (win|lead)", r"node 1 or node 3 can", r"elect node 3"]

    def cause(self, truth: Truth) -> Cause | None:
        return Cause("quorum|voter|metadata|node|controller", r"node[- ]2\b")


THREE_NODES: tuple[Incident, ...] = (
    CorruptLeader(),
    CorruptFollower(),
    LostLeader(),
    OldBackup(),
    FullDisk(),
    StaleDirectory(),
    Changes(),
    Behind(),
    LostVoter(),
)
