"""The environment that a cluster's executors need, packed into one file: ``python -m spark_jobs.pack env.tar.gz``.

It holds this package with its compiled kernel, numpy, pyarrow, pandas and the codecs, but not Spark. Executors must
have the Python that it was made with at the same place (``/usr/bin/python3.11``, say), as all of one image do.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

#: What the executors import besides the package's own dependencies.
EXECUTOR_PACKAGES = ("pyarrow>=15", "pandas>=2.2,<3")
_VENV_PACK = "venv-pack"


def pack(target: Path, source: str) -> None:
    """Make the archive; ``source`` is what pip installs: a checkout, a wheel, or a requirement such as kafkalog."""
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


def main() -> None:
    """The command."""
    root = Path(__file__).resolve().parent.parent
    is_checkout = (root / "pyproject.toml").exists()
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.pack", description=__doc__)
    parser.add_argument("target", type=Path, help="the archive to make, such as env.tar.gz")
    parser.add_argument("--source", default=str(root) if is_checkout else "kafkalog", help="what pip installs")
    given = parser.parse_args()
    pack(given.target.absolute(), given.source)
    sys.stdout.write(f"{given.target}: {given.target.stat().st_size / 1e6:.0f} MB\n")


if __name__ == "__main__":
    main()
