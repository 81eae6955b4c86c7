"""What a release is made of: distributions, the standalone build, the site, the bill of materials."""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from format.wording import listed
from tests.corpora import REPOSITORY


def write_archive(folder: Path, archive: Path, time: int) -> None:
    """A ``.tar.gz`` of a folder: names in order, one time for all, no owners."""
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted((folder, *folder.rglob("*"))):
            entry = tar.gettarinfo(str(path), str(path.relative_to(folder.parent)))
            entry.mtime = time
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            if entry.isfile():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive that holds one folder; returns this folder."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # from 3.11.4 on
        (top,) = {member.name.split("/")[0] for member in tar.getmembers()}
    return folder / top


@dataclass(frozen=True)
class Workplace:
    """A scratch folder for one run, and the folder for what is made."""

    scratch: Path
    output: Path

    @property
    def clone(self) -> Path:
        """A clone of the checkout: what is not committed is not released."""
        path = self.scratch / "clone"
        if not path.exists():
            run("git", "clone", "--quiet", str(REPOSITORY), str(path))
        return path

    def environment(self, name: str, *requirements: str) -> Path:
        """The ``bin`` folder of a new virtual environment with these requirements."""
        path = self.scratch / name
        run(sys.executable, "-m", "venv", str(path))
        if requirements:
            run(str(path / "bin/pip"), "install", "--quiet", *requirements)
        return path / "bin"

    def made(self, pattern: str) -> Path:
        """The one file of an earlier step whose name fits the pattern; ends the program where there is none."""
        found = sorted(self.output.glob(pattern))
        if len(found) != 1:
            sys.exit(f"{self.output} must hold one file {pattern}; it holds {[each.name for each in found]}")
        return found[0]


def commit_time() -> int:
    """When the released state was committed, in seconds: the time of every file in what is made."""
    words = ["git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct"]
    return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def run(*words: str, at: Path | None = None, **variables: str) -> None:
    """Run a program under more environment variables; ends this one where it fails."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(commit_time()), "PYTHONHASHSEED": "0", **variables}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(words, cwd=at, env=environment)
    if done.returncode:
        sys.exit(f"failed with status {done.returncode}: {' '.join(words)}")


_DATA = REPOSITORY / "tests/_data/kafka-4.3-single/node-1"
_COMMANDS = (
    "--version",
    "ls /data",
    "verify --jobs 2 /data",
    "find --offset 100 /data/payments-0",
    "groups /data",
    "extract --output /extracted /data/payments-0",
    "bundle --output /bundle.tar.zst /data",
    "report --output /report.html /data",
)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m release.artifacts", description=__doc__.partition("\n")[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--suite", default="stable", help="the release of Debian, by default stable")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="kafkalog-bare-") as scratch:
        tree = Path(scratch) / "tree"
        run("debootstrap", "--variant=minbase", options.suite, str(tree))
        return _tried(options.archive, tree)


def _tried(archive: Path, tree: Path) -> int:
    for program in ("python3", "cc", "gcc"):
        assert not list(tree.glob(f"usr/bin/{program}*")), f"there is a {program} in the tree"
    folder = unpack(archive, tree / "opt")
    shutil.copytree(_DATA, tree / "data")
    release = (tree / "etc/debian_version").read_text().strip()
    for line in _COMMANDS:
        words = [shutil.which("chroot") or "/usr/sbin/chroot", str(tree), f"/opt/{folder.name}/kafkalog", *line.split()]
        done = subprocess.run(words, env={}, capture_output=True, text=True)
        print(f"Debian {release}: kafkalog {line}: exit status {done.returncode}\n{done.stderr}{done.stdout[-400:]}")
        if done.returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


#: The extras inside, which a host without network cannot install later.
EXTRAS = ("fast", "explore", "report", "arrow")
#: Packages of the environment that only build. The licence of PyInstaller is of its loader, which is inside.
_ONLY_BUILDS = ("pip", "setuptools", "altgraph", "packaging", "pyinstaller-hooks-contrib")
#: Libraries of the compiler that numpy and others load.
_OF_COMPILER = ("libstdc++.so.6", "libgcc_s.so.1")
_ENTRY = "from kafkalog_cli.__main__ import start\n\nstart()\n"
#: The script of the charts, for which kafkalog_cli/page/charts.py looks beside itself, and how it is made.
CHARTS = "chart_library.js"
_MADE_CHARTS = "from kafkalog_cli.page.charts import made_script; print(made_script(), end='')"
_READ_ME = """\
kafkalog, with a Python of its own. It needs Linux on {machine} with glibc {glibc} or later, and {others}.

    tar xf {name}.tar.gz
    {name}/kafkalog verify /var/lib/kafka

