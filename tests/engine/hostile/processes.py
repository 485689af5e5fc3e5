# ruff: noqa
# Snippets that try to see, end, steer or outlive other processes.

# %% seeing_other_processes
import os

own = {os.getpid(), 1}
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) not in own:
        escaped(open(f"/proc/{pid}/cmdline").read())
# not: contained

# %% ending_the_parent
import os, signal

for pid in {os.getppid(), TARGETS["grader"]} - {0, 1, os.getpid()}:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
# not: contained

# %% stopping_the_parent
import os, signal

for pid in {os.getppid(), TARGETS["grader"]} - {0, os.getpid()}:
    try:
        os.kill(pid, signal.SIGSTOP)
    except OSError:
        pass
# not: contained

# %% ending_every_process_by_number
import os, signal

for pid in range(2, 40000):
    if pid != os.getpid() and not os.path.exists(f"/proc/self/task/{pid}"):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
# not: contained

# %% ending_everything_at_once
import os, signal

os.kill(-1, signal.SIGKILL)
# ends: any
# not: contained

# %% ending_itself
import os, signal

os.kill(os.getpid(), signal.SIGKILL)
# ends: dead

# %% crashing
import ctypes

ctypes.string_at(0)
# ends: dead

# %% aborting
import os

os.abort()
# ends: dead

# %% becoming_another_program
import os

os.execv("/bin/sleep", ["sleep", "1000"])
# ends: dead

# %% tracing_the_grader
import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)
for pid in {os.getppid(), TARGETS["grader"], 1} - {os.getpid()}:
    for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
        if libc.ptrace(request, pid, 0, 0) == 0:
            escaped(pid)

# %% memory_of_the_grader
import os

for pid in {os.getppid(), TARGETS["grader"], 1} - {os.getpid()}:
    for name in ("mem", "maps", "environ", "root", "cwd", "fd/3"):
        try:
            path = f"/proc/{pid}/{name}"
            escaped(f"{path}: {os.readlink(path) if name in ('root', 'cwd', 'fd/3') else open(path, 'rb').read(100)}")
        except OSError:
            pass
# not: contained

# %% reading_memory_by_system_call
import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


buffer = ctypes.create_string_buffer(64)
here, there = Vector(ctypes.addressof(buffer), 64), Vector(id(os), 64)
for pid in {os.getppid(), TARGETS["grader"], 1} - {os.getpid()}:
    if libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0:
        escaped(pid)

# %% stealing_descriptors
import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)
for pid in {os.getppid(), TARGETS["grader"], 1} - {os.getpid(), 0}:
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        continue
    for n in range(10):
        if libc.syscall(438, fd, n, 0) >= 0:
            escaped(f"{pid}: {n}")

# %% a_daemon
import os, time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
os.wait()

# %% a_daemon_that_ignores_signals
import os, signal, time

if os.fork() == 0:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(1000)
    os._exit(0)
os.wait()

# %% a_daemon_that_forgets_its_parent
import ctypes, os, subprocess

ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # no signal when the parent ends
subprocess.Popen(["/bin/sh", "-c", "setsid nohup sleep 1000 &"])

# %% a_family_that_keeps_forking
import os, time

if os.fork() == 0:
    os.setsid()
    while True:
        if os.fork():
            os._exit(0)
# ends: any

# %% keeping_orphans
import ctypes, os, time

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # subreaper
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)

# %% ignoring_the_interrupt
import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
while True:
    pass
# ends: silent

# %% swallowing_the_interrupt
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
# ends: silent

# %% blocking_every_signal
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
while True:
    pass
# ends: interrupted

# %% stopping_itself
import os, signal

os.kill(os.getpid(), signal.SIGSTOP)
# ends: silent

# %% asking_the_zygote_for_an_unlocked_fork
import os, socket, array

for n in range(3, 256):
    try:
        s = socket.socket(fileno=os.dup(n))
        if s.type & 15 == socket.SOCK_SEQPACKET:
            s.send(b'{"limits": {}, "scratch": null}')
            escaped(n)
    except OSError:
        pass
# ends: any
