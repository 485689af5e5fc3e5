"""The controls around the pictures stay legal, can be named, and fall back to fixed states."""

import importlib
import subprocess
import sys

import pytest
import torch

import lecture_pictures
from lecture_pictures import (
    DrawingError,
    controls,
    explore_activation,
    explore_adagrad,
    explore_broadcast,
    explore_chain,
    explore_index,
    explore_layouts,
    explore_mask,
    explore_strides,
)

A = torch.arange(12).view(4, 3)
GRADIENTS = [torch.sparse_coo_tensor([[row]], [[1.0]], (3, 1), check_invariants=True) for row in (0, 2)]
MAKERS = {
    "strides": explore_strides,
    "index": lambda: explore_index(A, [(slice(1, 3), slice(1, 2)), [0, 2], A[:, 0] == 6], write=0),
    "broadcast": explore_broadcast,
    "activation": explore_activation,
    "chain": explore_chain,
    "mask": lambda: explore_mask(torch.arange(3.0), torch.arange(3) > 0, lambda d, m: (d * m).sum(), called="leaky"),
    "layouts": explore_layouts,
    "adagrad": lambda: explore_adagrad(torch.ones(3, 1), torch.zeros(3, 1), GRADIENTS),
}
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_an_explorer_offers_controls_and_fixed_states(make):
    bundle = make()._repr_mimebundle_()
    assert WIDGET in bundle
    assert bundle["image/svg+xml"].startswith("<svg ") and bundle["text/html"].startswith("<div>")
    assert bundle["text/plain"] == make().states.text


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_without_ipywidgets_the_fixed_states_are_shown(make, monkeypatch):
    with_controls = make().states
    monkeypatch.setattr(controls, "ipywidgets", None)
    explorer = make()
    assert explorer.widget is None and explorer.controls == {}
    assert explorer._repr_mimebundle_() == with_controls._repr_mimebundle_()


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_every_control_has_a_description(make):
    assert all(control.description for control in make().controls.values())


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_every_slider_is_counted_by_what_names_them(make):
    explorer = make()
    sliders = [c for c in explorer.controls.values() if "Slider" in type(c).__name__]
    naming = next(child for child in explorer.widget.children if type(child).__name__ == "Output")
    (shown,) = naming.outputs
    assert f"handles.length < {len(sliders)})" in shown["data"]["application/javascript"]
    controls = explorer.controls.values()
    assert all(control.tooltip == control.description for control in controls)  # or "null" comes up under the mouse


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_moving_a_control_redraws(make):
    explorer = make()
    for control in explorer.controls.values():
        before = explorer.widget.children[-1].value
        if hasattr(control, "options"):
            control.index = (control.index + 1) % len(control.options)
        elif isinstance(control.value, bool):
            control.value = not control.value
        else:
            control.value = control.max if control.value == control.min else control.min
        assert explorer.widget.children[-1].value != before or getattr(control, "min", 0) == getattr(control, "max", 1)


def test_no_order_of_moves_reaches_outside_the_storage():
    generator = torch.Generator().manual_seed(7)
    explorer = explore_strides(cells=12, size=(1, 1), stride=(1, 1))
    names = list(explorer.controls)
    for _ in range(60):
        control = explorer.controls[names[int(torch.randint(len(names), (), generator=generator))]]
        control.value = int(torch.randint(-3, 40, (), generator=generator))
        moved = explorer.controls.items()
        size, stride, offset = ([c.value for n, c in moved if n.startswith(p)] for p in ("size", "stride", "offset"))
        assert offset[0] + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) < 12
        assert f"size {tuple(size)}, stride {tuple(stride)}, offset {offset[0]}" in explorer.widget.children[-1].value


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: explore_index(A, []), "indices is empty"),
        (lambda: explore_index(A, [9]), "does not take the index [9]"),
        (lambda: explore_broadcast(9), "most is 9, expected 1 to 5"),
        (lambda: explore_layouts(9, 9), "9 × 9 is 81 cells"),
        (lambda: explore_adagrad(A.float(), A.float(), []), "grads is empty"),
        (lambda: explore_strides(cells=0), "cells is 0, expected 1 to 48"),
        (lambda: explore_strides(size=(2,), stride=(1, 1)), "one for each dimension"),
    ],
)
def test_what_cannot_be_explored_is_refused_with_a_way_out(make, said):
    with pytest.raises(DrawingError) as refused:
        make()
    assert said in str(refused.value)


def test_what_one_slider_gives_up_another_can_take():
    moved = explore_strides(cells=12, size=(3, 4), stride=(4, 1)).controls
    assert moved["offset"].max == 0
    moved["size0"].value = 1
    assert (moved["offset"].max, moved["size1"].max, moved["stride1"].max) == (8, 12, 3)


def test_a_start_outside_the_storage_is_brought_inside():
    moved = explore_strides(cells=6, size=(4, 4), stride=(4, 1), offset=3).controls
    assert [moved[name].value for name in ("size0", "size1", "offset")] == [1, 3, 3]


def test_only_one_module_imports_ipywidgets():
    package = importlib.resources.files(lecture_pictures)
    doors = [m.name for m in package.iterdir() if m.name.endswith(".py") and "import ipywidgets" in m.read_text()]
    assert doors == ["controls.py"]


def test_the_package_is_importable_without_the_student_extra():
    code = (
        "import sys\n"
        "for name in ('ipywidgets', 'IPython', 'matplotlib'): sys.modules[name] = None\n"
        "import lecture_pictures as p\n"
        "print(p.explore_strides().text if hasattr(p.explore_strides(), 'text') else repr(p.explore_strides())[:15])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "Stride explorer"
