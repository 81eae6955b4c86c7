"""The environment that a cluster's executors need, packed into one file: ``kafkalog scan --pack env.tar.gz``.

It holds this package with its compiled kernel, numpy, pyarrow, pandas, the codecs and what reads addresses, but not
Spark. Executors must have the Python that it was made with at the same place (``/usr/bin/python3.11``, say), as all of
one image do.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from format.errors import InputError, OutputError, OutputExists
from format.io.source import os_reason
from format.location import Location
from format.version import VERSION

#: What the executors import besides the package's own dependencies: its extras arrow, spark-provided and remote.
EXECUTOR_PACKAGES = ("pyarrow>=15", "pandas>=2.2,<3", "fsspec>=2024.2", "boto3>=1.34,<2")
_VENV_PACK = "venv-pack"


class PackFailed(InputError):
    """A program that makes the environment failed; what it wrote says more."""


def pack(target: Path, source: str) -> int:
    """Make the archive and return its size in bytes; ``source`` is what pip installs: a checkout, wheel or requirement.

    The file appears when it is complete. Raises OutputExists, OutputError and PackFailed.
    """
    if target.exists():
        raise OutputExists("the file exists", Location(str(target)))
    made = target.with_name(f".{target.name}.{os.getpid()}.tar.gz")
    try:
        made.touch(exist_ok=False)  # a place that cannot be written to is found before minutes of work
        _make(made, source)
        os.replace(made, target)
        return target.stat().st_size
    except subprocess.CalledProcessError as error:
        raise PackFailed(_why(error, source), Location(str(target))) from error
    except OSError as error:
        raise OutputError(f"cannot write: {os_reason(error)}", Location(str(target))) from error
    finally:
        made.unlink(missing_ok=True)


def _why(error: subprocess.CalledProcessError, source: str) -> str:
    """The program that failed, whose own message stands above, and what helps where pip found no package."""
    if "pip" not in error.cmd:
        return f"{Path(error.cmd[0]).name} ended with exit status {error.returncode}"
    return (
        f"pip could not install {source} and what it needs (exit status {error.returncode}); where the package index "
        "is not reached or does not have it, set PIP_FIND_LINKS to a directory with the wheels"
    )


def _make(target: Path, source: str) -> None:
    with tempfile.TemporaryDirectory(prefix="kafkalog-pack-") as place:
        environment = Path(place) / "environment"
        venv.create(environment, with_pip=True)
        python = str(environment / "bin" / "python")
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run([*pip, source, *EXECUTOR_PACKAGES, _VENV_PACK], check=True)
        packer = (str(environment / "bin" / _VENV_PACK), "--quiet", "--force")
        subprocess.run([*packer, "--prefix", str(environment), "--output", str(target)], check=True)


def source_of_this() -> str:
    """What pip installs to get this version: the checkout that runs, what was installed here, or the release."""
    root = Path(__file__).resolve().parent.parent
    if (root / "pyproject.toml").exists():
        return str(root)
    return _installed_from() or f"kafkalog=={VERSION}"


def _installed_from() -> str | None:
    """The wheel or directory that pip installed this from, where it was none of an index and is still there."""
    with contextlib.suppress(PackageNotFoundError, ValueError, KeyError):
        recorded = distribution("kafkalog").read_text("direct_url.json")
        place = unquote(urlsplit(json.loads(recorded or "{}")["url"]).path)
        return place if Path(place).exists() else None
    return None
