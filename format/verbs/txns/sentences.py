"""The answer of txns in sentences: which transaction holds back which last stable offset, since when, what to do."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from format.timestamps import iso_time
from format.verbs.txns.terms import TransactionTerms
from format.verbs.txns.transaction_rows import OpenTransaction, open_transactions
from format.verbs.txns.txns import Transactions
from format.wording import counted

_MOST = 3


def sentences(result: Transactions, opened: list[OpenTransaction], terms: TransactionTerms) -> Iterator[str]:
    """A sentence for the first few that hang or hold a last stable offset, or one that says there is none."""
    shown = [each for each in opened if each.holds_last_stable_offset or each.is_hanging]
    shown.sort(key=lambda each: not each.is_hanging)  # hanging ones first: these need a command
    for each in shown[:_MOST]:
        yield _of_one(each, terms)
    if len(shown) > _MOST:
        count = len(shown) - _MOST
        holds, hangs = ("holds", "hangs") if count == 1 else ("hold", "hang")
        words = f"{counted(count, 'more transaction')} {holds} a last stable offset, or {hangs}; see the rows"
        more_hang = any(each.is_hanging for each in shown[_MOST:])
        yield f"{words} (--columns all shows the command to abort it)." if more_hang else f"{words}."
    if not opened:
        yield _none(result, terms)


def _none(result: Transactions, terms: TransactionTerms) -> str:
    """The sentence that there is none; for hanging transactions with the number of open ones."""
    place = counted(len(result.partitions), "partition")
    if not terms.only_hanging:
        who = "" if terms.transactional_id is None else f" of {terms.transactional_id}"
        if terms.producer_id is not None:
            who += f" of producer {terms.producer_id}"
        return f"No open transaction{who} in {place}."
    others = open_transactions(result, replace(terms, only_hanging=False))
    if not others:
        return f"No hanging or open transaction in {place}."
    unknown = sum(each.is_hanging is None for each in others)
    due = [each.hangs_after_ms for each in others if each.is_coordinator_done]
    if unknown:
        hanging = f"whether {unknown:,} of them hang is not known"
    elif due:
        counts = "1 counts" if len(due) == 1 else f"{len(due):,} count"
        hanging = f"no coordinator has all of them under way: {counts} as hanging from {iso_time(min(due))} on"
    elif any(each.is_coordinator_done is None for each in others):
        hanging = "none of them was silent for as long as --max-timeout"
    else:
        hanging = "none of them hangs: their coordinators have them under way"
    return f"{counted(len(others), 'open transaction')} in {place}, and {hanging}; to see what is open: --open."


def _of_one(each: OpenTransaction, terms: TransactionTerms) -> str:
    known = each.transaction
    who = f"producer {known.producer_id} epoch {known.producer_epoch}"
    if each.transactional_id is not None:
        who = f"{each.transactional_id} ({who})"
    since = f" since {iso_time(known.start_timestamp)}" if known.start_timestamp >= 0 else ""
    records, size_bytes = each.found.waiting(known)
    held = f"holds the last stable offset of {each.found.partition.name} at {each.found.last_stable_offset}"
    if not each.holds_last_stable_offset:
        held = f"has an open transaction in {each.found.partition.name} from offset {known.first_offset} on"
    words = (
        f"{who} {held}{since}, "
        f"with {counted(known.record_count, 'record')} of its own; {counted(records, 'record')} "
        f"({counted(size_bytes, 'byte')}) {'waits' if records == 1 else 'wait'} from there on."
    )
    if each.is_coordinator_done:
        state = "" if each.coordinator_state is None else f" (its state: {each.coordinator_state})"
        words += f" No coordinator has it under way{state}"
        if each.is_hanging:
            words += ", so none will end it."
        else:
            due = iso_time(each.hangs_after_ms)
            words += f": it ended while the files were read, or it counts as hanging from {due} on."
    elif each.coordinator_state is not None and each.timeout_ms is not None:
        words += f" Its coordinator has it in state {each.coordinator_state}, timeout {each.timeout_ms / 1000:g} s."
    command = each.abort_command(terms)
    if each.is_hanging and command is not None:
        words += f" To abort it: {command}"
    return words
