"""The errors of the codecs, each with a message of one plain line."""

from __future__ import annotations

from format.errors import DecompressionFailed, LimitExceeded

_LONGEST_REASON = 160

#: Members, frames, chunks or blocks that one payload may be cut into. Real ones are of 32 KiB and more; millions of
#: empty ones would cost seconds and give nothing. As many chunks of 2 KiB make 256 MiB.
MAX_PARTS = 2**17


def failed(codec_name: str, reason: str | Exception) -> DecompressionFailed:
    """A DecompressionFailed; the text of a library's error is made one line of printable ASCII."""
    text = str(reason)
    if isinstance(reason, Exception):
        text = " ".join(text.removeprefix(f"{codec_name}: ").split()).encode("ascii", "backslashreplace").decode()
        text = "".join(letter if letter.isprintable() else "?" for letter in text)[:_LONGEST_REASON]
    return DecompressionFailed(f"{codec_name}: {text or type(reason).__name__}")


def output_over_limit(codec_name: str, limit_bytes: int, declared_bytes: int | None = None) -> LimitExceeded:
    """A LimitExceeded for what comes out, or for what the payload declares to come out."""
    what = "decompresses to more" if declared_bytes is None else f"declares {declared_bytes} bytes, more"
    return LimitExceeded(f"{codec_name}: {what} than the limit of {limit_bytes} bytes")


def too_many_parts(codec_name: str, part_name: str) -> LimitExceeded:
    return LimitExceeded(f"{codec_name}: more than {MAX_PARTS} {part_name} in one payload")
