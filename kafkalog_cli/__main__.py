"""The process: ``kafkalog``, and ``python -m kafkalog_cli``. How it starts and ends quickly; the rest is ``main``.

A short command takes as long as its imports. typer, numpy and the standard library import modules that hardly any run
uses: those in ``_DEFERRED`` are loaded when something is asked of them, stand-ins aside. A module that is imported in
another way, or no longer exists, is not affected by its name in that list.
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

#: Imported by others with a plain ``import``, so that nothing but the module is asked for; or see _STAND_INS.
_DEFERRED = frozenset(
    {
        "bz2",
        "ctypes",
        "ipaddress",
        "linecache",
        "lzma",
        "numpy._core._add_newdocs",  # docstrings of numpy's compiled functions
        "numpy._core._add_newdocs_scalars",
        "numpy._typing",
        "numpy.typing",
        "pickle",
        "shellingham",
        "subprocess",
        "textwrap",
        "tokenize",
    }
)


class Annotation:
    """Stands for a type of numpy's where types are written down and nothing checks them while the program runs."""

    def __class_getitem__(cls, item: object) -> type[Annotation]:
        return cls


#: Names that others take from deferred modules with ``from … import``, and what they get while those are not loaded.
#: numpy's types take longer to import than all of typer.
_STAND_INS: dict[str, dict[str, object]] = {
    name: dict.fromkeys(("ArrayLike", "DTypeLike", "NDArray"), Annotation) for name in ("numpy._typing", "numpy.typing")
}

#: A start makes tens of thousands of objects that stay; Python's 700 would search them for garbage again and again.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000

_loading = threading.RLock()


class DeferredModule(ModuleType):
    """A module whose code is run when one of its attributes is asked for; an ordinary module from then on."""

    def __getattr__(self, name: str) -> Any:
        if "_deferred_loader" in self.__dict__ and name in _STAND_INS.get(self.__name__, ()):
            return _STAND_INS[self.__name__][name]
        with _loading:
            loader = self.__dict__.pop("_deferred_loader", None)
            if loader is not None:
                loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None


class _DeferringLoader:
    """Makes a DeferredModule, and leaves the loading to the module's own loader."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return DeferredModule(spec.name)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = module._deferred_loader = self._loader


class _DeferringFinder:
    """Finds the modules in _DEFERRED, where the interpreter would find them."""

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
