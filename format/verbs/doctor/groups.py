"""What is wrong with consumer groups: offsets out of range, large lags, very many commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from format import layout
from format.timestamps import iso_time
from format.verbs.doctor.draft import Draft, command
from format.verbs.doctor.evidence import Evidence
from format.wording import counted

#: How much later than a commit the newest record must be for a group to count as stopped, and how large its lag.
_STOPPED_MS = 10 * 60 * 1000
_BEHIND_LAG = 1_000
#: More commits an hour than these for each partition are unusual: clients commit every five seconds by default.
_MANY_COMMITS = 3_600
_MANY_COMMIT_BYTES = 8 * 2**20


def out_of_range(evidence: Evidence) -> Iterator[Draft]:
    """Committed offsets outside of their logs."""
    members = {each["group"]: each["member_count"] for each in evidence.groups}
    for row in evidence.group_offsets:
        is_past_end = row["out_of_range"] == "past_log_end"
        if row["out_of_range"] is None or row["offset"] is None:
            continue
        if is_past_end and evidence.is_live:
            continue  # the commit may be newer than what was read of the log
        if not is_past_end and not members.get(row["group"]):
            continue
        place = f"{row['topic']}-{row['partition']}"
        bound = f"past its log end {row['log_end_offset']:,}" if is_past_end else "before its log start"
        at_hand = "" if _is_leader_here(evidence, row["topic"], row["partition"]) else " at the paths"
        words = f"Group {row['group']} has committed offset {row['offset']:,} of {place}, {bound}{at_hand}: its "
        words += "consumers continue where auto.offset.reset says."
        yield Draft("group-out-of-range", f"group {row['group']}", words, row["path"], row["record_offset"],
                    _follow(evidence, row["group"]))  # fmt: skip


def _is_leader_here(evidence: Evidence, topic: str, partition: int) -> bool:
    image = evidence.context.image
    state = None if image is None else image.partition_of(topic, partition)
    return state is not None and state.leader in evidence.node_ids


def behind(evidence: Evidence) -> Iterator[Draft]:
    """Groups with a large lag that stopped to commit, or have read less than half of a partition."""
    if evidence.is_live:
        return
    furthest: dict[str, dict[str, Any]] = {}
    for row in evidence.group_offsets:
        if row["group"] not in furthest or (row["lag"] or 0) > (furthest[row["group"]]["lag"] or 0):
            furthest[row["group"]] = row
    newest = evidence.newest_timestamp
    for row in evidence.groups:
        group, lag, last = row["group"], row["total_lag"] or 0, row["last_commit_timestamp"]
        most = furthest.get(group)
        if lag < _BEHIND_LAG or last is None or most is None:
            continue
        kept = (most["log_end_offset"] or 0) - (evidence.log_start(most["topic"], most["partition"]) or 0)
        if newest - last < _STOPPED_MS and 2 * (most["lag"] or 0) < kept:
            continue
        share = "all" if most["lag"] == lag else f"{most['lag']:,} of them"
        words = f"It is {counted(lag, 'record')} behind, {share} on {most['topic']}-{most['partition']}. "
        words += f"It committed last at {iso_time(last)}; the newest record here is of {iso_time(newest)}."
        yield Draft("group-behind", f"group {group}", words, most["path"], most["record_offset"],
                    _follow(evidence, group), weight=lag)  # fmt: skip


def committing_often(evidence: Evidence) -> Iterator[Draft]:
    """Groups that commit much more often than clients do by default, in much of a coordinator's log."""
    for row in evidence.groups:
        each_hour = (row["commits_per_hour"] or 0) / max(row["committed_partitions"], 1)
        if each_hour < _MANY_COMMITS or (row["size_bytes"] or 0) < _MANY_COMMIT_BYTES:
            continue
        place = f"{layout.CONSUMER_OFFSETS_TOPIC}-{row['coordinator_partition']}"
        words = f"Group {row['group']} made {counted(row['commit_count'], 'commit')} for "
        words += (
            f"{counted(row['committed_partitions'], 'partition')}, {row['commits_per_hour']:,} an hour, which take "
        )
        words += f"{counted(row['size_bytes'], 'byte')} of {place}: let it commit less often."
        path = next((each.path for each in evidence.partitions if each.path.endswith(f"/{place}")), None)
        follow = _follow(evidence, row["group"])
        yield Draft("group-commits", place, words, path, None, follow, weight=row["size_bytes"])


def _follow(evidence: Evidence, group: str) -> str:
    return command("groups", *(str(each.path) for each in evidence.targets), "--group", group)
