"""The charts of the page, as specifications over values of ``chart_data``."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from markupsafe import Markup

from format.timestamps import iso_time
from format.user_cache import note_use, remove_unused, user_cache
from format.version import VERSION
from format.wording import are, counted
from kafkalog_cli.render.table import human_size
from kafkalog_cli.render.text import escape_text

_MOST_BINS = 120
_MOST_SERIES = 8
#: The part of the bytes at each end of the times that may be left out. It is where the range of all times is many times
#: longer than the rest, so that a few records with impossible timestamps do not squeeze the others into a line.
_TAIL = 0.005
_MUCH_LONGER = 4
OTHERS = "others"

Rows = list[dict[str, Any]]
KeyT = TypeVar("KeyT", bound=Hashable)


class TimeSpan(msgspec.Struct, frozen=True):
    """A range of times that a chart shows, and the width of its bins."""

    start: int
    end: int
    width: int

    def bin_of(self, timestamp: int) -> int:
        """The start of the bin of a time."""
        return self.start + (timestamp - self.start) // self.width * self.width

    def holds(self, timestamp: int) -> bool:
        return self.start <= timestamp < self.end


def span_of(rows: Sequence[dict[str, Any]]) -> TimeSpan | None:
    """The range of times to show for rows of bytes_by_time; None for no rows."""
    if not rows:
        return None
    width = max(row["duration_ms"] for row in rows)
    by_time: dict[int, int] = sums((row["timestamp"], row["size_bytes"]) for row in rows)
    times = sorted(by_time)
    total = sum(by_time.values())
    low, high = _quantile(times, by_time, total * _TAIL), _quantile(times[::-1], by_time, total * _TAIL)
    first, last = times[0], times[-1]
    if last - first > _MUCH_LONGER * max(high - low, width):
        first, last = low, high
    count = (last - first) // width + 1
    joined = -(-count // _MOST_BINS)
    return TimeSpan(first, last + width, width * joined)


def _quantile(times: Sequence[int], by_time: dict[int, int], rest: float) -> int:
    """The first time at which the sum passes ``rest``."""
    passed = 0
    for time in times:
        passed += by_time[time]
        if passed > rest:
            return time
    return times[-1]


def largest(sizes: dict[str, int], most: int = _MOST_SERIES) -> list[str]:
    """The names with the largest sizes; where there are more, the last is for all others."""
    names = sorted(sizes, key=lambda name: (-sizes[name], name))
    return names if len(names) <= most else [*names[: most - 1], OTHERS]


def stacked_times(rows: Iterable[dict[str, Any]], span: TimeSpan) -> tuple[Rows, list[str], int]:
    """Stacked bytes by bin and topic; the topics; and the bytes outside the span."""
    cells: dict[tuple[int, str], list[int]] = {}
    outside = 0
    rows = list(rows)
    names = largest(sums((row["topic"], row["size_bytes"]) for row in rows))
    for row in rows:
        if not span.holds(row["timestamp"]):
            outside += row["size_bytes"]
            continue
        name = row["topic"] if row["topic"] in names else OTHERS
        cell = cells.setdefault((span.bin_of(row["timestamp"]), name), [0, 0])
        cell[0] += row["size_bytes"]
        cell[1] += row["record_count"]
    values: Rows = []
    heights: dict[int, int] = {}
    for (start, name), (size_bytes, records) in sorted(cells.items(), key=lambda item: names.index(item[0][1])):
        bottom = heights.get(start, 0)
        heights[start] = bottom + size_bytes
        tip = f"{iso_time(start)}: {shown(name)}, {human_size(size_bytes)}, {counted(records, 'record')}"
        values.append(
            {"start": start, "end": start + span.width, "low": bottom, "high": bottom + size_bytes,
             "series": shown(name), "tip": tip}
        )  # fmt: skip
    return values, [shown(name) for name in names], outside


def stacked(cells: Sequence[tuple[str, str, int, str]]) -> Rows:
    """The values of stacked bars, from (bar, series, size, tip) in this order."""
    heights: dict[str, int] = {}
    values: Rows = []
    for name, series, size, tip in cells:
        low = heights.get(name, 0)
        heights[name] = low + size
        values.append({"name": shown(name), "series": series, "low": low, "high": low + size, "tip": tip})
    return values


def shown(text: str | None) -> str:
    """A name with unsafe characters as escapes, cut to the width of a chart's label."""
    escaped = escape_text(text or "")
    return escaped if len(escaped) <= 60 else f"{escaped[:59]}…"


