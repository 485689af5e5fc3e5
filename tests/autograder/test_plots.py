"""A figure is judged by what it contains: panels, data, texts, limits, styles, description."""

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.figure import Figure

from autograder import compare, plots, probe, wire
from autograder.exercises import exercise
from autograder.judge import visible_question
from autograder.properties import PLOT_PARTS, same_plot
from autograder.records import SeenFigure, SeenTensor

X = torch.linspace(-2, 2, 9)
ALT = "Two panels over x, the square for a = 1 and for a = 2.5, with the line y = x"
OURS = {
    "title": "a = {a}",
    "x": "x",
    "y": "value",
    "legend": True,
    "sharey": True,
    "style": "--",
    "factor": 1.0,
    "alt": ALT,
}


def drawn(**changes):
    """A figure of two panels, each with a parabola and a straight line, and its description."""
    how = {**OURS, **changes}
    fig = Figure()
    for ax, a in zip(fig.subplots(1, 2, sharey=how["sharey"]), (1.0, 2.5), strict=True):
        ax.plot(X, how["factor"] * a * X**2, "C0-", label="square")
        ax.plot(X, X, color="C1", linestyle=how["style"], label="line")
        ax.set(title=how["title"].format(a=a), xlabel=how["x"], ylabel=how["y"])
        if how["legend"]:
            ax.legend()
    return fig, how["alt"]


def seen(result):
    @exercise("1.1", points=1, minutes=1, stars=1, hints=["", "", ""])
    def figure():
        return None

    @figure.cases
    def _(rng):
        yield ()

    (found,) = wire.read_seen(
        probe.answer(lambda: result() if callable(result) else result, visible_question(figure).message)
    )
    return found


def fault(result, *parts):
    found = compare.difference(seen(drawn()), seen(result), (same_plot(*parts),))
    return found and (found.aspect, found.path)


def test_a_figure_is_seen_with_all_its_parts():
    figure = seen(drawn()).result
    first, second = figure.panels
    assert isinstance(figure, SeenFigure) and figure.alt == ALT
    assert (first.title, first.x_label, first.y_label, first.legend) == ("a = 1.0", "x", "value", ("square", "line"))
    assert (first.shares_y, second.shares_y, second.shares_x) == (0, 0, 1) and first.y_limits == second.y_limits
    square, line = second.lines
    assert torch.allclose(square.y.value, 2.5 * X.double() ** 2) and square.x.dtype == "float64"
    assert (square.label, square.style.split()[0], line.style.split()[0], line.marker) == ("square", "-", "--", "")
    assert square.colour != line.colour and compare.show(figure) == "a figure with 2 panels and a description of it"


@pytest.mark.parametrize(
    "changes, path",
    [
        ({"factor": 1.1}, "panel 1, data"),
        ({"title": "a parabola"}, "panel 1, title"),
        ({"title": ""}, "panel 1, title"),
        ({"title": "a = 1"}, "panel 2, title"),
        ({"x": ""}, "panel 1, x label"),
        ({"y": " "}, "panel 1, y label"),
        ({"legend": False}, "panel 1, legend"),
        ({"sharey": False}, "panel 2, y axis"),
        ({"style": "-"}, "panel 1, line styles"),
        ({"alt": ""}, "alt text"),
        ({"alt": "a plot of 1 and 2.5"}, "alt text"),
        ({"alt": "a plot that shows a square and a line in panels"}, "alt text"),
        ({"alt": "Panels over x, the square for a = 1 and for a = 25, with the line y = x"}, "alt text"),
    ],
)
def test_each_part_that_is_missing_is_found_and_named(changes, path):
    assert fault(lambda: drawn(**changes)) == ("plot", path)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"title": "$a = {a:.2f}$"},
        {"title": "−3 to {a}"},
        {"style": ":", "x": "input", "y": "Höhe"},
        {"style": (0, (1, 1))},
        {"alt": "From left to right: a is 1.0, then 2.5, and each has a parabola with a line"},
    ],
)
def test_what_is_worded_or_styled_otherwise_is_as_good(changes):
    assert fault(lambda: drawn(**changes)) is None


@pytest.mark.parametrize("part", PLOT_PARTS)
def test_only_the_parts_that_are_asked_for_count(part):
    bad = {"factor": 2.0, "title": "", "x": "", "legend": False, "sharey": False, "style": "-", "alt": ""}
    others = [p for p in PLOT_PARTS if p != part]
    assert fault(lambda: drawn(**bad), *others) is not None
    fixed = {
        "data": "factor",
        "titles": "title",
        "axis labels": "x",
        "legend": "legend",
        "shared y axis": "sharey",
        "line styles": "style",
    }
    if part in fixed:
        assert fault(lambda: drawn(**{**bad, fixed[part]: OURS[fixed[part]]}), part) is None


def test_lines_are_found_in_any_order_and_helping_lines_do_no_harm():
    def other_order():
        fig = Figure()
        for ax, a in zip(fig.subplots(1, 2, sharey=True), (1.0, 2.5), strict=True):
            ax.axhline(0)
            ax.plot(X, X, "k.", label="line")
            ax.plot(X, a * X**2, "k", label="square")
            ax.set(title=a)
        fig.supxlabel("x")
        fig.supylabel("y")
        fig.legend()
        return [fig, ALT]

    assert fault(other_order) is None


