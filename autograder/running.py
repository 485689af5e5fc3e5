"""A kernel that runs for the length of an `async with`, warm or cold, with a connected client.

async with start_warm_kernel(zygote, files=folder, limits=Limits(memory_mib=1024), seed=3) as kernel:
    request = kernel.client.execute("1 + 1")
    message = await kernel.client.get_iopub_msg(timeout=5)
    await kernel.interrupt()
    ended = await kernel.died
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
from queue import Empty

import zmq
import zmq.asyncio
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.connect import write_connection_file

from autograder import cold
from autograder.limits import DEFAULT
from autograder.messages import Client, limited, readable
from autograder.preload import ARGUMENTS
from autograder.warm import clean

# In the order of kernel_app.CHANNELS.
PORTS = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5}
READY_SECONDS = 60
BACKLOG = 16
LONGEST = 60  # characters of a temporary folder's path that leave room for a socket's name in 107


def socket_folder():
    """A new temporary folder whose path is short enough for sockets."""
    place = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="k", dir=place if len(place) <= LONGEST or os.name != "posix" else "/tmp")


def listen(folder):
    """Five listening Unix sockets in a socket_folder()."""
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
    """What jupyter_client's own clients need to be limited, too."""
    return limited(zmq.asyncio.Context(), limits)


@dataclass
class Kernel:
    """A running kernel, warm or cold.

    client: connected; it has execute, get_iopub_msg and get_shell_msg of an AsyncKernelClient.
    died: a future of warm.Ended, set when the kernel has ended and nothing of it is left.
    """

    client: Client | AsyncKernelClient
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
    said = False
    try:
        said = await readable(forked.ready, READY_SECONDS)
    finally:
        forked.started(os.read(forked.ready, 1 << 13).decode() if said else "no answer in time")


async def welcome(client, timeout):
    """Wait until the kernel has greeted this subscriber of its output.

    Raises:
        TimeoutError: it is silent for so many seconds.
    """
    message = {}
    while message.get("msg_type") != "iopub_welcome":
        try:
            message = await client.get_iopub_msg(timeout=timeout)
        except Empty:
            raise TimeoutError(f"the kernel did not greet its client within {timeout:g} s") from None


def spawn(zygote, request, limits, listeners, files):
    """Zygote.spawn, after which the listening sockets are the kernel's alone."""
    try:
        return zygote.spawn(request, limits, listeners, files)
    finally:
        for listener in listeners:
            listener.close()


@contextlib.asynccontextmanager
async def start_warm_kernel(
    zygote, files=None, limits=DEFAULT, env=None, threads=1, seed=0, hides=(), arguments=ARGUMENTS
):
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
    folder = socket_folder()
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
            with contextlib.closing(Client(connection, limits)) as client:
                await welcome(client, READY_SECONDS)  # from then on all that it publishes arrives
                yield Kernel(client, forked, died)
        finally:
            forked.kill()
            await died
    finally:
        shutil.rmtree(folder)


@contextlib.asynccontextmanager
async def start_cold_kernel(
    python, files=None, limits=DEFAULT, env=None, threads=1, seed=0, hides=(), arguments=ARGUMENTS
):
    """As start_warm_kernel, with an ordinary process of the interpreter at that path: slower, and with no walls.

    Raises:
        TimeoutError: the kernel does not answer; does that interpreter have ipykernel, numpy and torch?
    """
    folder = socket_folder()
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
