"""Values that the serializers of Apicurio Registry and of AWS Glue Schema Registry wrote, for the tests without them.

    python -m tests.oracle.other_registries tests/_data/decoding/other-registries.jsonl

Maven fetches the serializers. Glue's registry is moto's; of Apicurio's, the three requests of its REST API v2 that the
serializers make are answered here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from base64 import b64decode, b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import boto3
from moto.server import ThreadedMotoServer

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>trial</groupId><artifactId>trial</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
_LIBRARIES = {
    "apicurio": (
        ("io.apicurio", "apicurio-registry-serdes-avro-serde", "2.6.5.Final"),
        ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ),
    "glue": (("software.amazon.glue", "schema-registry-serde", "1.1.24"),),
}
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type": "string"}],
}
GLOBAL_ID = 0x0102030405


class Apicurio(BaseHTTPRequestHandler):
    """One schema, whatever it is asked for."""

    schema: ClassVar[bytes] = b""

    def do_POST(self) -> None:
        """A schema is registered."""
        Apicurio.schema = self.rfile.read(int(self.headers["Content-Length"]))
        moment = "2026-01-01T00:00:00+0000"
        self._answer(
            {
                "groupId": "default",
                "id": "orders-value",
                "version": "1",
                "type": "AVRO",
                "state": "ENABLED",
                "globalId": GLOBAL_ID,
                "contentId": 5,
                "createdOn": moment,
                "modifiedOn": moment,
            }
        )

    def do_GET(self) -> None:
        """The schema of an id, or the schemas that it refers to."""
        self._answer([] if self.path.endswith("/references") else json.loads(Apicurio.schema))

    def _answer(self, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def values_of(name: str, address: str) -> list[dict[str, Any]]:
    """What the serializers of a registry write."""
    with tempfile.TemporaryDirectory() as folder:
        dependencies = "".join(_DEPENDENCY.format(*each) for each in _LIBRARIES[name])
        Path(folder, "pom.xml").write_text(_POM.format(dependencies=dependencies))
        fetch = ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs")
        subprocess.run(fetch, cwd=folder, check=True)
        source = Path(__file__).with_name("OtherRegistries.java")
        run = ("java", "-Daws.accessKeyId=x", "-Daws.secretAccessKey=x", "-cp", "libs/*", str(source))
        words = (name, address, json.dumps(SCHEMA))
        lines = subprocess.run([*run, *words], cwd=folder, check=True, capture_output=True, text=True).stdout
    found = []
    for line in lines.splitlines():
        what, value, headers, expected = line.split("\t")
        named = [each.partition("=") for each in headers.split(",") if each]
        found.append(
            {
                "serializer": f"{_LIBRARIES[name][0][1]} {_LIBRARIES[name][0][2]}, {what}",
                "value": value,
                "headers": [[key, b64encode(b64decode(content)).decode()] for key, _, content in named],
                "expected": json.loads(expected),
            }
        )
    return found


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Apicurio)
    server.RequestHandlerClass.log_message = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    moto = ThreadedMotoServer("127.0.0.1", port=0)
    moto.start()
    glue_at = "http://{}:{}".format(*moto.get_host_and_port())
    glue = boto3.client("glue", "us-east-1", endpoint_url=glue_at, aws_access_key_id="x", aws_secret_access_key="x")
    glue.create_registry(RegistryName="default-registry")
    found = values_of("apicurio", f"http://127.0.0.1:{server.server_port}/apis/registry/v2")
    found += values_of("glue", glue_at)
    moto.stop()
    Path(sys.argv[1]).write_text("".join(json.dumps(each) + "\n" for each in ({"schema": SCHEMA}, *found)))


if __name__ == "__main__":
    main()