@pytest.mark.parametrize("points, path", [(X[:5], "panel 1, data"), (X, "panel 1, data")])
def test_a_line_too_many_or_cut_short_is_found(points, path):
    def more():
        fig, alt = drawn()
        fig.axes[0].plot(points, points**3)
        return fig, alt

    assert fault(more, "data") == ("plot", path)


def test_equal_limits_count_as_a_shared_axis():
    def set_by_hand():
        fig, alt = drawn(sharey=False)
        for ax in fig.axes:
            ax.set_ylim(-3, 11)
        return fig, alt

    assert fault(set_by_hand) is None


def test_one_panel_more_is_one_too_many_and_an_invisible_one_is_none():
    def with_third(visible):
        fig, alt = drawn()
        fig.add_axes((0, 0, 1, 1)).set_visible(visible)
        return fig, alt

    assert (
        fault(lambda: with_third(True), "alt text") == ("plot", "panels") and fault(lambda: with_third(False)) is None
    )


@pytest.mark.parametrize(
    "result", [None, "fig", lambda: drawn()[0].axes, lambda: (drawn()[0], drawn()[0].axes), lambda: X]
)
def test_what_is_no_figure_is_named_for_what_it_is(result):
    found = compare.difference(seen(drawn()), seen(result), (same_plot(),))
    assert found.aspect == "type" and found.expected.startswith("a figure with 2 panels")


def test_where_the_reference_has_nothing_nothing_is_demanded():
    plain = seen(lambda: drawn(title="", x="", y="", legend=False, sharey=False, style="-", alt=""))
    assert compare.difference(plain, plain, (same_plot(),)) is None


def test_a_figure_without_the_property_counts_as_a_figure_only():
    assert compare.difference(seen(drawn()), seen(lambda: drawn(factor=3.0)), ()) is None


def test_figures_that_a_call_leaves_open_are_closed_and_others_stay():
    plt.switch_backend("Agg")
    mine = plt.figure()
    seen(lambda: plt.subplots()[0])
    assert plt.get_fignums() == [mine.number]
    plt.close(mine)


def test_equal_figures_give_equal_bytes():
    def message():
        @exercise("1.1", points=1, minutes=1, stars=1, hints=["", "", ""])
        def figure():
            return None

        figure.cases(lambda rng: iter([()]))
        return wire.without_times(probe.answer(drawn, visible_question(figure).message))

    assert message() == message()


@pytest.mark.parametrize(
    "text, expected", [("τ = 0.25", {0.25}), ("b=−1, 1.0 and 1e-3", {-1.0, 1.0, 1e-3}), ("none", set())]
)
def test_numbers_are_read_from_a_text(text, expected):
    assert plots.numbers(text) == expected


def test_an_unknown_part_is_refused():
    with pytest.raises(ValueError, match=r"colours.*there are data"):
        same_plot("colours")


def figure_node(**changes):
    """A figure's node as it comes from a process, with one thing spoilt."""
    pack = probe.Pack()
    node = pack.describe(drawn())["figure"]
    return {"figure": {**node, **changes}}, pack.tensors


@pytest.mark.parametrize(
    "changes",
    [
        {"panels": None},
        {"panels": [{}]},
        {"alt": 5},
        {"legend": [None]},
        {
            "panels": [
                {
                    "title": "",
                    "x_label": "",
                    "y_label": "",
                    "x_limits": ["a"],
                    "y_limits": [],
                    "shares_x": 0,
                    "shares_y": 0,
                }
            ]
        },
    ],
)
def test_a_malformed_figure_is_unreadable(changes):
    node, tensors = figure_node(**changes)
    case = {"result": node, "raised": None, "inputs": [], "gradients": {}, "ops": {}, "new_bytes": 0}
    case |= {"warnings": [], "seconds": 0.0, "fake_cuda": None}
    with pytest.raises(wire.Unreadable):
        wire.read_seen(wire._message(tensors, {"seen": [case]}))


def test_a_line_whose_coordinates_differ_in_length_is_unreadable():
    node, tensors = figure_node()
    line = node["figure"]["panels"][0]["lines"][0]
    tensors["short"] = tensors[line["y"]["tensor"]["value"]][:3].clone()
    line["y"]["tensor"].update(value="short", shape=[3])
    with pytest.raises(wire.Unreadable, match="one length"):
        wire._seen_figure(node["figure"], tensors)


@pytest.mark.parametrize("limits", [(float("nan"), 1.0), (float("-inf"), float("inf"))])
def test_limits_that_are_no_numbers_are_not_shared(limits):
    expected = seen(drawn()).result
    other = seen(lambda: drawn(sharey=False)).result
    panels = (other.panels[0], plots.SeenAxes(**{**vars(other.panels[1]), "y_limits": limits}))
    found = plots.fault(expected, SeenFigure(panels), ("shared y axis",))
    assert found.where == "panel 2, y axis"


def test_values_that_did_not_come_match_nothing():
    expected = seen(drawn()).result
    hidden = SeenTensor(None, "float64", (9,), withheld="too large")
    line = plots.SeenLine(hidden, hidden)
    panels = tuple(plots.SeenAxes(**{**vars(panel), "lines": (line, line)}) for panel in expected.panels)
    assert plots.fault(expected, SeenFigure(panels), ("data",)).where == "panel 1, data"
