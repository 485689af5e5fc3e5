"""Warm kernels for everything that speaks jupyter_client: nbclient, nbgrader, nbval, JupyterLab.

Chosen by a kernelspec, with `"metadata": {"kernel_provisioner": {"provisioner_name": "warm-fork", "config": {...}}}`,
or for every kernelspec of this interpreter by the environment variable JUPYTER_DEFAULT_PROVISIONER_NAME=warm-fork.
Behind the walls of sandbox.level() by default; `"config": {"level": "none"}` is for people at work: no walls, and in
their own folder.
"""

import atexit
import os
import shutil
import sys

from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Dict, Enum, Integer, Tuple, default

from autograder import sandbox
from autograder.errors import Refused
from autograder.limits import DEFAULT, Limits
from autograder.plans import PLANS
from autograder.preload import COURSE
from autograder.running import (
    ARGUMENTS,
    PORTS,
    READY_SECONDS,
    limited_context,
    listen,
    ready,
    socket_folder,
    spawn,
    watch,
    welcome,
)
from autograder.warm import INHERITABLE, Zygote, clean

CONNECTION_FILE = 5  # python -m ipykernel_launcher -f FILE: what follows is for IPKernelApp
GENERIC = ("python", "python3")  # names that jupyter_client replaces with this interpreter
ZYGOTES = {}  # by plan and preload: those that stock tools use, which cannot start one themselves


def shared_zygote(plan, modules):
    """The zygote of this process for such kernels, started at first use."""
    key = plan.name, tuple(modules)
    if key not in ZYGOTES or not ZYGOTES[key].alive():
        several = plan.namespaces or not plan.root  # else they would have one scratch folder
        environment = None if plan.locks else {**os.environ, **INHERITABLE}
        ZYGOTES[key] = Zygote.start(plan, modules, shared=several, env=environment)
        atexit.register(ZYGOTES[key].stop)
    return ZYGOTES[key]


class WarmForkProvisioner(LocalProvisioner):
    """Kernels by fork for jupyter_client; an ordinary process where a fork cannot be and no walls are asked for."""

    level = Enum(
        ["auto", *PLANS], "auto", config=True, help="auto: the best this machine has; none: no walls, works in place"
    )
    limits = Dict(config=True, help="fields of autograder.limits.Limits")
    threads = Integer(1, config=True, help="threads of torch")
    seed = Integer(0, config=True, help="of random, numpy and torch")
    preload = Tuple(config=True, default_value=COURSE, help="modules that the zygote imports")

    folder = None

    @property
    def plan(self):
        """The walls around the kernel.

        Raises:
            Refused: none are to be had and none were not asked for.
        """
        return sandbox.at_least().plan if self.level == "auto" else PLANS[self.level]

    def forks(self):
        """Whether this kernel can be a fork: on Linux, and for a kernelspec that runs IPython with this interpreter."""
        program, *arguments = self.kernel_spec.argv
        same = program in GENERIC or os.path.abspath(program) == os.path.abspath(sys.executable)
        return sys.platform.startswith("linux") and same and arguments[:2] == ["-m", "ipykernel_launcher"]

    async def pre_launch(self, **kwargs):
        """KernelManager.pre_start_kernel calls this before every start: choose sockets, write the connection file."""
        if self.forks():
            self.folder = self.folder or socket_folder()
            manager = self.parent
            manager.cache_ports = False
            manager.transport, manager.ip = "ipc", f"{self.folder}/s"
            for name, port in PORTS.items():
                setattr(manager, name, port)
        elif self.plan.locks:
            raise Refused(
                f"kernel {self.kernel_spec.display_name!r} runs {self.kernel_spec.argv[0]}, which cannot be forked "
                f"from {sys.executable}: start this program with that interpreter, or set level to none"
            )
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd, **kwargs):
        """KernelManager.launch_kernel calls this: fork a kernel and wait until it reads messages."""
        if self.folder is None:
            return await super().launch_kernel(cmd, **kwargs)
        plan, limits = self.plan, Limits(**self.limits)
        given = kwargs.get(
            "cwd"
        )  # by nbclient for a notebook in a folder; our own folder may hold anything: it is not copied
        cwd = str(given or os.getcwd())
        zygote = shared_zygote(plan, self.preload)
        connection = {
            name: value.decode() if isinstance(value, bytes) else value for name, value in self.connection_info.items()
        }
        request = {
            "module": "autograder.kernel_app", "connection": connection,
            "arguments": [*ARGUMENTS, *cmd[CONNECTION_FILE:]],
            "env": clean("/tmp") if plan.locks else {**kwargs.get("env", os.environ), "PYTHONHASHSEED": "0"},
            "cwd": None if plan.locks else cwd, "seed": self.seed, "threads": self.threads,
        }  # fmt: skip
        listeners = listen(self.folder)
        self.process = spawn(zygote, request, limits, listeners, given if plan.locks else None)
        await ready(self.process)
        self.pid, self.pgid, self.cwd = self.process.pid, None, cwd
        return self.connection_info

    async def wait(self):
        """KernelManager.finish_shutdown and kill_kernel call this; without upstream's steps of 100 ms."""
        if not self.folder:
            return await super().wait()
        if self.process is None:
            return 0
        if self.process.poll() is None:
            await watch(self.process)
        code, self.process = self.process.returncode, None
        return code

    async def cleanup(self, restart=False):
        """KernelManager.cleanup_resources calls this after every shutdown."""
        await super().cleanup(restart)
        if self.folder and not restart:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


class WarmKernelClient(AsyncKernelClient):
    """A client that waits for its kernel no longer than it must; upstream waits 200 ms for silence."""

    async def _async_wait_for_ready(self, timeout=None):
        """nbclient calls this when it has started the channels: the kernel greets who has subscribed to its output."""
        await welcome(self, timeout or READY_SECONDS)
        self.kernel_info()
        self._handle_kernel_info_reply(await self.get_shell_msg(timeout=timeout or READY_SECONDS))

    wait_for_ready = _async_wait_for_ready


class WarmKernelManager(AsyncKernelManager):
    """For nbclient (kernel_manager_class): as upstream, with limits on what a client holds and without its waits."""

    @default("client_factory")
    def _client_factory_default(self):
        return WarmKernelClient

    @default("context")
    def _context_default(self):
        self._created_context = True
        return limited_context(DEFAULT)

    async def _async_finish_shutdown(self, waittime=None, pollinterval=0.005, restart=False):
        """shutdown_kernel calls this after it has asked the kernel to end."""
        await super()._async_finish_shutdown(waittime, pollinterval, restart)
