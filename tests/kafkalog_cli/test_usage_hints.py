"""What is said of options and commands that other tools have."""

from __future__ import annotations

import pytest

from kafkalog_cli.main import main


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (
            ["dump-log", "--print-data"],
            "no such option: --print-data. Did you mean --print-data-log?",
            "dump-log --help",
        ),
        (
            ["dump-log", "--from-offset", "5"],
            "no such option: --from-offset. For ranges: 'kafkalog dump --records --from-offset …'.",
            "dump-log --help",
        ),
        (
            ["dump-log", "--files", "here/a.log, here/b.log"],
            "here/a.log: there is no such file or directory: of this path, only . exists",
            "dump-log --help",
        ),
        (
            ["dump-log", "--files", " here/b.log"],
            "here/b.log: --files takes names with commas and no spaces between them",
            "dump-log --help",
        ),
        (
            ["verify", "--format", "json", "."],
            "--format: 'json' is not one of table, text, jsonl, csv, logfmt. Did you mean jsonl?",
            "verify --help",
        ),
        (["grep", "--key", "x", "."], "no such option: --key", "kafkalog grep --in key TEXT"),
        (["ls", "--topic", "x", "."], "no such option: --topic", "DIR/TOPIC-*"),
        (["dump", "--partition", "0", "."], "no such option: --partition", "DIR/TOPIC-N"),
        (["dump", "--headers", "."], "no such option: --headers", "shows the headers of batches"),
        (["find", "--position", "7", "."], "no such option: --position", "'kafkalog explore' goes to one"),
        (["completion"], "no such command 'completion'", "--install-completion"),
        (["verify", "--json", "."], "no such option: --json", "--format jsonl"),
        (
            ["ls", "--fromat", "csv", "."],
            "no such option: --fromat. Did you mean --format?",
            "See 'kafkalog ls --help'",
        ),
        (["--format", "csv", "ls", "."], "no such option: --format", "kafkalog COMMAND --format"),
        (["--versoin"], "no such option: --versoin. Did you mean --version?", "See 'kafkalog --help'"),
        (["-V"], "no such option: -V", "Use --version"),
        (["cat", "x"], "no such command 'cat'", "kafkalog dump --records"),
        (["scan", "report", "x"], "no such command 'report'", "Use 'kafkalog report DIR'"),
        (["scan", "boot", "x"], "no such command 'boot'", "Use 'kafkalog boot': it does not run as a Spark job."),
        (["scan", "cat", "x"], "no such command 'cat'", "kafkalog dump --records"),
        (["verfy", "x"], "no such command 'verfy'. Did you mean 'verify'?", "See 'kafkalog --help'"),
    ],
)
def test_words_of_other_tools(
    arguments: list[str], message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    first, second = capsys.readouterr().err.splitlines()[:2]
    assert first == f"kafkalog: {message}"
    assert hint in second


def test_an_option_without_its_value_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["find", "x", "--offset"]) == 2
    assert capsys.readouterr().err == "kafkalog: option '--offset' requires an argument\n"
