"""The sentence of find: who can see an offset in this replica, and whether this replica is the one that consumers read.

Consumers read from the leader, so one replica says for sure what they get only where the metadata names it as the
leader. A broker with a replica selector also serves followers (KIP-392), which have the records of their leader.
"""

from __future__ import annotations

from format.layout import CLUSTER_METADATA_TOPIC
from format.state.cluster_context import Assignment
from format.verbs.find.trace import Match, Visibility


def visibility_sentence(match: Match, name: str, assignment: Assignment, node_id: int | None) -> str:
    """Such as ``offset 7 is visible to every consumer while node 1 leads orders-0, as it does by the metadata of …``.

    ``name`` is that of the partition, ``node_id`` the node of this replica. Empty for an unknown visibility.
    """
    if match.visibility is None:
        return ""
    subject = f"offset {match.location.offset} is"
    if match.location.topic == CLUSTER_METADATA_TOPIC:
        what = match.note or "in this replica of the metadata log; whether the quorum committed it is not stored"
        return f"{subject} {what}. Consumers never read this log"
    is_leader = assignment.is_leader(node_id)
    if match.visibility is not Visibility.VISIBLE:
        return f"{subject} {match.note}{'' if is_leader else f'. {standing(name, assignment, node_id)}'}"
    unsure = "" if match.is_replicated else ", if it is replicated: no high watermark is here"
    if is_leader:
        leads = f"while node {node_id} leads {name}, as it does by {assignment.source}"
        return f"{subject} visible to every consumer {leads}{unsure}"
    return f"{subject} visible in this replica{unsure}. {standing(name, assignment, node_id)}"


def standing(name: str, assignment: Assignment, node_id: int | None) -> str:
    """What this replica, which is not known to lead, is to consumers; empty for the leader."""
    if assignment.state is None:
        return f"Consumers read from the leader, which is not known: {assignment.unknown}"
    if assignment.is_leader(node_id):
        return ""
    here = "" if node_id is None or node_id in assignment.replicas else f"Node {node_id} has no replica of {name}. "
    if assignment.leader is None:
        return f"{here}{name} has no leader ({assignment.last_members}), by {assignment.source}: no consumer reads it"
    whose = "its replica was not read" if node_id is not None else "no meta.properties says whose replica this is"
    return f"{here}Consumers read from the leader, node {assignment.leader} by {assignment.source}: {whose}"
