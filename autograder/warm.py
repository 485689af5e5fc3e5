"""A zygote as its worker sees it: started once, asked for kernels, stopped.

    zygote = Zygote.start(plan=PLANS["watchdog"])
    forked = zygote.spawn({"module": "autograder.kernel_app", ...}, Limits())

Most callers want running.start_warm_kernel, which does this and connects a client.
"""

import contextlib
import io
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder import bubblewrap, cgroup, folders, preload
from autograder.errors import EngineError
from autograder.limits import DEFAULT
from autograder.plans import PLANS

START_SECONDS = 180
LARGEST_MESSAGE = 1 << 18
FIRST_SLOT_UID, SLOTS = 61184, 4096  # a range that no account uses (systemd keeps it for passing services)
NVIDIA = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", *(f"/dev/nvidia{i}" for i in range(16)))
DEVICES = {"cpu": (), "cuda": NVIDIA}
OF_A_GPU = {"cpu": (), "cuda": ("/sys",)}  # where its driver looks for the device
KEPT = ("LANG", "LC_ALL", "TZ")  # of our environment; a zygote gets nothing else of it


class ZygoteError(EngineError):
    """A zygote could not start, or could not fork."""


@dataclass(frozen=True)
class Ended:
    """How a kernel ended.

    code: exit code, or minus the signal.
    cpu_seconds: of all its processes.
    peak_mib: memory beyond the warm process's; a lower bound where there is no control group.
    stopped_by: the limit for which it was killed ("memory", "cpu", "scratch"), or None.
    """

    code: int
    cpu_seconds: float = 0.0
    peak_mib: int = 0
    stopped_by: str | None = None


class Zygote:
    """One warm process; `start` makes one, `stop` or the end of this process ends it and its kernels."""

    def __init__(self, process, control, plan, hides, uid, group, shared, home):
        self.process, self.control, self.plan, self.hides, self.uid = process, control, plan, hides, uid
        self.group, self.shared, self.home = group, shared, home
        self.kernels = []
        self.failed = {}

    @classmethod
    def start(
        cls,
        plan=PLANS["none"],
        modules=preload.COURSE,
        hides=(),
        device="cpu",
        uid=None,
        shared=False,
        env=None,
        stem=None,
    ):
        """Start a zygote and wait until it is warm (seconds).

        Args:
            modules: what to import.
            hides: packages that cannot be imported in its kernels.
            device: "cpu", or "cuda" to let kernels use the GPU.
            uid: whom it becomes if we are root; by default a number derived from this process.
            shared: whether it may have several kernels at a time; without walls they are somebody's own, not limited.
            env: its environment, by default clean.
            stem: what it is to be forked from, where that fits: with namespaces, of the same device, hiding the same;
                env and modules are then the stem's.
        Raises:
            ZygoteError: it did not start.
        """
        if os.geteuid() == 0 and plan.locks:
            uid = uid or FIRST_SLOT_UID + os.getpid() % SLOTS
        group = cgroup.Group.create() if plan.cgroup else None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        setup = {
            "plan": plan.name, "modules": modules, "hides": hides, "uid": uid,
            "visible": bubblewrap.visible(hides) + OF_A_GPU[device], "devices": DEVICES[device],
            "sweeps": plan.locks or not shared,
        }  # fmt: skip
        home = folder_of(uid) if not plan.root else None
        with theirs:
            if stem is not None:
                process = stem.fork(setup, theirs, ours, group)
            else:
                process = popen(setup, theirs, env or clean(home or "/tmp"), group)
                ours.send(json.dumps(setup).encode())
        zygote = cls(process, ours, plan, tuple(hides), uid, group, shared, home)
        zygote._warm_up()
        return zygote

    def _warm_up(self):
        try:
            self.control.settimeout(START_SECONDS)
            answer = self.control.recv(LARGEST_MESSAGE)
        except OSError as error:
            answer = json.dumps({"error": str(error)}).encode()
        answer = json.loads(answer or b"{}")
        if "ready" not in answer:
            self.stop()
            raise ZygoteError(answer.get("error") or f"the zygote ended while it started (plan {self.plan.name})")
        self.failed = answer["failed"]
        if self.group:
            self.group.settle()

    def alive(self):
        """Whether it can be asked."""
        return self.process.poll() is None

    def spawn(self, request, limits=DEFAULT, listeners=(), files=None):
        """Fork one kernel.

        Args:
            request: "module", whose run() becomes the kernel; "env", "cwd" (None: its own folder), "seed", "threads".
            listeners: sockets that the kernel inherits.
            files: a folder whose regular files and folders are copied into the working folder.
        Returns:
            Forked; the kernel is not ready yet, see Forked.ready.
        Raises:
            ZygoteError: it already has a kernel and is not shared, or cannot fork.
        """
        self.kernels = [kernel for kernel in self.kernels if kernel.poll() is None]
        if self.kernels and not self.shared:
            raise ZygoteError("the zygote already runs a kernel: stop that one first, or start another zygote")
        if self.group:
            self.group.allow(limits)
        archive = packed(files, limits)
        scratch = folder_of(self.uid) if request["cwd"] is None and not self.plan.root else None
        ready, tell_ready = os.pipe()
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        passed = [memory_file(json.dumps(request).encode()), tell_ready, memory_file(archive)]
        message = json.dumps({"limits": asdict(limits), "scratch": scratch}).encode()
        try:
            with theirs:
                socket.send_fds(self.control, [message], [theirs.fileno(), *passed, *(s.fileno() for s in listeners)])
            mine.settimeout(START_SECONDS)
            answer = json.loads(mine.recv(LARGEST_MESSAGE) or b"{}")
            if "pid" not in answer:
                raise ZygoteError(answer.get("error") or "the zygote has ended")
        except (OSError, ZygoteError) as error:
            mine.close()
            os.close(ready)
            raise ZygoteError(f"no kernel could be forked: {error}") from error
        finally:
            for descriptor in passed:
                os.close(descriptor)
        kernel = Forked(mine, answer["pid"], ready, scratch, self.group)
        self.kernels.append(kernel)
        return kernel

    def stop(self):
        """End the zygote and its kernels."""
        self.control.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for kernel in self.kernels:
            kernel.poll()
        if self.group:
            self.group.remove()
        if self.home:
            shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def popen(setup, control, env, group=None):
    """A new process of autograder.zygote behind the walls of its setup; it serves who holds the other end of `control`."""
    command = group.command() if group else []
    if PLANS[setup["plan"]].root:
        command += bubblewrap.command(sys.executable, setup["visible"], setup["hides"], setup["devices"])
    else:
        command += [sys.executable]
    command += ["-m", "autograder.zygote", str(control.fileno())]
    env = {**our_place(), **env}
    return subprocess.Popen(
        command, pass_fds=[control.fileno()], env=env, stdin=subprocess.DEVNULL, start_new_session=True
    )


