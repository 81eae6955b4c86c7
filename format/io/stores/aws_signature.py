"""AWS signature version 4 for requests without a body, for S3 and compatible servers."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from format.io.stores.aws_credentials import Credentials
from format.value_class import value_class

_EMPTY_BODY_SHA256 = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


@value_class
class Scope:
    """The region and service for which a signature is valid."""

    region: str
    service: str = "s3"


def encoded_path(path: str) -> str:
    """The path as it is sent and signed: all characters except unreserved ones and slashes are percent-encoded."""
    return quote(path, safe="/-_.~")


def encoded_query(parameters: Sequence[tuple[str, str]]) -> str:
    """The query as it is sent and signed: sorted and percent-encoded."""
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parameters)
    return "&".join(f"{name}={value}" for name, value in pairs)


def signed_headers(
    method: str,
    target: str,
    headers: Mapping[str, str],
    credentials: Credentials,
    scope: Scope,
    now: datetime | None = None,
) -> dict[str, str]:
    """The headers with those of the signature added. ``target`` is an encoded path with an encoded, sorted query.

    ``headers`` must contain ``host``; all headers are signed.
    """
    moment = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    complete = {
        **{name.lower(): value for name, value in headers.items()},
        "x-amz-date": moment,
        "x-amz-content-sha256": _EMPTY_BODY_SHA256,
    }
    if credentials.session_token:
        complete["x-amz-security-token"] = credentials.session_token
    names = ";".join(sorted(complete))
    path, _, query = target.partition("?")
    lines = "".join(f"{name}:{' '.join(complete[name].split())}\n" for name in sorted(complete))
    canonical = "\n".join((method, path, query, lines, names, _EMPTY_BODY_SHA256))
    range_of_key = f"{moment[:8]}/{scope.region}/{scope.service}/aws4_request"
    to_sign = "\n".join((_ALGORITHM, moment, range_of_key, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{credentials.secret_key}".encode()
    for part in range_of_key.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    complete["authorization"] = (
        f"{_ALGORITHM} Credential={credentials.access_key}/{range_of_key}, SignedHeaders={names}, Signature={signature}"
    )
    return complete