#: The script of a build without vl_convert.
SHIPPED = Path(__file__).with_name("chart_library.js")

if not SHIPPED.is_file():
    import vl_convert

#: Vega-Embed holds an interpreter of expressions: the policy of the page allows no function to be made of text.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"
#: The last line of a script that was written whole.
_END = "\n/* end of the chart library */\n"


def chart_library() -> str:
    """The script. Raises ValueError if it cannot be part of a page."""
    if SHIPPED.is_file():
        return SHIPPED.read_text(encoding="utf-8")
    cache = user_cache()
    kept = None if cache is None else cache / f"charts-{VERSION}-{_package_state()}.js"
    try:
        script = "" if kept is None else kept.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        script = ""
    if not script.endswith(_END):
        script = made_script()
        if kept is not None:
            _keep(kept, script)
    elif kept is not None:
        note_use(kept)
    return script


def _package_state() -> str:
    """The bytes and the newest time of modification of the package's files."""
    with os.scandir(vl_convert.__path__[0]) as entries:
        states = [entry.stat() for entry in entries if entry.is_file()]
    return f"{sum(each.st_size for each in states)}-{max(each.st_mtime_ns for each in states)}"


def made_script() -> str:
    """The script, made by vl_convert. Raises ValueError if it cannot be part of a page."""
    script = vl_convert.javascript_bundle(_SNIPPET).strip()
    if "</script" in script or "<!--" in script:
        raise ValueError("the chart library would end its element of the page")
    vega, vega_lite = vl_convert.get_vega_version(), vl_convert.get_vegalite_versions()[-1]
    versions = f"vega {vega}, vega-lite {vega_lite}, vega-embed {vl_convert.get_vega_embed_version()}"
    notice = f"/*! {versions}, as bundled by vl-convert; BSD-3-Clause, see vega.github.io */"
    return f"{notice}\n{script}{_END}"


def _keep(path: Path, script: str) -> None:
    """Write the script for the next page; if that fails, the next page takes longer."""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as new:
            new.write(script)
        os.replace(new.name, path)
    except OSError:
        pass
    remove_unused(path.parent)


_INK, _FAINT = "var(--ink)", "var(--line)"
#: The width of a chart, without its axes.
WIDTH = 940
FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
_CONFIG = {
    "background": None,
    "font": FONT,
    "axis": {
        "labelColor": _INK, "titleColor": _INK, "domainColor": _FAINT, "tickColor": _FAINT, "gridColor": _FAINT,
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
    },
    "legend": {"labelColor": _INK, "titleColor": _INK, "orient": "bottom", "labelFontSize": 11, "symbolType": "square",
               "columnPadding": 14, "labelLimit": 240},
    "view": {"stroke": None},
}  # fmt: skip


class Chart(msgspec.Struct, frozen=True):
    """A chart: the sentence that says what it shows to somebody who does not see it, and its specification."""

    sentence: str
    mode: str
    spec: dict[str, Any]

    @property
    def data(self) -> Markup:
        """The specification as JSON for the page's script, without characters that could end its element."""
        text = json.dumps(self.spec, separators=(",", ":"), ensure_ascii=True)
        for character in "<>&":
            text = text.replace(character, f"\\u{ord(character):04x}")
        return Markup(text)


def chart(spec: dict[str, Any], sentence: str) -> Chart:
    """A chart by a Vega-Lite specification."""
    return Chart(sentence, "vega-lite", {"config": _CONFIG, **spec})


