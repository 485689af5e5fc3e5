"""A headless Chromium that is driven over the DevTools protocol (chromedevtools.github.io/devtools-protocol)."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest
import websocket

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *(
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",  # no network, the same everywhere
        "--remote-debugging-port=0",
        "--remote-allow-origins=*",
        "--window-size=1280,900",
        "--force-device-scale-factor=1",
    ),
]
REASON = "there is no Chromium on this machine"


def demand_browser():
    """Skip a test where there is no browser; fail it in CI, which has to have one."""
    if PROGRAM is None and os.environ.get("CI"):
        pytest.fail(f"{REASON}, and CI requires it: apt-get install chromium")
    if PROGRAM is None:
        pytest.skip(REASON)


@contextlib.contextmanager
def page(url, seconds=90):
    """A Page that shows `url`; its browser ends with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [PROGRAM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        browser = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            shown = Page(_page_address(Path(profile) / "DevToolsActivePort", browser, seconds), seconds)
            with contextlib.closing(shown.socket):
                shown.call("Page.enable")
                shown.call("Page.navigate", url=url)
                yield shown
                with contextlib.suppress(OSError, websocket.WebSocketException):
                    shown.call("Browser.close")
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                browser.wait(5)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(browser.pid, 9)  # a group of its own: it and what it started
            browser.wait()


def _page_address(file, browser, seconds):
    """The address of the first tab, once the browser has written its port down."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and browser.poll() is None:
        with contextlib.suppress(OSError, ValueError, StopIteration):
            port = int(file.read_text().split()[0])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=5) as answer:
                return next(tab["webSocketDebuggerUrl"] for tab in json.load(answer) if tab["type"] == "page")
        time.sleep(0.2)
    raise AssertionError(f"the browser did not start within {seconds} s")


class Page:
    """One tab."""

    def __init__(self, address, seconds):
        self.socket = websocket.create_connection(address, timeout=seconds)
        self.seconds, self.number = seconds, 0

    def call(self, method, **params):
        """The result of a DevTools command."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]

    def value(self, script):
        """What a JavaScript expression is worth."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, script, holds, what):
        """The value of an expression as soon as `holds(value)`; fails when that takes too long."""
        deadline, value = time.monotonic() + self.seconds, None
        while time.monotonic() < deadline:
            value = self.value(script)
            if holds(value):
                return value
            time.sleep(0.5)
        raise AssertionError(f"{what} did not come within {self.seconds} s; there is {value!r}")

    def in_frame(self, url, script, holds, what):
        """As `until`, in the frame of the page that was opened with `url`."""
        deadline, value = time.monotonic() + self.seconds, None
        while time.monotonic() < deadline:
            frames = self.call("Page.getFrameTree")["frameTree"].get("childFrames", [])
            for frame in (f["frame"] for f in frames if f["frame"]["url"].startswith(url)):
                world = self.call("Page.createIsolatedWorld", frameId=frame["id"])["executionContextId"]
                result = self.call("Runtime.evaluate", expression=script, contextId=world, returnByValue=True)
                value = result["result"].get("value")
                if "exceptionDetails" not in result and holds(value):
                    return value
            time.sleep(0.5)
        raise AssertionError(f"{what} did not come within {self.seconds} s; there is {value!r}")

    def screenshot(self, path):
        """What is seen, as a PNG file."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
