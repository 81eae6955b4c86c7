"""The source distribution, and the wheel for this platform."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from release.archives import unpack, write_archive
from release.environment import Workplace, commit_time, run


def source_distribution(place: Workplace) -> None:
    """``kafkalog-VERSION.tar.gz`` from the committed state."""
    programs = place.environment("build", "build>=1.2,<2")
    made = place.scratch / "sdist"
    words = [str(programs / "python"), "-m", "build", "--sdist", "--outdir", str(made), str(place.clone)]
    run(*words, KAFKALOG_NO_KERNEL="1")  # an archive of sources needs no compiler
    (archive,) = made.iterdir()
    # setuptools writes the time of the build into it: packed again, with the time of the commit.
    with tempfile.TemporaryDirectory(dir=place.scratch) as folder:
        write_archive(unpack(archive, Path(folder)), place.output / archive.name, commit_time())


def wheel(place: Workplace) -> None:
    """``kafkalog-VERSION-cp311-abi3-PLATFORM.whl`` from the source distribution, and a check of what it holds."""
    source = place.made("kafkalog-*.tar.gz")
    made = place.scratch / "wheel"
    programs = place.environment("wheels")
    words = [str(programs / "pip"), "wheel", "--quiet", "--no-deps", "--wheel-dir", str(made), str(source)]
    run(*words, KAFKALOG_LIMITED_API="1")
    (built,) = made.iterdir()
    shutil.copy(built, place.output)
    run(str(programs / "pip"), "install", "--quiet", str(built))
    check = str(place.clone / "tests/check_wheel.py")
    path = f"{programs}:/usr/bin:/bin"
    run(str(programs / "python"), check, str(place.clone / "tests/_data"), at=place.scratch, PATH=path)
