"""A real JupyterLab on a folder, driven through its own commands."""

import contextlib
import re
import subprocess
import sys
import threading

from . import chromium

READY_SECONDS = 90
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/lab")
STATUS = """(() => {
    const panel = [...(window.jupyterapp?.shell?.widgets("main") || [])].find(widget => widget.sessionContext);
    if (panel) jupyterapp.shell.activateById(panel.id);
    return panel?.sessionContext.session?.kernel?.status;
})()"""
RUN_ALL = "jupyterapp.commands.execute('notebook:run-all-cells').then(() => true)"


@contextlib.contextmanager
def served(folder):
    """The address of a JupyterLab on `folder`, on this machine only and on a port of its own."""
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0", "--IdentityProvider.token="]
    options += ["--LabApp.expose_app_in_browser=True", f"--ServerApp.root_dir={folder}"]
    command = [sys.executable, "-m", "jupyterlab", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        address, end = None, threading.Timer(READY_SECONDS, server.kill)
        end.start()
        try:
            address = next((found[0] for line in server.stderr if (found := ADDRESS.search(line))), None)
            end.cancel()
            assert address, f"JupyterLab did not start within {READY_SECONDS} s"
            rest = threading.Thread(target=server.stderr.read)  # a full pipe would stop it
            rest.start()
            yield address
        finally:
            end.cancel()
            server.terminate()
            server.wait(30)
            if address:
                rest.join()  # it ends with the server, and before its pipe is closed


@contextlib.contextmanager
def opened(folder, name):
    """A Page that shows the notebook `name` of `folder` in JupyterLab, its kernel ready."""
    with served(folder) as address, chromium.page(f"{address}/tree/{name}") as page:
        page.until(STATUS, lambda status: status == "idle", "a kernel")
        yield page
