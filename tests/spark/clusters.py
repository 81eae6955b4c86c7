"""Masters on this machine: a standalone master with two workers, a Spark Connect server, and a store for logs."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.corpora import REPOSITORY
from tests.ports import free_ports

BIN = Path(pyspark.__file__).parent / "bin"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_S = 240
#: What a JVM that lives for seconds needs: its quick compiler, and no threads that collect garbage.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass
class Cluster:
    """A standalone cluster: its address, the environment of its programs, its directory, and its daemons."""

    url: str
    environment: dict[str, str]
    place: Path
    master: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    def submit(self, *words: str, conf: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start spark-submit."""
        settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.task.maxFailures": "4"}
        settings |= {"spark.driver.extraJavaOptions": _SHORT_LIVED, "spark.executor.extraJavaOptions": _SHORT_LIVED}
        options = [f"--conf={name}={value}" for name, value in (settings | (conf or {})).items()]
        return subprocess.Popen(
            [str(BIN / "spark-submit"), "--master", self.url, "--executor-memory", "512m", *options, *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.place,
        )

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start one more worker, with one core."""
        number = len(self.workers) + 1
        options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        started = _daemon(
            [_WORKER, *options, "--work-dir", str(self.place / f"worker-{number}"), self.url],
            self.environment,
            self.place / f"daemon-{number}.log",
        )
        self.workers.append(started)
        return started

    def wait_for_workers(self) -> None:
        """Wait until the master knows all workers. Raises ChildProcessError if it ended, and TimeoutError."""
        _wait_for(self.master, self.place / "daemon-0.log", "Registering worker", len(self.workers))


def _daemon(words: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(BIN / "spark-class"), *words], env=environment, stdout=output, stderr=output, start_new_session=True
        )


def _wait_for(daemon: subprocess.Popen[bytes], log: Path, words: str, count: int = 1) -> None:
    deadline = time.monotonic() + _START_S
    while (said := log.read_text(errors="replace")).count(words) < count:
        if daemon.poll() is not None:
            raise ChildProcessError(f"a daemon of Spark ended: {said[-6000:]}")
        if time.monotonic() > deadline:
            raise TimeoutError(said[-6000:])
        time.sleep(0.2)


@contextmanager
def standalone_cluster(place: Path) -> Iterator[Cluster]:
    """A master and two workers, whose executors run this Python with this checkout."""
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _SHORT_LIVED,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(REPOSITORY),
    }
    (port,) = free_ports(1)
    options = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    master = _daemon([_MASTER, *options], environment, place / "daemon-0.log")
    cluster = Cluster(f"spark://127.0.0.1:{port}", environment, place, master, [])
    try:
        cluster.start_worker()
        cluster.start_worker()
        cluster.wait_for_workers()
        yield cluster
    finally:
        for process in (*cluster.workers, master):
            process.send_signal(signal.SIGTERM)
        for process in (*cluster.workers, master):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def connect_server(place: Path) -> Iterator[str]:
    """A Spark Connect server on two cores of this machine; its address."""
    (port,) = free_ports(1)
    settings = {"spark.ui.enabled": "false", "spark.connect.grpc.binding.port": port, "spark.driver.memory": "1g"}
    settings["spark.driver.extraJavaOptions"] = _SHORT_LIVED
    command = [str(BIN / "spark-submit"), "--master", "local[2]", "--class", _CONNECT_SERVER]
    command += [f"--conf={name}={value}" for name, value in settings.items()]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY)}
    environment.pop("SPARK_CONNECT_MODE_ENABLED", None)
    log = place / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "spark-internal"],
            env=environment,
            stdout=output,
            stderr=output,
            cwd=place,
            start_new_session=True,
        )
    try:
        _wait_for(process, log, "Spark Connect server started")
        yield f"sc://127.0.0.1:{port}"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


@contextmanager
def store_server() -> Iterator[dict[str, str]]:
    """A server that speaks S3, with a bucket called logs; the environment of what reads it."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
    environment |= {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_REGION": "us-east-1"}
    try:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        client = boto3.client("s3", region_name="us-east-1", endpoint_url=environment["AWS_ENDPOINT_URL"], **keys)
        client.create_bucket(Bucket="logs")
        yield environment
    finally:
        server.stop()


def upload(directory: Path, name: str) -> str:
    """Put the files below a directory into the bucket of the environment's store, and return their address there."""
    import boto3

    client = boto3.client("s3", region_name="us-east-1", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    for path in filter(Path.is_file, directory.rglob("*")):
        client.put_object(Bucket="logs", Key=f"{name}/{path.relative_to(directory)}", Body=path.read_bytes())
    return f"s3://logs/{name}"
