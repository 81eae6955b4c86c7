"""Reports for tests of the page: one of a damaged log directory, and one whose every text tries to do something."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from format import columns
from format.columns import RowSchema
from format.findings import Severity
from format.node.target import Target
from format.verbs.doctor.diagnosis import Diagnosis
from format.verbs.report.report import ReportRun
from format.verbs.report.terms import Report, ReportTerms
from kafkalog_cli.page.page import TABLES

NOW_MS = 1_795_300_000_000
ATTACKS = (
    "<img src=x onerror=\"document.title='owned'\">",
    '</script><script>document.title="owned"</script>',
    '"><svg onload=document.title="owned">',
    "' onmouseover='document.title=`owned`' x='",
    "javascript:document.title='owned'",
    "{{ 7 * 7 }}{% raw %}",
    "]]><!--",
    "\u202egpj.exe\u2028\x00\udcff\x1b[2J",
    "<style>*{display:none}</style>",
    "http://example.invalid/x",
)
#: Columns whose values are words of this program, never names.
_WORDS = {"severity": "fatal", "state": "fatal", "kind": "damage", "codec": "zstd", "mark": None}
_CHARTS = ("bytes_by_time", "bytes_by_offset", "damaged_place", "batch_sizes", "finding_summary")


def report_of(*paths: Path, **terms: Any) -> Report:
    """The report of some paths."""
    run = ReportRun([Target(path) for path in paths], ReportTerms(NOW_MS, **terms))
    for _ in run.findings():
        pass
    return run.finish()


def damaged_node(source: Path, folder: Path) -> Path:
    """A copy of a log directory in which a batch of orders-0 has a wrong CRC, and payments-0 ends inside a batch."""
    node = shutil.copytree(source, folder / "node-1")
    log = sorted((node / "orders-0").glob("*.log"))[0]
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 0xFF
    log.write_bytes(content)
    log = sorted((node / "payments-0").glob("*.log"))[-1]
    log.write_bytes(log.read_bytes()[:-20])
    return node


def hostile_report() -> Report:
    """A report with a row of each attack in each table and chart."""
    report = Report(NOW_MS, list(ATTACKS), sentences=list(ATTACKS), not_checked=list(ATTACKS))
    report.diagnoses = [
        Diagnosis(rank, Severity.FATAL, "verify", attack, attack, attack, rank, attack, "file-damaged")
        for rank, attack in enumerate(ATTACKS, 1)
    ]
    report.counts = dict.fromkeys(("log_dirs", "partitions", "segments", "records", "bytes", "lost_offsets"), 2**62)
    report.severities = {"fatal": len(ATTACKS), "error": 0, "warning": 0, "info": 0}
    schemas = {schema.type: schema for schema in columns.SCHEMAS}
    for name in (*(table.type for table in TABLES), *_CHARTS):
        table = report.table(schemas[name])
        table.extend(_row(schemas[name], attack, number) for number, attack in enumerate(ATTACKS))
    return report


def _row(schema: RowSchema, attack: str, number: int) -> tuple[Any, ...]:
    return tuple(_value(column.name, column.type, attack, number) for column in schema.columns)


def _value(name: str, kind: str, attack: str, number: int) -> Any:
    if name in _WORDS:
        return _WORDS[name]
    if name == "codecs":
        return "zstd:1000,none:5"
    if name == "skew":
        return 2.5
    if kind == "timestamp":
        return NOW_MS + number
    if kind == "int":
        return 1000 + number
    if kind == "bool":
        return bool(number % 2)
    return attack if kind == "string" else {attack: [attack, None]}
