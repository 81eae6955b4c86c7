"""The standalone build: one archive with a Python of its own, for hosts that have none and reach no network."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from format.wording import listed
from release.archives import write_archive
from release.environment import Workplace, commit_time, run

#: The extras inside, which a host without network cannot install later.
EXTRAS = ("fast", "follow", "explore", "report", "arrow")
#: Packages of the environment that only build. The licence of PyInstaller is of its loader, which is inside.
_ONLY_BUILDS = ("pip", "setuptools", "altgraph", "packaging", "pyinstaller-hooks-contrib")
#: Libraries of the compiler that numpy and others load.
_OF_COMPILER = ("libstdc++.so.6", "libgcc_s.so.1")
_ENTRY = "from kafkalog_cli.__main__ import start\n\nstart()\n"
#: The script of the charts, for which kafkalog_cli/page/chart_library.py looks beside itself, and how it is made.
CHARTS = "chart_library.js"
_MADE_CHARTS = "from kafkalog_cli.page import chart_library as library; print(library.made_script(), end='')"
_READ_ME = """\
kafkalog, with a Python of its own. It needs Linux on {machine} with glibc {glibc} or later, and {others}.

    tar xf {name}.tar.gz
    {name}/kafkalog verify /var/lib/kafka

Manual pages: man -M {name}/share/man kafkalog-verify. Completion of shells: {name}/share.
Not inside: Spark, fsspec, and boto3 for profiles of AWS. `pip install 'kafkalog[all]'` brings them.
Licences of everything inside: the folder licences.
"""


def standalone(place: Workplace) -> None:
    """``kafkalog-VERSION-linux-MACHINE.tar.gz`` from the wheel, by PyInstaller."""
    built = place.made("kafkalog-*.whl")
    programs = place.environment("frozen", f"{built}[{','.join(EXTRAS)}]", "pyinstaller>=6.10,<7")
    (place.scratch / "entry.py").write_text(_ENTRY)
    charts = place.scratch / CHARTS
    charts.write_bytes(
        subprocess.run([programs / "python", "-c", _MADE_CHARTS], check=True, capture_output=True).stdout
    )
    recipe = shutil.copy(Path(__file__).with_suffix(".spec"), place.scratch)
    run(
        *(str(programs / "pyinstaller"), "--noconfirm", "--log-level", "ERROR", str(recipe)),
        at=place.scratch,
        CHART_LIBRARY=str(charts),
    )
    made = place.scratch / "dist/kafkalog"
    name = f"{'-'.join(built.name.split('-')[:2])}-linux-{platform.machine()}"
    folder = made.rename(made.with_name(name))
    for record in folder.glob("_internal/*.dist-info/RECORD"):
        record.unlink()  # it names the scratch folder of this run, by the hashes of scripts that are not inside
    shutil.copytree(programs.parent / "share", folder / "share")
    _copy_licences(programs.parent, folder / "licences")
    left_out = leave_newer_libraries_out(folder)
    others = f"its {listed(left_out)}" if left_out else "nothing else"
    text = _READ_ME.format(machine=platform.machine(), glibc=needed_glibc(folder), others=others, name=name)
    (folder / "README.txt").write_text(text)
    write_archive(folder, place.output / f"{name}.tar.gz", commit_time())
    print(f"{name}: needs glibc {needed_glibc(folder)}, and {others}")


def leave_newer_libraries_out(folder: Path) -> list[str]:
    """Remove the compiler's libraries where they alone need a newer glibc than all else; returns their names.

    They come from the host that builds. A host with an older glibc has its own, which serve as well.
    """
    of_compiler = [path for name in _OF_COMPILER for path in sorted(folder.glob(f"_internal/{name}"))]
    others = max(_glibc_of(path) for path in folder.rglob("*") if path not in of_compiler)
    newer = [path for path in of_compiler if _glibc_of(path) > others]
    for path in newer:
        path.unlink()
    return [path.name for path in newer]


def needed_glibc(folder: Path) -> str:
    """The newest version of glibc that any program or library in a folder needs."""
    return "{}.{}".format(*max(map(_glibc_of, folder.rglob("*")), default=(0, 0)))


def _glibc_of(path: Path) -> tuple[int, int]:
    if not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
        return 0, 0
    symbols = subprocess.run(["objdump", "-T", str(path)], capture_output=True, text=True).stdout
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)
    return max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))


def _copy_licences(environment: Path, output: Path) -> None:
    """The licence files of Python and of every package inside, and lists of what is compiled into one with licences."""
    output.mkdir()
    for path in sorted(Path(sys.base_prefix).glob("lib/python3*/LICENSE.txt")):
        shutil.copy(path, output / "python.txt")
    for metadata in sorted(environment.glob("lib/python*/site-packages/*.dist-info")):
        if metadata.name.split("-")[0].replace("_", "-") in _ONLY_BUILDS:
            continue
        for path in sorted(metadata.rglob("*")):
            if path.is_file() and re.match(
                r"(licen[sc]e|copying|notice|authors|.*\.cyclonedx\.)", path.name, re.IGNORECASE
            ):
                target = output / metadata.name.removesuffix(".dist-info") / path.name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
