"""AWS credentials and settings: from the address, the environment, the files in ~/.aws, else from botocore."""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from format.value_class import value_class
from format.wording import installing

#: Settings of profiles whose credentials must be fetched, which botocore does.
_FETCHED = (
    "role_arn",
    "sso_session",
    "sso_start_url",
    "credential_process",
    "web_identity_token_file",
    "login_session",
)


@value_class
class Credentials:
    """The keys that sign requests to AWS."""

    access_key: str
    secret_key: str
    session_token: str = ""


#: Returns credentials that are valid now; None means anonymous requests.
CredentialSource = Callable[[], Credentials | None]


def credential_source(keys: str, query: Mapping[str, str]) -> CredentialSource:
    """The source of credentials for an address; ``keys`` is ``KEY:SECRET`` or empty.

    Raises OSError if there is none.
    """
    if query.get("anonymous", "false").lower() == "true":
        return lambda: None
    if keys:
        access_key, _, secret_key = keys.partition(":")
        return _always(Credentials(unquote(access_key), unquote(secret_key)))
    profile = query.get("profile")
    environment = os.environ
    if profile is None and environment.get("AWS_ACCESS_KEY_ID") and environment.get("AWS_SECRET_ACCESS_KEY"):
        token = environment.get("AWS_SESSION_TOKEN", "")
        return _always(Credentials(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], token))
    settings = profile_settings(profile)
    if settings.get("aws_access_key_id") and settings.get("aws_secret_access_key") and "role_arn" not in settings:
        return _always(
            Credentials(
                settings["aws_access_key_id"], settings["aws_secret_access_key"], settings.get("aws_session_token", "")
            )
        )
    return _from_botocore(profile, settings)


def profile_settings(profile: str | None = None) -> dict[str, str]:
    """The settings of a profile (default: AWS_PROFILE) in the two files of the AWS tools; empty if there are none."""
    name = profile or os.environ.get("AWS_PROFILE") or "default"
    found: dict[str, str] = {}
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(Path(os.environ.get(variable) or file).expanduser().read_text())
        except (OSError, RuntimeError, UnicodeDecodeError, configparser.Error):
            continue
        if parser.has_section(section):
            found |= dict(parser.items(section))
    return found


def _always(credentials: Credentials) -> CredentialSource:
    return lambda: credentials


def _from_botocore(profile: str | None, settings: Mapping[str, str]) -> CredentialSource:
    """The credentials that botocore finds and renews: roles, SSO, web identities, containers, instances."""
    try:
        from botocore.session import Session
    except ImportError:
        fetched = next((name for name in _FETCHED if name in settings), None)
        where = f"the profile has {fetched}" if fetched else "the environment and ~/.aws have none"
        raise OSError(
            f"no AWS credentials: {where}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or add ?anonymous=true to "
            f"the address; roles, SSO and instance profiles need botocore: {installing('s3')}"
        ) from None
    found: Any = None
    try:
        session = Session(profile=profile)
        session.set_config_variable("metadata_service_timeout", 1)
        session.set_config_variable("metadata_service_num_attempts", 1)
        found = session.get_credentials()
    except Exception as error:  # botocore has many error classes
        raise OSError(f"no AWS credentials: {error}") from error
    if found is None:
        raise OSError(
            "no AWS credentials: neither the environment nor ~/.aws nor the host's own role has any. Set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or add ?anonymous=true to the address"
        )

    def current() -> Credentials:
        try:
            now = found.get_frozen_credentials()
        except Exception as error:
            raise OSError(f"no AWS credentials: {error}") from error
        return Credentials(now.access_key, now.secret_key, now.token or "")

    return current