Manual pages: man -M {name}/share/man kafkalog-verify. Completion of shells: {name}/share.
Not inside: Spark, SQL, Protobuf, fsspec, and boto3 for profiles of AWS. `pip install 'kafkalog[all]'` brings them.
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
    recipe = shutil.copy(Path(__file__).with_name("standalone.spec"), place.scratch)
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


def bill_of_materials(place: Workplace) -> None:
    """``kafkalog-VERSION.cdx.json``, of a new environment with the wheel and what the standalone build has."""
    built = place.made("kafkalog-*.whl")
    installed = place.environment("installed", f"{built}[{','.join(EXTRAS)}]")
    tools = place.environment("cyclonedx", "cyclonedx-bom>=5,<9")
    output = place.output / f"{'-'.join(built.name.split('-')[:2])}.cdx.json"
    run(
        *(str(tools / "cyclonedx-py"), "environment", "--output-reproducible", "--output-format", "JSON"),
        *("--pyproject", str(place.clone / "pyproject.toml"), "--output-file", str(output)),
        str(installed / "python"),
    )


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


REQUIREMENTS = ("sphinx>=8.1,<10", "myst-parser>=4,<6", "furo>=2024.8.6")
_TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")
_CONFIGURATION = """\
project = "kafkalog"
author = "the kafkalog authors"
extensions = ["myst_parser"]
root_doc = "README"
html_theme = "furo"
html_title = "kafkalog {version}"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 6
pygments_style = "friendly"
pygments_dark_style = "monokai"
"""
#: The order of the menu: a title, and the pages below it; a star stands for all others of the folder.
_MENU = (
    ("Start", ("docs/README", "docs/installing", "docs/runbooks/README")),
    ("Commands", ("docs/*",)),
    ("Reference", ("docs/output", "docs/finding-codes", "docs/formats/README")),
    (
        "How it is made",
        ("docs/reliability", "docs/performance", "docs/architecture", "docs/packaging", "CONTRIBUTING", "CHANGELOG"),
    ),
)


def site(place: Workplace) -> None:
    """``kafkalog-VERSION-docs.tar.gz``."""
    version = place.made("kafkalog-*.whl").name.split("-")[1]
    programs = place.environment("sphinx", *REQUIREMENTS)
    folder = place.scratch / f"kafkalog-{version}-docs"
    build_site(place.clone, programs / "sphinx-build", folder, place.scratch / "pages", version)
    write_archive(folder, place.output / f"{folder.name}.tar.gz", commit_time())


def build_site(checkout: Path, sphinx: Path, output: Path, pages: Path, version: str) -> None:
    """The site from a checkout's pages, which are copied to ``pages`` first; any warning fails."""
    pages.mkdir(parents=True)
    for name in _TOP_PAGES:
        shutil.copy(checkout / name, pages)
    shutil.copytree(checkout / "docs", pages / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__", "share"))
    (pages / "conf.py").write_text(_CONFIGURATION.format(version=version))
    for folder in ("docs/formats", "docs/runbooks"):
        _add_menu(pages / folder / "README.md", (("", tuple(_others(pages / folder, frozenset({"README"})))),))
    _add_menu(pages / "README.md", _whole_menu(pages))
    run(str(sphinx), "--quiet", "--fail-on-warning", "--keep-going", "-b", "html", str(pages), str(output))
    shutil.copy(output / "README.html", output / "index.html")
    shutil.rmtree(output / ".doctrees")


def _whole_menu(pages: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    named = frozenset(name for _, names in _MENU for name in names)
    stems = _others(pages / "docs", frozenset({"README"}))
    others = tuple(f"{name} <docs/{name}>" for name in stems if f"docs/{name}" not in named)
    return tuple(
        (title, tuple(each for name in names for each in (others if name == "docs/*" else (name,))))
        for title, names in _MENU
    )


def _others(folder: Path, left_out: frozenset[str]) -> list[str]:
    return [page.stem for page in sorted(folder.glob("*.md")) if page.stem not in left_out]


def _add_menu(page: Path, menu: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    """Add the menu of the pages below this one, in the notation of MyST."""
    with page.open("a", encoding="utf-8") as file:
        for title, names in menu:
            lines = "\n".join(names)
            caption = f":caption: {title}\n" if title else ""
            file.write(f"\n```{{toctree}}\n:hidden:\n{caption}\n{lines}\n```\n")
