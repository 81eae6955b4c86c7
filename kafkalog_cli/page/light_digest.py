"""SHA-256 without hashlib, which loads OpenSSL: that takes longer than to fill a page. ``random`` does the same."""

from __future__ import annotations

try:
    from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]  # Python 3.12 and later
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from hashlib import sha256

__all__ = ["sha256"]
