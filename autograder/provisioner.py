"""Kernels from a warm zygote, for our own engine and for everything that speaks jupyter_client.

    async with start_warm_kernel(zygote, files=folder, limits=Limits(memory_mib=1024), seed=3) as kernel:
        reply = await kernel.client.execute_interactive("1 + 1")
        await kernel.interrupt()
        ended = await kernel.died

nbclient, nbgrader, nbval and JupyterLab get the same kernels through WarmForkProvisioner: by a kernelspec with
`"metadata": {"kernel_provisioner": {"provisioner_name": "warm-fork", "config": {"level": "none"}}}`, or for every kernelspec of
this interpreter by the environment variable JUPYTER_DEFAULT_PROVISIONER_NAME=warm-fork.
"""

import asyncio
import atexit
import contextlib
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass

import zmq
import zmq.asyncio
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.connect import write_connection_file
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Dict, Enum, Integer, Tuple, default

from autograder import cold, sandbox
from autograder.errors import Refused
from autograder.limits import Limits
from autograder.plans import PLANS
from autograder.preload import COURSE
from autograder.warm import INHERITABLE, Zygote, clean

PORTS = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5}  # in the order of kernel_app.CHANNELS
ARGUMENTS = ("--HistoryManager.enabled=False", "--InteractiveShell.xmode=Plain")  # no database; tracebacks in 20 ms, not 150
CONNECTION_FILE = 5  # python -m ipykernel_launcher -f FILE: what follows is for IPKernelApp
GENERIC = ("python", "python3")  # names that jupyter_client replaces with this interpreter
READY_SECONDS = 60
BACKLOG = 16


def listen(folder):
    """Five listening Unix sockets in a folder of ours; a path there has at most 107 bytes, so keep the folder's short."""
    listeners = []
    for port in PORTS.values():
        path = f"{folder}/s-{port}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(BACKLOG)
        listeners.append(listener)
    return listeners


def connection_to(folder):
    """What client and kernel need to know of the sockets there, with a new key."""
    key = secrets.token_hex(32)
    return {"transport": "ipc", "ip": f"{folder}/s", "key": key, "signature_scheme": "hmac-sha256", **PORTS}


def limited_context(limits):
    """A ZeroMQ context whose sockets take no message and no backlog larger than the limits say."""
    context = zmq.asyncio.Context()
    context.setsockopt(zmq.MAXMSGSIZE, limits.message_mib << 20)
    context.setsockopt(zmq.RCVHWM, limits.messages_waiting)
    context.setsockopt(zmq.LINGER, 0)
    return context


@dataclass
class Kernel:
    """A running kernel, warm or cold.

    client: a connected AsyncKernelClient. died: a future of warm.Ended, set when the kernel has ended and nothing of it is left.
    """

    client: AsyncKernelClient
    forked: object
    died: asyncio.Future

    async def interrupt(self):
        """Interrupt what it runs (SIGINT)."""
        self.forked.send_signal(signal.SIGINT)

    async def kill(self):
        """Kill it and all that it started; how it ended."""
        self.forked.kill()
        return await self.died


def watch(forked):
    """A future of how the kernel ends."""
    loop, descriptor = asyncio.get_running_loop(), forked.fileno()
    died = loop.create_future()

    def look():
        if forked.poll() is not None:
            loop.remove_reader(descriptor)
            died.set_result(forked.ended)

    loop.add_reader(descriptor, look)
    return died


async def ready(forked):
    """Wait until the kernel reads messages.

    Raises:
        warm.ZygoteError: it ended before.
    """
    loop = asyncio.get_running_loop()
    said = loop.create_future()
    loop.add_reader(forked.ready, lambda: said.done() or said.set_result(None))
    try:
        await asyncio.wait_for(said, READY_SECONDS)
    finally:
        loop.remove_reader(forked.ready)
        forked.started(os.read(forked.ready, 1 << 13).decode() if said.done() else "no answer in time")


async def connected(connection, context):
    """A client whose messages all arrive: the kernel greets whoever has subscribed to its output."""
    client = AsyncKernelClient(context=context)
    client.load_connection_info(connection)
    client.start_channels(hb=False)
    await welcome(client, READY_SECONDS)
    return client


async def welcome(client, timeout):
    """Wait until the kernel has greeted this subscriber of its output."""
    message = {}
    while message.get("msg_type") != "iopub_welcome":
        message = await client.get_iopub_msg(timeout=timeout)


def spawn(zygote, request, limits, listeners, files):
    """Zygote.spawn, after which the listening sockets are the kernel's alone."""
    try:
        return zygote.spawn(request, limits, listeners, files)
    finally:
        for listener in listeners:
            listener.close()


@contextlib.asynccontextmanager
async def start_warm_kernel(zygote, files=None, limits=Limits(), env=None, threads=1, seed=0, hides=(), arguments=ARGUMENTS):
    """Run a kernel for the length of an async with; it is killed at the end.

    Args:
        files: folder whose files the kernel finds in its working folder, as copies.
        env: its environment, beside what a kernel needs; nothing of ours is inherited.
        threads: of torch. seed: of random, numpy and torch.
        hides: packages that must not be importable; the zygote must have been started so.
        arguments: of IPKernelApp.
    Returns:
        Kernel.
    Raises:
        warm.ZygoteError: the zygote is busy, gone, or cannot fork.
        ValueError: the zygote does not hide what is to be hidden.
    """
    if missing := set(hides) - set(zygote.hides):
        raise ValueError(f"the zygote can import {', '.join(sorted(missing))}: start it with hides={tuple(hides)!r}")
    folder = tempfile.mkdtemp(prefix="k")
    context = limited_context(limits)
    try:
        connection, listeners = connection_to(folder), listen(folder)
        request = {
            "module": "autograder.kernel_app", "connection": connection, "arguments": list(arguments),
            "env": {**clean(zygote.home or "/tmp"), **(env or {})}, "cwd": None, "seed": seed, "threads": threads,
        }  # fmt: skip
        forked = spawn(zygote, request, limits, listeners, files)
        died = watch(forked)
        try:
            await ready(forked)
            client = await connected(connection, context)
            yield Kernel(client, forked, died)
            client.stop_channels()
        finally:
            forked.kill()
            await died
    finally:
        context.destroy(linger=0)
        shutil.rmtree(folder)