def shares(sizes: Mapping[str, int], words: Callable[[int], str] = human_size, most: int = 3) -> str:
    """The largest of some sizes with their names, and the number and the sum of the others."""
    order = sorted(sizes, key=lambda name: (-sizes[name], name))
    found = [f"{shown(name)} {words(sizes[name])}" for name in order[:most]]
    rest = sum(sizes[name] for name in order[most:])
    return ", ".join(found) + (f", {len(order) - most:,} more with {words(rest)}" if order[most:] else "")


def sums(pairs: Iterable[tuple[KeyT, int]]) -> dict[KeyT, int]:
    found: dict[KeyT, int] = {}
    for key, value in pairs:
        found[key] = found.get(key, 0) + value
    return found


def span_words(span_ms: int) -> str:
    """A duration, such as 3.5 h; a negative one, which lies in the future, as ``in 3.5 h``."""
    steps = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
    unit, name = next((each for each in steps if abs(span_ms) >= each[0]), (1, "ms"))
    return f"{'in ' if span_ms < 0 else ''}{abs(span_ms) / unit:.{0 if unit == 1 else 1}f} {name}"


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MOST_TICKS = 5
_SERIES = [f"var(--s{number})" for number in range(8)]
SEVERITIES = ("warning", "error", "fatal")
_SEVERITY_COLOURS = [f"var(--{name})" for name in SEVERITIES]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd", "unknown-5", "unknown-6", "unknown-7")
_MOST_BARS = 20
#: The columns of REPORT_PARTITION that ``skew`` reads.
SKEW_COLUMNS = ("topic", "partition", "mark", "record_count")
_SKEW_TITLE = "records of a partition / mean of its topic"
_NAME_AXIS = {"title": None, "labelLimit": 220}
_MOST_LOGS = 12
_KINDS = ("damage", "transaction", "leader_epoch", "metadata", "segment")


def _colour(domain: Sequence[str], colours: Sequence[str], *, legend: bool = True) -> dict[str, Any]:
    return {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(domain), "range": list(colours[: len(domain)])},
        "legend": {"title": None, "columns": 8} if legend else None,
    }


def _time_axis(span: TimeSpan | None = None) -> dict[str, Any]:
    scale: dict[str, Any] = {"type": "utc"}
    if span is not None:
        # As expressions: Vega-Lite makes datetime(number) of a number, which the interpreter of expressions lacks.
        scale |= {"domainMin": {"expr": str(span.start)}, "domainMax": {"expr": str(span.end)}}
    return {"type": "temporal", "scale": scale, "axis": {"title": "time (UTC)", "grid": False}}


def _byte_axis(title: str, values: Rows) -> dict[str, Any]:
    """An axis from 0 to the largest ``high``, with ticks at round numbers of KiB, MiB and so on, as sizes in tables."""
    most = max((each["high"] for each in values), default=0)
    steps = (digit * 10**power * 1024**unit for unit in range(7) for power in range(3) for digit in (1, 2, 5))
    step = next((each for each in sorted(steps) if most <= _MOST_TICKS * each), most)
    unit = max(number for number in range(7) if step >= 1024**number)
    labels = f"format(datum.value / {1024**unit}, ',~g') + ' {_UNITS[unit]}'"
    ticks = list(range(0, most + 1, step))
    return {"type": "quantitative", "axis": {"title": title, "values": ticks, "labelExpr": labels}}


