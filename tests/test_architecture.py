"""The imports of all three packages: which way the arrows point, and that none goes in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY

PACKAGES = ("format", "kafkalog_cli", "spark_jobs")

#: The rooms of ``format`` by layer, the lowest first. A module at the root belongs to the contracts.
LAYERS: dict[str, tuple[str, ...]] = {
    "contracts": (),
    "primitives": ("io", "codecs", "kernel"),
    "files": ("log", "files", "internal_topics"),
    "directories": ("node",),
    "scanning": ("scan",),
    "state": ("state",),
    "judging and showing": ("checks", "rows"),
    "rewriting": ("rewriting",),
    "verbs": ("verbs",),
}
CONTRACTS = frozenset({"layout", "location", "errors", "findings", "columns", "limits", "timestamps", "kafka_uuid"})

#: What ``format`` must do without, wherever the import stands.
FOREIGN_TO_FORMAT = frozenset({"typer", "click", "rich", "pyspark", "kafkalog_cli", "spark_jobs", "docs", "tests"})
#: What the command line must not load before it is needed; Spark's one door.
SPARK_DOOR = "spark_jobs.submit"
#: What renderers know of ``format``: what rows, findings and times are, and nothing of Kafka.
KNOWN_TO_RENDERERS = frozenset({"format.columns", "format.findings", "format.timestamps"})


@dataclass(frozen=True)
class Import:
    """One imported module: who imports it, where, and whether loading the importer runs it."""

    importer: str
    line: int
    module: str
    at_load: bool

    def __str__(self) -> str:
        return f"{self.importer} (line {self.line}) imports {self.module}"


@cache
def modules() -> dict[str, Path]:
    """Every module of the three packages, by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            parts = path.relative_to(REPOSITORY).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_in(source: str, importer: str, is_package: bool, known: frozenset[str]) -> list[Import]:
    """The imports of a module's source; of ``from package import module`` the module itself."""
    found: list[Import] = []

    def walk(node: ast.AST, at_load: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(importer, node.lineno, each.name, at_load) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, importer, is_package)
            for each in node.names:
                name = f"{base}.{each.name}"
                found.append(Import(importer, node.lineno, name if name in known else base, at_load))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                walk(child, False)
            for child in node.orelse:
                walk(child, at_load)
        else:
            inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for child in ast.iter_child_nodes(node):
                walk(child, at_load and not inside)

    walk(ast.parse(source), True)
    return found


