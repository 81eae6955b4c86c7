"""All three packages: which way their imports point, that none goes in a circle, and how large things may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.corpora import REPOSITORY

PACKAGES = ("format", "kafkalog", "kafkalog_cli", "spark_jobs")

#: The rooms of ``format`` by layer, the lowest first. A module at the root belongs to the contracts.
LAYERS: dict[str, tuple[str, ...]] = {
    "contracts": (),
    "primitives": ("io", "codecs", "kernel"),
    "files": ("log", "files", "internal_topics"),
    "directories": ("node",),
    "scanning": ("scan",),
    "state": ("decoding", "state"),
    "judging and showing": ("checks", "rows"),
    "rewriting": ("rewriting",),
    "verbs": ("verbs",),
}
CONTRACTS = frozenset(
    {
        *("layout", "location", "errors", "findings", "columns", "limits", "timestamps", "kafka_uuid"),
        *("offset_ranges", "sorted_values", "wording"),
    }
)

#: What ``format`` must do without, wherever the import stands.
FOREIGN_TO_FORMAT = frozenset(
    {"typer", "click", "rich", "pyspark", "kafkalog_cli", "spark_jobs", "docs", "release", "tests"}
)
#: What the command line must not load before it is needed; Spark's one door.
SPARK_DOOR = "spark_jobs.submit"
#: What renderers know of ``format``: what rows, lines, findings and times are, and nothing of Kafka.
KNOWN_TO_RENDERERS = frozenset({"format.columns", "format.findings", "format.timestamps", "format.rows.line_style"})


#: The folders that there are, but for folders of one verb below ``format/verbs`` and ``kafkalog_cli/commands``.
FOLDERS = frozenset(
    {
        *("format", *(f"format/{room}" for rooms in LAYERS.values() for room in rooms)),
        "kafkalog",
        *("kafkalog_cli", *(f"kafkalog_cli/{room}" for room in ("commands", "options", "page", "render", "screens"))),
        "format/io/bundles",
        "spark_jobs",
        "spark_jobs/jobs",
    }
)
MOST_PARAMETERS = 7
#: Functions with more parameters than that, all of the compiled kernel: they are called for each record or each block
#: of records, with typed buffers, and an object for these would be taken apart again at once.
MANY_PARAMETERS = frozenset(
    {
        "format.kernel.kafka_lines._put_record",
        "format.kernel.kafka_lines.write_dump_log",
        "format.kernel.memory.copy_escaped",
        "format.kernel.text._put_batch_fields",
        "format.kernel.text._put_text",
        "format.kernel.text.put_batches",
        "format.kernel.text.put_records",
    }
)


@dataclass(frozen=True)
class Import:
    """One imported module: who imports it, where, whether loading the importer runs it, and whether anything does."""

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


@cache
def syntax_of(path: Path) -> ast.Module:
    """The syntax tree of a file, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


def _statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """The statements, handlers and cases directly in a node. Expressions, most of every tree, hold no statements."""
    return (each for each in ast.iter_child_nodes(node) if isinstance(each, _STATEMENTS))


_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def _all_statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a node, those in statements too."""
    for each in _statements_in(node):
        yield each
        yield from _all_statements_in(each)


def imports_in(tree: ast.Module, importer: str, is_package: bool, known: frozenset[str]) -> list[Import]:
    """The imports of a module; for ``from package import module`` the module itself."""
    found: list[Import] = []

    def walk(node: ast.AST, at_load: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(importer, node.lineno, each.name, at_load) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, importer, is_package)
            for each in node.names:
                name = f"{base}.{each.name}"
                found.append(Import(importer, node.lineno, name if name in known else base, at_load))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in {getattr(each, "id", "") for each in ast.walk(node.test)}:
            for child in node.body:
                walk(child, False)
            for child in node.orelse:
                walk(child, at_load)
        else:
            inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            for child in _statements_in(node):
                walk(child, at_load and not inside)

    walk(tree, True)
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
        for each in imports_in(syntax_of(path), name, path.name == "__init__.py", known)
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


def circles_in(graph: dict[str, set[str]]) -> list[frozenset[str]]:
    """The largest sets of modules of which each reaches every other one, in the order of their first names."""
    reached = {name: _reached_from(name, graph) for name in graph}
    circles = {frozenset(other for other in reached[name] if name in reached.get(other, ())) for name in graph}
    return sorted((each for each in circles if each), key=min)


def _reached_from(name: str, graph: dict[str, set[str]]) -> set[str]:
    """The modules that a module imports, and those that they import, and so on; itself only in a circle."""
    reached: set[str] = set()
    ahead = [name]
    while ahead:
        for other in graph.get(ahead.pop(), ()):
            if other not in reached:
                reached.add(other)
                ahead.append(other)
    return reached


def _parameter_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many parameters a function has, but for self and cls."""
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


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


def test_no_circles() -> None:
    """Imports inside functions and for type checkers count; a package's own __init__ stands for no module in it."""
    graph: dict[str, set[str]] = {}
    for each in all_imports():
        if each.module in modules() and not is_within(each.importer, each.module):
            graph.setdefault(each.importer, set()).add(each.module)
    wrong = [" and ".join(sorted(each)) for each in circles_in(graph)]
    assert not wrong, "\n".join(wrong)


