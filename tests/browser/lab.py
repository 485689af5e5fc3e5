"""A notebook in a real JupyterLab, driven through its own commands."""

import contextlib
import tempfile

from . import chromium, jupyter

STATUS = """(() => {
    const panel = [...(window.jupyterapp?.shell?.widgets("main") || [])].find(widget => widget.sessionContext);
    if (panel) jupyterapp.shell.activateById(panel.id);
    return panel?.sessionContext.session?.kernel?.status;
})()"""
RUN_ALL = "jupyterapp.commands.execute('notebook:run-all-cells').then(() => true)"


@contextlib.contextmanager
def opened(folder, name):
    """A Page that shows the notebook `name` of `folder` in JupyterLab, its kernel ready."""
    with (
        tempfile.TemporaryDirectory() as place,
        jupyter.served("jupyterlab", folder, place, "--LabApp.expose_app_in_browser=True") as address,
        chromium.page(f"{address}/lab/tree/{name}") as page,
    ):
        page.until(STATUS, lambda status: status == "idle", "a kernel")
        yield page
