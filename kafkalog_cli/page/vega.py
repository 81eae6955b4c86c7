"""Charts as Vega-Lite and Vega specifications, which the Vega library draws as SVG in the page.

The page holds the library (see ``chart_library``), so no chart is rendered while the page is made. Colours are names of
CSS variables, which the page sets for light, dark and print. Each mark has its tooltip as ``aria-label``.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from kafkalog_cli.page.script_json import script_json

_INK, _FAINT = "var(--ink)", "var(--line)"
#: The width of a chart, without its axes.
WIDTH = 940
FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
_CONFIG = {
    "background": None,
    "font": FONT,
    "axis": {
        "labelColor": _INK, "titleColor": _INK, "domainColor": _FAINT, "tickColor": _FAINT, "gridColor": _FAINT,
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
    },
    "legend": {"labelColor": _INK, "titleColor": _INK, "orient": "bottom", "labelFontSize": 11, "symbolType": "square",
               "columnPadding": 14, "labelLimit": 240},
    "view": {"stroke": None},
}  # fmt: skip
_HOLDER = Markup(
    '<div class="chart" data-mode="{}" role="img" aria-label="{}"><script type="application/json">{}</script></div>'
)


def chart(spec: dict[str, Any], label: str) -> Markup:
    """An element with a Vega-Lite specification; ``label`` describes the chart."""
    return _HOLDER.format("vega-lite", label, script_json({"config": _CONFIG, **spec}))


def vega_chart(spec: dict[str, Any], label: str) -> Markup:
    """The same for a Vega specification."""
    return _HOLDER.format("vega", label, script_json({"config": {"background": None}, **spec}))
