"""The version of this program."""

VERSION = "0.1.0"  # the same as in pyproject.toml; a test compares them
