"""The memory hierarchy: where data can be, how much fits there, and how fast it comes."""

from lecture_pictures.svg import BLUE, GREEN, HATCH, INK, ORANGE, PAPER, PURPLE, QUIET, SKY, Drawing

# Orders of magnitude of a machine of the 2020s, for comparing the levels with one another. Place, what fits, how much
# comes from there in a second, how long until the first byte is there.
LEVELS = (
    ("CPU caches", "tens of MB", "about 1 TB/s", "a few ns"),
    ("CPU memory (RAM)", "8 to 512 GB", "about 50 GB/s", "about 100 ns"),
    ("disk (SSD)", "a few TB", "about 5 GB/s", "about 100 µs"),
    ("another machine", "no end", "about 1 GB/s", "about 1 ms"),
)
GPU = ("GPU memory", "8 to 140 GB", "1 to 5 TB/s", "")
LINK = "about 30 GB/s"  # between CPU memory and GPU memory
FILLS = (SKY, GREEN, ORANGE, PURPLE)
ROW, GAP = 46, 22


def memory_hierarchy():
    """The levels of memory from small and near to large and far, with GPU memory beside CPU memory."""
    title = "Where data can be: near is small and fast, far is large and slow"
    drawing = Drawing()
    drawing.words(0, 0, title, 15, "start", bold=True)
    middle, top = 200, 28
    for k, level in enumerate(LEVELS):
        width, y = 190 + 70 * k, top + k * (ROW + GAP)
        _draw_level(drawing, middle - width / 2, y, width, level, FILLS[k], hatched=k == 3)
        if k:
            drawing.line((middle, y - 3), (middle, y - GAP + 3), weight=2, arrow=True)
            drawing.words(middle + 10, y - GAP / 2, f"{level[2]}, first byte after {level[3]}", 12, "start", QUIET)
    y = top + ROW + GAP
    _draw_level(drawing, 520, y, 190, GPU, PAPER, dashed=True)
    drawing.line((middle + 134, y + ROW / 2), (516, y + ROW / 2), weight=2, arrow=True)
    drawing.words((middle + 134 + 516) / 2, y + ROW / 2 - 11, f"copied at {LINK}", 12, colour=QUIET)
    drawing.words(615, y + ROW + 14, f"read by the GPU at {GPU[2]}", 12, colour=BLUE)
    return drawing.picture(title, _words(title))


def _draw_level(drawing, x, y, width, level, fill, hatched=False, dashed=False):
    drawing.box(x, y, width, ROW, PAPER if hatched else fill, INK, 2, dashed, round=6)
    if hatched:
        drawing.hatch(x, y, width, ROW, HATCH)
        drawing.box(x + width / 2 - 75, y + 3, 150, ROW - 6, PAPER, PAPER)
    drawing.words(x + width / 2, y + 15, level[0], 13, bold=True)
    drawing.words(x + width / 2, y + 33, level[1], 12)


def _words(title):
    lines = [title, "Rough numbers, good for comparing the levels with one another."]
    for k, (place, size, rate, delay) in enumerate(LEVELS):
        lines.append(f"{k + 1}. {place}: {size}, {rate}, first byte after {delay}")
    lines.append(f"beside 2. {GPU[0]}: {GPU[1]}, read by the GPU at {GPU[2]}; from CPU memory it is filled at {LINK}")
    return "\n".join(lines)
