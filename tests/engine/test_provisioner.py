"""nbclient, nbgrader, nbval and Jupyter servers use warm kernels without knowing."""

import asyncio
import json
import os
import subprocess
import sys
import textwrap

import nbformat
import pytest
from jupyter_client.multikernelmanager import AsyncMultiKernelManager
from jupyter_client.provisioning import KernelProvisionerFactory
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbgrader.preprocessors import Execute

from autograder import provisioner, sandbox
from autograder.errors import Refused
from autograder.provisioner import WarmForkProvisioner, WarmKernelManager

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kernels are forked on Linux only"),
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"
    ),  # of those who call us
]
WHO = "import os\nfrom ipykernel.kernelapp import IPKernelApp as App\nprint(type(App.instance()).__name__, os.getcwd())"
MANAGERS = {"stock": {}, "own": {"kernel_manager_class": WarmKernelManager}}


@pytest.fixture(scope="module", autouse=True)
def zygotes():
    yield
    for zygote in provisioner.ZYGOTES.values():
        zygote.stop()
    provisioner.ZYGOTES.clear()


@pytest.fixture
def kernelspecs(tmp_path, monkeypatch):
    """A function that installs a kernelspec under a name, for our provisioner with some settings."""

    def install(name, config, python=sys.executable):
        folder = tmp_path / "jupyter/kernels" / name
        folder.mkdir(parents=True)
        spec = {
            "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": name,
            "language": "python",
            "metadata": {"kernel_provisioner": {"provisioner_name": "warm-fork", "config": config}},
        }
        (folder / "kernel.json").write_text(json.dumps(spec))
        return name

    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    return install


@pytest.fixture
def by_default(monkeypatch):
    """Every kernelspec of this interpreter gets a warm kernel."""
    monkeypatch.setenv("JUPYTER_DEFAULT_PROVISIONER_NAME", "warm-fork")
    KernelProvisionerFactory.clear_instance()  # one a process; it reads the variable when it is made
    yield
    KernelProvisionerFactory.clear_instance()


def notebook(*sources):
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(source)) for source in sources]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec})


def texts(executed):
    return ["".join(output.get("text", "") for output in cell.outputs).strip() for cell in executed.cells]


@pytest.mark.parametrize("manager", MANAGERS)
def test_nbclient_runs_notebooks_in_the_sandbox(by_default, manager, tmp_path):
    (tmp_path / "data.txt").write_text("here")
    run = notebook(
        WHO, "print(open('data.txt').read())\nopen('data.txt', 'w').write('changed');", "import torch; torch.ones(2)"
    )
    NotebookClient(run, resources={"metadata": {"path": str(tmp_path)}}, **MANAGERS[manager]).execute()
    who, content, _ = texts(run)
    assert who.split()[0] == "WarmKernelApp" and who.split()[1] != str(tmp_path)
    assert content == "here" and (tmp_path / "data.txt").read_text() == "here"
    assert run.cells[2].outputs[0].data["text/plain"] == "tensor([1., 1.])"


def test_the_folder_of_the_program_is_not_copied(by_default, tmp_path, monkeypatch):
    (tmp_path / "gradebook.db").write_text("all the scores")
    monkeypatch.chdir(tmp_path)
    run = notebook("import os\nprint(os.listdir())")
    NotebookClient(run).execute()
    assert texts(run) == ["[]"]


@pytest.mark.parametrize("manager", MANAGERS)
def test_nbclient_interrupts_and_goes_on(by_default, manager):
    run = notebook("while True: pass", "print('after')")
    NotebookClient(run, timeout=1, interrupt_on_timeout=True, allow_errors=True, **MANAGERS[manager]).execute()
    assert run.cells[0].outputs[-1].ename == "KeyboardInterrupt" and texts(run)[1] == "after"


def test_nbclient_gives_up_on_a_cell_that_will_not_stop(by_default):
    run = notebook("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass")
    with pytest.raises(CellTimeoutError):
        NotebookClient(run, timeout=1, kernel_manager_class=WarmKernelManager).execute()


