"""Decides which config values are secret: passwords and keys, and all broker configs not known to be harmless.

A broker treats a config that it does not know as sensitive (KafkaConfigSchema); it may be that of a plug-in.
"""

from __future__ import annotations

import re

from format.state.cluster_image import BROKER_RESOURCE

HIDDEN = "(hidden)"

_SECRET = re.compile(
    r"password|passwd|secret|jaas|credential|token|api.?key|private|keystore\.(key|certificate)|"
    r"truststore\.certificates|basic\.auth",
    re.IGNORECASE,
)
#: The beginnings of the names of Kafka's own dynamic broker configs.
_KNOWN_BROKER_CONFIGS = re.compile(
    r"(listener\.name\.[^.]+\.)?(log\.|num\.|background\.|compression\.|message\.|min\.insync|unclean\.|leader\.|"
    r"follower\.|replica\.|max\.|ssl\.|sasl\.|principal\.builder|metric\.reporters|transaction\.|producer\.id|"
    r"remote\.|auto\.|listeners|advertised\.listeners|listener\.security|connections?\.|controller\.|group\.|"
    r"share\.|streams\.|offsets\.|quota\.|broker\.|default\.|delete\.|queued\.|request\.|socket\.|cordoned\.)"
)


def is_secret(resource_type: int, name: str) -> bool:
    """Whether the value of a config must not be shown."""
    if _SECRET.search(name):
        return True
    return resource_type == BROKER_RESOURCE and not _KNOWN_BROKER_CONFIGS.match(name)


def shown_value(resource_type: int, name: str, value: str | None) -> str | None:
    """The value of a config, or HIDDEN."""
    return HIDDEN if value is not None and is_secret(resource_type, name) else value
