"""A diagnosis: one sentence about what is wrong, with its rank, its evidence and the next command."""

from __future__ import annotations

import msgspec

from format.columns import DIAGNOSIS
from format.findings import Severity
from format.rows.record_rows import Row


class Diagnosis(msgspec.Struct, frozen=True):
    """One thing that is wrong. The rank counts from 1, the most urgent.

    ``question`` is the verb that answers more about it, ``subject`` the partition, node, group or file, and ``code``
    the template of the sentence. ``command`` runs as it is printed; None where there is nothing to run.
    """

    rank: int
    severity: Severity
    question: str
    subject: str
    sentence: str
    evidence_path: str | None
    evidence_offset: int | None
    command: str | None
    code: str

    def row(self) -> Row:
        """The fields in the order of columns.DIAGNOSIS."""
        values = msgspec.structs.asdict(self)
        values["severity"] = self.severity.label
        return tuple(values[name] for name in DIAGNOSIS.names)
