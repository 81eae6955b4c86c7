"""The entry of ``kafkalog scan extract`` for spark-submit: the same arguments, and rows as JSON lines by default."""

import sys

from kafkalog_cli.main import main

if __name__ == "__main__":
    sys.exit(main(["scan", "extract", "--format", "jsonl", *sys.argv[1:]]))
