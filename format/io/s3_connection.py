"""Connections to S3 that fail within half a minute; by default the AWS library retries for several minutes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from format.io.stores.http_client import HttpClient, Request

_CONNECT_TIMEOUT_S = 5.0
_SILENCE_TIMEOUT_S = 5.0  # without a byte
_ATTEMPTS = 3
#: The region for a custom endpoint, which accepts any value.
DEFAULT_REGION = "us-east-1"
_AWS = "https://s3.amazonaws.com"
_REGION_HEADER = "x-amz-bucket-region"
#: Options of an address that are arguments of S3FileSystem with the same names.
_ARGUMENTS = ("region", "scheme", "endpoint_override")


def connected_s3(host: str, query: dict[str, str]) -> tuple[Any, str]:
    """pyarrow's file system for ``[KEY:SECRET@]BUCKET`` with the options of the address, and the bucket's name.

    Missing options come from the environment: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION and
    AWS_DEFAULT_REGION. Raises ImportError without pyarrow, OSError if the bucket's region cannot be determined, and
    ValueError for options that pyarrow does not know.
    """
    from pyarrow import fs

    options = with_environment(query)
    anonymous = options.pop("anonymous", "false").lower() == "true"
    keys, _, bucket = host.rpartition("@")
    if "region" not in options:
        options["region"] = region_of_bucket(bucket)
    if not options.keys() <= set(_ARGUMENTS):
        return fs.FileSystem.from_uri(f"s3://{host}/?{urlencode(options)}")[0], bucket
    access_key, _, secret_key = keys.partition(":")
    system = fs.S3FileSystem(
        access_key=unquote(access_key) or None,
        secret_key=unquote(secret_key) or None,
        anonymous=anonymous,
        **options,
        connect_timeout=_CONNECT_TIMEOUT_S,
        request_timeout=_SILENCE_TIMEOUT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )
    return system, bucket


def with_environment(query: Mapping[str, str], settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The options, completed from the environment and a profile's settings; a custom endpoint gets a default region."""
    options, settings = dict(query), settings or {}
    environment = os.environ
    endpoint = (
        environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or settings.get("endpoint_url")
    )
    if endpoint and "endpoint_override" not in options:
        split = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        options |= {"endpoint_override": split.netloc, "scheme": split.scheme}
    if "region" not in options:
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or settings.get("region")
        if region or "endpoint_override" in options:
            options["region"] = region or DEFAULT_REGION
    return options


def region_of_bucket(bucket: str) -> str:
    """The region of a bucket, which AWS reports without credentials; raises OSError if it does not.

    The AWS library can do this too, but may block for minutes, and the process cannot exit meanwhile.
    """
    scheme, _, authority = _AWS.partition("://")
    try:
        answer = HttpClient(scheme, authority).send(Request("HEAD", f"/{quote(bucket, safe='')}", {"Host": authority}))
    except OSError as error:
        raise OSError(
            f"AWS does not report the bucket's region ({error}): set AWS_REGION, or AWS_ENDPOINT_URL"
        ) from error
    region = answer.header(_REGION_HEADER)  # also reported to clients that may not read the bucket
    if not region and answer.status == 404:
        raise OSError("there is no such bucket")
    return region or DEFAULT_REGION
