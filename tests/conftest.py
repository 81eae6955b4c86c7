"""What every test may ask for: the shipped data, the shared corpus, the program as a user runs it, Kafka's own tools.

Four environment variables matter: KAFKALOG_SHARED names the shared folder (by default the one called ``shared``
beside the checkout), KAFKALOG_NO_SKIP=1 makes the run fail where a test was skipped because something is missing (the
corpus, Kafka, a library; KAFKALOG_NO_SKIP=own: only for what a user can install), and
KAFKALOG_REQUIRE_COMPILED_KERNEL=1 does the same for a missing compiled kernel. KAFKALOG_TURN=2/8 runs the second of
eight parts of the slow tests, and all quick ones. The tests that need Spark are the ones marked ``spark``;
KAFKALOG_REQUIRE_SPARK=1 makes them fail where it cannot start.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache
from itertools import chain, combinations
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

from format.kernel.compiled import COMPILED_MODULES, KERNEL_IS_COMPILED
from kafkalog_cli.main import kernel_kind
from tests.corpora import DATA_DIR, REPOSITORY, SHARED_CORPUS, Corpus, corpora
from tests.oracle.kafka_lab import KafkaLab
from tests.running import Run, Word, run_in_process_of_its_own, run_many

# Hundreds of processes load the same modules: all of them, pytest's workers too, keep what they compile.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# pytest holds hundreds of thousands of lasting objects; with Python's default of 700 they are searched many times.
gc.set_threshold(50_000)

# A shell that starts the tests in the background has Ctrl-C ignored, and what they start would ignore it, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asserts a time: a busy machine would fail it.
settings.register_profile("kafkalog", deadline=None)
settings.load_profile("kafkalog")


def unavailable(reason: str) -> None:
    """Skip with the reason, or fail with it where nothing may be skipped."""
    if os.environ.get("KAFKALOG_NO_SKIP") == "1":
        pytest.fail(f"must not be skipped here: {reason}")
    pytest.skip(reason)


def _turn(text: str) -> tuple[int, int] | None:
    """``2/8`` as (2, 8); None for nothing."""
    if not text:
        return None
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(f"KAFKALOG_TURN={text}: there is no such part")
    return part, parts


#: Which part of the slow tests runs, from 1, and of how many; None for all of them.
TURN = _turn(os.environ.get("KAFKALOG_TURN", ""))


def pytest_report_header() -> list[str]:
    """Which kernel the tests run with, and whether the shared corpus is there."""
    corpus_is = SHARED_CORPUS if SHARED_CORPUS.is_dir() else "absent"
    lines = [f"kernel: {kernel_kind()}", f"shared corpus: {corpus_is}"]
    if TURN is not None:
        lines.append(f"slow tests: part {TURN[0]} of {TURN[1]} only (KAFKALOG_TURN)")
    return lines


def kernel_sources(name: str) -> list[Path]:
    """What one of the kernel's modules is compiled from: its two files, and the .pxd files that it takes from."""
    folder = REPOSITORY / "format" / "kernel"
    types = folder / f"{name}.pxd"
    taken = re.findall(r"^from format\.kernel\.(\w+) cimport", types.read_text(encoding="utf-8"), re.MULTILINE)
    return [types.with_suffix(".py"), types, *(folder / f"{each}.pxd" for each in taken)]


def pytest_sessionstart() -> None:
    """Refuse to test a compiled kernel that is older than its source: it would hide every change to it."""
    if os.environ.get("KAFKALOG_REQUIRE_COMPILED_KERNEL") == "1" and not KERNEL_IS_COMPILED:
        pytest.exit(f"the kernel is not compiled here: {kernel_kind()}", returncode=4)
    for name in COMPILED_MODULES:
        newest = max(each.stat().st_mtime for each in kernel_sources(name))
        for compiled in (REPOSITORY / "format" / "kernel").glob(f"{name}.*.so"):
            if compiled.stat().st_mtime < newest:
                pytest.exit(
                    f"{compiled.name} is older than what it is compiled from: delete it, or build it again with "
                    f"pip install -e .",
                    returncode=4,
                )


TESTS = REPOSITORY / "tests"
#: Folders whose tests are left out of the fast lane: they walk all corpora or start other programs. Elsewhere a file
#: says so itself: ``pytestmark = pytest.mark.slow``.
SLOW = ("faults", "oracle", "truth")
#: Folders whose tests take minutes, so that only ``.ci/run`` runs them. Elsewhere: ``pytestmark = pytest.mark.long``.
LONG = ("faults_writing", "field", "kafkalog_cli/commands/scan", "properties", "recording", "spark")
#: The reasons to skip a test where nothing may be missing: the test does not apply to a corpus or to this system.
_DOES_NOT_APPLY = re.compile(
    r"this corpus has no|the corpora that ship have|brokers of that time|one corpus of each kind|takes minutes: set"
    r"|root (may read|lists) everything|only root can|file system (stores holes|notes no)|cannot be hidden here"
)


