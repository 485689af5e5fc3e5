"""Sliders and menus around the pictures: the one door to ipywidgets.

Every `explore_...` function returns an Explorer. Where ipywidgets and a front end are there, it shows controls that
are reached with Tab and moved with the arrow keys; elsewhere (a printed page, GitHub, a terminal) it shows a few
fixed states.
"""

from dataclasses import dataclass

import torch

from lecture_pictures.activation import activation
from lecture_pictures.adagrad import adagrad_row_map, adagrad_step
from lecture_pictures.broadcast import broadcast
from lecture_pictures.chain import STEPS, chain_step
from lecture_pictures.indexing import code_of, index_overlay
from lecture_pictures.masks import mask_grid
from lecture_pictures.notation import DrawingError
from lecture_pictures.picture import Picture, stacked
from lecture_pictures.sparsity import sparse_layouts
from lecture_pictures.strides import Strided, clipped, limits, stride_states, stride_view

try:
    import ipywidgets
except ImportError:  # an install without the extra "student": the fixed states are shown
    ipywidgets = None


@dataclass(frozen=True, repr=False)
class Explorer:
    """Controls around a picture.

    Attributes:
        states: what is shown where there is no front end.
        controls: name → control; empty without ipywidgets.
        widget: the controls with their picture; None without ipywidgets.
    """

    states: Picture
    controls: dict
    widget: object = None

    def __repr__(self):
        return self.states.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        """Called by Jupyter: a front end takes the richest entry it can show."""
        bundle = self.states._repr_mimebundle_()
        if self.widget is not None:
            bundle |= self.widget._repr_mimebundle_(include={WIDGET_VIEW}, exclude=set())
            bundle["text/plain"] = self.states.text
        return bundle


WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def _explorer(controls, draw, states, after=lambda: None):
    """Controls that redraw when one of them moves.

    Args:
        controls: name → ipywidgets control.
        draw: called with the values by name; returns a Picture.
        states: the Picture for where there is no front end.
        after: called after a move and before drawing, to keep the other controls legal.
    """
    view = ipywidgets.HTML()

    def redraw(_=None):
        after()
        view.value = draw(**{name: control.value for name, control in controls.items()}).html()

    for control in controls.values():
        control.observe(redraw, names="value")
    redraw()
    sliders = sum(hasattr(control, "readout") for control in controls.values())
    return Explorer(states, controls, ipywidgets.VBox([*controls.values(), _naming(sliders), view]))


NAMES = """
(function wait(tries) {
    const box = element.closest(".widget-vbox");
    const handles = box ? [...box.querySelectorAll("[role=slider]")] : [];
    for (const handle of handles) {
        const row = handle.closest(".widget-slider");
        handle.setAttribute("aria-label", row.querySelector(".widget-label").textContent);
        const number = row.querySelector("[contenteditable]");
        number?.setAttribute("role", "textbox");
        number?.setAttribute("aria-label", handle.getAttribute("aria-label") + ", typed");
    }
    if (tries && handles.length < WANTED) setTimeout(wait, 100, tries - 1);
})(300);
"""  # the rows appear one by one, so it looks for half a minute until all of them are there


def _naming(sliders):
    """An invisible part of the box that names its sliders: ipywidgets shows their descriptions and names nothing with them.

    Source: w3.org/WAI/ARIA/apg/patterns/slider: a slider is labelled by aria-label where its label is not tied to it.
    """
    script = NAMES.replace("WANTED", str(sliders))
    shown = {"output_type": "display_data", "data": {"application/javascript": script}, "metadata": {}}
    return ipywidgets.Output(outputs=(shown,), layout={"display": "none"})


def _slider(description, value, least, most):
    """A slider for whole numbers."""
    return ipywidgets.IntSlider(value, least, most, **_named(description))


def _decimal(description, value, least, most, step):
    return ipywidgets.FloatSlider(value, min=least, max=most, step=step, **_named(description))


def _menu(description, options, value):
    return ipywidgets.Dropdown(options=options, value=value, **_named(description))


def _box(description):
    """A box to tick, as wide as its words: ipywidgets would cut them off."""
    return ipywidgets.Checkbox(False, description=description, tooltip=description, layout={"width": "max-content"})


