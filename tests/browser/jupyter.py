"""A real Jupyter server on this machine: a port of its own, no token, nothing of the user's, gone with the block."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

READY_SECONDS = 90
OPEN = [
    "--no-browser",
    "--allow-root",
    "--ServerApp.ip=127.0.0.1",
    "--ServerApp.port=0",
    "--IdentityProvider.token=",
]


@contextlib.contextmanager
def served(application, folder, place, *options):
    """The address of `python -m application` on `folder`; `place` is a folder for what it keeps.

    Its kernels run with the Python of the tests. Those that are left when the block ends are shut down with it.
    """
    runtime = _kept_in(place)
    command = [sys.executable, "-m", application, *OPEN, f"--ServerApp.root_dir={folder}", *options]
    with (Path(place) / "server.log").open("w+") as log:
        server = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **runtime}, stdout=log, stderr=log, start_new_session=True
        )
        try:
            yield _address(Path(runtime["JUPYTER_RUNTIME_DIR"]), server, log)
        finally:
            server.terminate()
            try:
                server.wait(30)  # it shuts its kernels down
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, 9)
                server.wait()


def _kept_in(place):
    names = ("config", "data", "runtime", "ipython")
    folders = {name: Path(place) / name for name in names}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    kernel = folders["data"] / "kernels" / "python3"
    kernel.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3 (ipykernel)", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return {
        "JUPYTER_CONFIG_DIR": str(folders["config"]),
        "JUPYTER_PATH": str(folders["data"]),
        "JUPYTER_RUNTIME_DIR": str(folders["runtime"]),
        "IPYTHONDIR": str(folders["ipython"]),
    }


def _address(runtime, server, log):
    """The address, once the server has written it down."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            with contextlib.suppress(ValueError, KeyError):
                return json.loads(file.read_text(encoding="utf-8"))["url"].rstrip("/")
        time.sleep(0.2)
    log.seek(0)
    raise AssertionError(f"the server did not start within {READY_SECONDS} s:\n{log.read()[-2000:]}")
