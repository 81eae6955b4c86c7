"""The pages and their generated parts.

A page is written by hand. A part of it is generated when it stands between two markers, each a line of its own::

    <!-- generated: layout "record batch, magic 2" -->
    …
    <!-- /generated -->

The first word is a name of PARTS, the others are its arguments. On a page with the line RUNS_COMMANDS the ``console``
blocks are generated as well: each line that begins with ``$`` is a command, and the lines below it what it prints (see
``tests.readme_tour``). Other pages see to their own.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from docs.generate import byte_dumps, tables
from tests.corpora import REPOSITORY
from tests.field import results as field_results
from tests.readme_tour import rewritten as with_outputs

DOCS = REPOSITORY / "docs"

PARTS: dict[str, Callable[..., str]] = {
    "layout": tables.layout_table,
    "spark-records": tables.spark_records_table,
    "spark-tables": tables.spark_tables,
    "finding-codes": tables.finding_code_tables,
    "exit-status": tables.exit_status_table,
    "diagnoses": tables.diagnosis_list,
    "limits": tables.limit_table,
    "other-pages": lambda: other_pages(),
    "batch": byte_dumps.batch_dump,
    "message": byte_dumps.message_dump,
    "entries": byte_dumps.entries_dump,
    "file": byte_dumps.text_file,
    "field": field_results.tables_of,
}

_PART = re.compile(r"^<!-- generated: (?P<words>.+?) -->\n(?P<body>.*?)^<!-- /generated -->$", re.DOTALL | re.MULTILINE)
#: The line that makes a page's console blocks ours.
RUNS_COMMANDS = "<!-- console blocks run in tests/_data -->"

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # some releases of jq do not know NO_COLOR
_CONSOLE = "```console\n"
_JQ_BLOCK = re.compile(r"^```console\n(?=(?:(?!^```$).)*?\bjq )", re.DOTALL | re.MULTILINE)
_UNRUN = "```console not run\n"


def pages() -> list[Path]:
    """Every page, in order."""
    return sorted(DOCS.rglob("*.md"))


def other_pages() -> str:
    """Links to the pages that the hand-written part of the index does not name, by their first heading."""
    index = _PART.sub("", (DOCS / "README.md").read_text(encoding="utf-8"))
    others = [page for page in sorted(DOCS.glob("*.md")) if page.name != "README.md" and f"({page.name})" not in index]
    titles = [(page.name, re.search("^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)) for page in others]
    return "\n".join(f"- [{title[1] if title else name}]({name})" for name, title in titles)


def rewritten(text: str) -> str:
    """The page with every generated part rebuilt; console blocks with jq stay where there is no jq."""
    text = _PART.sub(_part, text)
    if RUNS_COMMANDS not in text:
        return text
    if shutil.which("jq") is None:
        text = _JQ_BLOCK.sub(_UNRUN, text)
    return _COLOUR.sub("", with_outputs(text)).replace(_UNRUN, _CONSOLE)


def _part(match: re.Match[str]) -> str:
    name, *arguments = shlex.split(match["words"])
    if name not in PARTS:
        raise ValueError(f"no generated part is called {name!r}; there are {', '.join(PARTS)}")
    return f"<!-- generated: {match['words']} -->\n{PARTS[name](*arguments).strip()}\n<!-- /generated -->"
