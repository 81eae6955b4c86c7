"""Where a Spark job runs: its settings."""

from __future__ import annotations

import pytest
import typer

from kafkalog_cli.options.work import ClusterOptions, check_conf


def test_settings() -> None:
    assert ClusterOptions().settings == {}
    assert ClusterOptions(conf=["a=1", "b=x=y", "a=2", "c="]).settings == {"a": "2", "b": "x=y", "c": ""}


@pytest.mark.parametrize("text", ["a", "=1", "", "\x1b"])
def test_what_is_no_setting(text: str) -> None:
    assert check_conf(None) is None
    assert check_conf(["a=1"]) == ["a=1"]
    with pytest.raises(typer.BadParameter) as refused:
        check_conf(["a=1", text])
    assert "\x1b" not in str(refused.value)