def must_not_skip(marks: Container[str], reason: str) -> bool:
    """Whether the skip of a test with these marks, for this reason, fails the run, by the variables that are set."""
    if _DOES_NOT_APPLY.search(reason):
        return False
    if "spark" in marks:
        return os.environ.get("KAFKALOG_REQUIRE_SPARK") == "1"
    wanted = os.environ.get("KAFKALOG_NO_SKIP")
    return wanted == "1" or (wanted == "own" and "shared" not in marks and "oracle" not in marks)


#: The marks that all tests of a file or folder get.
_MARKED_PLACES = {
    "slow": {TESTS / each for each in SLOW},
    "long": {TESTS / each for each in LONG},
    "spark": {TESTS / "spark"},
}
#: What a test that asks for one of these cannot do without.
_MARKED_FIXTURES = {"shared_corpus": "shared", "kafka_lab": "oracle"}
#: Arguments that run a test once for each corpus: every one, those that ship, those that clients have read, and those
#: of all old formats.
CORPUS_ARGUMENTS: dict[str, Callable[[Corpus], bool]] = {
    "corpus": lambda corpus: True,
    "shipped_corpus": lambda corpus: not corpus.is_shared,
    "witnessed_corpus": lambda corpus: corpus.truth is not None,
    "legacy_corpus": lambda corpus: bool(corpus.replicas("legacy-0")),
}
MARKS = ("slow", "long", "oracle", "shared", "spark")
_NAMED_MARK = re.compile(
    rf"\b(?:mark\.|needs_)({'|'.join(MARKS)})\b|\b({'|'.join((*_MARKED_FIXTURES, *CORPUS_ARGUMENTS))})\b"
)


@cache
def _marks_of_place(path: Path) -> frozenset[str]:
    """The marks that all tests below a path have."""
    around = {path, *path.parents}
    found = {mark for mark, places in _MARKED_PLACES.items() if places & around}
    return frozenset(found | {"slow"} if "long" in found else found)


