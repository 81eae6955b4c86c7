"""Where credentials come from: the address, the environment, the files of the AWS tools, botocore."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from format.io.stores.aws_credentials import Credentials, credential_source, profile_settings

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No credentials but those in two files, which are not there yet."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


def test_the_address_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert credential_source("a%2Fkey:a%40secret", {})() == Credentials("a/key", "a@secret")
    assert credential_source("", {"anonymous": "true"})() is None
    monkeypatch.setenv("AWS_SESSION_TOKEN", "t")
    assert credential_source("", {})() == Credentials("environment", "s", "t")


def test_a_profile(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "credentials").write_text(
        "[default]\naws_access_key_id = d\naws_secret_access_key = ds\n"
        "[work]\naws_access_key_id = w\naws_secret_access_key = ws\naws_session_token = wt\n"
    )
    (files / "config").write_text("[default]\nregion = here\n[profile work]\nregion = there\n")
    assert credential_source("", {})() == Credentials("d", "ds")
    assert credential_source("", {"profile": "work"})() == Credentials("w", "ws", "wt")
    assert profile_settings()["region"] == "here"
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert credential_source("", {})() == Credentials("w", "ws", "wt")
    assert profile_settings()["region"] == "there"


def test_without_botocore_a_role_is_one_clear_line(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(OSError, match=r"no AWS credentials: the environment and ~/\.aws have none\. .*kafkalog\[s3\]"):
        credential_source("", {})
    (files / "config").write_text("[default]\nsso_session = mine\n")
    with pytest.raises(OSError, match=r"no AWS credentials: the profile has sso_session\. .*kafkalog\[s3\]"):
        credential_source("", {})


def test_nothing_anywhere() -> None:
    pytest.importorskip("botocore", reason="botocore is not installed: pip install 'kafkalog[s3]'")
    with pytest.raises(OSError, match=r"no AWS credentials: neither .* add \?anonymous=true to the address"):
        credential_source("", {})


def test_what_botocore_finds(files: Path) -> None:
    pytest.importorskip("botocore", reason="botocore is not installed: pip install 'kafkalog[s3]'")
    line = '{"Version": 1, "AccessKeyId": "p", "SecretAccessKey": "ps", "SessionToken": "pt"}'
    (files / "answer").write_text(line)
    (files / "config").write_text(f"[default]\ncredential_process = cat {files}/answer\n")
    assert credential_source("", {})() == Credentials("p", "ps", "pt")


def test_files_that_are_none_of_the_tools_are_passed_over(files: Path) -> None:
    (files / "config").write_bytes(b"\xff\xfe no ini file")
    (files / "credentials").write_text("no section\n")
    assert profile_settings() == {}
