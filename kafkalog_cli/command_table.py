"""The table of commands: names, modules, one-line helps, and which of them are scans. Imports no command."""

from __future__ import annotations

from kafkalog_cli.lazy_group import CommandEntry

COMMANDS = (
    CommandEntry(
        "ls",
        "kafkalog_cli.commands.ls",
        "List partitions and segments: ranges, sizes, checkpoints, strays.",
        "Read",
        is_scan=True,
        reads_bundles=True,
    ),
    CommandEntry(
        "dump",
        "kafkalog_cli.commands.dump",
        "Decode any kind of file; with --records, down to the records.",
        "Read",
        is_scan=True,
    ),
    CommandEntry(
        "find",
        "kafkalog_cli.commands.find",
        "Find an offset or a timestamp, and show each step of the search.",
        "Read",
        reads_bundles=True,
    ),
    CommandEntry(
        "grep",
        "kafkalog_cli.commands.grep",
        "Find records by key, value, header or producer.",
        "Read",
        is_scan=True,
    ),
    CommandEntry(
        "explore",
        "kafkalog_cli.commands.explore",
        "Browse a log directory on the screen, down to the field that each byte belongs to.",
        "Read",
    ),
    CommandEntry(
        "txns",
        "kafkalog_cli.commands.txns",
        "Open transactions, the records that wait behind them, and the transactions that ended.",
        "Diagnose",
        is_scan=True,
        reads_bundles=True,
    ),
    CommandEntry(
        "producers",
        "kafkalog_cli.commands.producers",
        "The producers of each partition: epochs, sequences, gaps, duplicates, batches, codecs.",
        "Diagnose",
        is_scan=True,
        reads_bundles=True,
    ),
    CommandEntry(
        "metadata",
        "kafkalog_cli.commands.metadata",
        "Topics, replicas, brokers, configs and ACLs from the metadata log, at any time.",
        "Diagnose",
        is_scan=True,
        reads_bundles=True,
    ),
    CommandEntry(
        "groups",
        "kafkalog_cli.commands.groups",
        "Committed offsets, lag and members of consumer, share and streams groups.",
        "Diagnose",
        is_scan=True,
        reads_bundles=True,
    ),
    CommandEntry(
        "compaction",
        "kafkalog_cli.commands.compaction",
        "What the log cleaner would keep and free, how far it has cleaned, and what stops it.",
        "Diagnose",
        is_scan=True,
        reads_bundles=True,
    ),
    CommandEntry(
        "retention",
        "kafkalog_cli.commands.retention",
        "Why each segment is still there, and when it is deleted; what other configs would delete.",
        "Diagnose",
        is_scan=True,
        reads_bundles=True,
    ),
    CommandEntry(
        "verify",
        "kafkalog_cli.commands.verify",
        "Check logs and side files: what is damaged, suspicious or unreadable.",
        "Check",
        is_scan=True,
        reads_bundles=True,
    ),
    CommandEntry(
        "boot",
        "kafkalog_cli.commands.boot",
        "Whether a broker starts on these log directories, and what it does to each file.",
        "Check",
        reads_bundles=True,
    ),
    CommandEntry(
        "diff",
        "kafkalog_cli.commands.diff",
        "Where replicas of a partition differ, which one is right, and what each election would lose.",
        "Check",
        is_scan=True,
        reads_bundles=True,
    ),
    CommandEntry(
        "report",
        "kafkalog_cli.commands.report",
        "One page with the results of all checks and diagnoses, to read and to share.",
        "Check",
        reads_bundles=True,
    ),
    CommandEntry(
        "bundle",
        "kafkalog_cli.commands.bundle",
        "One archive for support: headers, side files and findings, without keys and values.",
        "Check",
    ),
    CommandEntry(
        "recompress",
        "kafkalog_cli.commands.recompress",
        "Write the same records with another codec, in a new directory; or estimate what that saves.",
        "Write",
        is_scan=True,
    ),
    CommandEntry(
        "salvage",
        "kafkalog_cli.commands.salvage",
        "Copy every intact batch, byte for byte, into a new directory, and list what is lost.",
        "Write",
    ),
    CommandEntry(
        "rebuild-index",
        "kafkalog_cli.commands.rebuild_index",
        "Build new indexes from the log, in a new directory.",
        "Write",
    ),
    CommandEntry(
        "extract",
        "kafkalog_cli.commands.extract",
        "Write records to Parquet, JSON lines or CSV, for other programs.",
        "Write",
        is_scan=True,
    ),
    CommandEntry(
        "redact",
        "kafkalog_cli.commands.redact",
        "Copy logs with keys and values replaced and the structure kept, to share the copy.",
        "Write",
    ),
    CommandEntry(
        "scan",
        "kafkalog_cli.commands.scan",
        "Run a command as a Spark job, on all cores or on a cluster.",
        "Scale",
    ),
    CommandEntry(
        "dump-log",
        "kafkalog_cli.commands.dump_log",
        "Print what kafka-dump-log prints for the same flags, for scripts that parse it.",
        "Compatibility",
        is_scan=True,
    ),
)

#: The modules of the verbs of scan whose options are not those of the command.
_SCAN_MODULES = {"ls": "kafkalog_cli.commands.scan.ls", "recompress": "kafkalog_cli.commands.scan.recompress"}

#: The verbs of ``kafkalog scan``: every command that is a scan, under its own name.
SCANS = tuple(
    CommandEntry(each.name, _SCAN_MODULES.get(each.name, each.module), each.help, "Verbs")
    for each in COMMANDS
    if each.is_scan
)
