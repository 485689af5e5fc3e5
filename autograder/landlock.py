"""Landlock: a thread gives up access to files, and what it starts with it.

Source: docs.kernel.org/userspace-api/landlock.html
"""

import ctypes
import os
import stat
import struct

from autograder import linux

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every machine
PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK, REFER, TRUNCATE, IOCTL_DEV = 1 << 6, 1 << 11, 1 << 13, 1 << 14, 1 << 15
FIRST_ABI = (1 << 13) - 1
SINCE = {2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
TRUNCATE_SINCE, TCP_SINCE, SCOPE_SINCE = 3, 4, 6
BIND_TCP_AND_CONNECT_TCP = ABSTRACT_SOCKETS_AND_SIGNALS = 3

READ = EXECUTE | READ_FILE | READ_DIR
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV


def abi():
    """The version that the running kernel offers; 0 where there is none."""
    try:
        return linux.syscall(CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def restrict(read, write, devices, network):
    """From now on, read beneath `read`, do everything but make devices beneath `write`, read and write the devices.

    Paths that do not exist are left out. Where the kernel can, signals and abstract sockets stay within this domain,
    and without `network` there is no TCP.

    Raises:
        OSError: no Landlock.
    """
    version = abi()
    handled = FIRST_ABI | sum(right for since, right in SINCE.items() if version >= since)
    attributes = struct.pack("=Q", handled)
    if version >= TCP_SINCE:
        attributes += struct.pack("=Q", 0 if network else BIND_TCP_AND_CONNECT_TCP)
    if version >= SCOPE_SINCE:
        attributes += struct.pack("=Q", ABSTRACT_SOCKETS_AND_SIGNALS)
    ruleset = linux.syscall(CREATE_RULESET, attributes, len(attributes), 0)
    everything = handled & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
    for paths, rights in ((read, READ), (write, everything), (devices, READ_FILE | WRITE_FILE | IOCTL_DEV)):
        for path in paths:
            _allow(ruleset, path, rights & handled)
    linux.syscall(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset, path, rights):
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= OF_A_FILE
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place))
    linux.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0)
    os.close(place)
