"""Worker processes of this machine: forks of one process that has imported all they need, with a stem for their zygotes.

What a worker imports takes it 4 s of CPU, and what its zygote imports 3 s. Here both are paid once, and a worker that takes
the place of a dead one is there at once.
"""

import contextlib
import functools
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.util
import os
import sys
import tempfile
import threading
from unittest import mock

from . import leftovers, preload, sandbox, stem
from .errors import EngineError, Refused
from .settings import Settings

# dask's distributed.worker.multiprocessing-method. torch on macOS does not survive a fork.
METHOD = "forkserver" if sys.platform.startswith("linux") else "spawn"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
BOTH_NEED = ("torch", "nbformat", "autograder.farm", "autograder.grade")  # workers and this process


def start_importing(settings: Settings, hides: tuple[str, ...] = ()) -> None:
    """Start what workers are forked from and what their zygotes are forked from, if they do not run yet; waits for neither.

    Both end with this process. A process without threads is itself what its workers are forked from, so that what both need is
    imported once; another one starts a process for it.

    Args:
        hides: packages that the kernels must not be able to import.
    """
    if METHOD != "forkserver":
        return
    _claim_socket_folder()
    multiprocessing.get_context("forkserver").set_forkserver_preload(["autograder.imported_for_workers"])
    with mock.patch.dict(os.environ, ONE_THREAD):  # a pool of threads would be missing in every fork
        if threads() > 1 or "numpy" in sys.modules:
            return multiprocessing.forkserver.ensure_running()
        with contextlib.suppress(EngineError, Refused):  # said when the class is graded
            plan = sandbox.at_least(trust_code=settings.trust_code).plan
            stem.start(plan, preload.NOTEBOOKS, settings.device, hides)
        with preload.to_stay():
            preload.import_all(BOTH_NEED)
        if threads() > 1:
            return multiprocessing.forkserver.ensure_running()
        with mock.patch.object(multiprocessing.util, "spawnv_passfds", _fork):
            multiprocessing.forkserver.ensure_running()


def threads() -> int:
    """How many threads this process has, those of libraries included."""
    return len(os.listdir("/proc/self/task"))


def _fork(program: str, arguments: list[str], descriptors: list[int]) -> int:
    """In place of a new process of Python: a fork of this one that runs the same code."""
    if pid := os.fork():
        return pid
    try:
        for number in set(map(int, os.listdir("/proc/self/fd"))) - {0, 1, 2, *descriptors, *stem.descriptors()}:
            with contextlib.suppress(OSError):  # the listing's own
                os.close(number)  # locks on folders among them: they would last as long as this process
        multiprocessing.forkserver._forkserver._lock = threading.Lock()  # held by the call that we are in
        exec(arguments[-1], {"__name__": "forkserver"})
    finally:
        os._exit(0)


@functools.cache
def _claim_socket_folder() -> None:
    """Requests for forks come by a socket in multiprocessing's own folder, which would outlive this process if that is killed."""
    before, tempfile.tempdir = tempfile.gettempdir(), leftovers.lifelong_place()
    multiprocessing.util.get_temp_dir()
    tempfile.tempdir = before