def bytes_by_time(rows: Rows, places: Rows) -> Chart | None:
    """The chart of bytes by time and topic, with places of damage."""
    span = span_of(rows)
    if span is None:
        return None
    values, names, outside = stacked_times(rows, span)
    marks = [
        {"start": row["timestamp"], "series": row["severity"],
         "tip": f"{shown(row['code'])} in {shown(row['topic'])}-{row['partition']} at offset {row['first_offset']:,}, "
                f"{iso_time(row['timestamp'])}"}
        for row in places if row["timestamp"] is not None and span.holds(row["timestamp"])
    ]  # fmt: skip
    spec = _bytes_along(_time_axis(span), values, marks, 190, {"type": "rect"}, color=_colour(names, _SERIES))
    bars = sums((value["start"], value["high"] - value["low"]) for value in values)
    fullest = max(bars, key=lambda start: (bars[start], -start))
    return chart(
        spec,
        f"Bytes of batches by the time of their newest record: {human_size(sum(bars.values()))} from "
        f"{iso_time(span.start)} to {iso_time(span.end)}. By topic: "
        f"{shares(sums((row['topic'], row['size_bytes']) for row in rows if span.holds(row['timestamp'])))}. "
        f"The most in {span_words(span.width)}: {human_size(bars[fullest])} from {iso_time(fullest)} on."
        + _damage_words([mark["tip"] for mark in marks])
        + (f" {human_size(outside)} with timestamps outside this range are left out." if outside else ""),
    )


def _damage_words(tips: Sequence[str]) -> str:
    """A sentence about the places of damage that are marked in a chart; empty for none."""
    more = f"; and {len(tips) - 3:,} more" if len(tips) > 3 else ""
    marked = f"{counted(len(tips), 'place')} of damage {are(len(tips))} marked"
    return f" {marked}: {'; '.join(tips[:3])}{more}." if tips else ""


def _bytes_along(
    axis: dict[str, Any], values: Rows, marks: Rows, height: int, mark: dict[str, Any], **encoding: Any
) -> dict[str, Any]:
    """The specification of bytes along an axis of times or offsets, with the places of damage."""
    heights = {"y": {"field": "low", **_byte_axis("bytes", values)}, "y2": {"field": "high"}}
    bars = _layer(values, mark, x={"field": "start", **axis}, x2={"field": "end"}, **heights, **encoding)
    return {
        "width": WIDTH,
        "height": height,
        "resolve": {"scale": {"color": "independent"}},
        "layer": [bars, *_damage(marks, axis["type"])],
    }


def _layer(values: Rows, mark: dict[str, Any], **encoding: Any) -> dict[str, Any]:
    """A layer with a mark for each value, which shows the words of the value when it is pointed at."""
    tip = {"field": "tip", "type": "nominal"}
    return {"data": {"values": values}, "mark": mark, "encoding": {**encoding, "description": tip}}


def _damage(marks: Rows, kind: str) -> list[dict[str, Any]]:
    """Shaded ranges of lost offsets, and vertical lines at the places of damage, each with a triangle to point at.

    The axis is that of the first layer.
    """
    places = {"x": {"field": "start", "type": kind}, "color": _colour(SEVERITIES, _SEVERITY_COLOURS, legend=False)}
    lost = [mark for mark in marks if "end" in mark and mark["end"] > mark["start"] + 1]
    triangle = {"type": "point", "shape": "triangle-down", "filled": True, "size": 70, "opacity": 1}
    layers = (
        _layer(lost, {"type": "rect", "opacity": 0.3}, **places, x2={"field": "end"}),
        _layer(marks, {"type": "rule", "strokeWidth": 1.5, "opacity": 0.8}, **places),
        _layer(marks, triangle, **places, y={"value": 4}),
    )
    return [each for each in layers if each["data"]["values"]]


def bytes_by_offset(rows: Rows, places: Rows) -> list[Chart]:
    """Charts of bytes by offset with places of damage: of damaged partitions, then of large ones."""
    paths: dict[str, Rows] = {}
    damaged: dict[str, Rows] = {}
    for row in rows:
        paths.setdefault(row["path"], []).append(row)
    for row in places:
        damaged.setdefault(row["path"], []).append(row)
    order = sorted(paths, key=lambda path: (path not in damaged, -sum(row["size_bytes"] for row in paths[path])))
    return [_offsets(path, paths[path], damaged.get(path, [])) for path in order[:_MOST_LOGS]]


