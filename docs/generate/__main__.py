"""``python -m docs.generate`` writes every generated part and manual page anew; with names of pages, only theirs.

The JSON Schema of the rows is always written.
"""

from __future__ import annotations

import sys

from docs.generate.man_pages import MAN_PAGES, man_pages
from docs.generate.pages import DOCS, pages, rewritten
from docs.generate.row_schemas import SCHEMA_PATH, write_row_schemas


def main(names: list[str]) -> int:
    known = {str(page.relative_to(DOCS)): page for page in pages()}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such page: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = False
    if write_row_schemas():
        print(f"rewritten: {SCHEMA_PATH.name}")
    for name in names or known:
        page = known[name]
        before = page.read_text(encoding="utf-8")
        try:
            after = rewritten(before)
        except Exception as error:  # one page that cannot be made, such as for a command half done, stops no other
            print(f"failed: docs/{name}: {type(error).__name__}: {error}", file=sys.stderr)
            failed = True
            continue
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"rewritten: docs/{name}")
    if not names:
        _write_man_pages()
    return int(failed)


def _write_man_pages() -> None:
    made = man_pages()
    MAN_PAGES.mkdir(parents=True, exist_ok=True)
    for page in MAN_PAGES.iterdir():
        if page.name not in made:
            page.unlink()
            print(f"removed: {page.name}")
    for name, text in made.items():
        page = MAN_PAGES / name
        if not page.exists() or page.read_text(encoding="ascii") != text:
            page.write_text(text, encoding="ascii")
            print(f"rewritten: {name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
