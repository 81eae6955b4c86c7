"""Charts as SVG, rendered from Vega-Lite and Vega specifications when the page is made.

vl-convert renders them in this process, without a browser or a network. Colours are names of CSS variables, which the
page sets for light, dark and print. Each mark has its tooltip as ``aria-label``.
"""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

_NAMESPACES = re.compile(r' xmlns(?::\w+)?="[^"]*"')
#: All elements that Vega writes for the marks of these charts.
_ELEMENTS = frozenset({"svg", "g", "path", "rect", "line", "text", "defs", "clipPath", "title"})
_TAG = re.compile(r"<\s*/?\s*([A-Za-z][\w:-]*)([^>]*)>")
_UNSAFE_ATTRIBUTE = re.compile(r"\s(?:on\w+|href|xlink:href|src)\s*=", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')
#: Attributes of marks for screen readers, which have the label.
_ROLE = re.compile(r' (?:role="graphics-\w+"|aria-roledescription="[^"]*"|pointer-events="none"|aria-hidden="true")')
_INK, _FAINT = "var(--ink)", "var(--line)"
#: A font whose widths vl-convert knows, so that labels get enough room.
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


def chart(spec: dict[str, Any], label: str) -> Markup:
    """A Vega-Lite specification as an SVG element; ``label`` describes the chart."""
    import vl_convert

    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": _CONFIG, **spec}
    return _element(vl_convert.vegalite_to_svg(whole, allowed_base_urls=[]), label)


def vega_chart(spec: dict[str, Any], label: str) -> Markup:
    """The same for a Vega specification."""
    import vl_convert

    whole = {"$schema": "https://vega.github.io/schema/vega/v5.json", "config": {"background": None}, **spec}
    return _element(vl_convert.vega_to_svg(whole, allowed_base_urls=[]), label)


def _element(svg: str, label: str) -> Markup:
    """The SVG without attributes that the page does not need. Raises ValueError for elements that no chart has."""
    for name, attributes in _TAG.findall(svg):
        if name not in _ELEMENTS or _UNSAFE_ATTRIBUTE.search(_QUOTED.sub('""', attributes)):
            raise ValueError(f"the chart holds a <{name}> that is none of its marks")
    svg = _ROLE.sub("", _NAMESPACES.sub("", svg))
    opening = Markup('<svg role="img" aria-label="{}"').format(label)
    return Markup(svg.replace("<svg", str(opening), 1))
