"""Kafka's own command-line tools, run straight from the jars of a release."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

#: The tool moved from the core jar to the tools jar in the course of the 4.x releases.
_DUMP_LOG_CLASSES = ("org/apache/kafka/tools/DumpLogSegments", "kafka/tools/DumpLogSegments")

#: Quick to start, frugal, and UTF-8 on its output whatever the locale says.
_JAVA_OPTIONS = (
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dfile.encoding=UTF-8",
    "-Dstdout.encoding=UTF-8",
    "-Dsun.stdout.encoding=UTF-8",
)


class KafkaLab:
    """The releases whose jars lie in ``$KAFKA_LAB`` (by default ``~/.cache/kafka-lab``), one folder each."""

    def __init__(self) -> None:
        self.home = Path(os.environ.get("KAFKA_LAB") or Path.home() / ".cache" / "kafka-lab")
        self.java = shutil.which("java")

    def missing(self, version: str) -> str | None:
        """Why a release cannot be run here, in words; None where it can."""
        if self.java is None:
            return f"Kafka {version} cannot run: no java on the path"
        if not (self.home / f"kafka-{version}" / ".complete").exists():
            return f"Kafka {version} is absent from {self.home}: run shared/kafka-lab/get_kafka.sh {version}"
        return None

    def java_command(
        self, version: str, options: Sequence[str] = _JAVA_OPTIONS, *, extra: Sequence[Path] = ()
    ) -> list[str]:
        """The words that run a main class of a release, which comes after them; ``extra`` jars come first."""
        path = os.pathsep.join([*map(str, extra), f"{self.home / f'kafka-{version}' / 'libs'}/*"])
        return [str(self.java), *options, "-cp", path]

    def logging_jars(self) -> list[Path]:
        """A logger for slf4j, which the jars of the 4.x releases come without; that of any 3.x release fits."""
        for libraries in sorted(self.home.glob("kafka-3.*/libs")):
            found = [*libraries.glob("slf4j-reload4j-1.7.*.jar"), *libraries.glob("reload4j-1.2.*.jar")]
            if len(found) == 2:
                return found
        return []

    def dump_log(
        self, version: str, *arguments: str | Path, timeout: float = 300, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """One run of kafka-dump-log, in a folder; its output is bytes, as a value may hold anything."""
        libraries = self.home / f"kafka-{version}" / "libs"
        command = [str(self.java), *_JAVA_OPTIONS, "-cp", f"{libraries}/*", _dump_log_class(libraries)]
        words = [os.fspath(each) for each in arguments]
        return subprocess.run(
            [*command, *words],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
            cwd=cwd,
            check=False,
        )


@cache
def _dump_log_class(libraries: Path) -> str:
    for jar in [*libraries.glob("kafka-tools-*.jar"), *libraries.glob("kafka_2.*.jar")]:
        with zipfile.ZipFile(jar) as content:
            names = set(content.namelist())
        for each in _DUMP_LOG_CLASSES:
            if each + ".class" in names:
                return each.replace("/", ".")
    raise FileNotFoundError(f"no DumpLogSegments in the jars of {libraries}")
