"""Worker processes of this machine: forks of one process that has imported all they need.

What a worker imports takes it 4 s of CPU. Here that is paid once, beside the coordinator's own imports, and a worker
that takes the place of a dead one is there at once.
"""

import functools
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.util
import os
import sys
import tempfile
from unittest import mock

from . import leftovers

# dask's distributed.worker.multiprocessing-method. torch on macOS does not survive a fork.
METHOD = "forkserver" if sys.platform.startswith("linux") else "spawn"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def start_importing() -> None:
    """Start the process that workers are forked from, if it does not run yet; returns at once. It ends with this one."""
    if METHOD != "forkserver":
        return
    _claim_socket_folder()
    multiprocessing.get_context("forkserver").set_forkserver_preload(["autograder.imported_for_workers"])
    with mock.patch.dict(os.environ, ONE_THREAD):  # a pool of threads would be missing in every fork
        multiprocessing.forkserver.ensure_running()


@functools.cache
def _claim_socket_folder() -> None:
    """Requests for forks come by a socket in multiprocessing's own folder, which would outlive this process if that is killed."""
    before, tempfile.tempdir = tempfile.gettempdir(), leftovers.lifelong_place()
    multiprocessing.util.get_temp_dir()
    tempfile.tempdir = before
