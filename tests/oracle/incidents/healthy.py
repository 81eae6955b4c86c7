"""Directories with which nothing is wrong."""
from __future__ import annotations
from pathlib import Path
from tests.oracle.incidents.cluster import Lab

def build_healthy(lab: Lab, folder: Path) -> None: ...
def ask_healthy(program: Path, folder: Path, screens: Path) -> str:
    return ""
