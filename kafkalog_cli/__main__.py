"""The start and the end of the process, for ``kafkalog`` and ``python -m kafkalog_cli``; the program is ``main``.

Most of the time of a short command goes to imports. typer, numpy and the standard library import modules that few runs
use. The modules in ``_DEFERRED`` are loaded at the first access to an attribute that is not in ``_STAND_INS``. A name
in that list has no effect on a module that is imported in another way, or no longer exists.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, NoReturn

#: Modules that other libraries import with a plain ``import``, or from which they take only the names in _STAND_INS.
_DEFERRED = frozenset(
    {
        "bz2",
        "ctypes",
        "difflib",
        "gettext",
        "hashlib",  # it loads OpenSSL
        "ipaddress",
        "jinja2.compiler",  # a template that is kept compiled needs none of these
        "jinja2.lexer",
        "jinja2.parser",
        "linecache",
        "lzma",
        "numpy._core._add_newdocs",  # docstrings of numpy's compiled functions
        "numpy._core._add_newdocs_scalars",
        "numpy._typing",
        "numpy.linalg",
        "numpy.typing",
        "pickle",
        "platform",
        "shellingham",
        "shutil",
        "subprocess",
        "tempfile",
        "textwrap",
        "tokenize",
        "traceback",
        "uuid",
        "vl_convert",  # the script that it makes is kept
    }
)


class Annotation:
    """A stand-in for numpy's types in annotations, which nothing evaluates at run time."""

    def __class_getitem__(cls, item: object) -> type[Annotation]:
        return cls


class LateFunction:
    """A stand-in for a function of a deferred module, or for a class that is only called; a call loads the module."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *values: Any, **named: Any) -> Any:
        module = sys.modules[self._module]
        if isinstance(module, DeferredModule):
            module.load()
        return getattr(module, self._name)(*values, **named)


#: Functions that other libraries take from deferred modules with ``from … import``.
_FUNCTIONS = {
    "difflib": ("get_close_matches",),
    "gettext": ("gettext", "ngettext"),
    "hashlib": ("sha1",),
    "jinja2.compiler": ("CodeGenerator", "generate"),
    "jinja2.lexer": ("Lexer", "TokenStream", "get_lexer"),
    "jinja2.parser": ("Parser",),
    "numpy.linalg": ("eigvals", "inv", "lstsq", "matrix_power"),
    "shutil": ("get_terminal_size",),
}
#: Names that other libraries take from deferred modules, and the objects that replace them until the module is loaded:
#: types that are not used at run time, and functions. numpy's types take longer to import than all of typer. typer uses
#: classes of traceback for its own error pages, which are off, and UUID to recognize options of that type, of which
#: there are none.
_STAND_INS: dict[str, dict[str, object]] = {
    **{
        name: dict.fromkeys(("ArrayLike", "DTypeLike", "NDArray"), Annotation)
        for name in ("numpy._typing", "numpy.typing")
    },
    **{module: {name: LateFunction(module, name) for name in names} for module, names in _FUNCTIONS.items()},
    "traceback": dict.fromkeys(("FrameSummary", "StackSummary"), Annotation),
    "uuid": {"UUID": Annotation},
}

#: The start makes tens of thousands of lasting objects; with Python's default of 700 they are searched many times.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000

_loading = threading.RLock()


class DeferredModule(ModuleType):
    """A module that is loaded at the first access to one of its attributes, and is an ordinary module from then on."""

    def __getattr__(self, name: str) -> Any:
        if "_deferred_loader" in self.__dict__ and name in _STAND_INS.get(self.__name__, ()):
            return _STAND_INS[self.__name__][name]
        if name != "__path__":  # ``from … import`` asks for it, and packages have it from the beginning
            self.load()
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def load(self) -> None:
        """Load the module, unless that has happened."""
        with _loading:
            loader = self.__dict__.pop("_deferred_loader", None)
            if loader is not None:
                loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]


class _DeferringLoader:
    """A loader that makes a DeferredModule, which the module's own loader loads later."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return DeferredModule(spec.name)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = module._deferred_loader = self._loader


class _DeferringFinder:
    """A finder of the modules in _DEFERRED, at their usual places."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _DEFERRED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = _DeferringLoader(spec.loader)
            spec.loader = loader
        return spec


def start() -> NoReturn:
    """Run the program, and end the process with its exit code."""
    sys.meta_path.insert(0, _DeferringFinder)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    from kafkalog_cli.main import main

    gc.freeze()  # no collection searches what was imported
    _end(main())


def _end(code: int) -> NoReturn:
    """End the process. Freeing all objects one by one, as the interpreter does, takes a twentieth of a short run."""
    if threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    start()