@cache
def _marks_named_in(path: Path) -> frozenset[str]:
    """The marks that tests of a file may have besides, by the words in it; all marks for a folder."""
    if path.suffix != ".py":
        return frozenset(MARKS)
    words = _NAMED_MARK.findall(path.read_text(encoding="utf-8"))
    found = {mark or _MARKED_FIXTURES.get(fixture, "shared") for mark, fixture in words}
    return frozenset(found | {"slow"} if "long" in found else found)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which ``-m`` wants no test, whichever of the marks that it names a test has."""
    expression = str(config.option.markexpr)
    if not expression or not set(re.findall(r"\w+", expression)) <= {*MARKS, "and", "or", "not"}:
        return None
    fixed = _marks_of_place(collection_path)
    named = sorted(_marks_named_in(collection_path) - fixed)
    possible = chain.from_iterable(combinations(named, count) for count in range(len(named) + 1))
    marks = ({name: name in fixed or name in some for name in MARKS} for some in possible)
    return None if any(eval(expression, {}, each) for each in marks) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by the folders that they lie in and by what they ask for; a long test is a slow one, too.

    Where several processes take one file after the other, those with slow tests come first, so that all end together.
    """
    for item in items:
        for mark in _marks_of_place(item.path):
            item.add_marker(mark)
        for fixture, mark in _MARKED_FIXTURES.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)
        if item.get_closest_marker("long"):
            item.add_marker("slow")
        unnamed = {each.name for each in item.iter_markers()}.intersection(MARKS)
        unnamed -= _marks_of_place(item.path) | _marks_named_in(item.path)
        if unnamed:
            raise pytest.UsageError(f"{item.nodeid} has marks that its file does not name: {', '.join(unnamed)}")
    if TURN is not None:
        part, parts = TURN
        others = {
            each
            for each in items
            if each.get_closest_marker("slow") and crc32(each.nodeid.encode()) % parts != part - 1
        }
        config.hook.pytest_deselected(items=list(others))
        items[:] = [each for each in items if each not in others]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that must not skip where something was missing, such as a library."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    for report in reporter.stats.get("skipped", ()):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        marks = {*getattr(report, "keywords", ()), *(("spark",) if report.nodeid.startswith("tests/spark/") else ())}
        if must_not_skip(marks, reason):
            reporter.write_line(f"must not be skipped here: {report.nodeid}: {reason}", red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


# -- data ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The small files, written by real brokers, that ship with the tests."""
    return DATA_DIR


@pytest.fixture(scope="session")
def shared_corpus() -> Path:
    """The shared corpus; skips where it is absent."""
    if not SHARED_CORPUS.is_dir():
        unavailable(NO_SHARED_CORPUS)
    return SHARED_CORPUS


NO_SHARED_CORPUS = "the shared corpus is absent: no folder shared/corpus beside the checkout, see KAFKALOG_SHARED"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that asks for corpora the shipped ones always, and the shared ones where they are present."""
    for name, is_wanted in CORPUS_ARGUMENTS.items():
        if name not in metafunc.fixturenames:
            continue
        wanted = [each for each in corpora() if is_wanted(each)]
        arguments = [pytest.param(each, id=each.id, marks=[pytest.mark.shared] * each.is_shared) for each in wanted]
        if name != "shipped_corpus" and not any(each.is_shared for each in wanted):
            arguments.append(pytest.param(None, id="shared", marks=pytest.mark.shared))
        metafunc.parametrize(name, arguments, indirect=True, scope="session")


def _corpus(request: pytest.FixtureRequest) -> Corpus:
    if request.param is None:
        unavailable(NO_SHARED_CORPUS)
    found: Corpus = request.param
    return found


@pytest.fixture(scope="session")
def corpus(request: pytest.FixtureRequest) -> Corpus:
    """Each corpus in turn: log directories as brokers left them, and what clients saw."""
    return _corpus(request)


@pytest.fixture(scope="session")
def shipped_corpus(request: pytest.FixtureRequest) -> Corpus:
    """Each corpus that ships: for what is the same however it is done, whatever the log."""
    return _corpus(request)


@pytest.fixture(scope="session")
def witnessed_corpus(request: pytest.FixtureRequest) -> Corpus:
    """Each corpus that comes with what its clients saw."""
    return _corpus(request)


@pytest.fixture(scope="session")
def legacy_corpus(request: pytest.FixtureRequest) -> Corpus:
    """Each corpus with the partition that lived through every format, and with what was sent to it."""
    return _corpus(request)


# -- the program ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def run_kafkalog() -> Callable[..., Run]:
    """Runs the program as a user does: ``run_kafkalog("ls", path)`` gives a ``Run``; see ``tests.running``."""
    return run_in_process_of_its_own


@pytest.fixture(scope="session")
def run_kafkalog_many() -> Callable[[Iterable[Iterable[Word]]], list[Run]]:
    """The same for hundreds of runs at a few milliseconds each: ``run_kafkalog_many([("ls", path), …])``."""
    return run_many


# -- guards --------------------------------------------------------------------------------------------------


def snapshot_of(directory: Path) -> dict[str, tuple[str, int, int, str]]:
    """Kind, mode, mtime in nanoseconds and SHA-256 of everything below a directory, the directory too."""
    found: dict[str, tuple[str, int, int, str]] = {}
    for each in [directory, *sorted(directory.rglob("*"))]:
        status = each.lstat()
        name = str(each.relative_to(directory))
        if each.is_symlink():
            found[name] = ("link", status.st_mode, status.st_mtime_ns, str(each.readlink()))
        elif each.is_file():
            digest = hashlib.sha256(each.read_bytes()).hexdigest()
            found[name] = ("file", status.st_mode, status.st_mtime_ns, digest)
        else:
            found[name] = ("other", status.st_mode, status.st_mtime_ns, "")
    return found


@pytest.fixture
def source_snapshot() -> Iterator[Callable[[Path], None]]:
    """The read-only guard: ``source_snapshot(directory)`` before the work; after the test all must be as it was."""
    taken: dict[Path, dict[str, tuple[str, int, int, str]]] = {}

    def take(directory: Path) -> None:
        taken[directory] = snapshot_of(directory)

    yield take
    for directory, before in taken.items():
        after = snapshot_of(directory)
        assert sorted(after) == sorted(before), f"files came or went under {directory}"
        changed = [name for name in before if after[name] != before[name]]
        assert not changed, f"changed under {directory}: {changed}"


# -- Kafka's own tools ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def kafka_lab() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs kafka-dump-log of a release: ``kafka_lab("4.3.1", "--files", path)``; skips where it is missing."""
    lab = KafkaLab()

    def dump_log(version: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        missing = lab.missing(version)
        if missing is not None:
            unavailable(missing)
        return lab.dump_log(version, *arguments)

    return dump_log


@pytest.fixture(scope="session")
def store() -> Iterator[str]:
    """A server that speaks S3, with what a client needs to find it in the environment; yields its address."""
    try:
        import boto3
        from moto.server import ThreadedMotoServer
    except ImportError:
        unavailable("moto is not installed: pip install 'kafkalog[test]'")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_ENDPOINT_URL": address,
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="logs")
        yield address
    server.stop()


@pytest.fixture(scope="session")
def upload(store: str) -> Callable[[Path, str], str]:
    """A function that puts the files below a directory into the bucket, and returns their address there."""
    import boto3

    client = boto3.client("s3", region_name="us-east-1", endpoint_url=store)

    def put(directory: Path, name: str) -> str:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                client.put_object(Bucket="logs", Key=f"{name}/{path.relative_to(directory)}", Body=path.read_bytes())
        return f"s3://logs/{name}"

    return put
