"""A matplotlib figure shown with a description for people who do not see it."""

import html
import io
import sys
from base64 import b64encode
from dataclasses import dataclass

from lecture_pictures.notation import DrawingError

try:
    from IPython.display import display
except ImportError:  # an install without the extra "student": there is no notebook to show anything in
    display = None

DOTS_PER_INCH = 100
SHORTEST_ALT = 20  # characters; less describes nothing


@dataclass(frozen=True, repr=False)
class Figure:
    """A figure as PNG with its description.

    Attributes:
        png: bytes, the same for the same figure on the same matplotlib.
        alt: what the figure shows, in words.
    """

    png: bytes
    alt: str

    def __repr__(self):
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        """Called by Jupyter; the metadata is where nbconvert looks for the alt text. JupyterLab does not: see Words."""
        return {"image/png": b64encode(self.png).decode(), "text/plain": self.alt}, {"image/png": {"alt": self.alt}}


ALT_OF_THE_IMAGE_ABOVE = """
(script => {
    const words = script?.previousElementSibling.querySelector("p").textContent;
    const above = script?.closest(".jp-OutputArea-child")?.previousElementSibling;
    above?.querySelector("img")?.setAttribute("alt", words);
})(document.currentScript)
"""


@dataclass(frozen=True, repr=False)
class Words:
    """What a figure shows, in words: behind a disclosure below it, and in JupyterLab as the alt text of its image."""

    alt: str

    def __repr__(self):
        return ""  # where there is only text, the figure has said it

    def _repr_html_(self):
        """Called by Jupyter."""
        words = f"<details><summary>The same in words</summary><p>{html.escape(self.alt)}</p></details>"
        return f"{words}<script>{ALT_OF_THE_IMAGE_ABOVE}</script>"


def show_figure(fig, alt):
    """Displays the figure once with its alt text, and the text below it, and closes it, so that it is not shown again without.

    Args:
        fig: a matplotlib Figure.
        alt: a sentence that says what the figure shows: axes, curves and what to see in them.
    Raises:
        DrawingError: alt is too short to describe anything, or fig is not a figure.
    """
    shown = described(fig, alt)
    pyplot = sys.modules.get("matplotlib.pyplot")  # not imported here: a figure may have been made without it
    if pyplot is not None:
        pyplot.close(fig)
    if display is not None:
        display(shown)
        display(Words(shown.alt))
    else:
        print(shown)


def described(fig, alt):
    """The figure as a Figure."""
    if not hasattr(fig, "savefig"):
        raise DrawingError(f"fig is a {type(fig).__name__}, expected a matplotlib Figure: pass fig, not the axes")
    if not isinstance(alt, str) or len(alt.strip()) < SHORTEST_ALT:
        raise DrawingError(f"alt is {alt!r}: say in a sentence what the figure shows: axes, curves, what to see")
    file = io.BytesIO()
    fig.savefig(file, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})  # no version in the file
    return Figure(file.getvalue(), " ".join(alt.split()))
