"""Logs: their tails, their middles, the files of segments, where a log starts."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

from tests.oracle.boot_mutations.node import (
    LOG_START,
    RECOVERY_POINT,
    Named,
    Node,
    batch_positions,
    cut,
    flip,
    garbage,
    overwrite,
)

_TAIL_PARTITIONS = ("orders-0", "users-0", "payments-0", "sensor-0", "clicks-zstd-0")


def tails() -> Named:
    chosen = random.Random(15)
    for number in range(40):
        name = _TAIL_PARTITIONS[number % len(_TAIL_PARTITIONS)]
        how = ("cut", "cut-at-batch", "zeros", "garbage")[number // len(_TAIL_PARTITIONS) % 4]
        clean = number % 3 == 0
        share = chosen.random()

        def apply(node: Node, name: str = name, how: str = how, clean: bool = clean, share: float = share) -> None:
            log = node.segments(name)[-1]
            size = log.stat().st_size
            if how == "cut":
                cut(log, int(size * share))
            elif how == "cut-at-batch":
                positions = [position for position, *_ in batch_positions(log)]
                cut(log, positions[int(len(positions) * share)])
            else:
                added = int(share * 300) + 1
                with log.open("ab") as file:
                    file.write(bytes(added) if how == "zeros" else garbage(added, int(share * 1e6)))
            if not clean:
                node.unclean()
                if share < 0.5:
                    node.set_offset(RECOVERY_POINT, name, 0)

        yield f"{number} {name} {how} {'clean' if clean else 'unclean'}", apply


def middles() -> Named:
    chosen = random.Random(16)
    for number in range(48):
        name = (*_TAIL_PARTITIONS, "orders-2")[number % 6]
        how = ("flip-body", "flip-header", "zero-batch", "zero-tail")[number // 6 % 4]
        point = ("none", "zero", "active", "end")[number // 12 % 4]
        clean = number % 4 == 3
        first_share, second_share = chosen.random(), chosen.random()

        def apply(
            node: Node,
            name: str = name,
            how: str = how,
            point: str = point,
            clean: bool = clean,
            shares: tuple[float, float] = (first_share, second_share),
        ) -> None:
            segments = node.segments(name)
            log = segments[int(len(segments) * shares[0])]
            found = batch_positions(log)
            position, size, *_ = found[int(len(found) * shares[1])]
            if how == "flip-body":
                flip(log, position + 21 + int(shares[0] * (size - 22)))
            elif how == "flip-header":
                flip(log, position + int(shares[0] * 21))
            elif how == "zero-batch":
                overwrite(log, position, bytes(size))
            else:
                overwrite(log, position, bytes(log.stat().st_size - position))
            if not clean:
                node.unclean()
            offsets = node.checkpoint(RECOVERY_POINT)
            key = name.replace("-", " ") if name.count("-") == 1 else " ".join(name.rsplit("-", 1))
            if point == "none":
                del offsets[key]
                node.set_checkpoint(RECOVERY_POINT, offsets)
            elif point == "zero":
                node.set_offset(RECOVERY_POINT, name, 0)
            elif point == "active":
                node.set_offset(RECOVERY_POINT, name, int(segments[-1].stem))

        yield f"{number} {name} {how} point {point} {'clean' if clean else 'unclean'}", apply


def segment_files() -> Named:
    yield "first segment's log missing", lambda node: node.segments("orders-0")[0].unlink()
    yield "active segment's log missing", lambda node: node.segments("orders-0")[-1].unlink()
    yield "all logs missing", lambda node: [p.unlink() for p in node.segments("orders-0")]
    yield "first segment's log empty", lambda node: node.segments("orders-0")[0].write_bytes(b"")
    yield "active segment's log empty", lambda node: node.segments("orders-0")[-1].write_bytes(b"")

    def renamed(to: int, which: int, *, clean: bool = True) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            stem = node.segments("orders-0")[which].stem
            for path in sorted(node.partition("orders-0").glob(f"{stem}.*")):
                if path.suffix != ".snapshot":
                    path.rename(path.with_name(f"{to:020}{path.suffix}"))
            if not clean:
                node.unclean()
                node.set_offset(RECOVERY_POINT, "orders-0", 0)

        return apply

    def damaged(which: int, *, clean: bool) -> Callable[[Node], None]:
        """Recovery cuts the segment as it is loaded, and finds nothing to cut when it comes after an unclean stop."""

        def apply(node: Node) -> None:
            log = node.segments("orders-0")[which]
            found = batch_positions(log)
            position, size, *_ = found[len(found) // 2]
            flip(log, position + size - 1)
            log.with_suffix(".index").unlink()
            if not clean:
                node.unclean()
                node.set_offset(RECOVERY_POINT, "orders-0", 0)

        return apply

    for which in (0, -1):
        for clean in (True, False):
            words = f"segment {which} damaged, its index missing, {'clean' if clean else 'unclean'}"
            yield words, damaged(which, clean=clean)

    for to, which in ((5, 0), (1000, -1), (1300, -1), (1110, -1)):
        yield f"segment {which} renamed to {to}", renamed(to, which)
        yield f"segment {which} renamed to {to}, unclean", renamed(to, which, clean=False)
    for name in ("abc.log", "5.log", ".log", "00000000000000000000.log.gz", "-5.log", "00000000000000099999.log"):
        yield f"file {name}", lambda node, name=name: (node.partition("orders-0") / name).write_bytes(b"")
    for name in ("abc.index", "abc.snapshot", "5.index", "-5.timeindex", "99999999999999999999.index"):
        yield f"file {name}", lambda node, name=name: (node.partition("orders-0") / name).write_bytes(b"")

    def log_is_a_directory(node: Node) -> None:
        node.segments("orders-0")[-1].unlink()
        (node.partition("orders-0") / f"{1102:020}.log").mkdir()

    yield "log is a directory", log_is_a_directory

    def log_is_a_pipe(node: Node) -> None:
        log = node.segments("orders-0")[-1]
        log.unlink()
        os.mkfifo(log)

    yield "log is a pipe", log_is_a_pipe

    def log_is_a_link(node: Node) -> None:
        log = node.segments("orders-0")[-1]
        log.rename(node.work / "moved.log")
        log.symlink_to(node.work / "moved.log")

    yield "log is a link", log_is_a_link

    def appended_to_itself(node: Node) -> None:
        log = node.segments("orders-1")[-1]
        log.write_bytes(log.read_bytes() * 2)
        node.unclean()
        node.set_offset(RECOVERY_POINT, "orders-1", 0)

    yield "log appended to itself, unclean", appended_to_itself

    def middle_cut_out(node: Node) -> None:
        log = node.segments("orders-1")[-1]
        found = batch_positions(log)
        data = log.read_bytes()
        log.write_bytes(data[: found[3][0]] + data[found[6][0] :])

    yield "batches cut out of the middle", middle_cut_out

    def swapped(node: Node) -> None:
        log = node.segments("orders-1")[-1]
        found = batch_positions(log)
        data = log.read_bytes()
        one, two, three = found[3][0], found[4][0], found[5][0]
        log.write_bytes(data[:one] + data[two:three] + data[one:two] + data[three:])
        node.unclean()
        node.set_offset(RECOVERY_POINT, "orders-1", 0)

    yield "batches swapped, unclean", swapped

    def foreign_batch(node: Node) -> None:
        log, other = node.segments("orders-1")[-1], node.segments("clicks-gzip-0")[-1]
        log.write_bytes(log.read_bytes() + other.read_bytes()[: batch_positions(other)[0][1]])
        node.unclean()
        node.set_offset(RECOVERY_POINT, "orders-1", 0)

    yield "batch of another log behind, unclean", foreign_batch

    def magic(value: int, *, clean: bool) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            log = node.segments("orders-1")[-1]
            overwrite(log, batch_positions(log)[4][0] + 16, bytes([value]))
            if not clean:
                node.unclean()
                node.set_offset(RECOVERY_POINT, "orders-1", 0)

        return apply

    for value in (0, 1, 3, 255):
        yield f"magic {value} clean", magic(value, clean=True)
        yield f"magic {value} unclean", magic(value, clean=False)


def log_starts() -> Named:
    for offset in (0, 1, 500, 1101, 1102, 1103, 1264, 1265, 99999, -1):
        for clean in (True, False):

            def apply(node: Node, offset: int = offset, clean: bool = clean) -> None:
                node.set_offset(LOG_START, "orders-0", offset)
                if not clean:
                    node.unclean()

            yield f"{offset} {'clean' if clean else 'unclean'}", apply

    def beyond_a_cut(node: Node) -> None:
        node.set_offset(LOG_START, "orders-0", 1200)
        cut(node.segments("orders-0")[-1], 100)
        node.unclean()

    yield "past what recovery leaves", beyond_a_cut
