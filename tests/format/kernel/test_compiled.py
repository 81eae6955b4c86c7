"""Which modules of the kernel are compiled, and the numbers that the .pxd files repeat."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

import pytest

from format.kernel import compiled
from format.kernel.compiled import COMPILED_MODULES, KERNEL_IS_COMPILED, plain_modules
from tests.corpora import REPOSITORY

KERNEL = REPOSITORY / "format" / "kernel"


def test_modules_are_named_by_what_an_import_would_find() -> None:
    files = {name: str(import_module(f"format.kernel.{name}").__file__) for name in COMPILED_MODULES}
    assert plain_modules() == [name for name, file in files.items() if file.endswith(".py")]
    assert (not plain_modules()) == KERNEL_IS_COMPILED


def test_only_some_modules_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> ModuleSpec:
        is_plain = name in ("format.kernel.text", "format.kernel.search")
        return ModuleSpec(name, None, origin=f"/x/{name}.py" if is_plain else f"/x/{name}.abi3.so")

    monkeypatch.setattr(compiled, "find_spec", find_spec)
    assert plain_modules() == ["search", "text"]


def test_each_module_runs_beside_any_other(tmp_path_factory: pytest.TempPathFactory) -> None:
    """None imports another compiled module, and a compiled one none of those that have the names of its .pxd file."""
    for name in COMPILED_MODULES:
        loaded = subprocess.run(
            [sys.executable, "-c", f"import format.kernel.{name}, sys; print(*sys.modules)"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        others = {f"format.kernel.{each}" for each in COMPILED_MODULES} - {f"format.kernel.{name}"}
        assert not others & set(loaded), name
        takes_names = "format.kernel.memory" in loaded
        assert takes_names == (name in plain_modules()), name


@pytest.mark.parametrize("module", ["tables", "header_layout", "crc", "memory"])
def test_numbers_are_the_same_in_c(module: str) -> None:
    """The .pxd file has the number of each constant of the Python file, and no others."""
    text = (KERNEL / f"{module}.pxd").read_text(encoding="utf-8")
    in_c = {name: int(number) for name, number in re.findall(r"^    ([A-Z][A-Z0-9_]*) = (\d+)$", text, re.MULTILINE)}
    plain = vars(import_module(f"format.kernel.{module}"))
    assert in_c == {name: value for name, value in plain.items() if name.isupper() and isinstance(value, int)}
    assert in_c


@pytest.mark.parametrize("name", sorted({each.stem for each in KERNEL.glob("*.pxd")} - set(COMPILED_MODULES)))
def test_functions_are_the_same_in_c(name: str) -> None:
    """The .pxd file of a module that is never compiled has all its functions."""
    text = (KERNEL / f"{name}.pxd").read_text(encoding="utf-8")
    in_c = set(re.findall(r"^cdef inline .*?(\w+)\((?:const )?unsigned", text, re.MULTILINE))
    in_c |= set(re.findall(r'^    void\*? (\w+) "Py', text, re.MULTILINE))  # Python's own, under another name
    source = (KERNEL / f"{name}.py").read_text(encoding="utf-8")
    assert in_c == set(re.findall(r"^def (\w+)\(", source, re.MULTILINE))
