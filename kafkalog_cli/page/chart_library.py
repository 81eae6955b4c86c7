"""The script that draws the charts of a page: Vega, Vega-Lite and Vega-Embed, from the package vl-convert.

vl-convert bundles them into one script, which takes seconds. So the script is kept in the cache of the user, under a
name that changes with the files of the package: to load the package takes longer than to read the script. The
standalone build has the script instead of the package, which is large.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from format.user_cache import note_use, remove_unused, user_cache
from format.version import VERSION

#: The script of a build without vl_convert.
SHIPPED = Path(__file__).with_name("chart_library.js")

if not SHIPPED.is_file():
    import vl_convert

#: Vega-Embed holds an interpreter of expressions: the policy of the page allows no function to be made of text.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"
#: The last line of a script that was written whole.
_END = "\n/* end of the chart library */\n"


def chart_library() -> str:
    """The script. Raises ValueError if it cannot be part of a page."""
    if SHIPPED.is_file():
        return SHIPPED.read_text(encoding="utf-8")
    cache = user_cache()
    kept = None if cache is None else cache / f"charts-{VERSION}-{_package_state()}.js"
    try:
        script = "" if kept is None else kept.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        script = ""
    if not script.endswith(_END):
        script = made_script()
        if kept is not None:
            _keep(kept, script)
    elif kept is not None:
        note_use(kept)
    return script


def _package_state() -> str:
    """The bytes and the newest time of modification of the package's files."""
    with os.scandir(vl_convert.__path__[0]) as entries:
        states = [entry.stat() for entry in entries if entry.is_file()]
    return f"{sum(each.st_size for each in states)}-{max(each.st_mtime_ns for each in states)}"


def _versions() -> tuple[str, ...]:
    return (
        f"vega {vl_convert.get_vega_version()}",
        f"vega-lite {vl_convert.get_vegalite_versions()[-1]}",
        f"vega-embed {vl_convert.get_vega_embed_version()}",
    )


def made_script() -> str:
    """The script, made by vl_convert. Raises ValueError if it cannot be part of a page."""
    script = vl_convert.javascript_bundle(_SNIPPET).strip()
    if "</script" in script or "<!--" in script:
        raise ValueError("the chart library would end its element of the page")
    notice = f"/*! {', '.join(_versions())}, as bundled by vl-convert; BSD-3-Clause, see vega.github.io */"
    return f"{notice}\n{script}{_END}"


def _keep(path: Path, script: str) -> None:
    """Write the script for the next page; if that fails, the next page takes longer."""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as new:
            new.write(script)
        os.replace(new.name, path)
    except OSError:
        pass
    remove_unused(path.parent)