class Forked:
    """A forked kernel, in the shape of subprocess.Popen. Its pid means something in its namespace only."""

    stdin = stdout = stderr = None

    def __init__(self, connection, pid, ready, scratch, group):
        self.connection, self.pid, self.ready, self.scratch, self.group = connection, pid, ready, scratch, group
        self.ended = None
        connection.setblocking(False)

    @property
    def returncode(self):
        return self.ended and self.ended.code

    def fileno(self):
        """Readable when the kernel has ended; -1 once that was seen."""
        return self.connection.fileno()

    def poll(self):
        """The exit code, minus the signal, or None while it runs."""
        if self.ended is None:
            try:
                message = self.connection.recv(LARGEST_MESSAGE)
            except BlockingIOError:
                return None
            except OSError:
                message = b""
            self._end(
                Ended(**json.loads(message)) if message else Ended(-signal.SIGKILL)
            )  # none: it died with the zygote
        return self.ended.code

    def _end(self, ended):
        self.connection.close()
        if self.group:
            ended = self.group.explain(ended)
        if self.scratch:
            with contextlib.suppress(OSError):
                folders.empty(self.scratch)
                os.rmdir(self.scratch)
        self.ended = ended

    def wait(self, timeout=None):
        """The exit code, once it has ended.

        Raises:
            TimeoutError: it runs longer than timeout, seconds.
        """
        if self.poll() is None and not select.select([self.connection], [], [], timeout)[0]:
            raise TimeoutError(f"the kernel still runs after {timeout} seconds")
        return self.poll()

    def send_signal(self, number):
        """Send a signal to the kernel's first process; nothing if it has ended."""
        if self.poll() is None:
            with contextlib.suppress(OSError):
                self.connection.send(json.dumps({"signal": int(number)}).encode())

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait_ready(self, timeout=START_SECONDS):
        """Wait until the kernel reads messages.

        Raises:
            ZygoteError: it ended or failed before that.
        """
        readable = select.select([self.ready], [], [], timeout)[0]
        return self.started(os.read(self.ready, 1 << 13).decode() if readable else f"not ready after {timeout} seconds")

    def started(self, said):
        """Take what the kernel said about its start."""
        os.close(self.ready)
        if said != "ready":
            self.kill()
            raise ZygoteError(f"the kernel did not start: {said or 'it ended'}")


def folder_of(uid):
    """A new temporary folder that belongs to the user of that number, or to us for None."""
    folder = tempfile.mkdtemp(prefix="kernel-")
    if uid is not None:
        os.chown(folder, uid, uid)
    return folder


INHERITABLE = {  # what a zygote needs in its environment
    "PYTHONHASHSEED": "0",  # hashes of strings are the same in all forks anyway; so they are also the same in every run
    "OPENBLAS_NUM_THREADS": "1",  # else importing numpy starts threads
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # torch.cuda.is_available() without initialising CUDA, which no fork survives
}


def clean(home):
    """An environment without anything of ours, no tokens, no folders; `!python` is the Python of the kernel."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    path = f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": home, "PYTHONDONTWRITEBYTECODE": "1", **INHERITABLE, **kept}


def our_place():
    """What makes a new interpreter import this very package, where sys.path leads to it and not an installation.

    Only a zygote's own environment has it; a kernel gets that of its request.
    """
    place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = place.endswith(("site-packages", "dist-packages"))
    return {"PYTHONPATH": place} if not installed and place in map(os.path.abspath, sys.path) else {}


def start_fails():
    """Why a zygote could not even start without any walls, in the words of Python; "" where it could."""
    command = [sys.executable, "-c", "import autograder.zygote"]
    tried = subprocess.run(command, cwd="/", env={**our_place(), **clean("/tmp")}, capture_output=True, text=True)
    return (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1] if tried.returncode else ""


def memory_file(content):
    """A descriptor of an anonymous file with that content, at its start."""
    descriptor = os.memfd_create("request")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def packed(folder, limits):
    """A folder as a tar archive without links, devices, owners; nothing for None.

    Raises:
        ZygoteError: larger than the kernel's scratch folder.
    """
    if folder is None:
        return b""
    archive, left = io.BytesIO(), limits.scratch_mib << 20
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                continue
            left -= path.stat().st_size
            if left < 0:
                raise ZygoteError(
                    f"{folder} holds more than {limits.scratch_mib} MiB: raise scratch_mib or leave files out"
                )
            tar.add(path, path.relative_to(folder), recursive=False, filter=_anonymous)
    return archive.getvalue()


def _anonymous(entry):
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry
