"""The documentation as a site: the pages below ``docs``, the README, the changelog and how to contribute, by Sphinx.

The site needs no server and no network: search runs in the browser, from a disk too, and light or dark is the reader's
choice. A link that leads nowhere, or to a heading that is not there, fails the build.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from release.archives import write_archive
from release.environment import Workplace, commit_time, run

REQUIREMENTS = ("sphinx>=8.1,<10", "myst-parser>=4,<6", "furo>=2024.8.6")
_TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")
_CONFIGURATION = """\
project = "kafkalog"
author = "the kafkalog authors"
extensions = ["myst_parser"]
root_doc = "README"
html_theme = "furo"
html_title = "kafkalog {version}"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 6
pygments_style = "friendly"
pygments_dark_style = "monokai"
"""
#: The order of the menu: a title, and the pages below it; a star stands for all others of the folder.
_MENU = (
    ("Start", ("docs/README", "docs/installing", "docs/runbooks/README")),
    ("Commands", ("docs/*",)),
    ("Reference", ("docs/output", "docs/finding-codes", "docs/formats/README")),
    (
        "How it is made",
        ("docs/reliability", "docs/performance", "docs/architecture", "docs/packaging", "CONTRIBUTING", "CHANGELOG"),
    ),
)


def site(place: Workplace) -> None:
    """``kafkalog-VERSION-docs.tar.gz``."""
    version = place.made("kafkalog-*.whl").name.split("-")[1]
    programs = place.environment("sphinx", *REQUIREMENTS)
    folder = place.scratch / f"kafkalog-{version}-docs"
    build_site(place.clone, programs / "sphinx-build", folder, place.scratch / "pages", version)
    write_archive(folder, place.output / f"{folder.name}.tar.gz", commit_time())


def build_site(checkout: Path, sphinx: Path, output: Path, pages: Path, version: str) -> None:
    """The site from a checkout's pages, which are copied to ``pages`` first; any warning fails."""
    pages.mkdir(parents=True)
    for name in _TOP_PAGES:
        shutil.copy(checkout / name, pages)
    shutil.copytree(checkout / "docs", pages / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__", "share"))
    (pages / "conf.py").write_text(_CONFIGURATION.format(version=version))
    for folder in ("docs/formats", "docs/runbooks"):
        _add_menu(pages / folder / "README.md", (("", tuple(_others(pages / folder, frozenset({"README"})))),))
    _add_menu(pages / "README.md", _whole_menu(pages))
    run(str(sphinx), "--quiet", "--fail-on-warning", "--keep-going", "-b", "html", str(pages), str(output))
    shutil.copy(output / "README.html", output / "index.html")
    shutil.rmtree(output / ".doctrees")


def _whole_menu(pages: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    named = frozenset(name for _, names in _MENU for name in names)
    stems = _others(pages / "docs", frozenset({"README"}))
    others = tuple(f"{name} <docs/{name}>" for name in stems if f"docs/{name}" not in named)
    return tuple(
        (title, tuple(each for name in names for each in (others if name == "docs/*" else (name,))))
        for title, names in _MENU
    )


def _others(folder: Path, left_out: frozenset[str]) -> list[str]:
    return [page.stem for page in sorted(folder.glob("*.md")) if page.stem not in left_out]


def _add_menu(page: Path, menu: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    """Add the menu of the pages below this one, in the notation of MyST."""
    with page.open("a", encoding="utf-8") as file:
        for title, names in menu:
            lines = "\n".join(names)
            caption = f":caption: {title}\n" if title else ""
            file.write(f"\n```{{toctree}}\n:hidden:\n{caption}\n{lines}\n```\n")
