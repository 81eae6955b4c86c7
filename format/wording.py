"""Counts, ranges of offsets, lists, suggestions and commands in sentences."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from itertools import islice

#: The most names that are compared with one that is not there, and the most that are suggested.
_MOST_COMPARED = 20_000
_MOST_SUGGESTED = 3
_LEAST_SIMILAR = 0.7


def installing(extra: str) -> str:
    """How to install the packages of an extra; into the standalone build nothing can be installed."""
    command = f"pip install 'kafkalog[{extra}]'"
    return f"not in the standalone build, but with {command}" if hasattr(sys, "frozen") else command


def shell_line(words: Iterable[str]) -> str:
    """A command from its words, quoted for a shell."""
    return " ".join(map(shell_word, words))


def shell_word(word: str) -> str:
    """A word quoted for a shell, with what a terminal does not show escaped, such as a byte that is not UTF-8."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_in_shell, word)) + "'"


def _in_shell(character: str) -> str:
    if character.isprintable():
        return f"\\{character}" if character in "\\'" else character
    errors = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", errors))


def counted(number: int, noun: str) -> str:
    """A number with its noun, as ``1 log`` or ``1,200 batches``; ``noun`` is in the singular."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def counted_plainly(number: int, noun: str) -> str:
    """The same without separators, as in the messages of findings: ``1200 batches``."""
    return f"{number} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The regular plural of an English noun, as ``logs``, ``batches`` or ``log directories``."""
    if noun.endswith("sis"):
        return f"{noun[:-2]}es"
    if noun.endswith(("s", "x", "tch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def offset_range(first: int, last: int) -> str:
    """The offsets from ``first`` to ``last``, both included, as ``offset 5`` or ``offsets 5 to 9``."""
    return f"{'offset' if first == last else 'offsets'} {span(first, last)}"


def span(first: int, last: int) -> str:
    """The same after another noun, as ``5`` or ``5 to 9``: plain digits, which can be pasted into a command."""
    return f"{first}" if first == last else f"{first} to {last}"


def offsets_are(first: int, last: int) -> str:
    """The same with its verb, as ``offset 5 is`` or ``offsets 5 to 9 are``."""
    return f"{offset_range(first, last)} {'is' if first == last else 'are'}"


def are(number: int) -> str:
    """The verb after a count: ``is`` for 1, else ``are``."""
    return "is" if number == 1 else "are"


def listed(words: Sequence[str]) -> str:
    """One or more words as ``a``, ``a and b`` or ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def first_of(names: Sequence[str], most: int) -> str:
    """Names as ``listed``; of more than ``most`` the first, as ``a, b and 5 more``."""
    more = len(names) - most
    return listed([*names[:most], f"{more:,} more"] if more > 0 else names)


def duration(milliseconds: int) -> str:
    """A length of time in one unit, such as ``3 s``, ``12 min``, ``5 h`` or ``9 days``."""
    for unit, size in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds >= 2 * size:
            return f"{milliseconds // size:,} {unit}"
    return f"{milliseconds} ms"


def did_you_mean(name: str, names: Iterable[str], before: str = "") -> str:
    """A question after a name that does not exist, as `` Did you mean orders-0?``; empty where no name is similar.

    ``before`` is put before each suggestion, such as the directory of a file.
    """
    from difflib import get_close_matches  # only for a message

    close = get_close_matches(name, list(islice(names, _MOST_COMPARED)), _MOST_SUGGESTED, _LEAST_SIMILAR)
    *others, last = [f"{before}{each}" for each in close] or [""]
    return f" Did you mean {', '.join(others)}{' or ' if others else ''}{last}?" if close else ""
