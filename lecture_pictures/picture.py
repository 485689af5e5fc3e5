"""A picture: a drawing, the same said in words, and a title."""

import html
import xml.etree.ElementTree as ET
from dataclasses import dataclass

FLUID = ' style="max-width:100%;height:auto"'  # on the outermost svg: a narrow window shrinks the drawing


@dataclass(frozen=True, repr=False)
class Picture:
    """What every drawing function returns; a notebook shows the drawing, a terminal the words.

    Attributes:
        svg: one self-contained `<svg>` element with role="img", `<title>` and `<desc>`.
        text: everything the drawing says, readable in a terminal and by a screen reader.
        title: one line.
    """

    svg: str
    text: str
    title: str

    def __repr__(self):
        return self.text

    def html(self):
        """The drawing inside the page, followed by its words behind a disclosure that opens with the keyboard."""
        words = html.escape(self.text, quote=False)
        return (
            f"<div>{self.svg}<details><summary>The same in words</summary>"
            f'<pre style="white-space:pre-wrap">{words}</pre></details></div>'
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        """Called by Jupyter when a cell ends in a picture.

        JupyterLab and nbconvert put image/svg+xml into an <img> without alt text, which a screen reader cannot see
        into; both prefer text/html, where title, description and words stay in the page.
        """
        return {"text/html": self.html(), "image/svg+xml": self.svg, "text/plain": self.text}


def stacked(title, pictures):
    """The pictures below one another as one picture."""
    from_top, widest, parts = 0.0, 0.0, []
    for picture in pictures:
        root = ET.fromstring(picture.svg)
        parts.append(picture.svg.replace(FLUID, "", 1).replace("<svg ", f'<svg y="{from_top:g}" ', 1))
        widest = max(widest, float(root.get("width")))
        from_top += float(root.get("height")) + 8
    return framed(parts, (0, 0, widest, max(from_top - 8, 0)), title, "\n\n".join(p.text for p in pictures))


def framed(parts, extent, title, text):
    """A picture whose svg holds `parts` (strings) and shows `extent`: left, top, width, height in px."""
    left, top, width, height = (f"{round(v, 1):g}" for v in extent)
    title, text = _allowed(title), _allowed(text)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="{left} {top} {width} {height}"{FLUID}>'
        f"<title>{escaped(title)}</title><desc>{escaped(text)}</desc>"
        f"{''.join(parts)}</svg>"
    )
    return Picture(svg, text, title)


def escaped(words):
    """The words as character data of an XML document."""
    return html.escape(_allowed(words), quote=False)


def _allowed(words):
    """The words without the characters that no XML document may hold."""
    allowed = (("\t", "\n"), (" ", "\ud7ff"), ("\ue000", "\ufffd"), ("\U00010000", "\U0010ffff"))
    return "".join(c if any(first <= c <= last for first, last in allowed) else "?" for c in words)
