"""The environment that a cluster's executors need, packed into one file: ``kafkalog scan --pack env.tar.gz``.

It holds this package with its compiled kernel, numpy, pyarrow, pandas and the codecs, but not Spark. Executors must
have the Python that it was made with at the same place (``/usr/bin/python3.11``, say), as all of one image do.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from format.errors import OutputError, OutputExists
from format.io.source import os_reason
from format.location import Location
from format.version import VERSION

#: What the executors import besides the package's own dependencies.
EXECUTOR_PACKAGES = ("pyarrow>=15", "pandas>=2.2,<3")
_VENV_PACK = "venv-pack"


def pack(target: Path, source: str) -> int:
    """Make the archive and return its size in bytes; ``source`` is what pip installs: a checkout, wheel or requirement.

    The file appears when it is complete. Raises OutputExists and OutputError.
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
        raise OutputError(
            f"{Path(error.cmd[0]).name} ended with exit status {error.returncode}", Location(str(target))
        ) from error
    except OSError as error:
        raise OutputError(f"cannot write: {os_reason(error)}", Location(str(target))) from error
    finally:
        made.unlink(missing_ok=True)


def _make(target: Path, source: str) -> None:
    with tempfile.TemporaryDirectory(prefix="kafkalog-pack-") as place:
        environment = Path(place) / "environment"
        venv.create(environment, with_pip=True)
        python = str(environment / "bin" / "python")
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run([*pip, source, *EXECUTOR_PACKAGES, _VENV_PACK], check=True)
        subprocess.run(
            [
                str(environment / "bin" / _VENV_PACK),
                "--quiet",
                "--force",
                "--prefix",
                str(environment),
                "--output",
                str(target),
            ],
            check=True,
        )


def source_of_this() -> str:
    """What pip installs to get this version: the checkout that runs, else the release."""
    root = Path(__file__).resolve().parent.parent
    return str(root) if (root / "pyproject.toml").exists() else f"kafkalog=={VERSION}"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.pack", description=__doc__)
    parser.add_argument("target", type=Path, help="the archive to make, such as env.tar.gz")
    parser.add_argument("--source", default=source_of_this(), help="what pip installs")
    given = parser.parse_args()
    size_bytes = pack(given.target.absolute(), given.source)
    sys.stdout.write(f"{given.target}: {size_bytes / 1e6:.0f} MB\n")


if __name__ == "__main__":
    main()