def _absolute(node: ast.ImportFrom, importer: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = importer.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


@cache
def all_imports() -> tuple[Import, ...]:
    known = frozenset(modules())
    return tuple(
        each
        for name, path in modules().items()
        for each in imports_in(path.read_text(encoding="utf-8"), name, path.name == "__init__.py", known)
    )


def imports_of(package: str) -> Iterator[Import]:
    return (each for each in all_imports() if is_within(each.importer, package))


def is_within(module: str, package: str) -> bool:
    """Whether a module is the package or lies in it."""
    return module == package or module.startswith(package + ".")


def layer_of(module: str) -> int:
    """The number of a module's layer in ``format``; that of the package itself, which holds no code, is the lowest."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] in CONTRACTS:
        return 0
    for number, rooms in enumerate(LAYERS.values()):
        if parts[1] in rooms:
            return number
    raise AssertionError(f"{module} lies in no room that LAYERS names")


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one circle of imports, in order; empty when there is none."""
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> list[str]:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            circle = visit(other, [*trail, name])
            if circle:
                return circle
        done.add(name)
        return []

    for name in sorted(graph):
        circle = visit(name, [])
        if circle:
            return circle
    return []


# -- the rules ---------------------------------------------------------------------------------------------------


def test_format_knows_nothing_of_screens_and_clusters() -> None:
    wrong = [str(each) for each in imports_of("format") if each.module.split(".")[0] in FOREIGN_TO_FORMAT]
    assert not wrong, "\n".join(wrong)


def test_the_layers_of_format() -> None:
    """A module may import from its own layer and those below it in the order of LAYERS."""
    wrong = [
        f"{each}: {list(LAYERS)[layer_of(each.importer)]} from {list(LAYERS)[layer_of(each.module)]}"
        for each in imports_of("format")
        if is_within(each.module, "format") and layer_of(each.module) > layer_of(each.importer)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_layers_name_rooms_that_exist() -> None:
    for name in (*CONTRACTS, *(room for rooms in LAYERS.values() for room in rooms)):
        assert f"format.{name}" in modules(), name


@pytest.mark.parametrize("package", PACKAGES)
def test_no_circles(package: str) -> None:
    """Among the imports that run when a module is loaded; a package's own __init__ stands for no module in it."""
    graph: dict[str, set[str]] = {}
    for each in imports_of(package):
        if each.at_load and each.module in modules() and not is_within(each.importer, each.module):
            graph.setdefault(each.importer, set()).add(each.module)
    circle = circle_in(graph)
    assert not circle, " imports ".join(circle)


def test_nobody_hides_the_builtin_format() -> None:
    folders = [REPOSITORY / name for name in (*PACKAGES, "docs", "tests")]
    wrong = []
    for path in (each for folder in folders for each in sorted(folder.rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            is_import = isinstance(node, ast.Import)
            for each in node.names:
                bound = each.asname or (each.name.split(".")[0] if is_import else each.name)
                if bound == "format" and (is_import or node.module != "builtins"):
                    wrong.append(f"{path.relative_to(REPOSITORY)}:{node.lineno}")
    assert not wrong, "\n".join(wrong)


def test_spark_has_one_door() -> None:
    wrong = [
        str(each)
        for each in imports_of("kafkalog_cli")
        if (is_within(each.module, "spark_jobs") and (each.module != SPARK_DOOR or each.at_load))
        or is_within(each.module, "pyspark")
    ]
    assert not wrong, f"only {SPARK_DOOR}, and only inside a function:\n" + "\n".join(wrong)


def test_spark_jobs_do_without_the_command_line() -> None:
    wrong = [
        str(each)
        for each in imports_of("spark_jobs")
        if each.module.split(".")[0] in ("kafkalog_cli", "typer", "click", "rich", "docs", "tests")
    ]
    assert not wrong, "\n".join(wrong)


def test_installed_code_needs_nothing_that_is_not() -> None:
    wrong = [str(each) for each in all_imports() if each.module.split(".")[0] in ("docs", "tests", "pytest")]
    assert not wrong, "\n".join(wrong)


def test_commands_and_renderers_keep_to_themselves() -> None:
    """But for the verbs of scan, which take the options of the commands that they run."""
    wrong = [
        str(each)
        for each in imports_of("kafkalog_cli.commands")
        if is_within(each.module, "kafkalog_cli.commands")
        and not is_within(each.module, each.importer)
        and not is_within(each.importer, "kafkalog_cli.commands.scan")
        and not _shares_folder(each)
    ]
    wrong += [
        str(each)
        for each in imports_of("kafkalog_cli.render")
        if (is_within(each.module, "format") and each.module not in KNOWN_TO_RENDERERS)
        or is_within(each.module, "kafkalog_cli.commands")
    ]
    assert not wrong, "\n".join(wrong)


def _shares_folder(each: Import) -> bool:
    """Whether both are parts of one command that is a package of its own."""
    return each.importer.split(".")[:3] == each.module.split(".")[:3]


# -- the reader of imports itself --------------------------------------------------------------------------------


def test_the_imports_are_seen() -> None:
    source = (
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "from format import layout, limits\n"
        "from format.log.record_table import decode\n"
        "from . import sibling\n"
        "if TYPE_CHECKING:\n    import rich.table\n"
        "def later():\n    import spark_jobs.submit\n"
    )
    known = frozenset({"format", "format.layout", "format.limits", "kafkalog_cli.sibling"})
    found = {(each.module, each.at_load) for each in imports_in(source, "kafkalog_cli.example", False, known)}
    assert found >= {
        ("format.layout", True),
        ("format.limits", True),
        ("format.log.record_table", True),
        ("kafkalog_cli.sibling", True),
        ("rich.table", False),
        ("spark_jobs.submit", False),
    }
    assert any(each.module == "format.layout" for each in all_imports())


def test_circles_are_seen() -> None:
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle_in({"a": {"b", "c"}, "b": {"c"}}) == []


def test_layers_are_distinguished() -> None:
    names = (
        "format.layout",
        "format.codecs.gzip_members",
        "format.files.offset_index",
        "format.node.log_dir",
        "format.scan.selection",
        "format.state.totals",
        "format.checks.offset_chain",
        "format.rewriting.publish",
        "format.verbs.ls.ls",
    )
    assert [list(LAYERS)[layer_of(name)] for name in names] == list(LAYERS)
