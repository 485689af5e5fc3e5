"""Zygotes that are forked from one stem are as far apart as those that are started alone."""

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder import kernels, preload, sandbox, stem
from autograder.limits import Limits
from autograder.plans import PLANS
from autograder.running import start_warm_kernel
from autograder.settings import load_settings
from autograder.warm import Zygote, ZygoteError

from .attacks import execute

pytestmark = pytest.mark.skipif(
    not (sys.platform.startswith("linux") and sandbox.level().plan.namespaces), reason="a stem needs namespaces"
)
SECONDS = 60.0
PLAN = sandbox.level().plan
OTHER_USER = 61190  # another number than this process's own would be


@pytest.fixture(scope="module")
def grown():
    grown = stem.Stem(PLAN, preload.COURSE, "cpu")
    yield grown
    grown.stop()


@pytest.fixture
def zygotes(grown):
    """Two, as two workers have them."""
    with Zygote.start(PLAN, stem=grown) as one, Zygote.start(PLAN, stem=grown, uid=OTHER_USER) as two:
        yield one, two


async def said(kernel, source):
    outcome = await execute(kernel, source, SECONDS)
    assert outcome.status == "ok", outcome
    return outcome.text.strip()


def test_its_zygotes_have_imported_what_it_has(zygotes):
    async def run(zygote):
        async with start_warm_kernel(zygote) as kernel:
            return await said(kernel, "import sys\nprint('torch' in sys.modules, 'torch._dynamo' in sys.modules)")

    for zygote in zygotes:
        assert zygote.failed == {} and asyncio.run(run(zygote)) == "True True"


OFFER = """
import os, socket
server = socket.create_server(("127.0.0.1", 0))
hidden = socket.socket(socket.AF_UNIX)
hidden.bind("\\0offer")
hidden.listen()
for place in ("/tmp/offer", "/dev/shm/offer", "offer", os.path.expanduser("~/offer")):
    open(place, "w").write("offer")
socket.create_connection(server.getsockname()).close()  # its own loopback network is there
print(server.getsockname()[1], os.getcwd())
"""
TAKE = """
import contextlib, os, socket
found = []
with contextlib.suppress(OSError):
    found.append(socket.create_connection(("127.0.0.1", {port}), timeout=2))
with contextlib.suppress(OSError):
    client = socket.socket(socket.AF_UNIX)
    client.connect("\\0offer")
    found.append(client)
found += [place for place in ("/tmp/offer", "/dev/shm/offer", "{folder}/offer") if os.path.exists(place)]
found += [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid())]
print(found)
"""


def test_kernels_of_two_of_its_zygotes_do_not_reach_one_another(zygotes):
    async def run():
        async with start_warm_kernel(zygotes[0]) as one, start_warm_kernel(zygotes[1]) as two:
            port, folder = (await said(one, OFFER)).split()
            return await said(two, TAKE.format(port=port, folder=folder))

    assert asyncio.run(run()) == "[]"


@pytest.mark.parametrize("kind", ["user", "pid", "mnt", "net", "ipc"])
def test_each_of_its_zygotes_has_namespaces_of_its_own(zygotes, kind):
    source = f"import os\nprint(os.readlink('/proc/self/ns/{kind}'))"

    async def run():  # at the same time: the number of one that is gone is given to the next
        async with start_warm_kernel(zygotes[0]) as one, start_warm_kernel(zygotes[1]) as two:
            return await said(one, source), await said(two, source)

    assert len({os.readlink(f"/proc/self/ns/{kind}"), *asyncio.run(run())}) == 3


HOLD = "held = bytearray(os.urandom(1 << 20)) * 250\n"
FORK = "if os.fork() == 0:\n    {}    time.sleep(100)\n    os._exit(0)\n"


@pytest.mark.parametrize(
    "source, stopped_by",
    [(HOLD + FORK.format("pass\n"), None), (FORK.format(HOLD) + HOLD, "memory")],
    ids=["what two processes share", "what each of them has"],
)
def test_memory_is_counted_once_without_a_control_group_too(grown, source, stopped_by):
    async def run(zygote):
        async with start_warm_kernel(zygote, limits=Limits(memory_mib=400)) as kernel:
            outcome = await execute(kernel, f"import os, time\n{source}time.sleep(1)\nprint('done')", SECONDS)
            return outcome.text.strip(), (await kernel.kill()).stopped_by

    plan = PLANS["watchdog"]
    with Zygote.start(plan, stem=grown) as one, Zygote.start(plan, stem=grown, uid=OTHER_USER):
        assert asyncio.run(run(one)) == ("" if stopped_by else "done", stopped_by)


