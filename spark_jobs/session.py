"""Spark sessions: their masters and requirements, settings for one machine, and a check of the executors."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from format.errors import ClusterFailed, InputError
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.version import VERSION
from format.wording import installing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Where(msgspec.Struct, frozen=True):
    """Where a command runs on Spark.

    ``name`` is the command, for the descriptions of its jobs. ``master`` None is this machine, or the master that
    spark-submit chose. ``range_bytes`` is the part of a large log that one task reads, None to choose by the total.
    ``archive`` is the packed environment of the executors.
    """

    name: str
    master: str | None = None
    conf: Mapping[str, str] = msgspec.field(default_factory=dict)
    range_bytes: int | None = None
    archive: str | None = None


#: What an older Spark reads instead.
WITHOUT_SPARK_4 = "let Spark read the Parquet files that 'kafkalog extract --output DIR PATH' writes"


def spark_version() -> str:
    """The version, such as ``4.0.1``.

    The package says it, not its installation: where a platform brings Spark, ``spark-submit`` puts it on the path, and
    nothing is installed.
    """
    import pyspark

    version: str = pyspark.__version__
    return version


_TRIES = 3  # of a task, as its worker may die
LOCAL_MASTER = f"local[*, {_TRIES}]"
_LOCAL = re.compile(r"local(?:\[(?P<threads>\*|[0-9]+)\])?")
_WAIT_S = 20
#: What answers at the address of a master, by its scheme, and the port where the address has none.
_ANSWERING = {
    "sc": ("Spark Connect server", 15002),
    "spark": ("Spark master", 7077),
    "k8s": ("Kubernetes API server", 443),
}
_PORTS = {"http": 80}
#: The client of Kubernetes may reach its server through a proxy only.
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def is_submitted() -> bool:
    """Whether spark-submit started this process, and with it the JVM and the master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_connect(master: str | None) -> bool:
    """Whether a master is the address of a Spark Connect server."""
    return master is not None and master.startswith("sc://")


def is_elsewhere(master: str | None) -> bool:
    """Whether the tasks of a master run on other hosts, with another working directory."""
    return is_submitted() if master is None else not master.startswith("local")


def with_retries(master: str) -> str:
    """The master; a local one with several tries for each task, as a worker may die (the default is one try)."""
    match = _LOCAL.fullmatch(master)
    return master if match is None else f"local[{match['threads'] or 1}, {_TRIES}]"


def require_answer(master: str) -> None:
    """Raise ClusterFailed where nothing answers at the address of a master, within half a minute.

    Without this check, a Connect client would try for ten minutes, a standalone master for one, and the client of
    Kubernetes says no reason.
    """
    scheme, _, rest = master.partition("://")
    what, default_port = _ANSWERING.get(scheme, ("", 0))
    if not what or (scheme == "k8s" and any(os.environ.get(name) for name in _PROXIES)):
        return
    places = [urlsplit(each if "://" in each else f"//{each}") for each in rest.split(",")]
    errors = []
    for place in places:
        try:
            address = place.hostname or "", place.port or _PORTS.get(place.scheme, default_port)
            socket.create_connection(address, _WAIT_S / len(places)).close()
            return
        except (OSError, ValueError) as error:
            errors.append(error)
    shown = master.partition("/;")[0]  # without the token of a Connect client
    raise ClusterFailed(f"no {what} answers at {shown}: {errors[0]}") from errors[0]


_LEAST_JAVA = 17
_LEAST_SPARK = (4, 0)
_UNPACKED = "environment"  # the directory that executors unpack an archive into
_NEEDED = ("pyspark", "pyarrow", "pandas")
_NEEDED_BY_CONNECT = ("grpc", "grpc_status", "google.rpc")
#: The name of the JVM's log, in the directory for temporary files.
_LOG_NAME = "kafkalog-spark-%d.log"
#: Errors whose reason is only in the log.
_IN_LOG = ("JAVA_GATEWAY_EXITED", "stopped SparkContext")
_ERROR_OF_JVM = re.compile(
    r"^(?:Exception in thread \"main\" |Error: )(?:[\w.$]+(?:Exception|Error): )?(\S.*)$"
    r"|^.* ERROR .*: (Application has been killed\. Reason: \S.*)$",
    re.MULTILINE,
)

