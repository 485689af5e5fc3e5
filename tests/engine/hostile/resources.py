# ruff: noqa
# Snippets that try to use up the machine.

# %% a_fork_bomb
import os

while True:
    os.fork()
# ends: any

# %% a_fork_bomb_of_programs
import subprocess

children = []
while True:
    children.append(subprocess.Popen(["/bin/sleep", "1000"]))

# %% too_many_threads
import threading, time

for n in range(5000):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
escaped("5000 threads")
# ends: any

# %% memory_in_one_process
held = []
while True:
    held.append(bytearray(1 << 26))

# %% one_huge_tensor
import torch

torch.ones(1 << 40)

# %% a_tensor_of_more_than_the_limit
import torch

x = torch.ones(LIMITS["memory_mib"] << 19)  # float32: twice the limit
escaped(x.numel())

# %% memory_in_many_processes
import os, time

for n in range(12):
    if os.fork() == 0:
        held = bytearray(b"x") * (LIMITS["memory_mib"] << 18)
        time.sleep(3)
        os._exit(0)
for n in range(12):
    os.wait()
# ends: memory

# %% shared_memory_in_one_process
import mmap

held = []
while True:
    held.append(mmap.mmap(-1, 1 << 26))
    held[-1].write(b"x" * (1 << 26))
# ends: memory

# %% memory_files
import os

held = []
while True:
    held.append(os.memfd_create("x"))
    os.write(held[-1], b"x" * (1 << 24))

# %% shared_memory_files
import os

for n in range(1000):
    with open(f"/dev/shm/{n}", "wb") as file:
        file.write(b"x" * (1 << 24))
escaped("16 GB")

# %% one_big_file
with open("big", "wb") as file:
    for n in range(1000):
        file.write(b"x" * (1 << 22))
escaped("4 GB")
# ends: scratch

# %% many_big_files
for n in range(1000):
    with open(f"big{n}", "wb") as file:
        file.write(b"x" * (1 << 23))
escaped("8 GB")
# ends: scratch

# %% big_files_without_a_name
import os

held = []
for n in range(400):
    held.append(os.open("big", os.O_CREAT | os.O_RDWR))
    os.unlink("big")
    os.write(held[-1], b"x" * (1 << 23))
escaped("3 GB")
# not: landlock

# %% too_many_files
import os

for n in range(1_000_000):
    os.close(os.open(f"f{n}", os.O_CREAT | os.O_WRONLY))
escaped("a million files")
# ends: scratch

# %% very_deep_folders
import os

for n in range(1_000_000):
    os.mkdir("d")
    os.chdir("d")
escaped("a million folders")
# ends: scratch

# %% folders_that_nobody_may_read
import os

os.makedirs("a/b/c")
open("a/b/c/d", "w").close()
os.chmod("a/b/c", 0)
os.chmod("a/b", 0)
os.chmod("a", 0)
# ends: any

# %% a_link_that_leads_out_of_the_scratch_folder
import os

os.symlink("/", "root")
os.symlink(TARGETS["folder"], "others")

# %% too_many_descriptors
import os

held = []
try:
    while True:
        held.append(os.dup(1))
except OSError:
    print([os.close(n) for n in held])

# %% full_pipes
import os

held = []
while len(held) < 200:
    a, b = os.pipe()
    os.set_blocking(b, False)
    try:
        while True:
            os.write(b, b"x" * 4096)
    except BlockingIOError:
        pass
    held.append((a, b))

# %% locked_memory
import ctypes

if ctypes.CDLL(None).mlockall(3) == 0:
    escaped("locked all memory")

# %% cpu_in_many_processes
import os

for n in range(4):
    if os.fork() == 0:
        while True:
            pass
os.wait()
# ends: cpu

# %% a_flood_of_lines
for n in range(1_000_000):
    print("x" * 60)
# ends: any

# %% one_huge_output
print("x" * (200 << 20))
# ends: any

# %% a_huge_display
from IPython.display import HTML, display

for n in range(20):
    display(HTML("x" * (60 << 20)))
# ends: any

# %% a_flood_past_python
import os

for n in range(30_000):
    os.write(1, b"x" * 4096)
# ends: any

# %% a_huge_error
raise Exception("x" * (100 << 20))
# ends: any

# %% a_compressed_bomb
import io, zipfile, zlib

data = zlib.compress(b"0" * (1 << 26))
held = []
while True:
    held.append(zlib.decompress(data))

# %% a_regular_expression_that_never_ends
import re

re.match(r"(a+)+$", "a" * 40 + "b")
# ends: interrupted

# %% waiting_for_ever
import threading

threading.Event().wait()
# ends: interrupted

# %% an_endless_loop
while True:
    pass
# ends: interrupted