def test_another_zygote_takes_the_place_of_a_killed_one(grown):
    with Zygote.start(PLAN, stem=grown) as killed:
        killed.process.kill()
        killed.process.wait(SECONDS)
        assert not killed.alive()
        with pytest.raises(ZygoteError):
            killed.spawn({"module": "x", "cwd": None})
    with Zygote.start(PLAN, stem=grown) as next_one:
        assert next_one.alive()


def test_its_zygotes_leave_no_descriptors_behind(grown):
    for _ in range(5):
        Zygote.start(PLAN, stem=grown).stop()
    gc.collect()
    held = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own
            held += ["pidfd"] * ("pidfd" in os.readlink(link))
    assert len(held) < 5


def test_where_the_stem_has_ended_a_zygote_is_started_by_itself(monkeypatch, tmp_path):
    dead = stem.Stem(PLAN, preload.NOTEBOOKS, "cpu")
    dead.stop()
    monkeypatch.setattr(stem, "fitting", lambda *wanted: dead)
    monkeypatch.setattr(kernels, "_ZYGOTES", {})
    zygote = kernels.warm_up(load_settings(tmp_path))
    with zygote:
        assert zygote.alive() and isinstance(zygote.process, subprocess.Popen)


@pytest.mark.parametrize(
    "wanted, fits",
    [
        ((PLAN, ("json",)), True),
        ((PLAN, ("json",), ("maskedtensor_ref",)), False),
        ((PLAN, ("json",), (), "cuda"), False),
        ((PLAN, ("json", "csv")), False),
        ((PLANS["contained"], ("json",)), False),
    ],
)
def test_a_stem_fits_what_it_was_started_for(monkeypatch, wanted, fits):
    monkeypatch.setattr(stem, "_STEMS", {})
    stem.start(PLAN, ["json"])
    (only,) = stem._STEMS.values()
    assert stem.fitting(*wanted) is (only if fits else None)
    only.stop()


def test_what_a_stem_hides_its_zygotes_cannot_import(monkeypatch, tmp_path):
    """The kernel of a lecture that hides a package comes from a stem all the same, which never imported it."""
    monkeypatch.setattr(stem, "_STEMS", {})
    monkeypatch.setattr(kernels, "_ZYGOTES", {})
    stem.start(PLAN, preload.NOTEBOOKS, hides=("maskedtensor_ref",))
    (only,) = stem._STEMS.values()
    source = (
        "import sys\ntry:\n    import maskedtensor_ref\nexcept ModuleNotFoundError:\n    print('torch' in sys.modules)"
    )

    async def run(zygote):
        async with start_warm_kernel(zygote, hides=("maskedtensor_ref",)) as kernel:
            return await said(kernel, source)

    with kernels.warm_up(load_settings(tmp_path), ("maskedtensor_ref",)) as zygote:
        assert isinstance(zygote.process, stem.Branch) and asyncio.run(run(zygote)) == "True"
    only.stop()


def test_without_namespaces_there_is_no_stem(monkeypatch):
    monkeypatch.setattr(stem, "_STEMS", {})
    for name in ("contained", "landlock", "none"):
        stem.start(PLANS[name], ["json"])
    assert stem._STEMS == {}


HOLDER = """
import os, sys
from autograder import sandbox, stem, watchdog
from autograder.warm import Zygote
grown = stem.Stem(sandbox.level().plan, ("json",), "cpu")
zygotes = [Zygote.start(sandbox.level().plan, stem=grown, uid=61184 + n) for n in range(2)]
print(*watchdog.descendants([os.getpid()])[1:], flush=True)
os.kill(os.getpid(), 9)
"""


def test_it_ends_with_who_holds_it():
    pids = subprocess.run([sys.executable, "-c", HOLDER], capture_output=True, text=True).stdout.split()
    assert len(pids) > 5
    end = time.monotonic() + SECONDS
    while alive := [pid for pid in pids if running(pid)]:
        assert time.monotonic() < end, alive
        time.sleep(0.05)


def running(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(") ")[2][0] != "Z"
    return False
