"""What a reader can see in a picture, taken from its SVG."""

import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
import torch

from lecture_pictures.svg import words_width

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def marks(svg):
    """Every mark with the looks it inherits, in painting order: (tag, attributes, words)."""

    def walk(node, inherited):
        looks = inherited | dict(node.attrib)
        if node.tag in (SVG + "title", SVG + "desc"):
            return
        if node.tag != SVG + "g":
            yield node.tag.removeprefix(SVG), looks, node.text or ""
        for child in node:
            yield from walk(child, looks)

    root = ET.fromstring(svg)
    for child in root:
        yield from walk(child, {})


def luminance(colour):
    """Relative luminance, WCAG 2.2."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def text_boxes(svg):
    """(left, top, right, bottom, words, looks) of every text."""
    for tag, looks, words in marks(svg):
        if tag == "text":
            size = float(looks["font-size"])
            width = words_width(words, size, "Mono" in looks["font-family"], "font-weight" in looks)
            x = float(looks["x"]) - {"start": 0, "middle": width / 2, "end": width}[looks["text-anchor"]]
            base = float(looks["y"])
            yield x, base - 0.76 * size, x + width, base + 0.16 * size, words, looks


def boxes_of(svg):
    """(left, top, right, bottom, fill) of every box, in painting order."""
    for tag, looks, _ in marks(svg):
        if tag == "rect":
            x, y, width, height = (float(looks[k]) for k in ("x", "y", "width", "height"))
            yield x, y, x + width, y + height, looks["fill"]


def ground(boxes, x, y):
    """The colour of the topmost box under a point."""
    return [fill for left, top, right, bottom, fill in boxes if left <= x <= right and top <= y <= bottom][-1]


@pytest.fixture
def legible():
    """A function that asserts that a picture can be read: by eye, on any page, and by a screen reader."""

    def check(picture):
        root = ET.fromstring(picture.svg)
        assert root.tag == SVG + "svg" and root.get("role") == "img"
        assert root[0].tag == SVG + "title" and root[0].text == picture.title
        assert root[1].tag == SVG + "desc" and root[1].text == picture.text
        assert "\n" not in picture.title and len(picture.text) > len(picture.title) > 5
        assert " id=" not in picture.svg and "href" not in picture.svg
        assert not any(
            "nan" in value or "inf" in value for _, looks, _ in marks(picture.svg) for value in looks.values()
        )
        left, top, width, height = map(float, root.get("viewBox").split())
        assert width <= 860 and height < 2200, "larger than a notebook can show"
        boxes, grounds = list(text_boxes(picture.svg)), list(boxes_of(picture.svg))
        for x0, y0, x1, y1, words, looks in boxes:
            assert left <= x0 and x1 <= left + width and top <= y0 and y1 <= top + height, f"{words!r} is clipped"
            assert float(looks["font-size"]) >= 11, f"{words!r} is too small"
            under = ground(grounds, (x0 + x1) / 2, (y0 + y1) / 2)
            assert contrast(looks["fill"], under) >= 4.5, f"{words!r}: {looks['fill']} on {under}"
        for one, other in combinations(boxes, 2):
            apart = one[2] <= other[0] + 1 or other[2] <= one[0] + 1 or one[3] <= other[1] + 1 or other[3] <= one[1] + 1
            assert apart, f"{one[4]!r} and {other[4]!r} overlap"

    return check


@pytest.fixture
def seen():
    """A function: the words that are drawn, in painting order."""
    return lambda picture: [words for *_, words, _ in text_boxes(picture.svg)]


def random_view(generator):
    """A random strided view of a small arange: sliced, transposed, expanded or with a dimension added."""
    draw = lambda low, high: int(torch.randint(low, high, (), generator=generator))
    shape = [draw(1, 5) for _ in range(draw(1, 4))]
    t = torch.arange(torch.Size(shape).numel()).view(shape)
    for _ in range(draw(0, 4)):
        d = draw(0, t.dim())
        change = draw(0, 5)
        if change == 0:
            t = t.transpose(d, draw(0, t.dim()))
        elif change == 1:
            t = t.narrow(d, (start := draw(0, t.size(d) + 1)), draw(0, t.size(d) - start + 1))
        elif change == 2 and t.size(d):
            t = t[(slice(None),) * d + (slice(draw(0, t.size(d)), None, draw(1, 4)),)]
        elif change == 3 and t.size(d) and t.dim() > 1:
            t = t.select(d, draw(0, t.size(d)))
        elif change == 4 and t.dim() < 3 and t.numel() <= 16:
            t = t.unsqueeze(0).expand(draw(1, 4), *t.shape)
        if t.dim() == 0:
            break
    return t


@pytest.fixture
def views():
    """Sixty random views, the same in every run."""
    generator = torch.Generator().manual_seed(5)
    return [random_view(generator) for _ in range(60)]
