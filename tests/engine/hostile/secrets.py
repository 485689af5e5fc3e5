# ruff: noqa
# Snippets that look for things that were never meant to be there. MARK is what the grader holds, reversed.

# %% the_environment
import os

for name, value in os.environ.items():
    if MARK[::-1] in value or "TOKEN" in name or "KEY" in name:
        escaped(name)

# %% the_environment_at_the_start_of_the_process
if MARK[::-1].encode() in open("/proc/self/environ", "rb").read():
    escaped("the grader's environment")

# %% the_command_line
if MARK[::-1].encode() in open("/proc/self/cmdline", "rb").read():
    escaped("the grader's command line")

# %% all_memory_of_this_process
wanted = MARK.encode()[::-1]
own = memoryview(wanted)
with open("/proc/self/mem", "rb", 0) as memory:
    for line in open("/proc/self/maps"):
        span, rights, *_ = line.split()
        start, end = (int(n, 16) for n in span.split("-"))
        if rights.startswith("r") and end - start < 1 << 28 and "[v" not in line:
            try:
                memory.seek(start)
                found = memory.read(end - start).count(wanted + b"-held-by-the-grader")
            except (OSError, ValueError, OverflowError):
                continue
            if found:
                escaped(line)
            del found

# %% every_object_of_this_process
import gc

wanted = MARK[::-1] + "-held-by-the-grader"
for thing in gc.get_objects():
    if type(thing) in (dict, list, tuple) and len(thing) < 1000:
        for value in thing.values() if type(thing) is dict else thing:
            if type(value) is str and wanted in value and value != wanted:
                escaped(value[:100])

# %% keys_of_earlier_kernels
import gc
from ipykernel.kernelapp import IPKernelApp

own = IPKernelApp.instance().session.key.decode()
for thing in gc.get_objects():
    if (
        type(thing) is dict
        and isinstance(thing.get("key"), str)
        and "signature_scheme" in thing
        and thing["key"] != own
    ):
        escaped("a key")

# %% files_of_an_earlier_kernel
import importlib.util
import os
import sys

shown = {sys.prefix, sys.base_prefix, *sys.path}  # a course may itself lie in the temporary folder, read only
for name in ("autograder", "maskedtensor_ref", "lecture_pictures"):
    try:
        shown.update(importlib.util.find_spec(name).submodule_search_locations)
    except ModuleNotFoundError:  # it is hidden
        pass
shown |= {path.replace("/tmp/", "/scratch/tmp/", 1) for path in shown}  # the same files by their other name
left = set()
for place in ("/scratch", "/tmp", "/dev/shm", os.getcwd()):
    for folder, folders, names in os.walk(place):
        folders[:] = [below for below in folders if os.path.join(folder, below) not in shown]
        left.update(os.path.join(folder, name) for name in names)
left = {path for path in left if "/home/" not in path and not path.startswith("/tmp/.c")}  # the zygote's own caches
if left != {os.path.join(os.getcwd(), "own.txt")}:
    escaped(sorted(left)[:20])
# not: landlock

# %% modules_that_are_hidden
import sys

for name in ("maskedtensor_ref", "maskedtensor_ref.anything"):
    try:
        __import__(name)
        escaped(name)
    except ModuleNotFoundError:
        pass
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "Hidden"]
try:
    import maskedtensor_ref

    if maskedtensor_ref.__file__:
        escaped(maskedtensor_ref.__file__)
except ImportError:
    pass
