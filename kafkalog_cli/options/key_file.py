"""The secret key of the hashes that replace names and contents."""

from __future__ import annotations

from typing import Annotated

import typer

from kafkalog_cli.options.reading import check_path

_MOST_KEY_BYTES = 1024 * 1024

KeyFile = Annotated[
    str | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="A file with the secret key of the hashes, 16 bytes or more.",
        show_default="a random key, used once",
    ),
]


def key_of(path: str | None) -> bytes:
    """The key from a file, which may be a pipe, or a random key without a file. Raises a usage error."""
    import os

    from format.io.session import Session
    from format.io.source import os_reason
    from format.verbs.redact.replacements import LEAST_KEY_BYTES

    if path is None:
        return os.urandom(64)
    try:
        with open(check_path(Session(), path), "rb") as file:
            key = file.read(_MOST_KEY_BYTES + 1)
    except OSError as error:
        raise typer.BadParameter(f"cannot read it: {os_reason(error)}", param_hint="--key-file") from None
    if not LEAST_KEY_BYTES <= len(key) <= _MOST_KEY_BYTES:
        size = f"{len(key)} bytes" if len(key) <= _MOST_KEY_BYTES else "more than 1 MiB"
        raise typer.BadParameter(f"the key has {size}, not 16 bytes to 1 MiB", param_hint="--key-file")
    return key
