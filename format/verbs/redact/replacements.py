"""The replacements of keys, values and headers: keyed hashes or filler, always of the same length.

Hashes are BLAKE2b (RFC 7693) under a secret key. Equal bytes become equal bytes everywhere under the same key, so that
joins, compaction and searches for equal keys still work. A hash has the length of the content up to 64 bytes; for
longer content the hash of 64 bytes is repeated, so that it still compresses well. Short content has few hashes: two
different keys of n bytes become equal with a probability of 1 in 256^n.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from hashlib import blake2b

from format.wording import counted_plainly

LEAST_KEY_BYTES = 16
_MOST_HASH_BYTES = blake2b.MAX_DIGEST_SIZE
_FILLER = b"x"
_CACHED_BYTES = 256
#: 64 characters that are safe in every text format, file name and terminal; the low six bits of a byte select one.
_TEXT_OF = bytes(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[byte & 63] for byte in range(256))


class Mode(Enum):
    """The ways to replace bytes."""

    HASH = "hash"
    FILL = "fill"


class Redactor:
    """Replaces bytes by others of the same length.

    ``key`` is secret and has at least LEAST_KEY_BYTES; filling needs none. Raises ValueError for a key that is too
    short.
    """

    def __init__(self, mode: Mode, key: bytes = b"") -> None:
        if mode is Mode.HASH and len(key) < LEAST_KEY_BYTES:
            raise ValueError(f"the key has {counted_plainly(len(key), 'byte')}, but needs {LEAST_KEY_BYTES}")
        self.mode = mode
        self._key = blake2b(key, digest_size=blake2b.MAX_KEY_SIZE, person=b"kafkalog redact").digest()
        # Keys and header names recur.
        self._short = lru_cache(4096)(self._hash)

    @property
    def key_fingerprint(self) -> str | None:
        """A number that is equal for equal keys and does not show the key; None where there is no key."""
        if self.mode is Mode.FILL:
            return None
        return blake2b(b"", key=self._key, digest_size=8, person=b"fingerprint").hexdigest()

    def replaced(self, content: bytes) -> bytes:
        """The replacement of some bytes, of the same length."""
        if self.mode is Mode.FILL:
            return _FILLER * len(content)
        return self._short(content) if len(content) <= _CACHED_BYTES else self._hash(content)

    def replaced_text(self, content: bytes) -> bytes:
        """A replacement of the same length that is ASCII text: letters, digits, ``-`` and ``_``."""
        return self.replaced(content).translate(_TEXT_OF) if self.mode is Mode.HASH else _FILLER * len(content)

    def _hash(self, content: bytes) -> bytes:
        length = len(content)
        if not length:
            return b""
        digest = blake2b(content, key=self._key, digest_size=min(length, _MOST_HASH_BYTES)).digest()
        return digest if length <= _MOST_HASH_BYTES else (digest * (length // _MOST_HASH_BYTES + 1))[:length]
