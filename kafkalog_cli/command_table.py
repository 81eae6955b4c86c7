"""The table of commands: names, modules, one-line helps, and which of them are scans. Imports no command."""

from __future__ import annotations

from kafkalog_cli.lazy_group import CommandEntry

COMMANDS = (
    CommandEntry(
        "ls",
        "kafkalog_cli.commands.ls",
        "What is here: partitions, segments, ranges, sizes, checkpoints, strays.",
        "Read",
        is_scan=True,
    ),
    CommandEntry(
        "dump", "kafkalog_cli.commands.dump", "Any kind of file, decoded; with --records down to the records.", "Read"
    ),
    CommandEntry(
        "find", "kafkalog_cli.commands.find", "Where an offset or a timestamp is, and each step of the search.", "Read"
    ),
    CommandEntry(
        "grep",
        "kafkalog_cli.commands.grep",
        "Records whose key, value or header matches, or that a producer wrote.",
        "Read",
        is_scan=True,
    ),
    CommandEntry(
        "verify",
        "kafkalog_cli.commands.verify",
        "Findings: what is damaged, suspicious or cannot be read.",
        "Check",
        is_scan=True,
    ),
    CommandEntry(
        "boot",
        "kafkalog_cli.commands.boot",
        "Would a broker start on these log directories, and what would it do to each file.",
        "Check",
    ),
    CommandEntry(
        "recompress",
        "kafkalog_cli.commands.recompress",
        "The same records with another codec, in a new directory; or only what it would save.",
        "Write",
        is_scan=True,
    ),
    CommandEntry(
        "salvage",
        "kafkalog_cli.commands.salvage",
        "Every intact batch, byte for byte, into a new directory, and what is lost.",
        "Write",
    ),
    CommandEntry(
        "rebuild-index",
        "kafkalog_cli.commands.rebuild_index",
        "Fresh indexes from the log, in a new directory.",
        "Write",
    ),
    CommandEntry(
        "extract",
        "kafkalog_cli.commands.extract",
        "Records to Parquet, JSON lines or CSV, for other programs.",
        "Write",
        is_scan=True,
    ),
    CommandEntry(
        "redact",
        "kafkalog_cli.commands.redact",
        "A copy with keys and values replaced and its structure kept, to hand on.",
        "Write",
    ),
    CommandEntry(
        "scan",
        "kafkalog_cli.commands.scan",
        "verify, ls, grep, extract and recompress --estimate as Spark jobs, on all cores or on a cluster.",
        "Scale",
    ),
    CommandEntry(
        "dump-log",
        "kafkalog_cli.commands.dump_log",
        "The flags and the output of kafka-dump-log, for scripts that parse it.",
        "Compatibility",
    ),
)

#: The verbs of ``kafkalog scan``: every command that is a scan, under its own name, and the names of earlier releases.
SCANS = (
    *(
        CommandEntry(each.name, f"kafkalog_cli.commands.scan.{each.name}", each.help, "Verbs")
        for each in COMMANDS
        if each.is_scan
    ),
    CommandEntry("inventory", "kafkalog_cli.commands.scan.ls", "The same as ls.", "Earlier names"),
    CommandEntry(
        "recompress-estimate",
        "kafkalog_cli.commands.scan.recompress",
        "The same as recompress --estimate.",
        "Earlier names",
    ),
)