def _named(description):
    """What every control with a label in front has; without a tooltip "null" would come up under the mouse."""
    style, layout = {"description_width": "9em"}, {"width": "30em", "max_width": "100%"}
    return {"description": description, "tooltip": description, "style": style, "layout": layout}


def explore_strides(cells=12, size=(3, 4), stride=(4, 1), offset=0):
    """Sliders for size, stride and offset over one storage; each ends where the view would leave the storage.

    Args:
        cells: of the storage, 1 to 48.
        size, stride, offset: where the sliders start; as many dimensions as they have. Brought inside if need be.
    """
    start = clipped(cells, Strided(tuple(size), tuple(stride), offset))
    stride_view(
        start.size, start.stride, start.offset, cells
    )  # what cannot be drawn is refused before any slider is made
    if ipywidgets is None:
        return Explorer(stride_states(), {})
    most = limits(cells, start)
    controls = {f"size{d}": _slider(f"size[{d}]", n, 1, most.size[d]) for d, n in enumerate(start.size)}
    controls |= {f"stride{d}": _slider(f"stride[{d}]", s, 0, most.stride[d]) for d, s in enumerate(start.stride)}
    controls["offset"] = _slider("offset", start.offset, 0, most.offset)
    dims = range(len(start.size))

    def view():
        values = {name: control.value for name, control in controls.items()}
        return Strided(
            tuple(values[f"size{d}"] for d in dims), tuple(values[f"stride{d}"] for d in dims), values["offset"]
        )

    def keep_legal():
        most = limits(cells, view())
        for d in dims:
            controls[f"size{d}"].max, controls[f"stride{d}"].max = most.size[d], most.stride[d]
        controls["offset"].max = most.offset

    def draw(**_):
        now = view()
        return stride_view(now.size, now.stride, now.offset, cells)

    return _explorer(controls, draw, stride_states(), keep_legal)


def explore_index(a, indices, write=None, name="a"):
    """A menu of indices into `a`, and a box that writes through the result.

    Args:
        a: what index_overlay draws.
        indices: list of indices, at least one.
        write: the value that the box writes to the first element of the result; None for no box.
    """
    if not indices:
        raise DrawingError("indices is empty, expected at least one index to show")
    states = stacked(
        f"Index overlay: {len(indices)} indices", [index_overlay(a, index, write, name) for index in indices]
    )
    if ipywidgets is None:
        return Explorer(states, {})
    controls = {"chosen": _menu("index", [(f"{name}[{code_of(i)}]", k) for k, i in enumerate(indices)], 0)}
    if write is not None:
        controls["writing"] = _box(f"write {write} to the first element of the result")

    def draw(chosen, writing=False):
        return index_overlay(a, indices[chosen], write if writing else None, name)

    return _explorer(controls, draw, states)


def explore_broadcast(most=4):
    """Sliders for the sizes of a (2-d) and b (1-d or 2-d), to find which shapes fit.

    Args:
        most: largest size, 1 to 5.
    """
    if not 1 <= most <= 5:
        raise DrawingError(f"most is {most}, expected 1 to 5")

    def draw(a0, a1, b0, b1):
        a = 10 * torch.arange(a0 * a1).view(a0, a1)
        b = torch.arange(b1) if b0 == 0 else torch.arange(b0 * b1).view(b0, b1)
        return broadcast(a, b)

    shapes = [(3, 1, 0, 4), (3, 4, 0, 4), (3, 1, 1, 4), (3, 2, 0, 3)]
    states = stacked("Broadcast: four pairs of shapes", [draw(*sizes) for sizes in shapes])
    if ipywidgets is None:
        return Explorer(states, {})
    least = {"a0": 1, "a1": 1, "b0": 0, "b1": 1}
    start = dict(zip(least, (3, 1, 0, 4), strict=True))
    said = {"a0": "a.shape[0]", "a1": "a.shape[1]", "b0": "b rows (0: 1-d)", "b1": "b columns"}
    controls = {name: _slider(said[name], min(start[name], most), least[name], most) for name in least}
    return _explorer(controls, draw, states)