def _offsets(path: str, rows: Rows, places: Rows) -> Chart:
    values = [
        {"start": row["first_offset"], "end": row["last_offset"] + 1, "low": 0, "high": row["size_bytes"],
         "tip": f"offsets {row['first_offset']:,} to {row['last_offset']:,}: {human_size(row['size_bytes'])}"}
        for row in rows
    ]  # fmt: skip
    first, last = _offset_range(rows, places)
    marks = [
        {"start": min(max(row["first_offset"], first), last), "end": min(max(row["last_offset"] + 1, first), last),
         "series": row["severity"], "tip": f"{shown(row['code'])}: {_offset_words(row)}"}
        for row in places
    ]  # fmt: skip
    axis = {
        "type": "quantitative",
        "scale": {"domain": [first, last], "nice": False},
        "axis": {"title": "offset", "grid": False, "format": ",d"},
    }
    spec = _bytes_along(axis, values, marks, 80, {"type": "rect", "color": "var(--s0)"})
    fullest = max(rows, key=lambda row: row["size_bytes"])
    width = fullest["last_offset"] - fullest["first_offset"] + 1
    return chart(
        spec,
        f"{escape_text(path)}: bytes of batches by offset, {human_size(sum(row['size_bytes'] for row in rows))} "
        f"from offset {rows[0]['first_offset']:,} on, in ranges of {counted(width, 'offset')}. "
        f"The most in one: {human_size(fullest['size_bytes'])} from offset {fullest['first_offset']:,} on."
        + _damage_words([mark["tip"] for mark in marks]),
    )


def _offset_range(rows: Rows, places: Rows) -> tuple[int, int]:
    """The offsets of an axis: those of the batches, and around them at most as many again for the damage."""
    first, last = rows[0]["first_offset"], rows[-1]["last_offset"] + 1
    most = max(last - first, 10)
    lowest = min((row["first_offset"] for row in places), default=first)
    highest = max((row["last_offset"] + 1 for row in places), default=last)
    return min(first, max(lowest, first - most)), max(last, min(highest, last + most))


def _offset_words(row: dict[str, Any]) -> str:
    if row["last_offset"] > row["first_offset"]:
        return f"offsets {row['first_offset']:,} to {row['last_offset']:,} are lost"
    return f"at offset {row['first_offset']:,}"


def batch_sizes(rows: Rows) -> Chart | None:
    """Bytes by the size of batches and by codec."""
    if not rows:
        return None
    sizes = sorted({row["least_bytes"] for row in rows})
    names = {size: human_size(size) for size in sizes}
    cells = [
        (names[row["least_bytes"]], row["codec"], row["size_bytes"], _size_words(row))
        for row in sorted(rows, key=lambda row: (row["least_bytes"], CODECS.index(row["codec"])))
    ]
    order = [names[size] for size in sizes]
    axis = {"title": "bytes of a batch, from", "labelAngle": 0}
    values = stacked(cells)
    spec = {
        "width": WIDTH,
        "height": 150,
        **_layer(
            values,
            {"type": "bar"},
            x={"field": "name", "type": "nominal", "sort": order, "axis": axis},
            y={"field": "low", **_byte_axis("bytes", values)},
            y2={"field": "high"},
            color=_colour([each for each in CODECS if any(row["codec"] == each for row in rows)], _SERIES),
        ),
    }
    by_size = sums((row["least_bytes"], row["size_bytes"]) for row in rows)
    most = max(sizes, key=lambda size: by_size[size])
    return chart(
        spec,
        f"Bytes by the size of a batch and by codec: {human_size(sum(by_size.values()))} in "
        f"{counted(sum(row['batch_count'] for row in rows), 'batch')}. "
        f"By codec: {shares(sums((row['codec'], row['size_bytes']) for row in rows))}. "
        f"Batches of {human_size(most)} to {human_size(2 * most)} have the most: {human_size(by_size[most])}.",
    )