@contextlib.asynccontextmanager
async def start_cold_kernel(python, files=None, limits=Limits(), env=None, threads=1, seed=0, hides=(), arguments=ARGUMENTS):
    """As start_warm_kernel, with an ordinary process of the interpreter at that path: slower, and with no walls.

    Raises:
        TimeoutError: the kernel does not answer; does that interpreter have ipykernel, numpy and torch?
    """
    folder = tempfile.mkdtemp(prefix="k")
    context = limited_context(limits)
    try:
        cold.prepare(folder, files)
        where = {"transport": "ipc", "ip": f"{folder}/s"} if os.name == "posix" else {"transport": "tcp"}
        path, connection = write_connection_file(f"{folder}/c.json", key=secrets.token_hex(32).encode(), **where)
        command = [python, "-m", "ipykernel_launcher", "-f", path, *arguments]
        process = cold.Cold(command, folder, cold.environment(folder, env), limits)
        died = asyncio.ensure_future(cold.watch(process))
        try:
            client = AsyncKernelClient(context=context)
            client.load_connection_info(connection)
            client.start_channels(hb=False)
            await answer(client, died)
            await client.execute_interactive(cold.first_code(seed, threads, hides), silent=True, timeout=READY_SECONDS)
            yield Kernel(client, process, died)
            client.stop_channels()
        finally:
            process.kill()
            await died
    finally:
        context.destroy(linger=0)
        shutil.rmtree(folder, ignore_errors=True)


async def answer(client, died):
    """Wait until a cold kernel answers."""
    waiting = asyncio.ensure_future(client.wait_for_ready(timeout=READY_SECONDS))
    await asyncio.wait((waiting, died), return_when=asyncio.FIRST_COMPLETED)
    if not waiting.done():
        waiting.cancel()
        raise TimeoutError(f"the kernel ended with code {died.result().code} before it answered")
    waiting.result()


ZYGOTES = {}  # by plan and preload: those that stock tools use, which cannot start one themselves


def shared_zygote(plan, modules):
    """The zygote of this process for such kernels, started at first use."""
    key = plan.name, tuple(modules)
    if key not in ZYGOTES or not ZYGOTES[key].alive():
        ZYGOTES[key] = Zygote.start(plan, modules, shared=True, env=None if plan.locks else {**os.environ, **INHERITABLE})
        atexit.register(ZYGOTES[key].stop)
    return ZYGOTES[key]


class WarmForkProvisioner(LocalProvisioner):
    """Kernels by fork for jupyter_client; an ordinary process where a fork cannot be and no walls are asked for."""

    level = Enum(["auto", *PLANS], "auto", config=True, help="auto: the best this machine has; none: no walls, works in place")
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
        """Whether this kernel can be a fork of this interpreter: on Linux, and for a kernelspec that runs IPython with it."""
        program, *arguments = self.kernel_spec.argv
        same = program in GENERIC or os.path.abspath(program) == os.path.abspath(sys.executable)
        return sys.platform.startswith("linux") and same and arguments[:2] == ["-m", "ipykernel_launcher"]

    async def pre_launch(self, **kwargs):
        """KernelManager.pre_start_kernel calls this before every start: choose sockets and write the connection file."""
        if self.forks():
            self.folder = self.folder or tempfile.mkdtemp(prefix="k")
            manager = self.parent
            manager.cache_ports = False
            manager.transport, manager.ip = "ipc", f"{self.folder}/s"
            for name, port in PORTS.items():
                setattr(manager, name, port)
        elif self.plan.locks:
            raise Refused(
                f"kernel {self.kernel_spec.display_name!r} runs {self.kernel_spec.argv[0]}, which cannot be forked from "
                f"{sys.executable}: start this program with that interpreter, or set level to none"
            )
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd, **kwargs):
        """KernelManager.launch_kernel calls this: fork a kernel and wait until it reads messages."""
        if self.folder is None:
            return await super().launch_kernel(cmd, **kwargs)
        plan, limits = self.plan, Limits(**self.limits)
        given = kwargs.get("cwd")  # by nbclient for a notebook in a folder; our own folder may hold anything: it is not copied
        cwd = str(given or os.getcwd())
        zygote = shared_zygote(plan, self.preload)
        connection = {name: value.decode() if isinstance(value, bytes) else value for name, value in self.connection_info.items()}
        request = {
            "module": "autograder.kernel_app", "connection": connection, "arguments": [*ARGUMENTS, *cmd[CONNECTION_FILE:]],
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
    """A client that waits for its kernel no longer than it must; upstream waits 200 ms for the output to fall silent."""

    async def _async_wait_for_ready(self, timeout=None):
        """nbclient calls this after it has started the channels: the kernel greets whoever has subscribed to its output."""
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
        return limited_context(Limits())

    async def _async_finish_shutdown(self, waittime=None, pollinterval=0.005, restart=False):
        """shutdown_kernel calls this after it has asked the kernel to end."""
        await super()._async_finish_shutdown(waittime, pollinterval, restart)
