"""Kernels from a warm zygote, for our own engine and for everything that speaks jupyter_client.

    async with start_warm_kernel(zygote, files=folder, limits=Limits(memory_mib=1024), seed=3) as kernel:
        reply = await kernel.client.execute_interactive("1 + 1")
        await kernel.interrupt()
        ended = await kernel.died

nbclient, nbgrader, nbval and JupyterLab get the same kernels through WarmForkProvisioner: by a kernelspec with
`"metadata": {"kernel_provisioner": {"provisioner_name": "warm-fork"}}`, or for every kernelspec of this interpreter by the
environment variable JUPYTER_DEFAULT_PROVISIONER_NAME=warm-fork.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import tempfile
from dataclasses import dataclass

import zmq
import zmq.asyncio
from jupyter_client.asynchronous import AsyncKernelClient

from autograder.limits import Limits
from autograder.warm import clean

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
