"""``python -m kafkalog_cli``: the same program as ``kafkalog``."""

from kafkalog_cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
