"""A forked kernel behaves as a freshly started one."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from queue import Empty
from types import SimpleNamespace

import pytest

from autograder import sandbox, watchdog
from autograder.limits import Limits
from autograder.plans import PLANS
from autograder.running import ARGUMENTS, start_cold_kernel, start_warm_kernel, welcome
from autograder.warm import INHERITABLE, Zygote, ZygoteError

from .attacks import execute

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kernels are forked on Linux only")
SECONDS = 60.0
NUMBERS = "import random, numpy, torch\nprint(torch.rand(2).tolist(), numpy.random.rand(2).tolist(), random.random())"


@pytest.fixture(scope="module")
def zygote():
    with Zygote.start(sandbox.level().plan) as zygote:
        assert zygote.failed == {}
        yield zygote


def said(zygote, *cells, **options):
    """What each of the cells prints in one fresh kernel; fails if one fails."""

    async def run():
        async with start_warm_kernel(zygote, **options) as kernel:
            return [await execute(kernel, textwrap.dedent(cell), SECONDS) for cell in cells]

    outcomes = asyncio.run(run())
    assert [outcome.status for outcome in outcomes] == ["ok"] * len(cells), outcomes
    return [outcome.text.strip() for outcome in outcomes]


def test_the_seed_decides_all_random_states(zygote):
    once, again, other = (said(zygote, NUMBERS, seed=seed)[0] for seed in (3, 3, 4))
    assert once == again != other


def test_random_numbers_are_those_of_a_cold_kernel(zygote):
    async def cold():
        async with start_cold_kernel(sys.executable, seed=3) as kernel:
            return (await execute(kernel, NUMBERS, SECONDS)).text.strip()

    assert said(zygote, NUMBERS, seed=3) == [asyncio.run(cold())]


def test_unseeded_generators_differ_between_forks(zygote):
    fresh = "import os, numpy; print(os.urandom(8), numpy.random.default_rng().random())"
    assert said(zygote, fresh) != said(zygote, fresh)


def test_hashes_are_those_of_every_run(zygote):
    here = subprocess.run(
        [sys.executable, "-c", "print(hash('a'))"], env=INHERITABLE, capture_output=True, text=True, check=True
    )
    assert said(zygote, "print(hash('a'))") == [here.stdout.strip()]


SHELL = {  # cell: what it prints
    "!echo a; echo b >&2; exit 3": "a\nb",
    "!exit 3\nprint(_exit_code)": "3",
    "!kill -9 $$\nprint(_exit_code)": "-9",
    "name = 'w'\n!echo {name} $name": "w w",
    "!cat": "",
    "!printf '\\303'; sleep 0.1; printf '\\251'": "é",
    "found = !echo a; echo b\nprint(found)": "['a', 'b']",
    "%%bash\necho a": "a",
    "import os, time\nstatus = os.system('echo a'); time.sleep(1)": "a",  # a thread reads it: on a busy machine a little later
    "!nosuch 2> /dev/null\nprint(_exit_code)": "127",
    "!python -c 'import torch; print(torch.ones(2).sum().item())'": "2.0",
    "%system echo a": "",
}


@pytest.mark.parametrize("plan", dict.fromkeys([sandbox.level().name, "landlock"]))
def test_commands_of_the_shell_need_no_terminal(plan):
    if plan == "landlock" and (why := sandbox.reason_against(PLANS[plan])):
        pytest.skip(why)
    with Zygote.start(PLANS[plan]) as zygote:
        assert said(zygote, *SHELL) == list(SHELL.values())


def test_a_command_ends_when_its_cell_is_interrupted(zygote):
    async def run():
        async with start_warm_kernel(zygote) as kernel:
            cell = asyncio.create_task(execute(kernel, "!echo here; exec sleep 1000", SECONDS))
            await asyncio.sleep(0.5)
            await kernel.interrupt()
            return (await cell).text, (await execute(kernel, "print(_exit_code)", SECONDS)).text

    assert asyncio.run(run()) == ("here\n", "-9\n")


def test_a_child_that_prints_for_ever_drowns_no_other_message(zygote):
    flood = "import subprocess, time\nchild = subprocess.Popen('yes', shell=True)\ntime.sleep(4)"
    assert said(zygote, flood, *["print(7)"] * 20)[1:] == ["7"] * 20


def test_operations_run_in_parallel_after_the_fork(zygote):
    """After a fork of a process whose OpenMP pool runs, the first of these would hang."""
    big = (
        "import torch\nx = torch.ones(1000, 1000)\nprint(torch.get_num_threads(), (x @ x)[0, 0].item(), x.sum().item())"
    )
    assert said(zygote, big, threads=2) == ["2 1000.0 1000000.0"]


def test_training_works(zygote):
    code = """
        import torch
        layer = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 6 * 6, 1))
        optimiser = torch.optim.SGD(layer.parameters(), lr=0.01, momentum=0.9)
        x = torch.randn(8, 1, 8, 8)
        losses = []
        for step in range(20):
            loss = layer(x).square().mean()
            loss.backward(), optimiser.step(), optimiser.zero_grad()
            losses.append(loss.item())
        print(losses[-1] < losses[0])
    """
    assert said(zygote, code) == ["True"]


@pytest.mark.skipif(not sandbox.level().plan.own_network, reason="children of a kernel have no sockets at this level")
def test_data_loaders_have_workers(zygote):
    code = """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        batches = DataLoader(TensorDataset(torch.arange(6)), batch_size=2, num_workers=2)
        print([b.tolist() for (b,) in batches])
    """
    assert said(zygote, code) == ["[[0, 1], [2, 3], [4, 5]]"]


@pytest.mark.skipif(not sandbox.level().plan.own_network, reason="children of a kernel have no sockets at this level")
def test_what_children_print_is_shown(zygote):
    code = """
        import multiprocessing
        child = multiprocessing.get_context("fork").Process(target=print, args=("from the child",))
        child.start(), child.join()
    """
    assert said(zygote, code, "import time; time.sleep(0.3)")[0] == "from the child"


def test_output_comes_in_its_order_and_below_its_own_cell(zygote):
    one = """
        import sys
        print("a", flush=True); print("b", file=sys.stderr, flush=True); print("c", end="")
    """
    assert said(zygote, one, "pass", "print('d')") == ["a\nb\nc", "", "d"]


@pytest.mark.parametrize("option", ["--InteractiveShell.colors=linux", "--colors=linux"])
def test_a_kernel_takes_the_options_of_ipython(zygote, option):
    shown = "shell = get_ipython(); print(shell.colors, shell.history_manager.enabled, shell.xmode)"
    assert said(zygote, shown, arguments=(*ARGUMENTS, option)) == ["linux False Plain"]


def test_a_reset_spares_the_modules_that_were_there_at_the_start(zygote):
    left = "import sys; print('torch' in sys.modules, 'wave' in sys.modules)"
    assert said(zygote, "import torch, wave", left, "%reset -f --aggressive", left)[1::2] == ["True True", "True False"]


def test_figures_are_shown(zygote):
    async def run():
        async with start_warm_kernel(zygote) as kernel:
            kernel.client.execute("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('mine');")
            message = {"msg_type": ""}
            while message["msg_type"] != "display_data":
                message = await kernel.client.get_iopub_msg(timeout=SECONDS)
            return message["content"]["data"]

    assert asyncio.run(run())["image/png"].startswith("iVBOR")


def test_tensorboard_files_are_written(zygote):
    code = """
        import glob
        from torch.utils.tensorboard import SummaryWriter
        with SummaryWriter("runs") as writer:
            writer.add_scalar("loss", 1.0, 0)
        print(len(glob.glob("runs/events*")))
    """
    assert said(zygote, code)[0].endswith("1")


def test_programs_can_be_started(zygote):
    assert said(
        zygote, "import subprocess\nprint(subprocess.run(['echo', 'out'], capture_output=True, text=True).stdout)"
    ) == ["out"]


def test_there_is_no_history_to_read(zygote):
    code = """
        import glob, os
        files = glob.glob(os.path.expanduser("~/.ipython/**/*.sqlite"), recursive=True)
        print(get_ipython().history_manager.enabled, files)
    """
    assert said(zygote, code) == ["False []"]


def test_temporary_files_are_the_kernels_own(zygote):
    code = (
        "import os, tempfile\nprint(os.path.commonpath([tempfile.mkdtemp(), os.environ['HOME'], os.getcwd()]) != '/')"
    )
    assert said(zygote, code) == ["True"]


def test_the_working_files_are_copies(zygote, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x.txt").write_text("x")
    (tmp_path / "leak").symlink_to("/etc/passwd")
    code = "import os\nprint(open('data/x.txt').read(), sorted(os.listdir()))\nopen('data/x.txt', 'w').write('changed')"
    assert said(zygote, code, files=tmp_path) == ["x ['data']"]
    assert (tmp_path / "data/x.txt").read_text() == "x"


def test_too_many_working_files_are_an_error(zygote, tmp_path):
    (tmp_path / "big").write_bytes(bytes(3 << 20))
    with pytest.raises(ZygoteError, match="more than 2 MiB"):
        said(zygote, "1", files=tmp_path, limits=Limits(scratch_mib=2))


def test_the_environment_is_what_was_given(zygote, monkeypatch):
    monkeypatch.setenv("COURSE_TOKEN", "secret")
    assert said(
        zygote, "import os\nprint(os.environ.get('COURSE_TOKEN'), os.environ['MINE'])", env={"MINE": "yes"}
    ) == ["None yes"]


def test_a_busy_zygote_forks_no_second_kernel(zygote):
    async def run():
        async with start_warm_kernel(zygote), start_warm_kernel(zygote):
            pass

    with pytest.raises(ZygoteError, match="already runs a kernel"):
        asyncio.run(run())


def test_packages_are_hidden_only_by_a_zygote_that_hides_them(zygote):
    with pytest.raises(ValueError, match="can import maskedtensor_ref: start it with"):
        said(zygote, "1", hides=("maskedtensor_ref",))


def test_trusted_code_is_limited_and_cleared_away_too():
    """Without walls: code that means no harm here can do none."""
    forked = "import os, time\nif os.fork() == 0:\n    if os.fork() == 0: time.sleep(1000)\n    os._exit(0)"
    with Zygote.start(PLANS["none"]) as zygote:
        before = set(watchdog.descendants([zygote.process.pid]))
        cells = (forked, "try:\n    bytearray(1 << 30)\nexcept MemoryError:\n    print('enough')")
        assert said(zygote, *cells, limits=Limits(memory_mib=300))[1] == "enough"
        assert set(watchdog.descendants([zygote.process.pid])) == before


def test_sockets_have_room_in_a_deep_temporary_folder(zygote, tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert said(zygote, "print(1)") == ["1"]


def test_ready_is_said_when_all_that_is_published_at_the_start_has_been(monkeypatch):
    """A client that subscribes meanwhile is sometimes not greeted: 5 of 300, when 300 messages are published meanwhile."""
    from traitlets.config import Configurable

    from autograder import kernel_app

    waiting, done = [], []  # what the thread is to do, in this order
    publish = lambda self: waiting.append(lambda: done.append("published"))
    monkeypatch.setattr(kernel_app.ipkernel.IPythonKernel, "start", publish)
    kernel = kernel_app.WarmKernel.__new__(kernel_app.WarmKernel)
    kernel.iopub_thread = SimpleNamespace(schedule=waiting.append)
    kernel.parent = type("App", (Configurable,), {"ready": lambda self: done.append("ready")})()
    kernel.start()
    assert done == []
    [call() for call in waiting]
    assert done == ["published", "ready"]


def test_a_kernel_that_does_not_greet_is_an_error_that_says_so():
    class Silent:
        async def get_iopub_msg(self, timeout):
            raise Empty

    with pytest.raises(TimeoutError, match="did not greet its client within 3 s"):
        asyncio.run(welcome(Silent(), 3))


def test_how_a_kernel_ended_is_known(zygote):
    async def run(source, limits):
        async with start_warm_kernel(zygote, limits=limits) as kernel:
            await execute(kernel, source, SECONDS)
            return await asyncio.wait_for(kernel.died, SECONDS)

    left = asyncio.run(run("import os; os._exit(7)", Limits()))
    assert (left.code, left.stopped_by) == (7, None) and left.cpu_seconds > 0
    busy = asyncio.run(run("while True: pass", Limits(cpu_seconds=1)))
    assert (busy.code, busy.stopped_by) == (-9, "cpu")


def test_kernels_leave_no_descriptors_behind(zygote):
    said(zygote, "1")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        said(zygote, "1")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_kernel_ends_with_its_zygote():
    async def run():
        with Zygote.start(sandbox.level().plan) as zygote:
            async with start_warm_kernel(zygote) as kernel:
                os.killpg(zygote.process.pid, 9)
                ended = await asyncio.wait_for(kernel.died, SECONDS)
            with pytest.raises(ZygoteError):
                zygote.spawn({"module": "x", "cwd": None})
        return ended.code

    assert asyncio.run(run()) == -9


ORPHANED = """
import asyncio, os, sys
from autograder import sandbox, watchdog
from autograder.running import start_warm_kernel
from autograder.warm import Zygote
async def run():
    zygote = Zygote.start(sandbox.level().plan)
    async with start_warm_kernel(zygote) as kernel:
        kernel.client.execute("import os\\nif os.fork() == 0:\\n    os.setsid()\\nwhile True: pass")
        await asyncio.sleep(0.5)
        print(*watchdog.descendants([os.getpid()]), flush=True)
        os.kill(os.getpid(), 9)
