"""A client of ours and jupyter_client's session understand one another, and what is no message does no harm."""

import asyncio
import contextlib
import random
import sys
import threading
import time
from queue import Empty

import pytest
import zmq
from jupyter_client.session import Session

from autograder.limits import Limits
from autograder.messages import DELIMITER, Client
from autograder.running import connection_to, socket_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kernels are forked on Linux only")
SECONDS = 30


class Kernel:
    """The sockets of a kernel, and jupyter_client's session behind them."""

    def __init__(self, folder, context, limits):
        connection = connection_to(folder)
        self.session = Session(key=connection["key"].encode())
        self.shell, self.iopub = context.socket(zmq.ROUTER), context.socket(zmq.XPUB)
        self.shell.bind(f"ipc://{folder}/s-{connection['shell_port']}")
        self.iopub.bind(f"ipc://{folder}/s-{connection['iopub_port']}")
        self.client = Client(connection, limits)
        self.iopub.recv()  # it has subscribed

    def frames(self, kind="stream", content=None, parent=None):
        """A message as it is sent."""
        message = self.session.msg(kind, content or {}, parent=parent)
        return self.session.serialize(message, ident=b"topic")


@pytest.fixture
def kernel(tmp_path):
    with zmq.Context() as context:
        context.linger = 0
        kernel = Kernel(socket_folder(), context, Limits(message_mib=1))
        with contextlib.closing(kernel.client):
            yield kernel
        context.destroy(linger=0)


def heard(kernel, seconds=SECONDS):
    return asyncio.run(kernel.client.get_iopub_msg(timeout=seconds))


def test_a_request_says_what_that_of_jupyter_client_says(kernel):
    asked = kernel.client.execute("é\ud800", silent=True, store_history=False, user_expressions={"probe": "1"})
    ident, message = kernel.session.recv(kernel.shell, mode=0)
    assert ident == [kernel.client.session.encode()]
    assert message["msg_id"] == message["header"]["msg_id"] == asked
    assert message["msg_type"] == "execute_request"
    assert message["content"] == {
        "code": "é\ud800", "silent": True, "store_history": False, "user_expressions": {"probe": "1"},
        "allow_stdin": False, "stop_on_error": True,
    }  # fmt: skip
    assert kernel.client.execute("again") != asked


def test_what_jupyter_client_sends_is_read(kernel):
    parent = {"msg_id": "7", "date": "2026-01-01T00:00:00Z"}
    kernel.iopub.send_multipart(kernel.frames("stream", {"text": "é"}, {"header": parent}))
    message = heard(kernel)
    assert (message["msg_type"], message["content"]) == ("stream", {"text": "é"})
    assert message["parent_header"] == parent  # dates stay texts


def test_a_reply_is_read(kernel):
    asked = kernel.client.execute("1")
    ident, request = kernel.session.recv(kernel.shell, mode=0)
    kernel.session.send(kernel.shell, "execute_reply", {"status": "ok"}, parent=request, ident=ident)
    reply = asyncio.run(kernel.client.get_shell_msg(timeout=SECONDS))
    assert reply["content"] == {"status": "ok"} and reply["parent_header"]["msg_id"] == asked


def forged(frames, key=b"other"):
    return [*frames[:2], Session(key=key).sign(frames[3:7]), *frames[3:]]


def resigned(change):
    """What a student's code can send, which knows the key: signed, but of another form."""

    def changed(kernel, frames):
        parts = change(frames[3:])
        return [b"topic", DELIMITER, kernel.session.sign(parts[:4]), *parts]

    return changed


NO_MESSAGES = {
    "unsigned": lambda kernel, frames: [*frames[:2], b"", *frames[3:]],
    "signed with another key": lambda kernel, frames: forged(frames),
    "changed": lambda kernel, frames: [*frames[:6], b'{"text": "other"}'],
    "without delimiter": lambda kernel, frames: frames[2:],
    "nothing": lambda kernel, frames: [b""],
    "nothing behind the delimiter": lambda kernel, frames: frames[:2],
    "too short": resigned(lambda parts: parts[:3]),
    "no JSON": resigned(lambda parts: [b"{", *parts[1:]]),
    "no text": resigned(lambda parts: [b"\xff\x00", *parts[1:]]),
    "a header that is a list": resigned(lambda parts: [b"[]", *parts[1:]]),
    "a header without a type": resigned(lambda parts: [b"{}", *parts[1:]]),
    "too deep": resigned(lambda parts: [*parts[:3], b"[" * 500_000]),
}


@pytest.mark.parametrize("name", NO_MESSAGES)
def test_what_is_no_message_is_refused_and_the_next_one_read(kernel, name):
    kernel.iopub.send_multipart(NO_MESSAGES[name](kernel, kernel.frames(content={"text": "one"})))
    kernel.iopub.send_multipart(kernel.frames(content={"text": "two"}))
    with pytest.raises((ValueError, TypeError, LookupError, RecursionError)):
        heard(kernel)
    assert heard(kernel)["content"] == {"text": "two"}


def test_a_message_counts_once(kernel):
    frames = kernel.frames()
    for _ in range(2):
        kernel.iopub.send_multipart(frames)
    assert heard(kernel)["msg_type"] == "stream"
    with pytest.raises(ValueError, match="a second time"):
        heard(kernel)


def test_a_message_that_is_too_long_never_arrives(kernel):
    kernel.iopub.send_multipart(kernel.frames(content={"text": "x" * (2 << 20)}))
    with pytest.raises(Empty):
        heard(kernel, 0.3)


@pytest.mark.parametrize("seconds", [0, 0.05])
def test_waiting_ends_in_time(kernel, seconds):
    began = time.monotonic()
    with pytest.raises(Empty):
        heard(kernel, seconds)
    assert seconds <= time.monotonic() - began < seconds + 5


def test_whoever_stopped_waiting_can_wait_again(kernel):
    async def run():
        waiting = asyncio.ensure_future(kernel.client.get_iopub_msg())
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait([waiting])
        kernel.iopub.send_multipart(kernel.frames(content={"n": 1}))
        return await kernel.client.get_iopub_msg(timeout=SECONDS)

    assert asyncio.run(run())["content"] == {"n": 1}


def test_no_message_is_overlooked(kernel):
    """ZeroMQ's descriptor tells of a message once: whoever waits for it must have taken all that came before."""
    many, generator = 600, random.Random(0)  # fewer than are kept on the way

    def publish():
        for n in range(many):
            kernel.iopub.send_multipart(kernel.frames(content={"n": n}))
            if generator.random() < 0.2:
                time.sleep(generator.random() / 500)

    async def run():
        found = []
        while len(found) < many:
            found.append((await kernel.client.get_iopub_msg(timeout=SECONDS))["content"]["n"])
            kernel.client.execute("")  # what is sent on the other channel takes nothing away
        return found

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        assert asyncio.run(run()) == list(range(many))
    finally:
        thread.join()
