"""The marks that pictures are drawn with: boxes, hatches, arrows, words.

Nothing here has an id, so that two pictures on one page cannot disturb each other and the same picture is always the
same text. Every drawing brings its own paper, so that it reads alike on a light and on a dark page.
"""

from itertools import chain, groupby
from math import cos, hypot, pi, sin

from lecture_pictures.picture import escaped, framed

INK, QUIET, PAPER, HATCH = "#1a1a1a", "#595959", "#ffffff", "#bdbdbd"

# Okabe and Ito, "Color Universal Design" (2008): told apart with any common colour vision. Words are never written in
# these (only INK, QUIET and BLUE reach 4.5:1 on PAPER); a colour always comes with a shape, a hatch or a label.
ORANGE, SKY, GREEN, YELLOW = "#e69f00", "#56b4e9", "#009e73", "#f0e442"
BLUE, VERMILLION, PURPLE = "#0072b2", "#d55e00", "#cc79a7"

SANS = "DejaVu Sans,Verdana,Segoe UI,Arial,sans-serif"
MONO = "DejaVu Sans Mono,Menlo,Consolas,monospace"
MARGIN = 12  # px of paper around everything
WIDE = 720  # px: what fits a notebook's output without being shrunk


NARROW, BROAD = frozenset(" ,.:;'|!ijlft()[]/-"), frozenset("mwMW%@…×→")


def words_width(words, size=13, mono=False, bold=False):
    """Pixels that the words take at most in the fonts above (DejaVu Sans and Verdana are the widest of them)."""
    if mono:
        return len(words) * size * 0.605
    ems = sum(0.41 if c in NARROW else 1.0 if c in BROAD else 0.77 if c.isupper() else 0.64 for c in words)
    return ems * size * (1.1 if bold else 1)


