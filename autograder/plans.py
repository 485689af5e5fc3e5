"""The walls that a zygote and its kernels can stand behind: one row per level, best first."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Which means of isolation a zygote uses.

    root: bubblewrap gives the zygote its own root file system, network and processes.
    namespaces: each kernel gets its own processes, mounts and System V objects.
    locks: each kernel locks itself in with Landlock, seccomp and resource limits.
    cgroup: memory and processes are also limited by a control group.
    """

    name: str
    root: bool
    namespaces: bool
    locks: bool
    cgroup: bool

    @property
    def own_network(self):
        """Whether sockets lead nowhere but to the kernel's own loopback, so that it may use them."""
        return self.root


PLANS = {
    plan.name: plan
    for plan in (
        Plan("strict", root=True, namespaces=True, locks=True, cgroup=True),
        Plan("watchdog", root=True, namespaces=True, locks=True, cgroup=False),
        Plan("contained", root=True, namespaces=False, locks=True, cgroup=False),
        Plan("landlock", root=False, namespaces=False, locks=True, cgroup=False),
        Plan("none", root=False, namespaces=False, locks=False, cgroup=False),
    )
}
