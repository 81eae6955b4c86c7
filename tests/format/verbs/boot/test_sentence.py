"""The answer of boot in one sentence: what is counted, and in which number."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from format.verbs.boot.sentence import is_usual, listed_steps, otherwise, sentence
from format.verbs.boot.steps import Action, BootResult, BootTerms, Step


@pytest.mark.parametrize(("count", "words"), [(1, "1 reason"), (2, "2 reasons")])
def test_reasons_are_counted(count: int, words: str) -> None:
    step = Step(Action.REFUSE, Path("/logs/meta.properties"), broker_message="it is bad")
    start = Step(Action.RECOVER, Path("/logs/orders-0/00000000000000000000.log"), "orders", 0)
    refused = BootResult(steps=[step] * count + [start])
    assert sentence(refused, BootTerms()) == f"A 4.4 broker would refuse to start: {words}."
    assert otherwise(refused) == ""
    waits = replace(step, broker_message=None)
    assert sentence(BootResult(steps=[waits] * count), BootTerms()) == f"A 4.4 broker would not start: {words}."
    unknown = BootResult(steps=[replace(step, action=Action.UNKNOWN)] * count + [start])
    predicted = f"It cannot be predicted whether a 4.4 broker would start: {words}."
    assert sentence(unknown, BootTerms()) == predicted
    assert otherwise(unknown) == ""


LOG = Path("/logs/orders-0/00000000000000000000.log")


@pytest.mark.parametrize(
    ("step", "is_one"),
    [
        (Step(Action.RECOVER, LOG, "orders", 0), True),
        (Step(Action.RECOVER, LOG, "orders", 0, lost_offsets=(3, 4)), False),
        (Step(Action.REBUILD_INDEX, LOG.with_suffix(".index")), True),
        (Step(Action.REBUILD_INDEX, LOG.with_suffix(".index"), may_lose=True), False),
        (Step(Action.REBUILD_SNAPSHOT, LOG.with_suffix(".snapshot")), True),
        (Step(Action.DELETE, LOG.with_suffix(".timeindex")), True),
        (Step(Action.DELETE, Path("/logs/.kafka_cleanshutdown")), True),
        (Step(Action.DELETE, LOG.with_suffix(".log.cleaned")), True),
        (Step(Action.DELETE, LOG), False),
        (Step(Action.DELETE, Path("/logs/edge.index-0"), "edge.index", 0), False),
        (Step(Action.DELETE, Path("/logs/orders-0.0123-delete"), "orders", 0), False),
        (Step(Action.CREATE, Path("/logs/meta.properties")), True),
        (Step(Action.CREATE, Path("/logs/t-0"), "t", 0, log_end_offset=0), False),
        (Step(Action.TRUNCATE, LOG, "orders", 0, bytes=1), False),
        (Step(Action.TRUNCATE, LOG.with_name("leader-epoch-checkpoint"), "orders", 0, offset=9), True),
        (Step(Action.RENAME, Path("/logs/orders-0")), False),
        (Step(Action.OFFLINE, Path("/logs")), False),
        (Step(Action.KEEP, LOG, "orders", 0, bytes=71), False),
    ],
)
def test_usual_steps_neither_stop_nor_lose_anything(step: Step, is_one: bool) -> None:
    assert is_usual(step) is is_one


def test_usual_steps_are_counted() -> None:
    metadata = Step(Action.RECOVER, LOG, "__cluster_metadata", 0)
    recovered = Step(Action.RECOVER, LOG, "orders", 0)
    steps = [recovered, metadata, Step(Action.REBUILD_INDEX, LOG.with_suffix(".index"))]
    steps += [Step(Action.TRUNCATE, LOG.with_name("leader-epoch-checkpoint"))]
    words = (
        "it recovers 1 log and the metadata log, rebuilds 1 index and shortens 1 leader-epoch-checkpoint "
        "(--every-file lists them)."
    )
    assert otherwise(BootResult(steps=steps)) == f"I{words[1:]}"
    stray = Step(Action.RENAME, Path("/logs/orders-0"))
    assert otherwise(BootResult(steps=[*steps, stray])) == f"Otherwise {words}"
    assert otherwise(BootResult(steps=[stray])) == ""
    assert sentence(BootResult(steps=steps), BootTerms()) == "A 4.4 broker would start."


def test_of_each_action_people_read_the_first_steps() -> None:
    strays = [Step(Action.RENAME, Path(f"/logs/orders-{number}")) for number in range(1234)]
    cut = Step(Action.TRUNCATE, LOG, "orders", 0, bytes=1)
    steps, more = listed_steps(BootResult(steps=[*strays, cut, Step(Action.RECOVER, LOG, "orders", 0)]))
    assert steps == [*strays[:10], cut]
    assert more == "Not listed: 1,224 more of rename (--every-file lists them)."
    assert listed_steps(BootResult(steps=strays[:10])) == (strays[:10], "")


def test_one_byte_is_truncated() -> None:
    step = Step(Action.TRUNCATE, Path("/logs/orders-0/00000000000000000000.log"), "orders", 0, bytes=1)
    assert (
        sentence(BootResult(steps=[step]), BootTerms()) == "A 4.4 broker would start: it truncates 1 byte of orders-0."
    )


def test_bytes_that_stay_after_the_last_batch_are_named() -> None:
    """A broker appends after them, so consumers fail there."""
    step = Step(Action.KEEP, Path("/logs/orders-0"), "orders", 0, position=100, bytes=71)
    words = "A 4.4 broker would start: it appends after 71 unreadable bytes at the end of orders-0."
    assert sentence(BootResult(steps=[step]), BootTerms()) == words


def test_a_future_replica_is_named_as_such() -> None:
    """A log directory may have a name that ends so, too."""
    name = f"{0:020}.log"
    for directory, words in (("/logs/orders-0.0123-future", "the future replica of "), ("/disk-future/orders-0", "")):
        step = Step(Action.TRUNCATE, Path(directory, name), "orders", 0, bytes=9)
        said = sentence(BootResult(steps=[step]), BootTerms())
        assert said == f"A 4.4 broker would start: it truncates 9 bytes of {words}orders-0."


def test_a_future_replica_that_is_cut_is_named_loudly() -> None:
    step = Step(Action.TRUNCATE, Path("/logs/orders-0.0123-future"), "orders", 0, offset=0)
    words = "it then cuts the future replica of orders-0 to the empty log (copy it before)."
    assert sentence(BootResult(steps=[step]), BootTerms()).endswith(words)


def test_what_was_lost_before_is_not_lost_by_the_start() -> None:
    step = Step(Action.KEEP, Path("/logs/orders-0"), "orders", 0, lost_offsets=(3, 4))
    words = "it goes on without 2 offsets below the high watermark (orders-0 3 to 4)."
    assert sentence(BootResult(steps=[step]), BootTerms()).endswith(words)


def test_a_log_directory_that_fails_is_named_whole() -> None:
    failed = Step(Action.OFFLINE, Path("/disk-1/recovery-point-offset-checkpoint"))
    other = Step(Action.OFFLINE, Path("/disk-2/t-0"), "t", 0)
    result = BootResult(steps=[failed, other], failed_dirs=[Path("/disk-1")])
    assert sentence(result, BootTerms()) == (
        "A 4.4 broker would start: it does not serve the log directory /disk-1 and t-0."
    )
    result.failed_dirs.append(Path("/disk-3"))
    assert "it does not serve the log directories /disk-1 and /disk-3 and t-0." in sentence(result, BootTerms())


def test_a_future_replica_without_a_current_one_is_to_be_copied() -> None:
    step = Step(Action.TRUNCATE, Path("/logs/t-0.0123-future"), "t", 0, offset=0, may_lose=True)
    words = "it may cut the future replica of t-0, whose current one is not here (copy it before)."
    assert sentence(BootResult(steps=[step]), BootTerms()) == f"A 4.4 broker would start: {words}"
