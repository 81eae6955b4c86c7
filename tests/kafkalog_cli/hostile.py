"""Strings that try to do something, and strategies that make more of them."""

from __future__ import annotations

from hypothesis import strategies as st

HOSTILE_TEXTS = (
    "", "-", "null", "true", "1", " ", "a b", "=1+1", "+1", "-1", "@SUM(A1)", "'=1", "＝1", "\t=1", "\r=1",
    "a,b", 'say "hi"', "a\nb", "\r\n", "\x00", "\x07", "\x1b[2J\x1b[H", "\x1b]0;title\x07",
    "\x1b]8;;http://x\x1b\\link", "\x7f", "\x80", "\x9b31m", "\x85", "\xad",
    "\u200b\u200c\u200d\u2060\ufeff", "\u202egpj.exe\u202c", "\u2066x\u2069", "\u061c", "\u2028\u2029",
    "ㅤ", "️", "\U000e0041", "󠄁", "\\", "\\n", "\\x41", '\\"', "C:\\dir", "[red]bold[/red]", ":smile:",
    "[link=http://x]y[/link]", "日本語", "😀", "é", "\udcff\udc80", "name\udce9.log", "{", "[",
    '{"base64":"AA=="}', "$(reboot)", "`id`", "%s%n", "<script>alert(1)</script>",
)  # fmt: skip

HOSTILE_BYTES = (
    *(text.encode("utf-8", "surrogateescape") for text in HOSTILE_TEXTS),
    bytes(range(256)),
    b"\xff", b"\x80\x81", b"\xc0\x80", b"\xed\xa0\x80", b"\xed\xb2\x80", b"\xf4\x90\x80\x80", b"\xe2\x82",
    b"\xc2", b"\x9b2J",
)  # fmt: skip

#: No high surrogates: followed by a low one JSON could not tell them from the character that the two make.
texts = st.one_of(
    st.sampled_from(HOSTILE_TEXTS),
    st.text(st.characters(exclude_categories=("Cs",))),
    st.text(st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)),
)
byte_strings = st.one_of(
    st.sampled_from(HOSTILE_BYTES), st.binary(), texts.map(lambda text: text.encode("utf-8", "surrogateescape"))
)
int64s = st.integers(-(2**63), 2**63 - 1)
json_values = st.recursive(
    st.none() | st.booleans() | int64s | texts | byte_strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
by_column_type = {
    "int": int64s,
    "timestamp": int64s,
    "bool": st.booleans(),
    "string": texts,
    "bytes": byte_strings,
    "headers": st.lists(st.tuples(byte_strings, st.none() | byte_strings), max_size=3),
    "any": json_values,
}
