"""Pictures in a real JupyterLab: a figure has its alt text; each control has a name and is moved with the keyboard.

python -m tests.browser.test_lab NOTEBOOK PICTURE.png [TEXT]      runs a notebook; takes a picture, where TEXT is shown
"""

import json
import sys
from pathlib import Path

import nbformat
import pytest

from lecture_pictures import controls

from . import chromium, lab

MADE = """
import torch
from lecture_pictures import *
from matplotlib.figure import Figure
steps = [torch.sparse_coo_tensor([[row]], [[1.0]], (3, 1), check_invariants=True) for row in (0, 2)]
made = {
    "explore_strides": lambda: explore_strides(cells=12, size=(3, 4), stride=(4, 1)),
    "explore_index": lambda: explore_index(torch.arange(12).view(4, 3), [(1, slice(None)), ([1],)], write=99),
    "explore_broadcast": explore_broadcast,
    "explore_activation": explore_activation,
    "explore_chain": explore_chain,
    "explore_mask": lambda: explore_mask(torch.arange(3.0), torch.arange(3) > 0),
    "explore_layouts": explore_layouts,
    "explore_adagrad": lambda: explore_adagrad(torch.ones(3, 1), torch.zeros(3, 1), steps),
}
"""
ALT = "An empty figure, without any axes in it."
EXPLORERS = [name for name in vars(controls) if name.startswith("explore_")]
NUMBERS = "[...document.querySelectorAll('.widget-vbox [role=slider]')].map(slider => slider.ariaLabel)"
IMAGES = "[...document.querySelectorAll('.jp-OutputArea-output img')].map(image => image.alt)"
FOCUS = "document.querySelector('.widget-vbox [role=slider]').focus()"
CUT = """[...document.querySelectorAll('.widget-vbox :is(label, .widget-label-basic)')]
    .filter(label => label.scrollWidth > label.clientWidth + 1).map(label => label.textContent)"""
SHOWN = "document.querySelector('.widget-vbox .widget-html').innerText"


def written(folder):
    """A notebook with every explorer."""
    cells = [MADE, f"show_figure(Figure(), {ALT!r})", *(f'made["{name}"]()' for name in EXPLORERS)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, folder / "pictures.ipynb")


def control_names(page):
    """(role, accessible name) of every control inside a widget, as a screen reader gets them."""
    page.call("Accessibility.enable")
    page.call("DOM.enable")
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    found = page.call(
        "DOM.querySelectorAll", nodeId=root, selector=".widget-vbox :is([role], input, select, [contenteditable])"
    )
    for node in found["nodeIds"]:
        seen = page.call("Accessibility.getPartialAXTree", nodeId=node, fetchRelatives=False)["nodes"][0]
        if not seen["ignored"]:
            yield seen["role"]["value"], seen["name"]["value"]


def press(page, key):
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"ArrowLeft": 37}[key])


@pytest.mark.browser
@pytest.mark.slow
def test_every_control_has_a_name_and_listens_to_the_arrow_keys(tmp_path):
    chromium.demand_browser()
    written(tmp_path)
    wanted = 5 + 4 + 3 + 2 + 1 + 1  # strides, broadcast, activation, chain, layouts, adagrad
    with lab.opened(tmp_path, "pictures.ipynb") as page:
        tall = {"width": 1280, "height": 9000}  # what is out of sight has no names yet
        page.call("Emulation.setDeviceMetricsOverride", **tall, deviceScaleFactor=1, mobile=False)
        page.value(lab.RUN_ALL)
        page.until(NUMBERS, lambda names: len(names) == wanted and all(names), "the names of the sliders")
        page.until(IMAGES, lambda alts: alts == [ALT], "the alt text of the figure")
        names = list(control_names(page))
        page.value(FOCUS)
        press(page, "ArrowLeft")
        page.until(SHOWN, lambda text: "size (2, 4)" in text, "the picture of a smaller size")
        cut = page.value(CUT)
    assert not cut, cut
    roles = [role for role, _ in names]
    counts = {role: roles.count(role) for role in ("slider", "textbox", "combobox", "checkbox")}
    assert counts == {"slider": wanted, "textbox": wanted, "combobox": 2, "checkbox": 2}
    assert all(name for _, name in names), names
    assert ("slider", "size[0]") in names and ("slider", "temperature τ") in names, names


SCROLL = """(() => {
    const notebook = [...jupyterapp.shell.widgets("main")].find(widget => widget.sessionContext).content;
    const at = notebook.widgets.findIndex(cell => cell.model.sharedModel.source.includes(TEXT));
    notebook.activeCellIndex = at;
    return notebook.scrollToItem(at, "start").then(() => new Promise(done => setTimeout(done, 2000)));
})()"""


def show(notebook, picture, text=""):
    """Run a notebook in JupyterLab, take a picture of the cell with `text`; the roles and names of controls in sight."""
    with lab.opened(notebook.parent, notebook.name) as page:
        page.value(lab.RUN_ALL)
        page.value(SCROLL.replace("TEXT", json.dumps(text)))
        page.screenshot(picture)
        return list(control_names(page))


if __name__ == "__main__":
    print(show(Path(sys.argv[1]).resolve(), Path(sys.argv[2]), *sys.argv[3:]))
