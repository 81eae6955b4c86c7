"""kafkalog scan ls: the verbs' earlier names, and options before the verb."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.kafkalog_cli.commands.scan.spark_at_hand import needs_spark, no_class_archive  # noqa: F401
from tests.running import Run


@needs_spark
def test_earlier_names_and_options_before_the_verb(run_kafkalog: Callable[..., Run], data_dir: Path) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    how = ("--master", "local[1]", "--format", "jsonl")
    for words, earlier in (
        (("ls", partition, *how), (*how, "inventory", partition)),
        (
            ("recompress", "--estimate", partition, "--codec", "none", *how),
            ("recompress-estimate", "--codec", "none", *how, partition),
        ),
    ):
        now, before = run_kafkalog("scan", *words), run_kafkalog("scan", *earlier)
        assert now.check(0).rows()
        assert (now.code, now.stdout) == (before.code, before.stdout)
