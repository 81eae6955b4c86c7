"""The entry of every verb of ``kafkalog scan`` for spark-submit: ``spark-submit …/scan.py VERB ARGUMENT…``."""

import sys

from kafkalog_cli.main import main

if __name__ == "__main__":
    sys.exit(main(["scan", *sys.argv[1:]]))