_FOR_RESULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",  # a row may hold the tables of a 4 MiB chunk
    "spark.sql.adaptive.enabled": "false",  # it plans each stage anew and runs it as a job, without a gain here
}
_EVERYWHERE = _FOR_RESULTS | {"spark.app.name": "kafkalog", "spark.ui.showConsoleProgress": "false"}
_ON_ONE_MACHINE = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    # The work is done outside of the JVM: its quick compiler and its plain collector are enough.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.artifact.isolation.enabled": "false",
    # The JVM only passes rows on here: compiling code for that takes a first scan longer than it gains.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Over TCP each task waits some 50 ms for an acknowledgement that the kernel puts off.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.shuffle.compress": "true",
    "spark.io.compression.codec": "lz4",
}


class SparkMissing(InputError):
    """Spark cannot start here; the message says what to install."""


def require_spark(*, is_connect: bool = False) -> None:
    """Raise SparkMissing where pyspark, one of its companions or Java is missing; a Connect client needs no Java."""
    needed = (*_NEEDED, *_NEEDED_BY_CONNECT) if is_connect else _NEEDED
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise SparkMissing(
            f"Spark jobs need {', '.join(missing)}, not installed here: "
            f"{installing('spark-connect' if is_connect else 'spark')}"
        )
    _require_version()
    java = _java()
    if is_connect:
        return
    if java is None:
        raise SparkMissing(
            f"Spark jobs need Java {_LEAST_JAVA} or later: there is none in JAVA_HOME or on the path; "
            "install one (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME"
        )
    version = _java_version(java)
    if version is not None and version < _LEAST_JAVA:
        raise SparkMissing(
            f"Spark jobs need Java {_LEAST_JAVA} or later; {java} is Java {version}: set JAVA_HOME to a later one"
        )


def _require_version() -> None:
    version = spark_version()
    if tuple(map(int, version.split(".")[:2])) < _LEAST_SPARK:
        raise SparkMissing(
            f"Spark jobs need Spark 4.0 or later, which has data sources in Python; this is {version}: "
            f"pip install 'kafkalog[spark]', or {WITHOUT_SPARK_4}"
        )


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        inside = Path(home) / "bin" / "java"
        return inside if os.access(inside, os.X_OK) else None
    found = shutil.which("java")
    return None if found is None else Path(found)


def _java_version(java: Path) -> int | None:
    """The major version, from the file ``release`` of the installation or from the program; None if unknown."""
    release = Path(os.path.realpath(java)).parent.parent / "release"
    try:
        text = release.read_text(encoding="utf-8", errors="replace")
    except OSError:
        try:
            text = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30).stderr
        except (OSError, subprocess.SubprocessError):
            return None
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return None if match is None else int(match[1])


def spark_log_path() -> Path:
    """The log file of the JVM of this process."""
    return Path(tempfile.gettempdir()) / (_LOG_NAME % os.getpid())


def is_session_running() -> bool:
    """Whether this process has an active session."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


def is_remote_session(session: SparkSession) -> bool:
    """Whether a session is one of a Connect server, which has no SparkContext."""
    return ".connect." in type(session).__module__


def parallelism_of(session: SparkSession) -> int:
    """The number of tasks that run at once, as far as the session knows."""
    if not is_remote_session(session):
        return int(session.sparkContext.defaultParallelism)
    from pyspark.sql.functions import spark_partition_id

    return int(session.range(10_000).select(spark_partition_id()).distinct().count())


def open_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, archive: str | None = None
) -> SparkSession:
    """The active session, else a new one on ``master`` (None: this machine, or the master of spark-submit).

    ``archive`` is the packed environment of the executors. Raises SparkMissing where something is not installed, and
    ClusterFailed, with the path of the log, where Spark does not start.
    """
    require_spark(is_connect=is_connect(master))
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    if not logging.getLogger().handlers:  # without one, py4j prints a traceback when Ctrl-C interrupts a call
        logging.getLogger().addHandler(logging.NullHandler())
    if is_connect(master):
        if archive is not None:
            raise InputError(
                "--archive: a Connect server has the environment that it was started with, and takes none from a client"
            )
        return _connected(str(master), conf or {})
    submitted = is_submitted()
    master = with_retries(master) if master else (None if submitted else LOCAL_MASTER)
    settings = dict(_EVERYWHERE)
    is_local = master is not None and master.startswith("local")
    if is_local:
        settings |= _ON_ONE_MACHINE
        _set_workers_python()
    if archive is not None:
        settings |= _archive_settings(archive)
    settings |= conf or {}
    if master is not None:
        settings["spark.master"] = master
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    if submitted:
        with _kept_interrupt():
            return builder.getOrCreate()
    if master is not None:
        require_answer(master)
    log = spark_log_path()
    with _output_to(log), _kept_interrupt():
        session = _started(builder, settings, log)
    session.sparkContext.setLogLevel("ERROR")
    return session


def _connected(address: str, conf: Mapping[str, str]) -> SparkSession:
    """A session of a Connect server. The Python of the server and its executors must have this package."""
    from pyspark.sql import SparkSession

    require_answer(address)
    builder = SparkSession.builder.remote(address)
    for name, value in (_FOR_RESULTS | dict(conf)).items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise ClusterFailed(f"no session at {address.partition('/;')[0]}: {one_line_reason(error)}") from error


def close_session(session: SparkSession) -> None:
    """Stop a session and remove its log."""
    with contextlib.suppress(Exception):
        session.stop()
    with contextlib.suppress(OSError):
        spark_log_path().unlink()


def _archive_settings(archive: str) -> dict[str, str]:
    """Settings by which executors unpack an environment and run its Python. The driver keeps its own."""
    os.environ["PYSPARK_PYTHON"] = f"./{_UNPACKED}/bin/python"
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return {
        "spark.archives": f"{archive}#{_UNPACKED}",
        "spark.pyspark.python": f"./{_UNPACKED}/bin/python",
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": "",
    }


def _set_workers_python() -> None:
    """Set the environment of local workers, so that they run this Python with these packages, also from a checkout."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    root = str(Path(__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH", "")
    if root not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = root + (os.pathsep + known if known else "")


