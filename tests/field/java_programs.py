"""Java programs that a scenario runs beside the workbench, and the jars that releases keep apart."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.field.clients import cache_folder
from tests.field.cluster import FieldCluster
from tests.field.workbench import compiled

_OPTIONS = ["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_STREAMS_VERSION = "4.3.1"
_POM = """\
<project><modelVersion>4.0.0</modelVersion><groupId>field</groupId><artifactId>field</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""
_DEPENDENCY = (
    "<dependency><groupId>org.apache.kafka</groupId>"
    "<artifactId>{name}</artifactId><version>{version}</version>{more}</dependency>"
)


def fetched(name: str, version: str, more: str = "", *, transitive: bool = True) -> list[Path]:
    """The jars of an artifact of Kafka, from Maven."""
    folder = cache_folder() / "jars" / f"{name}-{version}{'-test' if more else ''}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(
            _POM.format(dependencies=_DEPENDENCY.format(name=name, version=version, more=more))
        )
        words = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={folder / 'libs'}"]
        subprocess.run([*words, *([] if transitive else ["-DexcludeTransitive=true"])], cwd=folder, check=True)
        (folder / "complete").touch()
    return sorted((folder / "libs").glob("*.jar"))


def tiered_storage_jars(version: str) -> list[Path]:
    """The jar with LocalTieredStorage, which keeps remote segments in a folder."""
    kind = "<classifier>test</classifier>"
    return [
        *fetched("kafka-storage", version, kind, transitive=False),
        *fetched("kafka-clients", version, kind, transitive=False),
    ]


def run_java_program(cluster: FieldCluster, name: str, *words: str, timeout: float = 180) -> str:
    """A program of this folder on the newest release's clients, to its end; its last line."""
    jars = [each for each in fetched("kafka-streams", _STREAMS_VERSION) if "kafka-clients" not in each.name]
    source = Path(__file__).with_name(f"{name}.java")
    classes = compiled(cluster.lab, source, _STREAMS_VERSION, cache_folder(), jars)
    command = cluster.lab.java_command(_STREAMS_VERSION, _OPTIONS, extra=[classes, *jars])
    done = subprocess.run([*command, name, *words], capture_output=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="backslashreplace")[-2000:]
    return done.stdout.decode().splitlines()[-1]
