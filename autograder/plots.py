"""What a figure must show: the first part in which it falls short of the reference's.

Works on `SeenFigure` records, like `compare`: nothing is drawn and no pixel is looked at. Texts are free, the facts in
them are not: a title has to name the numbers that the reference's title names, an axis has to have a label where the
reference's has one. Two lines that the reference draws apart by style must be told apart by style or marker, whatever
their colours.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch

from .properties import PLOT_PARTS
from .records import SeenAxes, SeenFigure, SeenLine

RTOL, ATOL = 1e-4, 1e-5  # of data; far finer than a line is wide
ALT_WORDS = 8  # fewer describe no figure
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Fault:
    """What a figure lacks.

    Attributes:
        where: "panel 2, title", "alt text" ...
        expected, got: short texts.
    """

    where: str
    expected: str
    got: str


def fault(expected: SeenFigure, got: SeenFigure, parts: tuple[str, ...] = PLOT_PARTS) -> Fault | None:
    """The first thing that `got` lacks, or None. The number of panels always counts."""
    if len(got.panels) != len(expected.panels):
        return Fault("panels", count(len(expected.panels), "panel"), count(len(got.panels), "panel"))
    return next(filter(None, (_PARTS[part](expected, got) for part in parts)), None)


def count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _each_panel(judge: Callable):
    """A part judged panel by panel: `judge(figure, wanted, panel)` gives (what, expected, got) or None."""

    def judged(expected, got):
        for number, (wanted, panel) in enumerate(zip(expected.panels, got.panels, strict=True), start=1):
            if found := judge(got, wanted, panel):
                what, *texts = found
                return Fault(f"panel {number}, {what}", *texts)
        return None

    return judged


# ---- data -----------------------------------------------------------------------------------------------------------


def _data(figure, wanted: SeenAxes, panel: SeenAxes):
    chosen = _matched(wanted, panel)
    for line, found in zip(wanted.lines, chosen, strict=True):
        if found is None:
            return "data", f"a line {_through(line)}", _lines_text(panel)
    if extra := [line for line in panel.lines if _is_curve(line) and not any(line is found for found in chosen)]:
        return "data", count(len(wanted.lines), "line"), f"one more, {_through(extra[0])}"
    return None


def _matched(wanted, panel) -> list[SeenLine | None]:
    """For each line wanted the line of the panel with its data; each is taken once."""
    left, chosen = list(panel.lines), []
    for line in wanted.lines:
        found = next((other for other in left if _same_data(line, other)), None)
        left = [other for other in left if other is not found]
        chosen.append(found)
    return chosen


def _same_data(line, other):
    pairs = [(line.x.value, other.x.value), (line.y.value, other.y.value)]
    return all(
        a is not None
        and b is not None
        and a.shape == b.shape
        and torch.allclose(b, a, rtol=RTOL, atol=ATOL, equal_nan=True)
        for a, b in pairs
    )


def _is_curve(line):
    """Straight lines between two points (an axis, a mark) are no data."""
    return line.x.shape[0] > 2


def _through(line):
    if line.x.value is None or line.y.value is None or not line.x.value.numel():
        return "without points"
    last = line.x.value.numel() - 1
    points = [(line.x.value[i].item(), line.y.value[i].item()) for i in dict.fromkeys((0, last // 2, last))]
    return "through " + ", ".join(f"({x:.4g}, {y:.4g})" for x, y in points)


def _lines_text(panel):
    if not panel.lines:
        return "no lines at all"
    return "; ".join(f"a line {_through(line)}" for line in panel.lines[:4]) + (" …" if len(panel.lines) > 4 else "")


# ---- texts ----------------------------------------------------------------------------------------------------------


def numbers(text: str) -> set[float]:
    """The numbers that stand in a text: 1, 1.0 and 1e0 are one."""
    return {float(found) for found in NUMBER.findall(text.replace("−", "-"))}


def _titles(figure, wanted, panel):
    if not wanted.title:
        return None
    missing = sorted(numbers(wanted.title) - numbers(panel.title))
    if panel.title.strip() and not missing:
        return None
    named = f" that names {', '.join(f'{n:g}' for n in missing)}" if missing else ""
    return "title", f"a title{named}", repr(panel.title) if panel.title.strip() else "none"


def _labels(figure, wanted, panel):
    for what, asked, own, common in (
        ("x label", wanted.x_label, panel.x_label, figure.x_label),
        ("y label", wanted.y_label, panel.y_label, figure.y_label),
    ):
        if asked and not own.strip() and not common.strip():
            return what, "a text", "none"
    return None


def _legend(figure, wanted, panel):
    texts = {text for text in (*panel.legend, *figure.legend) if text.strip()}
    if len(texts) >= len(set(wanted.legend)):
        return None
    given = ", ".join(map(repr, sorted(texts))) or "none"
    return "legend", f"a legend with {count(len(set(wanted.legend)), 'text')}, one for each line", given


def _alt(expected, got):
    words = min(ALT_WORDS, len(expected.alt.split()))
    if len(got.alt.split()) < words:
        return Fault("alt text", f"a description in {words} words or more", repr(got.alt) if got.alt else "none")
    titles = set().union(*(numbers(panel.title) for panel in expected.panels))
    if missing := sorted(titles & numbers(expected.alt) - numbers(got.alt)):
        return Fault("alt text", f"one that names what the panels show, also {missing[0]:g}", repr(got.alt[:120]))
    return None


# ---- axes and styles ------------------------------------------------------------------------------------------------


def _shared(axis: str):
    """Panels whose `axis` the reference shares must show one range: shared, or set to equal limits."""

    def judged(expected, got):
        for number, wanted in enumerate(expected.panels):
            first = getattr(wanted, f"shares_{axis}")
            one, other = got.panels[first], got.panels[number]
            if getattr(one, f"shares_{axis}") == getattr(other, f"shares_{axis}"):
                continue
            limits = [getattr(panel, f"{axis}_limits") for panel in (one, other)]
            near = 1e-6 * (1 + max(map(abs, limits[0])))
            if not all(abs(a - b) <= near for a, b in zip(*limits, strict=True)):
                low, high = limits[1]
                return Fault(
                    f"panel {number + 1}, {axis} axis",
                    f"the {axis} axis of panel {first + 1}, from {limits[0][0]:.4g} to {limits[0][1]:.4g}",
                    f"one of its own, from {low:.4g} to {high:.4g}",
                )
        return None

    return judged


def _styles(figure, wanted, panel):
    """Lines that look different in the reference without colour must do so here."""
    found = [
        line or other
        for line, other in zip(_matched(wanted, panel), _padded(panel.lines, len(wanted.lines)), strict=True)
    ]
    for i, line in enumerate(wanted.lines):
        for j in range(i):
            apart = _look(line) != _look(wanted.lines[j])
            if apart and found[i] and found[j] and _look(found[i]) == _look(found[j]):
                return (
                    "line styles",
                    f"lines {j + 1} and {i + 1} of different style or marker",
                    f"both {_look_text(found[i])}",
                )
    return None


def _padded(lines, n):
    return [*lines[:n], *[None] * (n - len(lines))]


def _look(line):
    return line.style, line.marker


def _look_text(line):
    return f"{line.style.split(' ')[0]!r}" + (f" with marker {line.marker!r}" if line.marker else " without markers")


_PARTS = {
    "data": _each_panel(_data),
    "titles": _each_panel(_titles),
    "axis labels": _each_panel(_labels),
    "legend": _each_panel(_legend),
    "shared x axis": _shared("x"),
    "shared y axis": _shared("y"),
    "line styles": _each_panel(_styles),
    "alt text": _alt,
}
