"""What clients saw of a broker's transactions, and the comparison with what txns and find say of its directory."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from format.node.partition import Partition, read_partition
from format.node.target import Target
from format.verbs.find.find import find_offset
from format.verbs.txns.txns import Transactions, TransactionTerms, open_transactions

#: So many offsets past each end are asked for as well.
_BEYOND = 3
_FAR_FUTURE_MS = 4_000_000_000_000


@dataclass
class TransactionTruth:
    """By partition: the offsets of the broker, those that consumers got, and the states of producers."""

    log_start: dict[str, int] = field(default_factory=dict)
    log_end: dict[str, int] = field(default_factory=dict)
    last_stable: dict[str, int] = field(default_factory=dict)
    uncommitted: dict[str, list[int]] = field(default_factory=dict)
    committed: dict[str, list[int]] = field(default_factory=dict)
    producers: dict[str, list[dict[str, int]]] = field(default_factory=dict)
    transactions: list[dict[str, Any]] = field(default_factory=list)
    hanging: list[tuple[str, int]] = field(default_factory=list)  # partition, first offset

    @classmethod
    def of_lines(cls, lines: list[str], hanging: list[str]) -> TransactionTruth:
        """From the output of the client program, and of find-hanging."""
        truth = cls()
        for line in lines:
            kind, *words = line.split("\t")
            if kind == "OFFSETS":
                level, topic, number, begin, end = words
                name = f"{topic}-{number}"
                truth.log_start[name] = int(begin)
                (truth.last_stable if level == "read_committed" else truth.log_end)[name] = int(end)
            elif kind == "READ":
                level, topic, number, offsets = words
                found = truth.committed if level == "read_committed" else truth.uncommitted
                found[f"{topic}-{number}"] = [int(each) for each in offsets.split(",") if each]
            elif kind == "PRODUCER":
                topic, number, *values = words
                names = (
                    "producer_id",
                    "producer_epoch",
                    "coordinator_epoch",
                    "last_sequence",
                    "timestamp",
                    "open_since",
                )
                row = dict(zip(names, map(int, values), strict=True))
                truth.producers.setdefault(f"{topic}-{number}", []).append(row)
            elif kind == "TRANSACTION":
                names = ("transactional_id", "producer_id", "producer_epoch", "state", "timeout_ms")
                row_of = dict(zip(names, words[:5], strict=True))
                truth.transactions.append(
                    {
                        name: value if name in ("transactional_id", "state") else int(value)
                        for name, value in row_of.items()
                    }
                )
        for line in hanging[1:]:
            topic, number, _producer, _epoch, _coordinator, first, *_ = line.split()
            truth.hanging.append((f"{topic}-{number}", int(first)))
        return truth

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> TransactionTruth:
        """From ``as_json``."""
        values = dict(values)
        values["hanging"] = [(name, first) for name, first in values["hanging"]]
        return cls(**values)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def expected(self, name: str, offset: int) -> frozenset[str]:
        """What an offset may be, by what clients got of it; what neither got may be gone or a control record."""
        if offset < self.log_start[name]:
            return frozenset({"below_log_start"})
        if offset >= self.log_end[name]:
            return frozenset({"past_end"})
        if offset in self.committed[name]:
            return frozenset({"visible"})
        if offset in self.uncommitted[name]:
            return frozenset({"aborted" if offset < self.last_stable[name] else "read_uncommitted_only"})
        return frozenset({"control", "compacted"})


def visibility_of(partition: Partition, offset: int) -> str:
    """What find says of an offset."""
    return str(find_offset(partition, offset).visibility)


def compared(node: Path, truth: TransactionTruth) -> Counter[str]:
    """Counts of what was compared, and of what differs, which is printed."""
    counts = Counter[str]()
    for name in truth.log_end:
        partition = read_partition(node / name)
        offsets = range(max(0, truth.log_start[name] - _BEYOND), truth.log_end[name] + _BEYOND)
        found = {offset: visibility_of(partition, offset) for offset in offsets}
        for offset in offsets:
            counts["offsets"] += 1
            counts[f"{found[offset]} offsets"] += 1
            if found[offset] not in truth.expected(name, offset):
                counts["different offsets"] += 1
                print(f"{name} {offset}: {found[offset]}, not {sorted(truth.expected(name, offset))}")
    terms = TransactionTerms(now_ms=_FAR_FUTURE_MS)
    result = _read(node, terms)
    for (topic, number), each in result.partitions.items():
        name = f"{topic}-{number}"
        if name not in truth.log_end:
            continue
        _count(counts, "last stable offsets", name, each.last_stable_offset, truth.last_stable[name])
        open_here = {producer_id: known.first_offset for producer_id, known in each.state.open.items()}
        expected = {row["producer_id"]: row["open_since"] for row in truth.producers[name] if row["open_since"] >= 0}
        _count(counts, "open transactions", name, open_here, expected, len(expected))
    opened = open_transactions(result, terms)
    hanging = {(f"{each.topic}-{each.partition}", each.transaction.first_offset) for each in opened if each.is_hanging}
    _count(counts, "hanging transactions", "payments", hanging, set(truth.hanging), len(truth.hanging))
    for known in truth.transactions:
        state = result.ids.state_of_producer(known["producer_id"])
        ours = state and (state.transactional_id, state.producer_epoch, state.state, state.timeout_ms)
        names = ("transactional_id", "producer_epoch", "state", "timeout_ms")
        expected_state = tuple(known[name] for name in names)
        _count(counts, "transactional ids", str(known["transactional_id"]), ours, expected_state)
    return counts


def _read(node: Path, terms: TransactionTerms) -> Transactions:
    result = Transactions((Target(node),))
    for found in result.read(terms):
        print(f"finding: {found}")
    return result


def _count(counts: Counter[str], what: str, name: str, ours: object, theirs: object, count: int = 1) -> None:
    counts[what] += count
    if ours != theirs:
        counts[f"different {what}"] += 1
        print(f"{what} of {name}: {ours}, not {theirs}")
