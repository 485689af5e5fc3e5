"""A figure is shown once, with its description, and as the same bytes every time."""

import base64
import io

import matplotlib
import pytest
from matplotlib.figure import Figure as PlotFigure

from lecture_pictures import DrawingError, figure, show_figure
from lecture_pictures.figure import described

ALT = "A straight line from 0 to 1: y grows with x."


def plot():
    fig = PlotFigure(figsize=(3, 2))
    fig.subplots().plot([0, 1], [0, 1])
    return fig


def test_a_figure_carries_its_alt_text_where_front_ends_look_for_it(monkeypatch):
    shown = []
    monkeypatch.setattr(figure, "display", shown.append)
    show_figure(plot(), ALT)
    data, metadata = shown[0]._repr_mimebundle_()
    assert metadata == {"image/png": {"alt": ALT}} and data["text/plain"] == ALT
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")


def test_the_words_of_a_figure_stand_below_it(monkeypatch):
    shown = []
    monkeypatch.setattr(figure, "display", shown.append)
    show_figure(plot(), "From <0> to 1, & back again.")
    assert [type(one).__name__ for one in shown] == ["Figure", "Words"] and repr(shown[1]) == ""
    told = "<details><summary>The same in words</summary><p>From &lt;0&gt; to 1, &amp; back again.</p></details>"
    assert shown[1]._repr_html_().startswith(told)


def test_the_same_plot_gives_the_same_bytes_without_a_version_in_them():
    assert described(plot(), ALT) == described(plot(), ALT)
    assert matplotlib.__version__.encode() not in described(plot(), ALT).png


def test_a_pyplot_figure_is_closed_so_that_it_is_not_shown_again(monkeypatch):
    matplotlib.use("agg")
    from matplotlib import pyplot

    monkeypatch.setattr(figure, "display", lambda shown: None)
    fig, _ = pyplot.subplots()
    show_figure(fig, ALT)
    assert not pyplot.fignum_exists(fig.number)


def test_without_a_notebook_the_alt_text_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(figure, "display", None)
    show_figure(plot(), ALT)
    assert capsys.readouterr().out == ALT + "\n"


@pytest.mark.parametrize("alt", ["", "plot", " " * 40, None])
def test_an_alt_text_that_describes_nothing_is_refused(alt):
    with pytest.raises(DrawingError, match="say in a sentence what the figure shows"):
        show_figure(plot(), alt)


def test_something_else_than_a_figure_is_refused():
    with pytest.raises(DrawingError, match="fig is a BytesIO, expected a matplotlib Figure"):
        show_figure(io.BytesIO(), ALT)
