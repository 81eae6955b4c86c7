"""The migration of a cluster from ZooKeeper to KRaft, with a controller of its own."""

from __future__ import annotations

import time

from tests.field.cluster import FieldCluster, FieldNode

_QUORUM = """\
controller.quorum.voters={controller}@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
"""
_MIGRATING = """\
zookeeper.metadata.migration.enable=true
zookeeper.connect=127.0.0.1:{zookeeper_port}
"""
_CONTROLLER = """\
process.roles=controller
node.id={node}
listeners=CONTROLLER://127.0.0.1:{controller_port}
controller.quorum.voters={node}@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
metadata.log.max.record.bytes.between.snapshots=8192
"""
_LISTENING = """\
listeners=PLAINTEXT://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
inter.broker.listener.name=PLAINTEXT
"""
_MOST_SECONDS = 180


class Migration:
    """Its steps on a cluster of one broker, in their order."""

    def __init__(self, cluster: FieldCluster) -> None:
        self._cluster = cluster
        self._broker = cluster.node(1)
        self._migrating = _MIGRATING.format(zookeeper_port=cluster.zookeeper_port)
        self._controller: FieldNode | None = None

    def begin(self) -> None:
        """Start a controller, and the broker anew beside it; wait until the metadata is in both."""
        properties = (self._broker.log_dirs[0] / "meta.properties").read_text().splitlines()
        cluster_id = next(line.partition("=")[2] for line in properties if line.startswith("cluster.id="))
        configuration = _CONTROLLER + self._migrating
        self._controller = self._cluster.with_controller(configuration, cluster_id)
        self._cluster.start(self._controller.number)
        release = ".".join(map(str, self._cluster.numbers[:2]))
        self._restart(f"broker.id=1\ninter.broker.protocol.version={release}\n{self._quorum()}{self._migrating}")
        self._wait("completed migration of metadata from zookeeper to kraft")

    def finish(self) -> None:
        """The broker and the controller go on without ZooKeeper."""
        assert self._controller is not None
        self._restart(f"process.roles=broker\nnode.id=1\n{self._quorum()}")
        self._cluster.stop(self._controller.number)
        self._controller.configuration = self._controller.configuration.replace(self._migrating, "")
        self._cluster.start(self._controller.number)

    def _quorum(self) -> str:
        assert self._controller is not None
        return _QUORUM.format(controller=self._controller.number, controller_port=self._controller.controller_port)

    def _restart(self, configuration: str) -> None:
        self._cluster.stop(1)
        self._broker.configuration = configuration + _LISTENING.format(port=self._broker.port)
        self._cluster.start(1)

    def _wait(self, words: str) -> None:
        assert self._controller is not None
        end = time.monotonic() + _MOST_SECONDS
        while words not in self._controller.log_text.lower():
            assert time.monotonic() < end, f"the controller did not say {words!r}: {self._controller.log_text[-1500:]}"
            time.sleep(0.5)