class Drawing:
    """Marks on paper. Coordinates are pixels, y grows downwards; nothing is clipped.

    Boxes are painted first, then hatches, then lines and shapes, then words; within a kind in the order of the calls
    (words do not overlap, so they are sorted by their looks: that keeps the file small).
    """

    def __init__(self):
        self._marks = {"boxes": [], "hatches": [], "lines": [], "words": []}
        self._extent = None

    def box(self, x, y, width, height, fill=PAPER, line=INK, weight=1.0, dashed=False, round=0):
        look = f'fill="{fill}" stroke="{line}" stroke-width="{weight:g}"' + (
            ' stroke-dasharray="3 3"' if dashed else ""
        )
        corners = f' rx="{round}"' if round else ""
        self._paint(
            "boxes", look, f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"{corners}/>'
        )
        self._cover(x, y, x + width, y + height)

    def hatch(self, x, y, width, height, colour=HATCH, gap=6):
        """Diagonal lines over a box."""
        path = []
        for c in range(gap, int(width + height), gap):  # the line x + y = c, kept inside the box
            x0, x1 = max(0, c - height), min(width, c)
            path.append(f"M{_n(x + x0)} {_n(y + c - x0)}L{_n(x + x1)} {_n(y + c - x1)}")
        self._paint("hatches", f'fill="none" stroke="{colour}" stroke-width="1"', f'<path d="{"".join(path)}"/>')

    def words(self, x, y, words, size=13, anchor="middle", colour=INK, mono=False, bold=False):
        """Words whose vertical centre is y; anchor is the side of x they stand on: start, middle or end."""
        words = str(words)
        if not words:
            return x
        look = f'font-family="{MONO if mono else SANS}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
        look += ' font-weight="bold"' if bold else ""
        text = escaped(words)
        self._paint("words", look, f'<text x="{_n(x)}" y="{_n(y + 0.36 * size)}">{text}</text>')
        width = words_width(words, size, mono, bold)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        self._cover(left, y - size * 0.7, left + width, y + size * 0.7)
        return left + width

    def line(self, *points, colour=INK, weight=1.5, dashes="", arrow=False):
        """Straight pieces through the points, each (x, y); with an arrow head at the last one.

        Args:
            dashes: lengths of dashes and gaps as SVG writes them; empty for a solid line.
        """
        look = f'fill="none" stroke="{colour}" stroke-width="{weight:g}"'
        look += f' stroke-dasharray="{dashes}"' if dashes else ""
        *_, (x0, y0), (x1, y1) = points
        if arrow:
            length = hypot(x1 - x0, y1 - y0) or 1.0
            ux, uy = (x1 - x0) / length, (y1 - y0) / length
            points = [*points[:-1], (x1 - 5 * ux, y1 - 5 * uy)]
        self._paint("lines", look, f'<path d="M{"L".join(f"{_n(x)} {_n(y)}" for x, y in points)}"/>')
        if arrow:
            back, side = (x1 - 8 * ux, y1 - 8 * uy), (-4 * uy, 4 * ux)
            self.shape(
                (x1, y1), (back[0] + side[0], back[1] + side[1]), (back[0] - side[0], back[1] - side[1]), fill=colour
            )
        for x, y in points:
            self._cover(x, y, x, y)

    def shape(self, *corners, fill=INK, line="none", weight=1.0):
        """A filled polygon."""
        path = "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in corners) + "Z"
        self._paint("lines", f'fill="{fill}" stroke="{line}" stroke-width="{weight:g}"', f'<path d="{path}"/>')
        for x, y in corners:
            self._cover(x, y, x, y)

    def dot(self, x, y, radius=4, fill=INK, line="none", weight=1.0):
        look = f'fill="{fill}" stroke="{line}" stroke-width="{weight:g}"'
        self._paint("lines", look, f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>')
        self._cover(x - radius, y - radius, x + radius, y + radius)

    def bolt(self, x, y, height=14, fill=VERMILLION):
        """A lightning bolt around (x, y): the sign for NaN."""
        s = height / 14
        outline = [(1, -7), (-5, 1), (-1, 1), (-2, 7), (5, -2), (1, -2), (3, -7)]
        self.shape(*((x + a * s, y + b * s) for a, b in outline), fill=fill, line=INK)

    def star(self, x, y, radius=7, fill=YELLOW):
        """A five-pointed star around (x, y): the sign for "changed"."""
        tips = [(radius if k % 2 == 0 else radius * 0.42, -pi / 2 + k * pi / 5) for k in range(10)]
        self.shape(*((x + r * cos(a), y + r * sin(a)) for r, a in tips), fill=fill, line=INK)

    def picture(self, title, text):
        """The drawing on its paper, with the words that say the same."""
        left, top, right, bottom = self._extent or (0, 0, 0, 0)
        left, top = left - MARGIN, top - MARGIN
        extent = left, top, right + MARGIN - left, bottom + MARGIN - top
        x, y, width, height = (_n(v) for v in (left + 0.5, top + 0.5, extent[2] - 1, extent[3] - 1))
        paper = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{PAPER}" stroke="#8c8c8c"/>'
        self._marks["words"].sort(key=lambda mark: mark[0])
        painted = groupby(chain(*self._marks.values()), lambda mark: mark[0])
        parts = [f"<g {look}>{''.join(mark for _, mark in marks)}</g>" for look, marks in painted]
        return framed([paper, *parts], extent, title, text)

    @property
    def bottom(self):
        return self._extent[3] if self._extent else 0

    @property
    def right(self):
        return self._extent[2] if self._extent else 0

    def _paint(self, kind, look, mark):
        self._marks[kind].append((look, mark))

    def _cover(self, left, top, right, bottom):
        a, b, c, d = self._extent or (left, top, right, bottom)
        self._extent = min(a, left), min(b, top), max(c, right), max(d, bottom)


def _n(value):
    """A coordinate to a tenth of a pixel, always written the same way."""
    return f"{round(value + 0.0, 1) + 0.0:.10g}"