def test_nbclient_sees_a_kernel_die(by_default):
    with pytest.raises(DeadKernelError):
        NotebookClient(notebook("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")).execute()


def test_nbgrader_executes_with_it(by_default, tmp_path):
    run = notebook(WHO, "1 / 0", "print('graded')")
    executed, _ = Execute().preprocess(run, {"metadata": {"path": str(tmp_path)}})
    assert texts(executed)[0].startswith("WarmKernelApp") and texts(executed)[2] == "graded"


def test_nbval_validates_with_it(by_default, tmp_path):
    run = notebook(
        "import autograder.kernel_app, ipykernel.kernelapp as k", "type(k.IPKernelApp.instance()).__name__", "1 + 1"
    )
    for cell, answer in zip(run.cells[1:], ("'WarmKernelApp'", "2"), strict=True):
        cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": answer}, execution_count=1)]
        cell.execution_count = 1
    nbformat.write(run, tmp_path / "run.ipynb")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_a_server_starts_restarts_and_stops_kernels(kernelspecs):
    """What JupyterLab does, without walls and in the user's own folder."""
    name = kernelspecs("warm", {"level": "none"})

    async def run():
        server = AsyncMultiKernelManager()
        ids = [await server.start_kernel(kernel_name=name, cwd=os.getcwd()) for _ in range(2)]
        clients = [server.get_kernel(kernel).client() for kernel in ids]
        said = []
        for client in clients:
            client.start_channels()
            await client.wait_for_ready(timeout=60)
            said.append(await printed(client, WHO + "\nx = 1"))
        await server.restart_kernel(ids[0])
        await clients[0].wait_for_ready(timeout=60)
        said.append(await printed(clients[0], "print('x' in globals())"))
        for client in clients:
            client.stop_channels()
        await server.shutdown_all(now=True)
        return said

    assert asyncio.run(run()) == [f"WarmKernelApp {os.getcwd()}"] * 2 + ["False"]


async def printed(client, source):
    shown = []
    await client.execute_interactive(source, output_hook=shown.append, timeout=60)
    return "".join(message["content"]["text"] for message in shown if message["msg_type"] == "stream").strip()


def test_another_interpreter_is_refused_behind_walls_and_cold_without(kernelspecs, tmp_path):
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    refused, cold = kernelspecs("refused", {}, str(other)), kernelspecs("cold", {"level": "none"}, str(other))
    with pytest.raises(Refused, match="cannot be forked"):
        NotebookClient(notebook("1"), kernel_name=refused).execute()
    run = notebook("import sys\nprint('autograder.kernel_app' in sys.modules)")
    NotebookClient(run, kernel_name=cold).execute()
    assert texts(run) == ["False"]


def test_nothing_runs_below_the_minimum(by_default, monkeypatch):
    monkeypatch.setattr(
        sandbox, "level", lambda: sandbox.Level("none", sandbox.NOTHING, {"landlock": "no kernel for it"})
    )
    with pytest.raises(Refused, match=r"level 'none', and at least 'landlock'.*no kernel for it.*--trust-code"):
        NotebookClient(notebook("1")).execute()
    assert sandbox.at_least(trust_code=True).name == "none"


def test_settings_of_a_kernelspec_reach_the_kernel(kernelspecs):
    name = kernelspecs("small", {"limits": {"file_mib": 1}, "threads": 2, "seed": 5})
    run = notebook(
        "import resource, torch\nprint(resource.getrlimit(1)[0], torch.get_num_threads(), torch.initial_seed())"
    )
    NotebookClient(run, kernel_name=name, kernel_manager_class=WarmKernelManager).execute()
    assert texts(run) == [f"{1 << 20} 2 5"]


def test_every_method_says_who_calls_it():
    for name in ("pre_launch", "launch_kernel", "wait", "cleanup"):
        assert "KernelManager" in vars(WarmForkProvisioner)[name].__doc__