asyncio.run(run())
"""


def test_all_ends_with_the_worker():
    worker = subprocess.run([sys.executable, "-c", ORPHANED], capture_output=True, text=True)
    pids = worker.stdout.split()
    assert len(pids) > 3, worker.stderr

    async def gone():
        while any(os.path.exists(f"/proc/{pid}") and not zombie(pid) for pid in pids):
            await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(gone(), SECONDS))


def zombie(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(") ")[2][0] == "Z"
    return True


def unsandboxed(folder, *modules):
    """A zygote that also imports modules from a folder."""
    return Zygote.start(PLANS["none"], modules=modules, env={**os.environ, **INHERITABLE, "PYTHONPATH": str(folder)})


def test_a_zygote_with_threads_does_not_fork(tmp_path):
    (tmp_path / "starts_a_thread.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
    )
    with unsandboxed(tmp_path, "starts_a_thread") as zygote, pytest.raises(ZygoteError, match="has 2 threads"):
        zygote.spawn({"module": "x", "cwd": None})


@pytest.mark.skipif(shutil.which("gcc") is None, reason="builds a stand-in for the CUDA driver")
@pytest.mark.parametrize(("state", "forks"), [(3, True), (0, False)])
def test_a_zygote_with_cuda_initialised_does_not_fork(tmp_path, state, forks):
    library = tmp_path / "libcuda.so.1"
    (tmp_path / "cuda.c").write_text(f"int cuDeviceGetCount(int *count) {{ return {state}; }}")
    subprocess.run(["gcc", "-shared", "-Wl,-soname,libcuda.so.1", "-o", library, tmp_path / "cuda.c"], check=True)
    (tmp_path / "loads_cuda.py").write_text(f"import ctypes\ndriver = ctypes.CDLL({str(library)!r})\n")
    (tmp_path / "ends.py").write_text("def run(*arguments): pass")
    with unsandboxed(tmp_path, "loads_cuda") as zygote:
        request = {"module": "ends", "cwd": "/", "env": {}, "seed": 0, "threads": 1}
        if forks:
            kernel = zygote.spawn(request)
            assert kernel.wait(SECONDS) == 0
            os.close(kernel.ready)
        else:
            with pytest.raises(ZygoteError, match="CUDA is initialised"):
                zygote.spawn(request)


def test_modules_that_cannot_be_imported_are_reported(tmp_path):
    with unsandboxed(tmp_path, "there_is_no_such_module", "json") as zygote:
        assert list(zygote.failed) == ["there_is_no_such_module"]


HUGE = """
import ctypes, re
from autograder import linux
held = bytearray(b"x") * (64 << 20)
linux.huge_pages()
with open("/proc/self/smaps_rollup") as file:
    print(held.count(b"x") >> 20, int(re.search(r"AnonHugePages: +(\\d+) kB", file.read())[1]) >> 10)
"""


@pytest.mark.skipif(
    not os.path.exists("/sys/kernel/mm/transparent_hugepage")
    or tuple(map(int, os.uname().release.split(".")[:2])) < (6, 1),
    reason="this kernel has no huge pages, or moves nothing into them when asked to",
)
def test_memory_is_moved_into_huge_pages():
    done = subprocess.run([sys.executable, "-c", HUGE], capture_output=True, text=True, check=True)
    kept, huge = map(int, done.stdout.split())
    assert kept == 64 and huge >= 60
