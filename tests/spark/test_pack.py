"""The environment of executors: what pip installs into it, and what is said when pip cannot."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from format.version import VERSION
from spark_jobs import pack
from tests.corpora import REPOSITORY


@pytest.mark.parametrize("is_there", [True, False])
def test_what_was_installed_from_a_wheel_is_packed_from_it(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "with space" / f"kafkalog-{VERSION}.whl"
    wheel.parent.mkdir()
    if is_there:
        wheel.touch()
    recorded = json.dumps({"url": wheel.as_uri(), "archive_info": {}})
    monkeypatch.setattr(pack, "distribution", lambda name: SimpleNamespace(read_text=lambda file: recorded))
    monkeypatch.setattr(pack, "__file__", str(tmp_path / "site-packages" / "spark_jobs" / "pack.py"))
    assert pack.source_of_this() == (str(wheel) if is_there else f"kafkalog=={VERSION}")


def test_a_checkout_and_a_release_of_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Path(pack.source_of_this()) / "pyproject.toml").is_file()
    monkeypatch.setattr(pack, "__file__", str(tmp_path / "site-packages" / "spark_jobs" / "pack.py"))
    monkeypatch.setattr(pack, "distribution", lambda name: SimpleNamespace(read_text=lambda file: None))
    assert pack.source_of_this() == f"kafkalog=={VERSION}"


def test_the_archive_has_the_packages_of_the_extras_that_executors_need() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {each for name in ("arrow", "spark-provided", "remote") for each in project["optional-dependencies"][name]}
    assert {each for each in needed if not each.startswith("kafkalog[")} == set(pack.EXECUTOR_PACKAGES)


def test_a_package_that_pip_does_not_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    target = tmp_path / "env.tar.gz"
    with pytest.raises(pack.PackFailed, match=r"pip could not install kafkalog==0.0.0 .*set PIP_FIND_LINKS"):
        pack.pack(target, "kafkalog==0.0.0")
    assert list(tmp_path.iterdir()) == []
