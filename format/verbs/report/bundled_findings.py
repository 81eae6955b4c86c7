"""Merges the findings of a bundle with its batch headers, in the order of positions."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from format.findings import Finding
from format.scan.protocol import LogUnit
from format.verbs.report.survey import Survey
from format.verbs.verify.walk import WalkedChunk


class FindingsInBundle:
    """Findings of one bundle: the survey gets each after the batches before it."""

    def __init__(self, findings: Sequence[Finding], survey: Survey) -> None:
        self.findings = findings
        self._survey = survey
        self._waiting: dict[str, deque[Finding]] = {}
        for found in sorted(findings, key=lambda each: each.location.position or 0):
            self._waiting.setdefault(found.location.path, deque()).append(found)

    def see(self, log: LogUnit, walked: WalkedChunk) -> None:
        """Pass a chunk of a segment to the survey, and the findings in it; chunks come in log order."""
        self._survey.see(log, walked)
        waiting, table = self._waiting.get(str(log.path)), walked.table
        end = int(table.end_position[-1]) if len(table) else 0
        if walked.damage is not None:
            end = max(end, walked.damage.position + 1)
        while waiting and (waiting[0].location.position or 0) < end:
            self._survey.find(waiting.popleft())

    def finish(self) -> None:
        """Pass the other findings to the survey, which are not about a place in a log."""
        for waiting in self._waiting.values():
            for found in waiting:
                self._survey.find(found)
        self._waiting.clear()