def test_folders_have_the_names_of_the_plan() -> None:
    folders = {path.parent.relative_to(REPOSITORY).as_posix() for path in modules().values()}
    wrong = {
        each
        for each in folders - FOLDERS
        if not each.startswith(("format/verbs/", "kafkalog_cli/commands/", "format/internal_topics/"))
    }
    assert not wrong


def test_no_function_has_many_parameters() -> None:
    found = {
        f"{name}.{node.name}"
        for name, path in modules().items()
        for node in _all_statements_in(syntax_of(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _parameter_count(node) > MOST_PARAMETERS
    }
    assert not found - MANY_PARAMETERS, "make a dataclass of what belongs together"
    assert not MANY_PARAMETERS - found, "fewer now: remove it from MANY_PARAMETERS"


def test_a_class_name_stands_for_one_thing() -> None:
    """Names of classes that other modules may use. A row of a check is a Finding in the Python API too."""
    found: dict[str, list[str]] = {}
    for name, path in modules().items():
        for node in syntax_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name)
    assert {name: places for name, places in found.items() if len(places) > 1} == {
        "Finding": ["format.findings", "kafkalog.log"]
    }


#: Lines that may import something as ``format``: of words, commas and brackets alone, or with an import.
_MAY_BIND_FORMAT = re.compile(
    r"(?m)^[ \w,()]*\bformat\b(?!\.)[ \w,()]*$|^ *(?:from|import)\b.*\bformat\b(?!\.\w)|import format"
)


def test_nobody_hides_the_builtin_format() -> None:
    folders = [REPOSITORY / name for name in (*PACKAGES, "docs", "release", "tests")]
    wrong = []
    for path in (each for folder in folders for each in sorted(folder.rglob("*.py"))):
        if not _MAY_BIND_FORMAT.search(path.read_text(encoding="utf-8")):
            continue  # parsing all tests would take seconds
        for node in _all_statements_in(syntax_of(path)):
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            is_import = isinstance(node, ast.Import)
            for each in node.names:
                bound = each.asname or (each.name.split(".")[0] if is_import else each.name)
                if bound == "format" and (is_import or node.module != "builtins"):
                    wrong.append(f"{path.relative_to(REPOSITORY)}:{node.lineno}")
    assert not wrong, "\n".join(wrong)


def test_the_python_api_stands_on_format_alone() -> None:
    """It has the same scans below it as the command line, and nothing else that is installed imports it."""
    wrong = [
        str(each)
        for each in all_imports()
        if (is_within(each.importer, "kafkalog") and each.module.split(".")[0] in FOREIGN_TO_FORMAT)
        or (is_within(each.module, "kafkalog") and not is_within(each.importer, "kafkalog"))
    ]
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
    """But for the entry for spark-submit, which is nothing but a call of the command line."""
    wrong = [
        str(each)
        for each in imports_of("spark_jobs")
        if each.module.split(".")[0] in ("kafkalog_cli", "typer", "click", "rich", "docs", "tests")
        and not (is_within(each.importer, "spark_jobs.jobs") and each.module == "kafkalog_cli.main")
    ]
    assert not wrong, "\n".join(wrong)


def test_entries_for_spark_submit_have_no_logic() -> None:
    entries = [path for name, path in modules().items() if is_within(name, "spark_jobs.jobs")]
    assert len(entries) == 2
    for path in entries:
        defined = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        ]
        assert not defined, path


def test_nobody_but_the_command_line_knows_the_entries_for_spark_submit() -> None:
    wrong = [str(each) for each in all_imports() if is_within(each.module, "spark_jobs.jobs")]
    assert not wrong, "\n".join(wrong)


def test_installed_code_needs_nothing_that_is_not() -> None:
    wrong = [str(each) for each in all_imports() if each.module.split(".")[0] in ("docs", "release", "tests", "pytest")]
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
    imports = imports_in(ast.parse(source), "kafkalog_cli.example", False, known)
    assert {(each.module, each.at_load) for each in imports} >= {
        ("format.layout", True),
        ("format.limits", True),
        ("format.log.record_table", True),
        ("kafkalog_cli.sibling", True),
        ("rich.table", False),
        ("spark_jobs.submit", False),
    }
    assert any(each.module == "format.layout" for each in all_imports())


def test_circles_are_seen() -> None:
    assert circles_in({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"e"}, "e": {"d"}}) == [{"b", "c"}, {"d", "e"}]
    assert circles_in({"a": {"b", "c"}, "b": {"c"}}) == []


def test_parameters_are_counted() -> None:
    [function] = ast.parse("def f(self, a, /, b, *c, d, e=1, **g): ...").body
    assert isinstance(function, ast.FunctionDef)
    assert _parameter_count(function) == 4


def test_layers_are_distinguished() -> None:
    names = (
        "format.layout",
        "format.codecs.gzip_members",
        "format.files.offset_index",
        "format.node.log_dir",
        "format.scan.selection",
        "format.state.log_headers",
        "format.checks.batches",
        "format.rewriting.publication",
        "format.verbs.ls.ls",
    )
    assert [list(LAYERS)[layer_of(name)] for name in names] == list(LAYERS)
