"""``python -m docs.generate`` writes every generated part anew; with names of pages, only theirs."""

from __future__ import annotations

import sys

from docs.generate.pages import DOCS, pages, rewritten


def main(names: list[str]) -> int:
    known = {str(page.relative_to(DOCS)): page for page in pages()}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such page: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = False
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
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
