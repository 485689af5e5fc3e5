"""TensorBoard beside a notebook: the magic `%tensorboard`, and the server that ends with the kernel.

tensorboard has a magic of this name, too. This one looks the same, and in four things does what a course needs: it starts
nothing where nobody looks (a notebook that a program runs, a grader, a test), it takes a port that is free, it runs with
the notebook's own Python, and its server ends with the kernel, however that ends.
"""

import atexit
import contextlib
import html
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
import uuid

from IPython.display import HTML, display

FRONT_END = "JPY_SESSION_NAME"  # set by Jupyter for the kernel of a notebook that is open in a browser
START_SECONDS = 60
ELSEWHERE = "In a terminal, run make tensorboard, or python -m autograder tensorboard, and open what it prints."
ADDRESS = re.compile(r"http://[^\s/]+:(\d+)/")
# Runs TensorBoard until it is told to end, or until its standard input does: with the kernel, even if that was killed.
# Its own handler of SIGTERM raises SystemExit wherever the main thread is, and some places swallow that.
SERVER = """
import os, signal, sys, threading, time
from tensorboard import main

def watch():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(3)
    os._exit(0)

threading.Thread(target=watch, daemon=True).start()
sys.argv[0] = "tensorboard"
main.run_main()
"""
_running: dict[tuple[str, ...], tuple[subprocess.Popen, int]] = {}  # of this kernel, by its arguments


def open_tensorboard(line: str) -> None:
    """Open TensorBoard below the cell; `line` are its arguments, as in `%tensorboard --logdir runs`.

    A second call with the same arguments shows the server that is running.
    """
    if FRONT_END not in os.environ:
        print(f"Nobody looks at this notebook in Jupyter, so TensorBoard is not started. {ELSEWHERE}")
        return
    arguments = tuple(shlex.split(line))
    process, port = _running.get(arguments, (None, 0))
    if process is None or process.poll() is not None:
        process, port, said = _started(arguments)
        if not port:
            print(f"TensorBoard did not start: {said} {ELSEWHERE}")
            return
        _running[arguments] = process, port
    print(f"TensorBoard: http://127.0.0.1:{port}/ (until this notebook is shut down)")
    display(HTML(_frame(port, f"TensorBoard {line}")))


PROXY = "TENSORBOARD_PROXY_URL"  # as in tensorboard's own magic: where a hub has the ports of its machines, e.g. /proxy/%PORT%/
FRAME = """<iframe id="{id}" title="{title}" width="100%" height="800" style="border:0"></iframe>
<script>
    document.getElementById("{id}").src = {proxy} || `${{location.protocol}}//${{location.hostname}}:{port}/`;
</script>"""


def _frame(port, title):
    """The page of the server as a part of the notebook's page, whose host is known only there."""
    proxy = json.dumps(os.environ.get(PROXY, "").replace("%PORT%", str(port)))
    return FRAME.format(id=f"tensorboard-{uuid.uuid4().hex}", title=html.escape(title), port=port, proxy=proxy)


def _started(arguments):
    """A process with a server, its port, and ""; or the last words of one that did not get so far, and the port 0."""
    given = {argument.split("=")[0] for argument in arguments}
    chosen = [
        word
        for name, value in (("--host", "127.0.0.1"), ("--port", "0"))
        if name not in given
        for word in (name, value)
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, *arguments, *chosen],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # an interrupt is meant for the cell
    )
    atexit.register(end, process)
    lines, found = [], threading.Event()

    def read():
        for text in process.stderr:  # to its end: a full pipe would stop the server
            lines.append(text.strip())
            if ADDRESS.search(text):
                found.set()
        found.set()

    threading.Thread(target=read, daemon=True).start()
    try:
        deadline = time.monotonic() + START_SECONDS
        while not found.wait(0.1) and time.monotonic() < deadline:
            pass
    except BaseException:  # interrupted while it starts
        end(process)
        raise
    port = next((int(match[1]) for match in map(ADDRESS.search, lines) if match), 0)
    if not port:
        end(process)
    last = next((text for text in reversed(lines) if text), f"it was not ready within {START_SECONDS} s.")
    return process, port, "" if port else last


def end(process: subprocess.Popen) -> None:
    """End a server, and wait until it has."""
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