FUNCTIONS = {
    "sigmoid": torch.sigmoid,
    "naive sigmoid": lambda x: 1 / (1 + torch.exp(-x)),
    "relu": torch.relu,
    "tanh": torch.tanh,
    "softplus": torch.nn.functional.softplus,
}


def explore_activation():
    """A menu of functions, with sliders for temperature τ, shift b and the range of x; the gradient below."""

    def draw(chosen, tau, shift, reach):
        f = FUNCTIONS[chosen]
        curves = {f"{chosen}(x)": f}
        if (tau, shift) != (1, 0):
            curves[f"{chosen}((x − {shift:g}) / {tau:g})"] = lambda x: f((x - shift) / tau)
        return activation(curves, -reach, reach, f"{chosen}, τ = {tau:g}, b = {shift:g}, x from {-reach} to {reach}")

    shown = [("sigmoid", 0.25, 0, 6), ("sigmoid", 4, 0, 6), ("sigmoid", 1, 1, 6), ("sigmoid", 1, -1, 6)]
    states = stacked("Activations: four settings", [draw(*setting) for setting in shown])
    if ipywidgets is None:
        return Explorer(states, {})
    controls = {
        "chosen": _menu("function", list(FUNCTIONS), "sigmoid"),
        "tau": _decimal("temperature τ", 1.0, 0.25, 4.0, 0.25),
        "shift": _decimal("shift b", 0.0, -3.0, 3.0, 0.5),
        "reach": _slider("x from −n to n", 6, 2, 120),
    }
    return _explorer(controls, draw, states)


def explore_chain(x=1.0):
    """Sliders for the step and for x in sin(log(x² + 1)): three steps forward, four backward."""
    states = stacked("Forward and backward: four of eight steps", [chain_step(step, x) for step in (0, 3, 5, 7)])
    if ipywidgets is None:
        return Explorer(states, {})
    controls = {"step": _slider("step", 0, 0, STEPS), "x": _decimal("x", x, min(-3.0, x), max(3.0, x), 0.25)}
    return _explorer(controls, chain_step, states)


def explore_mask(data, mask, function=None, name="x", called="f"):
    """A box that poisons what the mask hides.

    Args:
        data, mask, function, name, called: see mask_grid.
    """

    def draw(poison):
        return mask_grid(data, mask, poison, function, name, called)

    states = stacked(f"Mask grid of {name}, as given and poisoned", [draw(False), draw(True)])
    if ipywidgets is None:
        return Explorer(states, {})
    return _explorer({"poison": _box("put NaN under the mask")}, draw, states)


def explore_layouts(rows=4, columns=6):
    """A slider for how many cells of a matrix are not zero, to find where sparse layouts begin to pay.

    Args:
        rows, columns: of the matrix, at most 64 cells.
    """
    cells = rows * columns
    if not 1 <= cells <= 64:
        raise DrawingError(f"{rows} × {columns} is {cells} cells, expected 1 to 64")
    order = torch.randperm(cells, generator=torch.Generator().manual_seed(0))

    def draw(entries):
        matrix = torch.zeros(cells, dtype=torch.float64)
        matrix[order[:entries]] = order[:entries].double() + 1
        return sparse_layouts(matrix.view(rows, columns))

    states = stacked("Layouts: four densities", [draw(n) for n in (0, cells // 8, cells // 3, cells)])
    if ipywidgets is None:
        return Explorer(states, {})
    return _explorer({"entries": _slider("entries", cells // 8, 0, cells)}, draw, states)


def explore_adagrad(param, state, grads, lr=0.1, eps=1e-10):
    """A slider through the steps of Adagrad that a list of sparse gradients makes.

    Args:
        param, state, lr, eps: see adagrad_row_map.
        grads: list of sparse_coo gradients, one a step, at least one.
    """
    if not grads:
        raise DrawingError("grads is empty, expected one gradient for each step")
    pictures = []
    for grad in grads:
        pictures.append(adagrad_row_map(param, state, grad, lr, eps))
        step = adagrad_step(param, state, grad, lr, eps)
        param, state = step.new_param, step.new_state
    states = stacked(f"Adagrad: {len(grads)} steps", pictures)
    if ipywidgets is None:
        return Explorer(states, {})
    return _explorer({"step": _slider("step", 1, 1, len(grads))}, lambda step: pictures[step - 1], states)
