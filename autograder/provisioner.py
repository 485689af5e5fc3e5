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
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass
from queue import Empty

import zmq
import zmq.asyncio
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Dict, Enum, Integer, Tuple, Type

from autograder import sandbox
from autograder.limits import Limits
from autograder.plans import PLANS
from autograder.preload import COURSE
from autograder.warm import Zygote, ZygoteError, clean

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")  # as in kernel_app
ARGUMENTS = ("--HistoryManager.enabled=False", "--InteractiveShell.xmode=Plain")  # no database; tracebacks in 20 ms, not 150
READY_SECONDS = 60
BACKLOG = 16


def bind(folder):
    """Five listening Unix sockets in a folder of ours, and the connection that leads to them.

    The path of a Unix socket has at most 107 bytes: keep the folder's short.
    """
    connection = {"transport": "ipc", "ip": f"{folder}/s", "key": secrets.token_hex(32), "signature_scheme": "hmac-sha256"}
    listeners = []
    for port, channel in enumerate(CHANNELS, 1):
        connection[f"{channel}_port"] = port
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listeners.append(listener)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{folder}/s-{port}")
        listener.bind(f"{folder}/s-{port}")
        listener.listen(BACKLOG)
    return connection, listeners


def limited_context(limits):
    """A ZeroMQ context whose sockets take no message and no backlog larger than the limits say."""
    context = zmq.asyncio.Context()
    context.setsockopt(zmq.MAXMSGSIZE, limits.message_mib << 20)
    context.setsockopt(zmq.RCVHWM, limits.messages_waiting)
    context.setsockopt(zmq.LINGER, 0)
    return context


@dataclass
class WarmKernel:
    """A running kernel.

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
    message = {}
    while message.get("msg_type") != "iopub_welcome":
        message = await client.get_iopub_msg(timeout=READY_SECONDS)
    return client


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
        WarmKernel.
    Raises:
        warm.ZygoteError: the zygote is busy, gone, or cannot fork.
        ValueError: the zygote does not hide what is to be hidden.
    """
    if missing := set(hides) - set(zygote.hides):
        raise ValueError(f"the zygote can import {', '.join(sorted(missing))}: start it with hides={tuple(hides)!r}")
    folder = tempfile.mkdtemp(prefix="k")
    context = limited_context(limits)
    try:
        connection, listeners = bind(folder)
        request = {
            "module": "autograder.kernel_app", "connection": connection, "arguments": list(arguments),
            "env": {**clean(zygote.home or "/tmp"), **(env or {})}, "cwd": None, "seed": seed, "threads": threads,
        }  # fmt: skip
        forked = zygote.spawn(request, limits, listeners, files)
        for listener in listeners:
            listener.close()
        died = watch(forked)
        try:
            await ready(forked)
            client = await connected(connection, context)
            yield WarmKernel(client, forked, died)
            client.stop_channels()
        finally:
            forked.kill()
            await died
    finally:
        context.destroy(linger=0)
        shutil.rmtree(folder)


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
            sandbox.Refused: none are to be had and none were not asked for.
        """
        return sandbox.at_least().plan if self.level == "auto" else PLANS[self.level]

    def forks(self):
        """Whether this kernel can be a fork of this interpreter."""
        return zygote_possible() and os.path.realpath(self.kernel_spec.argv[0]) in INTERPRETERS

    async def pre_launch(self, **kwargs):
        """KernelManager.pre_start_kernel calls this before every start: choose sockets and write the connection file."""
        if self.forks():
            self.folder = self.folder or tempfile.mkdtemp(prefix="k")
            manager = self.parent
            manager.cache_ports = False
            manager.transport, manager.ip = "ipc", f"{self.folder}/s"
            for port, channel in enumerate(CHANNELS, 1):
                setattr(manager, f"{channel}_port", port)
        elif self.plan.locks:
            raise sandbox.Refused(
                f"kernel {self.kernel_spec.display_name!r} runs {self.kernel_spec.argv[0]}, which cannot be forked from "
                f"{sys.executable}: start this program with that interpreter, or set level to none"
            )
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd, **kwargs):
        """KernelManager.launch_kernel calls this: fork a kernel and wait until it reads messages."""
        if self.folder is None:
            return await super().launch_kernel(cmd, **kwargs)
        plan, limits, cwd = self.plan, Limits(**self.limits), str(kwargs.get("cwd") or os.getcwd())
        zygote = shared_zygote(plan, self.preload)
        request = {
            "module": "autograder.kernel_app", "connection": text(self.connection_info), "arguments": [*ARGUMENTS, *extra(cmd)],
            "env": clean("/tmp") if plan.locks else {**kwargs.get("env", os.environ), **HASH_SEED},
            "cwd": None if plan.locks else cwd, "seed": self.seed, "threads": self.threads,
        }  # fmt: skip
        listeners = listen(self.folder)
        self.process = zygote.spawn(request, limits, listeners, cwd if plan.locks else None)
        for listener in listeners:
            listener.close()
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
