"""The manual pages that are installed with the program: up to date, and without a fault that man would show."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from docs.generate.man_pages import MAN_PAGES, man_pages
from kafkalog_cli.command_table import COMMANDS
from kafkalog_cli.exit_codes import exit_status_rows
from tests.conftest import unavailable

REGENERATE = "regenerate with: python -m docs.generate"


def test_there_is_a_page_for_the_program_and_each_command_and_each_is_up_to_date() -> None:
    made = man_pages()
    assert {"kafkalog.1", *(f"kafkalog-{entry.name}.1" for entry in COMMANDS)} <= set(made)
    there = {page.name: page.read_text(encoding="ascii") for page in MAN_PAGES.iterdir()}
    assert sorted(there) == sorted(made), REGENERATE
    assert [name for name in made if there[name] != made[name]] == [], REGENERATE


@pytest.fixture(scope="module")
def groff() -> str:
    path = shutil.which("groff")
    if path is None:
        unavailable("groff is not installed")
    assert path is not None
    return path


def test_no_page_has_a_fault(groff: str) -> None:
    command = [groff, "-man", "-ww", "-z", "-Tutf8", *sorted(map(str, MAN_PAGES.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_page_shows_options_meanings_examples_and_exit_status(groff: str) -> None:
    command = [groff, "-man", "-Tascii", "-P-c", "-P-b", "-P-u", str(MAN_PAGES / "kafkalog-verify.1")]
    shown = " ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert "--partitioner murmur2" in shown
    assert "kafkalog verify --level crc /var/kafka/orders-0" in shown
    for code, meaning in exit_status_rows():
        assert f"{code} {meaning.split()[0]}" in shown
