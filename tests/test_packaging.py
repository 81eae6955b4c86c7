"""What an installation and the README promise."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from format.kernel.compiled import COMPILED_MODULES
from tests.corpora import REPOSITORY
from tests.running import Run

pytestmark = pytest.mark.long

KERNEL = REPOSITORY / "format" / "kernel"
ALL_MODULES = [f"format.kernel.{name}" for name in (*COMPILED_MODULES, "memoryviews")]
NOTHING_BUILT = ("[] set()", "set() None")
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def project() -> dict[str, object]:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]


def readme_block(heading: str) -> str:
    """The first fenced block after a heading, as .ci/run takes it."""
    found = re.search(rf"^## {re.escape(heading)}\n.*?^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    return found[1]


@pytest.mark.parametrize("heading", ["Try it", "Run the tests"])
def test_each_readme_command_stands_alone(heading: str) -> None:
    """One line, which needs nothing but Python and begins with an environment of its own."""
    (line,) = readme_block(heading).splitlines()
    assert line.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    words = line.split()
    for path in (word for word in words if word.startswith("tests/")):
        assert (REPOSITORY / path).exists()


def test_ci_takes_the_commands_from_the_readme() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text()
    awk = re.search(r"awk -v heading=.*?README\.md", script, re.DOTALL)
    assert awk is not None
    for heading in ("Try it", "Run the tests"):
        taken = subprocess.run(
            ["bash", "-c", awk[0].replace("$1", heading, 1)],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        )
        assert taken.stdout == readme_block(heading)
        assert f'readme_command "{heading}"' in script


def test_the_changelog_names_the_version() -> None:
    assert f"## [{project()['version']}]" in (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_program_tells_the_version(run_kafkalog: Callable[..., Run]) -> None:
    assert str(project()["version"]) in run_kafkalog("--version").check(0).stdout


def test_every_package_is_found() -> None:
    """Each of the four importable from the checkout, and every folder of theirs with Python in it a package."""
    for top in ("format", "kafkalog", "kafkalog_cli", "spark_jobs"):
        folders = {each.parent for each in (REPOSITORY / top).rglob("*.py")}
        for folder in folders:
            assert (folder / "__init__.py").exists(), folder
    done = subprocess.run(
        [sys.executable, "-c", "import kafkalog, kafkalog_cli, spark_jobs; from format import layout"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()


def built_extensions(scratch: Path, environment: dict[str, str], site: Path | None = None) -> tuple[str, ...]:
    """The extensions that setup.py would build under these variables, and how, in a copy of what it needs."""
    (scratch / "format" / "kernel").mkdir(parents=True)
    names = [f"format/kernel/{each.name}" for each in KERNEL.iterdir() if each.suffix in (".py", ".pxd")]
    for name in ("setup.py", *names):
        shutil.copy(REPOSITORY / name, scratch / name)
    code = (
        "import os, setuptools; got = []\n"
        "setuptools.setup = lambda **keywords: got.append(keywords)\n"
        "import runpy; runpy.run_path('setup.py')\n"
        "found = got[0]['ext_modules']\n"
        "print([each.name for each in found], {each.optional for each in found})\n"
        "print({(each.py_limited_api, *each.define_macros) for each in found}, got[0]['options'].get('bdist_wheel'))"
    )
    path = [str(each) for each in [site] if each is not None]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=scratch,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(done.stdout.strip().splitlines()[-2:])


def test_the_kernel_can_be_left_out(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    assert built_extensions(tmp_path, {"KAFKALOG_NO_KERNEL": "1"}) == NOTHING_BUILT


def test_without_a_working_cython(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    broken = tmp_path / "site" / "Cython"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('broken')\n")
    assert built_extensions(tmp_path, {}, broken.parent) == NOTHING_BUILT


def test_the_kernel_is_optional(tmp_path: Path) -> None:
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    assert built_extensions(tmp_path, {}) == (f"{ALL_MODULES} {{True}}", "{(False,)} None")


def test_one_wheel_may_serve_every_python(tmp_path: Path) -> None:
    """The limited API is that of the oldest Python that the project runs on, in the kernel and in the wheel's name."""
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    assert project()["requires-python"] == ">=3.11"
    assert built_extensions(tmp_path, {"KAFKALOG_LIMITED_API": "1"}) == (
        f"{ALL_MODULES} {{True}}",
        "{(True, ('Py_LIMITED_API', '0x030B0000'))} {'py_limited_api': 'cp311'}",
    )


def test_wheels_are_built_for_the_pythons_that_are_promised() -> None:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)["tool"]["cibuildwheel"]
    promised = re.findall(r"Python :: 3\.(\d+)", " ".join(map(str, project()["classifiers"])))
    assert settings["build"].split() == [f"cp3{minor}-*" for minor in promised]
    assert settings["environment"] == {"KAFKALOG_LIMITED_API": "1"}
    script = re.fullmatch(r"python \{project\}/(\S+) \{project\}/(\S+)", settings["test-command"])
    assert script is not None
    assert all((REPOSITORY / each).exists() for each in script.groups())


def test_the_compiled_modules_are_named_once_and_again() -> None:
    """In setup.py, which cannot import the package, in compiled.py, and by the functions of their .pxd files."""
    found = [each.stem for each in sorted(KERNEL.glob("*.pxd")) if "\ncpdef " in each.read_text()]
    assert found == list(COMPILED_MODULES)
    setup = ast.parse((REPOSITORY / "setup.py").read_text(encoding="utf-8"))
    (named,) = (
        ast.literal_eval(node.value)
        for node in setup.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "KERNEL_MODULES"
    )
    assert named == COMPILED_MODULES
