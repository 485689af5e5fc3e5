"""Requests to a forked kernel, and what it publishes and replies: as jupyter_client does it, at two thirds of the CPU time.

A submission is some twenty requests and eighty messages. Here none is searched for dates, and one that has arrived is read
without a turn of the event loop. What arrives is hostile: ZeroMQ refuses what is too long, and what is not signed with the
kernel's key, or comes a second time, is no message.

Source: jupyter-client.readthedocs.io/en/stable/messaging.html#wire-protocol
"""

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from queue import Empty

import zmq

DELIMITER = b"<IDS|MSG>"
VERSION = "5.3"  # of the protocol
MOST_SIGNATURES = 1 << 16  # that are remembered: 10 MB


def limited(context, limits):
    """A ZeroMQ context whose sockets take no message and no backlog larger than the limits say."""
    context.setsockopt(zmq.MAXMSGSIZE, limits.message_mib << 20)
    context.setsockopt(zmq.RCVHWM, limits.messages_waiting)
    context.setsockopt(zmq.LINGER, 0)
    return context


class Client:
    """What asks one kernel and hears what it says, with those methods of an AsyncKernelClient that are needed here."""

    def __init__(self, connection, limits):
        self.session, self.requests, self.signatures = secrets.token_hex(16), 0, set()
        self.key = hmac.new(connection["key"].encode(), digestmod=hashlib.sha256)
        self.context = limited(zmq.Context(), limits)
        self.shell, self.iopub = self.context.socket(zmq.DEALER), self.context.socket(zmq.SUB)
        self.shell.setsockopt(zmq.IDENTITY, self.session.encode())  # for replies to find it after a connection was lost
        self.iopub.setsockopt(zmq.SUBSCRIBE, b"")
        for channel, port in ((self.shell, "shell_port"), (self.iopub, "iopub_port")):
            channel.connect(f"ipc://{connection['ip']}-{connection[port]}")

    def execute(
        self, code, silent=False, store_history=True, user_expressions=None, allow_stdin=False, stop_on_error=True
    ):
        """Ask the kernel to execute code; the request's id."""
        self.requests += 1
        header = {
            "msg_id": f"{self.session}_{self.requests}", "msg_type": "execute_request", "session": self.session,
            "username": "", "version": VERSION,
        }  # fmt: skip
        content = {
            "code": code, "silent": silent, "store_history": store_history, "user_expressions": user_expressions or {},
            "allow_stdin": allow_stdin, "stop_on_error": stop_on_error,
        }  # fmt: skip
        parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
        self.shell.send_multipart([DELIMITER, self._signature(parts), *parts])
        return header["msg_id"]

    async def get_iopub_msg(self, timeout=None):
        """The next message that the kernel publishes.

        Args:
            timeout: seconds to wait for it; None: as long as it takes.
        Raises:
            Empty: none came.
            ValueError, TypeError, LookupError, RecursionError: what came is no message.
        """
        return self._read(await _next(self.iopub, timeout))

    async def get_shell_msg(self, timeout=None):
        """The next reply; as get_iopub_msg."""
        return self._read(await _next(self.shell, timeout))

    def _read(self, frames):
        signature, *parts = frames[frames.index(DELIMITER) + 1 :]
        if signature in self.signatures or not hmac.compare_digest(signature, self._signature(parts[:4])):
            raise ValueError("a message is not signed, or comes a second time")
        if len(self.signatures) >= MOST_SIGNATURES:
            self.signatures.clear()
        self.signatures.add(signature)
        header, parent, content = (json.loads(parts[n].decode(errors="replace")) for n in (0, 1, 3))
        return {"msg_type": header["msg_type"], "parent_header": parent, "content": content}

    def _signature(self, parts):
        signed = self.key.copy()
        signed.update(b"".join(parts))
        return signed.hexdigest().encode()

    def close(self):
        """Close the connections, and all that they hold, at once."""
        self.context.destroy(linger=0)


async def _next(channel, timeout):
    """The frames of the next message; Empty is raised where none comes in time."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        try:
            return channel.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:  # so its descriptor will tell of the next one: it speaks only where all before was taken
            left = None if deadline is None else deadline - time.monotonic()
            if (left is not None and left <= 0) or not await readable(channel.get(zmq.FD), left):
                raise Empty from None


async def readable(descriptor, seconds=None):
    """Whether there is something to read within so many seconds; None: as long as it takes."""
    loop = asyncio.get_running_loop()
    found = loop.create_future()

    def settle(outcome):
        if not found.done():
            found.set_result(outcome)

    loop.add_reader(descriptor, settle, True)
    timer = None if seconds is None else loop.call_later(seconds, settle, False)
    try:
        return await found
    finally:
        loop.remove_reader(descriptor)
        if timer:
            timer.cancel()