def _size_words(row: dict[str, Any]) -> str:
    sizes = f"{row['codec']}, batches of {human_size(row['least_bytes'])} to {human_size(2 * row['least_bytes'])}"
    batches, records = counted(row["batch_count"], "batch"), counted(row["record_count"], "record")
    return f"{sizes}: {batches}, {human_size(row['size_bytes'])}, {records}"


def topics(rows: Rows) -> Chart | None:
    """The largest topics by the codecs of their bytes."""
    cells = []
    codecs: set[str] = set()
    sizes = {row["topic"]: _codec_sizes(row["codecs"]) for row in rows}
    largest = sorted(sizes, key=lambda topic: -sum(sizes[topic].values()))
    for topic in largest[:_MOST_BARS]:
        for codec, size in sizes[topic].items():
            codecs.add(codec)
            cells.append((topic, codec, size, f"{shown(topic)}: {human_size(size)} {codec}"))
    if not cells:
        return None
    which = _bars_words(sum(1 for each in sizes.values() if each), "topic")
    by_topic = shares(sums((topic, size) for topic, _, size, _ in cells))
    by_codec = shares(sums((codec, size) for _, codec, size, _ in cells))
    words = f"Bytes of batches by topic and codec, of {which}: {by_topic}. By codec: {by_codec}."
    return _horizontal(cells, [each for each in CODECS if each in codecs], "bytes of batches", words)


def _bars_words(count: int, noun: str) -> str:
    return counted(count, noun) if count <= _MOST_BARS else f"the first {_MOST_BARS} of {counted(count, noun)}"


def _codec_sizes(text: str | None) -> dict[str, int]:
    """The bytes of each codec, from a text such as ``none:4283,zstd:16337``."""
    pairs = (each.partition(":") for each in (text or "").split(","))
    return {codec: int(size) for codec, _, size in pairs if size}


def _horizontal(cells: list[tuple[str, str, int, str]], series: list[str], title: str, sentence: str) -> Chart:
    """Bars from the left, one for each name, in the given order."""
    order = list(dict.fromkeys(shown(cell[0]) for cell in cells))
    values = stacked(cells)
    axis = _byte_axis(title, values) if "bytes" in title else {
        "type": "quantitative", "axis": {"title": title, "format": ",d", "tickCount": 5, "tickMinStep": 1}
    }  # fmt: skip
    spec = {
        "width": WIDTH - 180,
        "height": {"step": 17},
        **_layer(
            values,
            {"type": "bar"},
            y={"field": "name", "type": "nominal", "sort": order, "axis": _NAME_AXIS},
            x={"field": "low", **axis},
            x2={"field": "high"},
            color=_colour(series, _SERIES, legend=len(series) > 1),
        ),
    }
    return chart(spec, sentence)


def lag(rows: Rows) -> Chart | None:
    """The groups with the largest lag, by topic."""
    cells = sums(((row["group"], row["topic"]), row["lag"]) for row in rows if (row["lag"] or 0) > 0)
    if not cells:
        return None
    groups = sums((group, behind) for (group, _), behind in cells.items())
    topics = sums((topic, behind) for (_, topic), behind in cells.items())
    names = largest(topics)
    order = sorted(groups, key=lambda name: (-groups[name], name))[:_MOST_BARS]
    found = sums(((group, topic if topic in names else OTHERS), behind) for (group, topic), behind in cells.items())
    bars = [
        (group, shown(name), behind, f"{shown(group)} on {shown(name)}: {counted(behind, 'record')} behind")
        for group in order
        for name in names
        if (behind := found.get((group, name), 0))
    ]
    by_group = shares(sums((group, behind) for group, _, behind, _ in bars), "{:,}".format)
    by_topic = shares(sums((topic, behind) for _, topic, behind, _ in bars), "{:,}".format)
    words = (
        f"Records behind by group and topic, of {_bars_words(len(groups), 'group')}: {by_group}. By topic: {by_topic}."
    )
    return _horizontal(bars, [shown(name) for name in names], "records behind", words)


