"""Lines on standard error: screen-safe, in any encoding, and never a reason to fail."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from kafkalog_cli.failures import is_debugging, say, say_traceback


def test_each_line_is_made_screen_safe(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\x1b[2J\nb\\c")
    assert capsys.readouterr().err == "a\\x1b[2J\nb\\c\n"


def test_what_an_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, "ascii"))
    say("é")
    assert raw.getvalue() == b"\\xe9\n"


def test_no_standard_error_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    say("x")
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    say("x")


def test_lines_are_cut_between_words_on_a_terminal() -> None:
    inner, outer = pty.openpty()
    fcntl.ioctl(outer, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 60, 0, 0))
    command = "kafka-transactions.sh --bootstrap-server localhost:9092 abort --topic payments --partition 0"
    text = f"{'word ' * 14}\n  {'in ' * 25}\n{command}"
    program = f"from kafkalog_cli.failures import say; say({text!r})"
    subprocess.run([sys.executable, "-c", program], stderr=outer, check=True)
    os.close(outer)
    lines = os.read(inner, 4096).decode().splitlines()
    os.close(inner)
    assert lines == ["word " * 11 + "word", "word word", "  " + "in " * 18 + "in", "  " + "in " * 5 + "in", command]


@pytest.mark.parametrize(("value", "expected"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_a_traceback_only_for_those_who_ask(
    value: str | None, expected: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KAFKALOG_DEBUG", raising=False)
    if value is not None:
        monkeypatch.setenv("KAFKALOG_DEBUG", value)
    assert is_debugging() is expected
    say_traceback(KeyError("x"))
    assert ("KeyError" in capsys.readouterr().err) is expected
