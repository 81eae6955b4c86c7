"""Lines are folded between words; a command stays whole, in a line of its own."""

from __future__ import annotations

import pytest

from kafkalog_cli.render.folding import folded_line

COMMAND = "kafka-consumer-groups.sh --reset-offsets --group reports-app --from-file reset.csv --execute"


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (f"To set them: {COMMAND}", ["To set them:", COMMAND]),
        (COMMAND, [COMMAND]),
        ("Its records: kafkalog grep --all node-1", ["Its records: kafkalog grep --all node-1"]),
        (
            "15 records were written twice, as by a retry. To see them: kafkalog dump --records node-1/invoices-0",
            [
                "15 records were written twice, as by a",
                "retry. To see them:",
                "kafkalog dump --records node-1/invoices-0",
            ],
        ),
        (
            "21 partitions: leader of 21 changed (108 changes; --kind partition lists them)",
            ["21 partitions: leader of 21 changed (108", "changes; --kind partition lists them)"],
        ),
        (
            "What the verb 'kafkalog verify' of all these nodes says",
            ["What the verb 'kafkalog verify' of all", "these nodes says"],
        ),
        (
            "the document is too long here: add --output incident.html",
            ["the document is too long here: add", "--output incident.html"],
        ),
        ("", [""]),
        (f"{'x' * 50} y", ["x" * 50, "y"]),
    ],
)
def test_words_and_commands_are_whole(line: str, lines: list[str]) -> None:
    assert folded_line(line, 40) == lines
    assert folded_line(line, 42, "  ") == [f"  {each}" for each in lines]
