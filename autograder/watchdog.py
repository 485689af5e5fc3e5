"""Whether a tree of processes uses more than it may, read from /proc.

It polls: what is allocated and freed between two polls is not seen. A control group has no such gap.
"""

import contextlib
import os

from autograder import folders

TICKS = os.sysconf("SC_CLK_TCK")
MIB = 1 << 20


def children(pid):
    """The process ids of the direct children of a process; none if it has gone."""
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    return found


def descendants(roots):
    """The process ids in the trees below and including the roots."""
    found, todo = [], list(roots)
    while todo:
        found.append(todo.pop())
        todo += children(found[-1])
    return found


def cpu_seconds(pids):
    """CPU time of the processes and of those that they waited for."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
    return ticks / TICKS


def _kibibytes(path, *fields):
    """The sum of some fields of a file of `Name: value kB` lines."""
    with open(path) as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(fields))


def resident_bytes(pids):
    """Anonymous and shared memory of the processes; what several of them share counts for each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += _kibibytes(f"/proc/{pid}/status", "RssAnon:", "RssShmem:")
    return total << 10


def proportional_bytes(pids):
    """Anonymous and shared memory of the processes; what n of them share counts 1/n for each.

    A process that hides its memory from us counts as if it shared nothing.
    """
    total = 0
    for pid in pids:
        try:
            total += _kibibytes(f"/proc/{pid}/smaps_rollup", "Pss_Anon:", "Pss_Shmem:") << 10
        except OSError:
            total += resident_bytes([pid])
    return total


class Watchdog:
    """Limits on the trees below some roots, forked from one warm process that shares its memory with them.

    warm: (pid, resident bytes) of the warm process; scratch: a folder to be counted, or None where the file system has a quota.
    """

    def __init__(self, roots, limits, warm, scratch):
        self.roots = roots
        self.limits = limits
        self.warm_pid, self.warm_bytes = warm
        self.scratch = scratch
        self.peak_bytes = 0

    def exceeded(self):
        """The name of the limit that is exceeded, or None."""
        pids = descendants(self.roots)
        if cpu_seconds(pids) > self.limits.cpu_seconds:
            return "cpu"
        if self.memory(pids) > self.limits.memory_mib * MIB:
            return "memory"
        if self.scratch:
            count, size = folders.tally(self.scratch, self.limits.scratch_files)
            if count > self.limits.scratch_files or size > self.limits.scratch_mib * MIB:
                return "scratch"
        return None

    def memory(self, pids):
        """Bytes held beyond the warm process: a quick upper bound where that is enough, else without what is shared.

        All that share the warm process's memory, other zygotes' kernels too, have the same part of it.
        """
        bound = resident_bytes(pids) - self.warm_bytes
        if bound > self.limits.memory_mib * MIB:
            share = proportional_bytes([self.warm_pid])
            bound = sum(max(0, proportional_bytes([pid]) - share) for pid in pids)
        self.peak_bytes = max(self.peak_bytes, bound)
        return bound
