"""The entry of ``kafkalog scan verify`` for spark-submit: the same arguments, and rows as JSON lines by default."""

import sys

from kafkalog_cli.main import main

if __name__ == "__main__":
    sys.exit(main(["scan", "verify", "--format", "jsonl", *sys.argv[1:]]))
