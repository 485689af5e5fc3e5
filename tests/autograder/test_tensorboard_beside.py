"""The magic %tensorboard: nothing where nobody looks; else a server on a free port that ends with the kernel."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from autograder import tensorboard_beside

KERNEL = """
from autograder import tensorboard_beside
tensorboard_beside.display = lambda output: None
tensorboard_beside.open_tensorboard("--logdir .")
print(next(iter(tensorboard_beside._running.values()))[0].pid, flush=True)
"""


@pytest.fixture
def looked_at(monkeypatch):
    """A kernel whose notebook is open; its servers end with the test."""
    monkeypatch.setenv(tensorboard_beside.FRONT_END, "04_graphs.ipynb")
    monkeypatch.setattr(tensorboard_beside, "_running", {})
    yield
    for process, _ in tensorboard_beside._running.values():
        tensorboard_beside.end(process)


def test_nothing_is_started_where_nobody_looks(monkeypatch, capsys):
    monkeypatch.delenv(tensorboard_beside.FRONT_END, raising=False)
    monkeypatch.setattr(tensorboard_beside.subprocess, "Popen", lambda *_, **__: pytest.fail("started"))
    tensorboard_beside.open_tensorboard("--logdir runs")
    assert "not started" in (said := capsys.readouterr().out) and "make tensorboard" in said


def test_the_notebook_gets_it_as_a_magic(monkeypatch):
    monkeypatch.delenv(tensorboard_beside.FRONT_END, raising=False)
    shell = InteractiveShell()
    with capture_output() as captured:
        shell.run_line_magic("load_ext", "autograder.tensorboard")
        shell.run_line_magic("tensorboard", "--logdir runs")
    assert "TensorBoard is not started" in captured.stdout


@pytest.mark.slow
def test_a_page_that_is_looked_at_gets_one_server_on_a_free_port(looked_at, monkeypatch, tmp_path, capsys):
    shown = []
    monkeypatch.setattr(tensorboard_beside, "display", lambda output: shown.append(output.data))
    for _ in range(2):
        tensorboard_beside.open_tensorboard(f"--logdir '{tmp_path}'")
    ((process, port),) = tensorboard_beside._running.values()
    address = f"http://127.0.0.1:{port}/"
    assert capsys.readouterr().out.count(address) == 2 and all(f":{port}/" in html for html in shown)
    assert f'title="TensorBoard --logdir &#x27;{tmp_path}&#x27;"' in shown[0]  # a screen reader says what the frame is
    with urllib.request.urlopen(address, timeout=60) as answer:
        assert answer.status == 200
    tensorboard_beside.end(process)
    with pytest.raises(OSError):
        urllib.request.urlopen(address, timeout=5)


def test_a_hub_says_where_its_ports_are(monkeypatch):
    monkeypatch.setenv(tensorboard_beside.PROXY, "/proxy/%PORT%/")
    assert 'src = "/proxy/7001/" ||' in tensorboard_beside._frame(7001, "TensorBoard")


@pytest.mark.parametrize(
    "arguments, said", [("--nonsense", "unrecognized arguments"), ("--logdir {} --port {}", "in use")]
)
def test_a_server_that_does_not_start_says_why(looked_at, monkeypatch, tmp_path, capsys, arguments, said):
    monkeypatch.setattr(tensorboard_beside, "display", lambda output: pytest.fail("shown"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        tensorboard_beside.open_tensorboard(arguments.format(tmp_path, taken.getsockname()[1]))
    text = capsys.readouterr().out
    assert text.startswith("TensorBoard did not start") and said in text and "make tensorboard" in text
    assert not tensorboard_beside._running


def test_one_that_never_gets_ready_is_given_up(looked_at, monkeypatch, capsys):
    monkeypatch.setattr(tensorboard_beside, "SERVER", "import sys; sys.stdin.read()")
    monkeypatch.setattr(tensorboard_beside, "START_SECONDS", 0.5)
    tensorboard_beside.open_tensorboard("")
    assert "not ready within 0.5 s" in capsys.readouterr().out


def test_an_interrupt_ends_what_was_starting(looked_at, monkeypatch):
    started = []
    monkeypatch.setattr(tensorboard_beside.subprocess, "Popen", _remembering(subprocess.Popen, started))
    monkeypatch.setattr(tensorboard_beside, "SERVER", "import sys; sys.stdin.read()")
    monkeypatch.setattr(tensorboard_beside.time, "monotonic", _interrupted(time.monotonic))
    with pytest.raises(KeyboardInterrupt):
        tensorboard_beside.open_tensorboard("")
    assert started[0].poll() is not None


def _remembering(start, started):
    def popen(*arguments, **options):
        started.append(start(*arguments, **options))
        return started[-1]

    return popen


def _interrupted(clock):
    calls = iter(range(100))

    def monotonic():
        if next(calls) == 1:  # the second look at the clock is in the wait
            raise KeyboardInterrupt
        return clock()

    return monotonic


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are asked for by their number as POSIX does")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_server_ends_with_its_kernel_however_that_ends(tmp_path, how):
    environment = {**os.environ, tensorboard_beside.FRONT_END: "n.ipynb"}
    with subprocess.Popen(
        [sys.executable, "-c", KERNEL + "import time; time.sleep(600)"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as kernel:
        server = next(int(line) for line in kernel.stdout if re.fullmatch(r"\d+", line.strip()))
        assert _alive(server)
        kernel.send_signal(how)
    deadline = time.monotonic() + 30
    while _alive(server) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not _alive(server)


def test_a_server_that_is_deaf_to_its_signal_ends_too():
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + tensorboard_beside.SERVER.replace(
        "main.run_main()", "time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", deaf], stdin=subprocess.PIPE) as server:
        server.stdin.close()
        assert server.wait(60) == 0


def _alive(pid):
    with contextlib.suppress(OSError):
        os.kill(pid, 0)
        return b") Z " not in _stat(pid)  # a zombie whose parent has gone is waited for by init
    return False


def _stat(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read()
    except FileNotFoundError:  # no /proc on this system
        return b""
