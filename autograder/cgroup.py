"""A control group around one zygote: memory and processes of its kernels, limited by the kernel of the machine.

Version 1 needs root. Version 2 needs a folder that was delegated to us with the memory and pids controllers switched on
for its children, for instance by `systemd-run --user --scope -p Delegate=yes` and a leaf group for this process.
"""

import contextlib
import dataclasses
import glob
import os
import secrets
import time

from autograder import leftovers

MIB = 1 << 20
PREFIX = "autograder-"
REMOVE_TRIES = 100

FILES = {  # by version
    1: {
        "limit": "memory.limit_in_bytes",
        "use": "memory.usage_in_bytes",
        "peak": "memory.max_usage_in_bytes",
        "kills": "memory.oom_control",
        "no swap": "memory.swappiness",
    },
    2: {
        "limit": "memory.max",
        "use": "memory.current",
        "peak": "memory.peak",
        "kills": "memory.events",
        "no swap": "memory.swap.max",
    },
}
ENTER = 'while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit 97; shift; done; shift; exec "$@"'


def hierarchies():
    """For each of the memory and pids controllers that there is: (name, version, folder of this process's group)."""
    mounts, own = {}, {}
    with open("/proc/self/mounts") as file:
        for _, place, kind, options, *_ in map(str.split, file):
            if kind == "cgroup2":
                mounts[""] = place
            elif kind == "cgroup":
                mounts.update(dict.fromkeys(options.split(","), place))
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), path))
    for name in ("memory", "pids"):
        key = name if name in own and name in mounts else ""
        if key in own and key in mounts:
            yield name, 1 if key else 2, mounts[key] + own[key].rstrip("/")


class Group:
    """One control group of a zygote."""

    def __init__(self, memory, pids, version, held=()):
        self.memory, self.pids, self.held = memory, pids, held
        self.files = {name: f"{memory}/{file}" for name, file in FILES[version].items()}
        self.warm_bytes = self.warm_tasks = self.kills = 0

    @classmethod
    def create(cls):
        """A new group below this process's own.

        Raises:
            OSError: there are no controllers, or they are not ours to use.
        """
        found = {name: (version, folder) for name, version, folder in hierarchies()}
        if len(found) < 2:
            raise OSError("no control groups for memory and pids")
        above = [found[name][1] for name in ("memory", "pids")]
        for parent in dict.fromkeys(above):
            forget_killed(parent)
        made, held = leftovers.claimed(lambda: new_groups(above))
        group = cls(made[0], made[-1], found["memory"][0], held)
        try:
            write(group.files["no swap"], 0)
            write(f"{group.pids}/pids.max", "max")
        except OSError:
            group.remove()
            raise
        return group

    def command(self):
        """The start of a command that runs the rest of it in the group."""
        return ["/bin/sh", "-c", ENTER, "sh", *dict.fromkeys((self.memory, self.pids)), "--"]

    def entrances(self):
        """The files by which a process enters the group: who writes 0 into each is in it."""
        return [f"{folder}/cgroup.procs" for folder in dict.fromkeys((self.memory, self.pids))]

    def settle(self):
        """Count what is used now as the warm process's own."""
        self.warm_bytes = int(read(self.files["use"]))
        self.warm_tasks = int(read(f"{self.pids}/pids.current"))

    def allow(self, limits):
        """Set the limits of the next kernel."""
        write(self.files["limit"], self.warm_bytes + limits.memory_mib * MIB)
        write(f"{self.pids}/pids.max", self.warm_tasks + limits.processes)
        with contextlib.suppress(OSError):  # version 2 counts the peak anew only in late kernels
            write(self.files["peak"], 0)
        self.kills = self.count_kills()

    def explain(self, ended):
        """The end of a kernel, with what the group knows about it."""
        peak = max(0, int(read(self.files["peak"])) - self.warm_bytes) // MIB
        killed = self.count_kills() > self.kills
        return dataclasses.replace(ended, peak_mib=peak, stopped_by="memory" if killed else ended.stopped_by)

    def count_kills(self):
        """How many processes of the group were killed for want of memory."""
        counts = dict(line.split() for line in read(self.files["kills"]).splitlines())
        return int(counts["oom_kill"])

    def remove(self):
        """Delete the group, once its last process is gone."""
        for folder in dict.fromkeys((self.memory, self.pids)):
            remove_when_empty(folder)
        leftovers.release(self.held)
        self.held = ()


def new_groups(parents):
    """A group in each of the folders, under one name."""
    leaf = PREFIX + secrets.token_hex(8)  # no process number: it is not unique across containers
    made = [f"{parent}/{leaf}" for parent in dict.fromkeys(parents)]
    for folder in made:
        os.mkdir(folder)
    return made


def remove_when_empty(folder):
    """Delete a group as soon as its last process is gone, or give up."""
    for _ in range(REMOVE_TRIES):
        try:
            os.rmdir(folder)
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)


def forget_killed(parent, remove=os.rmdir):
    """Delete the groups of workers that were killed; one that has processes cannot be deleted."""
    for path in glob.glob(f"{parent}/{PREFIX}*"):
        leftovers.remove_abandoned(path, remove)


def forget_all_killed():
    """As forget_killed, below this process's own groups, if there are any; what a killed worker ran may still be ending."""
    with contextlib.suppress(OSError):
        for _, _, folder in hierarchies():
            forget_killed(folder, remove_when_empty)


def read(path):
    with open(path) as file:
        return file.read()


def write(path, value):
    with open(path, "w") as file:
        file.write(str(value))
