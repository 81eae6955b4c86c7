"""The bill of materials: every package that an installation brings, with versions and licences, in CycloneDX."""

from __future__ import annotations

from release.environment import Workplace, run
from release.standalone import EXTRAS


def bill_of_materials(place: Workplace) -> None:
    """``kafkalog-VERSION.cdx.json``, of a new environment with the wheel and what the standalone build has."""
    built = place.made("kafkalog-*.whl")
    installed = place.environment("installed", f"{built}[{','.join(EXTRAS)}]")
    tools = place.environment("cyclonedx", "cyclonedx-bom>=5,<9")
    output = place.output / f"{'-'.join(built.name.split('-')[:2])}.cdx.json"
    run(
        *(str(tools / "cyclonedx-py"), "environment", "--output-reproducible", "--output-format", "JSON"),
        *("--pyproject", str(place.clone / "pyproject.toml"), "--output-file", str(output)),
        str(installed / "python"),
    )