def _started(builder: SparkSession.Builder, settings: Mapping[str, str], log: Path) -> SparkSession:
    """A session, and the JVM for it, which is killed if the session does not start or is interrupted while it does.

    PySpark keeps the JVM for the next context of this process. No public name of it says that there is one.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    gateway = None
    try:
        if SparkContext._gateway is None:
            conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
            with _late_signals():
                gateway = launch_gateway(conf)
            SparkContext(conf=conf, gateway=gateway)
        return builder.getOrCreate()
    except BaseException as error:
        failed: BaseException = error
        if isinstance(error, Exception):  # its text is in the JVM, which is still there
            reason = _reason_in_log(log) if any(each in str(error) for each in _IN_LOG) else ""
            failed = ClusterFailed(f"Spark did not start: {reason or one_line_reason(error)}; its log is {log}")
        if gateway is not None:
            gateway.proc.kill()
            gateway.proc.wait()
        if failed is error:
            raise
        raise failed from error


@contextlib.contextmanager
def _late_signals() -> Iterator[None]:
    """The context in which the first Ctrl-C or SIGTERM waits for the end; the second does not.

    A JVM that is left before it is connected does not notice the end of this process, and it ignores Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    noted: list[int] = []

    def note(number: int, frame: object) -> None:
        noted.append(number)
        restore()

    def restore() -> None:
        for each, handler in handlers.items():
            signal.signal(each, handler)

    for each in handlers:
        signal.signal(each, note)
    try:
        yield
    finally:
        restore()
    if noted:
        signal.raise_signal(noted[0])


@contextlib.contextmanager
def _kept_interrupt() -> Iterator[None]:
    """The context in which a session is made and the handler of Ctrl-C stays as it is.

    Spark's own handler asks the JVM to cancel all jobs, in the middle of another call to it. That may fail, and its
    error hides the interrupt. A session that ends cancels its jobs.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """The context in which standard output and error are a file: the JVM, and then its workers, inherit them."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    log = os.open(path, flags, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [(number, os.dup(number)) for number in (1, 2)]
    try:
        for number, _ in saved:
            os.dup2(log, number)
        yield
    finally:
        for number, copy in saved:
            os.dup2(copy, number)
            os.close(copy)
        os.close(log)


def _reason_in_log(log: Path) -> str:
    """The error with which the JVM or its application ended before there was a session; empty if its log has none."""
    with contextlib.suppress(OSError):
        found = _ERROR_OF_JVM.findall(log.read_text(encoding="utf-8", errors="replace"))
        return "".join(found[-1]) if found else ""
    return ""


def one_line_reason(error: BaseException) -> str:
    """The reason of a Spark error in one line: the error of the Python worker, or the lost task and its host."""
    text = str(error)
    cause = getattr(error, "desc", None) or text
    if "Traceback (most recent call last)" in cause:
        block = cause[cause.rindex("Traceback (most recent call last)") :].split("\n\n")[0]
        lines = [line.rstrip() for line in block.splitlines()[1:] if line.strip() and not line.startswith("\tat ")]
        inside = [number for number, line in enumerate(lines) if line.startswith(" ")]
        return " ".join(lines[inside[-1] + 1 if inside else 0 :])
    lost = re.search(r"most recent failure: (Lost task [^\n]+)", cause)
    if lost is not None:
        worker = re.search(r"Error from python worker:\s*(\S[^\n]*)", cause)  # it ended before it had a traceback
        words = lost[1].strip()
        return words if worker is None else f"{words.removesuffix('org.apache.spark.SparkException:')}{worker[1]}"
    lines = [line.strip() for line in cause.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):  # of py4j; the error is below it
        return lines[1].removeprefix(": ")
    return lines[0] if lines else type(error).__name__


