"""The compiled template of the page, kept in the cache of the user: to compile takes longer than to fill it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket

from format.user_cache import note_use, remove_unused, user_cache
from format.version import VERSION
from kafkalog_cli.page.light_digest import sha256


class CompiledTemplates(FileSystemBytecodeCache):
    """Files that Jinja2 makes again where the source, Jinja2's or Python's bytecode differ, or a file is cut short.

    A file that cannot be read or written costs time, and no page.
    """

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        return _digest(f"{name}|{filename or ''}")

    def get_source_checksum(self, source: str) -> str:
        return _digest(source)

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)
        if bucket.code is not None:
            note_use(Path(self.directory, self.pattern % bucket.key))

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)
        remove_unused(Path(self.directory))


def _digest(text: str) -> str:
    digest: str = sha256(text.encode()).hexdigest()
    return digest


def compiled_templates() -> CompiledTemplates | None:
    """The place of compiled templates; None without a cache."""
    cache = user_cache()
    return None if cache is None else CompiledTemplates(str(cache), f"page-{VERSION}-%s")
