"""A real TensorBoard in a real browser: the graph tab shows what the lab has logged, by itself and below a notebook's cell.

    python -m tests.browser.test_tensorboard docs/pictures/tensorboard.png

makes the picture of the docs.
"""

import contextlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.tensorboard import log_graph

from . import chromium, jupyter

READY_SECONDS = 60
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
NODES = """(() => {
    const names = [];
    const walk = root => root.querySelectorAll("*").forEach(element => {
        if (element.matches("g.node[data-name]")) names.push(element.getAttribute("data-name"));
        if (element.shadowRoot) walk(element.shadowRoot);
    });
    walk(document);
    return names;
})()"""
OPEN = """(() => {
    const walk = root => root.querySelectorAll("*").forEach(element => {
        if (element.matches("g.node[data-name='OurNet']")) {
            const target = element.querySelector(".nodeshape > *") || element;
            target.dispatchEvent(new MouseEvent("dblclick", {bubbles: true, cancelable: true, view: window}));
        }
        if (element.shadowRoot) walk(element.shadowRoot);
    });
    walk(document);
})()"""


class OurNet(torch.nn.Module):
    """sin(log(x * x + 1)), the module of the lecture."""

    def forward(self, x):
        g = x * x + 1
        h = torch.log(g)
        return torch.sin(h)


@contextlib.contextmanager
def served(folder):
    """The address of a TensorBoard on `folder`, on this machine only and on a port of its own."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        address, end = None, threading.Timer(READY_SECONDS, server.kill)
        end.start()
        try:
            address = next(filter(None, (ADDRESS.search(line) for line in server.stderr)), None)
            end.cancel()
            assert address, f"TensorBoard did not start within {READY_SECONDS} s"
            rest = threading.Thread(target=server.stderr.read)  # a full pipe would stop it
            rest.start()
            yield address[0]
        finally:
            end.cancel()
            server.terminate()
            server.wait(10)
            if address:
                rest.join()  # it ends with the server, and before its pipe is closed


def look(folder, picture):
    """The nodes of the run "ournet" as the graph tab shows them, the module opened; a screenshot goes to `picture`."""
    with served(folder) as address, chromium.page(f"{address}/#graphs&run=ournet") as page:
        page.until(NODES, lambda names: "OurNet" in names, "the graph")
        page.value(OPEN)
        names = page.until(NODES, lambda names: any("/" in name for name in names), "the inside of OurNet")
        page.value("new Promise(done => setTimeout(done, 2000))")  # the box opens slowly
        page.screenshot(picture)
    return names


def logged(folder):
    """Two runs: the module, and another one beside it."""
    log_graph(OurNet(), torch.ones(2, 3), folder / "ournet")
    log_graph(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU()), torch.ones(2, 3), folder / "sequential")


@pytest.mark.browser
@pytest.mark.slow
def test_the_graph_tab_shows_the_nodes_of_the_module(tmp_path):
    chromium.demand_browser()
    logged(tmp_path)
    names = look(tmp_path, tmp_path / "picture.png")
    inside = [name for name in names if name.startswith("OurNet/")]
    assert len(inside) >= 4 and "input" in names and "output" in names, names
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def magic_cell():
    """The cell of the lecture that opens TensorBoard."""
    lecture = nbformat.read(Path(__file__).parents[2] / "solutions" / "04_graphs" / "04_graphs.ipynb", 4)
    return next(cell.source for cell in lecture.cells if "%tensorboard" in cell.source and cell.cell_type == "code")


PANEL = "[...window.jupyterapp.shell.widgets('main')].find(panel => panel.content && panel.content.widgets)"
READY = f"""(() => {{
    const panel = window.jupyterapp && {PANEL};
    return !!(panel && panel.sessionContext.session && panel.sessionContext.kernelDisplayStatus === "idle");
}})()"""
RUN = f"""(() => {{
    window.jupyterapp.shell.activateById({PANEL}.id);
    window.jupyterapp.commands.execute("notebook:run-all-cells");
}})()"""
FRAME = """(() => {
    const frame = document.querySelector(".jp-OutputArea iframe[title^=TensorBoard]");
    return frame && frame.src.startsWith("http") ? frame.src : "";
})()"""
SHUT_DOWN = f"{PANEL}.sessionContext.shutdown()"


@pytest.mark.browser
@pytest.mark.slow
def test_the_magic_of_the_lecture_shows_it_below_the_cell_and_takes_it_away_with_the_kernel(tmp_path):
    chromium.demand_browser()
    (tmp_path / "kept").mkdir()
    folder = tmp_path / "lecture"
    folder.mkdir()
    logged(folder / "runs")
    notebook = new_notebook(cells=[new_markdown_cell("# The lab"), new_code_cell(magic_cell())])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "lab.ipynb")
    options = ["--LabApp.expose_app_in_browser=True", "--LabApp.news_url=", "--ServerApp.log_level=WARN"]
    with (
        jupyter.served("jupyterlab", folder, tmp_path / "kept", *options) as address,
        chromium.page(f"{address}/lab/tree/lab.ipynb", seconds=120) as page,
    ):
        page.until(READY, bool, "the notebook with its kernel")
        page.value(RUN)
        inside = page.until(FRAME, bool, "TensorBoard below the cell")
        names = page.in_frame(inside, NODES, lambda names: "OurNet" in names or "Sequential" in names, "a graph in it")
        assert "input" in names and "output" in names, names
        page.value(SHUT_DOWN)
        page.until(f"{PANEL}.sessionContext.hasNoKernel || !{PANEL}.sessionContext.session", bool, "the shutdown")
        with pytest.raises(urllib.error.URLError):
            for _ in range(60):
                urllib.request.urlopen(inside, timeout=5).close()
                threading.Event().wait(0.5)


def test_where_there_is_no_browser_it_is_skipped_and_in_ci_it_fails(monkeypatch):
    monkeypatch.setattr(chromium, "PROGRAM", None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium"):
        chromium.demand_browser()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI requires it"):
        chromium.demand_browser()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as runs:
        logged(Path(runs))
        print(look(Path(runs), Path(sys.argv[1])))
