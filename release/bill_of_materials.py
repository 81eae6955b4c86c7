"""The bill of materials: every package that an installation brings, with versions and licences, in CycloneDX."""

from __future__ import annotations

import json
import re

from release.chart_library import LIBRARY
from release.environment import Workplace, run


def bill_of_materials(place: Workplace) -> None:
    """``kafkalog-VERSION.cdx.json``, of a new environment with the wheel, ``fast`` and ``follow``."""
    built = place.made("kafkalog-*.whl")
    installed = place.environment("installed", f"{built}[fast,follow]")
    tools = place.environment("cyclonedx", "cyclonedx-bom>=5,<9")
    output = place.output / f"{'-'.join(built.name.split('-')[:2])}.cdx.json"
    run(
        *(str(tools / "cyclonedx-py"), "environment", "--output-reproducible", "--output-format", "JSON"),
        *("--pyproject", str(place.clone / "pyproject.toml"), "--output-file", str(output)),
        str(installed / "python"),
    )
    listed = json.loads(output.read_text())
    listed["components"] += charts()
    output.write_text(json.dumps(listed, indent=2) + "\n")


def charts() -> list[dict[str, object]]:
    """The libraries in the script that draws charts, by its first line."""
    with LIBRARY.open(encoding="utf-8") as script:
        found = re.findall(r"(vega[a-z-]*) ([0-9.]+)", script.readline())
    return [
        {
            "bom-ref": f"{name}=={version}",
            "type": "library",
            "name": name,
            "version": version,
            "licenses": [{"license": {"id": "BSD-3-Clause"}}],
            "purl": f"pkg:npm/{name}@{version}",
        }
        for name, version in found
    ]