_REMEDY = "give executors this environment with --archive FILE, which kafkalog scan --pack FILE makes"
_REMEDY_OF_ARCHIVE = "pack the archive anew, by a Python that the executors have at the same place"
_REMEDY_OF_CONNECT = (
    f"install kafkalog {VERSION} with its extra spark-provided for the Python of the Connect server and its executors"
)
_PACKAGES = {"format": "kafkalog", "spark_jobs": "kafkalog"}  # of modules with another name
_MOST_TASKS = 32
#: Spark refuses tasks for another minor version of Python before it runs anything of them.
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\]?\D*(?P<there>[0-9.]+\d)\D+(?P<here>[0-9.]+\d)")


_PYTHON = f"{platform.python_implementation()} {'.'.join(platform.python_version_tuple()[:2])}"


class WrongExecutor(ClusterFailed):
    """An executor that cannot run the tasks of this process."""


def check_executors(session: SparkSession) -> None:
    """Raise WrongExecutor where executors lack packages, or have another version of kafkalog or Python.

    Executors without the compiled kernel are only slow: one warning names them.
    """
    from pyspark import cloudpickle

    if is_remote_session(session):
        remedy = _REMEDY_OF_CONNECT
    else:
        has_archive = f"#{_UNPACKED}" in session.sparkContext.getConf().get("spark.archives", "")
        remedy = _REMEDY_OF_ARCHIVE if has_archive else _REMEDY
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    count = min(2 * parallelism_of(session), _MOST_TASKS)
    try:
        rows = session.range(0, count, 1, count).mapInArrow(_seen, "seen STRING").collect()
    except Exception as error:
        other = _OTHER_PYTHON.search(str(error))
        if other is not None:
            raise WrongExecutor(
                f"the executors have Python {other['there']}, and this is {other['here']}: {remedy}"
            ) from error
        raise WrongExecutor(f"the executors cannot run Python as here: {one_line_reason(error)}; {remedy}") from error
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    check_seen([json.loads(text) for text in dict.fromkeys(row[0] for row in rows)], remedy)


def check_seen(executors: list[dict[str, Any]], remedy: str = _REMEDY) -> None:
    """Raise WrongExecutor, or warn, as ``check_executors`` does, for the answers of ``_seen``."""
    for each in executors:
        if each["missing"]:
            lacks = ", ".join(dict.fromkeys(_PACKAGES.get(name, name) for name in each["missing"]))
            raise WrongExecutor(f"the executor on {each['host']} lacks {lacks}: {remedy}")
        if each["version"] != VERSION:
            raise WrongExecutor(
                f"the executor on {each['host']} has kafkalog {each['version']}, and this is {VERSION}: {remedy}"
            )
        if each["python"] != _PYTHON:
            raise WrongExecutor(f"the executor on {each['host']} has {each['python']}, and this is {_PYTHON}: {remedy}")
    plain = sorted({each["host"] for each in executors if not each["has_kernel"]})
    if plain and KERNEL_IS_COMPILED:
        sys.stderr.write(
            f"kafkalog: executors without the compiled kernel, some ten times slower: {', '.join(plain)}; {remedy}\n"
        )


def _seen(batches: Iterator[Any]) -> Iterator[Any]:
    """One row with the packages and versions of this executor. The function uses only its own imports."""
    import importlib.util

    import pyarrow as pa

    for _ in batches:
        pass
    missing = [name for name in ("numpy", "format", "spark_jobs") if importlib.util.find_spec(name) is None]
    python = f"{platform.python_implementation()} {'.'.join(platform.python_version_tuple()[:2])}"
    seen: dict[str, Any] = {"host": socket.gethostname(), "missing": missing, "python": python}
    if not missing:
        from format.kernel.compiled import KERNEL_IS_COMPILED
        from format.version import VERSION

        seen |= {"version": VERSION, "has_kernel": KERNEL_IS_COMPILED}
    yield pa.RecordBatch.from_pydict({"seen": [json.dumps(seen)]})
