# ruff: noqa
# Snippets that try to read or change files that are not theirs.

# %% another_submission
print(open(TARGETS["submission"]).read())
escaped("read another submission")

# %% the_gradebook
print(open(TARGETS["gradebook"], "rb").read())
escaped("read the gradebook")

# %% writing_the_gradebook
open(TARGETS["gradebook"], "ab").write(b"100")
escaped("wrote the gradebook")

# %% truncating_the_gradebook
import os

os.truncate(TARGETS["gradebook"], 0)
escaped("emptied the gradebook")

# %% deleting_other_peoples_files
import shutil, os

shutil.rmtree(os.path.dirname(TARGETS["submission"]))
escaped("deleted")

# %% the_reference_answers
import glob, os

for start in ("/", os.path.dirname(os.path.dirname(__import__("autograder").__file__))):
    for pattern in ("solutions/*/exercises.py", "*/solutions/*/exercises.py"):
        for path in glob.glob(os.path.join(start, pattern)):
            escaped(path)

# %% the_whole_disk
import os

for folder, folders, names in os.walk("/"):
    folders[:] = [name for name in folders if name not in ("proc", "sys", "site-packages", "share")]
    for name in names:
        if name in ("gradebook.db", "secret.txt") or (name == "exercises.py" and "solutions" in folder):
            escaped(os.path.join(folder, name))

# %% home
import os

for home in ("/root", "/home", os.path.expanduser("~nobody")):
    for folder, folders, names in os.walk(home):
        folders[:] = [name for name in folders if name not in (".pyenv", ".venv")]
        for name in names:
            if name.startswith((".bash", ".profile", ".ssh", ".git", ".netrc")):
                escaped(os.path.join(folder, name))

# %% password_hashes
open("/etc/shadow").read()
escaped("read /etc/shadow")

# %% through_the_root_of_another_process
import os

for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if os.path.exists(f"/proc/{pid}/root{TARGETS['submission']}"):
            escaped(pid)
    except OSError:
        pass

# %% a_symbolic_link
import os

os.symlink(TARGETS["submission"], "mine")
print(open("mine").read())
escaped("read through a link")

# %% a_hard_link
import os

os.link(TARGETS["submission"], "mine")
escaped("linked")

# %% up_from_the_working_folder
import os

for depth in range(20):
    path = "../" * depth + TARGETS["submission"].lstrip("/")
    try:
        os.open(path, os.O_RDONLY)
        escaped(path)
    except OSError:
        pass

# %% a_file_handle
import ctypes, os, struct

libc = ctypes.CDLL(None, use_errno=True)
handle = ctypes.create_string_buffer(struct.pack("Ii", 8, 1) + struct.pack("II", 2, 0))
fd = libc.open_by_handle_at(os.open(".", os.O_RDONLY), handle, 0)
if fd >= 0:
    escaped("opened by handle")

# %% inherited_descriptors
import os

for n in range(256):
    try:
        where = os.readlink(f"/proc/self/fd/{n}")
    except OSError:
        continue
    if where.startswith("/") and not where.startswith(
        ("/dev/null", "/dev/urandom", "/proc/self", "/scratch", os.getcwd(), os.environ["HOME"])
    ):
        if not where.startswith("/memfd:"):
            escaped(f"{n}: {where}")

# %% memory_files_of_requests
import os

for n in range(256):
    try:
        if "memfd" in os.readlink(f"/proc/self/fd/{n}"):
            escaped(os.pread(n, 10000, 0))
    except OSError:
        pass

# %% changing_python_for_the_next_student
import os, sys, json, torch, autograder

for module in (json, torch, autograder):
    try:
        open(module.__file__, "a").close()
        escaped(module.__file__)
    except OSError:
        pass
for folder in (os.path.dirname(json.__file__), os.path.dirname(torch.__file__), sys.prefix, sys.base_prefix):
    try:
        open(os.path.join(folder, "sitecustomize.py"), "w").close()
        escaped(folder)
    except OSError:
        pass

# %% writing_all_over_the_system
import os

for folder in (
    "/",
    "/usr",
    "/usr/lib",
    "/etc",
    "/opt",
    "/var",
    "/run",
    "/sys",
    "/proc",
    "/dev",
    "/dev/pts",
    "/dev/mqueue",
):
    try:
        open(os.path.join(folder, "mine"), "w").close()
        escaped(folder)
    except OSError:
        pass

# %% changing_modes_and_times_of_system_files
import os, json

for change in (lambda p: os.chmod(p, 0o777), lambda p: os.utime(p), lambda p: os.chown(p, os.getuid(), os.getgid())):
    for path in ("/usr", json.__file__, "/"):
        try:
            change(path)
            escaped(path)
        except OSError:
            pass

# %% devices
import os, stat

for name in (
    "vda",
    "sda",
    "nvme0n1",
    "mem",
    "kmem",
    "port",
    "kmsg",
    "kvm",
    "fuse",
    "loop-control",
    "net/tun",
    "vsock",
    "tty0",
):
    try:
        os.open(f"/dev/{name}", os.O_RDONLY)
        escaped(name)
    except OSError:
        pass

# %% a_new_device
import os, stat

os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))
os.open("disk", os.O_RDONLY)
escaped("made a device")

# %% kernel_settings
for path in (
    "/proc/sys/kernel/core_pattern",
    "/proc/sysrq-trigger",
    "/proc/sys/vm/overcommit_memory",
    "/sys/power/state",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/self/oom_score_adj",
):
    try:
        open(path, "w").write("0")
        escaped(path)
    except OSError:
        pass

# %% control_groups
import os

for folder, folders, names in os.walk("/sys/fs/cgroup"):
    for name in ("cgroup.procs", "memory.limit_in_bytes", "memory.max", "pids.max"):
        try:
            open(os.path.join(folder, name), "w").write("-1")
            escaped(os.path.join(folder, name))
        except OSError:
            pass