def skew(partitions: Rows, topic_rows: Rows) -> Chart | None:
    """The records of each partition, divided by the mean of its topic, for the most uneven topics."""
    uneven = sorted((row for row in topic_rows if row["skew"]), key=lambda row: -row["skew"])[:_MOST_BARS]
    if not uneven:
        return None
    means = {row["topic"]: 0.0 for row in uneven}
    records: dict[str, dict[int, int]] = {name: {} for name in means}
    for row in partitions:
        if row["topic"] in means and row["mark"] is None:
            found = records[row["topic"]]
            found[row["partition"]] = max(found.get(row["partition"], 0), row["record_count"] or 0)
    values: Rows = []
    for name, found in records.items():
        mean = sum(found.values()) / max(len(found), 1)
        for number, count in found.items():
            times = count / mean if mean else 0
            tip = f"{shown(name)}-{number}: {counted(count, 'record')}, {times:.2f} times the mean"
            values.append({"name": shown(name), "times": times, "tip": tip})
    order = [shown(row["topic"]) for row in uneven]
    ticks = _layer(
        values,
        {"type": "tick", "thickness": 2, "color": "var(--s0)"},
        y={"field": "name", "type": "nominal", "sort": order, "axis": _NAME_AXIS},
        x={"field": "times", "type": "quantitative", "axis": {"title": _SKEW_TITLE, "tickCount": 8}},
    )
    mean_line = {"type": "rule", "color": "var(--ink)", "strokeDash": [2, 3]}
    spec = {
        "width": WIDTH - 180,
        "height": {"step": 17},
        "layer": [ticks, {"mark": mean_line, "encoding": {"x": {"datum": 1}}}],
    }
    furthest: dict[str, dict[str, Any]] = {}
    for value in values:
        furthest[value["name"]] = max(furthest.get(value["name"], value), value, key=lambda each: each["times"])
    tips = [each["tip"] for each in sorted(furthest.values(), key=lambda each: -each["times"])]
    return chart(
        spec,
        f"Records of each partition, divided by the mean of its topic (1 is even), of {counted(len(tips), 'topic')}. "
        f"The fullest partitions: {'; '.join(tips[:3])}.",
    )


def timeline(events: Rows, rows: Rows) -> Chart | None:
    """Events by kind and time."""
    span = span_of(rows)
    if span is None or not events:
        return None
    cells: dict[tuple[int, str], Rows] = {}
    for event in events:
        if span.holds(event["timestamp"]):
            cells.setdefault((span.bin_of(event["timestamp"]), event["kind"]), []).append(event)
    values: Rows = []
    for (start, kind), found in cells.items():
        first = found[0]
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        place = "" if first["topic"] is None else f" in {shown(first['topic'])}-{first['partition']}"
        values.append(
            {"start": start + span.width // 2, "name": kind.replace("_", " "), "count": len(found), "series": kind,
             "tip": f"{iso_time(first['timestamp'])}: {shown(first['detail'])}{place}{more}"}
        )  # fmt: skip
    if not values:
        return None
    order = [kind.replace("_", " ") for kind in _KINDS]
    spec = {
        "width": WIDTH,
        "height": {"step": 26},
        **_layer(
            values,
            {"type": "circle", "opacity": 0.85},
            x={"field": "start", **_time_axis(span)},
            y={"field": "name", "type": "nominal", "sort": order, "axis": {"title": None, "grid": True}},
            size={"field": "count", "type": "quantitative", "legend": None, "scale": {"range": [25, 260]}},
            color=_colour(_KINDS, ["var(--error)", *_SERIES], legend=False),
        ),
    }
    counts = sums((value["name"], value["count"]) for value in values)
    left_out = len(events) - sum(counts.values())
    words = f" {counted(left_out, 'event')} outside this range {are(left_out)} left out." if left_out else ""
    return chart(
        spec,
        f"Events by kind and time, from {iso_time(span.start)} to {iso_time(span.end)}: "
        f"{shares(counts, '{:,}'.format, len(_KINDS))}.{words}",
    )
