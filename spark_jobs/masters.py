"""The masters of Spark sessions: what their addresses mean, and whether anything answers there."""

from __future__ import annotations

import os
import re
import socket
from urllib.parse import urlsplit

from format.errors import ClusterFailed

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
