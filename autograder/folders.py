"""Folders that student code has filled: counted and emptied, however deep, locked or oddly named they are.

Everything goes by descriptor, a name at a time: a path can be longer than the system takes, and no link be followed.
"""

import itertools
import math
import os
import secrets
import stat

DEEPEST = 100  # folders below one another that are counted; deeper is more than anyone needs


def tally(folder, enough):
    """How many entries and bytes a folder holds; infinitely many if it cannot be known.

    Args:
        enough: stop counting at so many entries.
    """
    try:
        return _tally(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), enough, DEEPEST)
    except PermissionError:  # its owner has locked it
        return math.inf, math.inf


def _tally(descriptor, enough, levels):
    count = size = 0
    try:
        for name in os.listdir(descriptor) if levels else ():
            count += 1
            try:
                found = os.lstat(name, dir_fd=descriptor)
                size += found.st_blocks * 512
                if stat.S_ISDIR(found.st_mode):
                    below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
                    more, bytes_more = _tally(below, enough - count, levels - 1)
                    count, size = count + more, size + bytes_more
            except PermissionError:
                raise
            except OSError:
                continue  # it changes while we look
            if count > enough:
                break
    finally:
        os.close(descriptor)
    return (count, size) if levels else (math.inf, math.inf)


def empty(folder):
    """Delete all that a folder holds. No process may be at work in it any more.

    What lies in a folder below is first moved up, so that nothing is ever more than two levels deep.
    """
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fresh = (f"{prefix}{number}" for prefix in (secrets.token_hex(16),) for number in itertools.count())
    try:
        while names := os.listdir(top):
            for name in names:
                if _is_folder(name, top):
                    _raise_contents(name, top, fresh)
                    os.rmdir(name, dir_fd=top)
                else:
                    os.unlink(name, dir_fd=top)
    finally:
        os.close(top)


def _raise_contents(name, top, fresh):
    os.chmod(name, 0o700, dir_fd=top)
    below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        for child in os.listdir(below):
            if _is_folder(child, below):
                os.chmod(child, 0o700, dir_fd=below)  # else it may not be moved
            os.rename(child, next(fresh), src_dir_fd=below, dst_dir_fd=top)
    finally:
        os.close(below)


def _is_folder(name, above):
    return stat.S_ISDIR(os.lstat(name, dir_fd=above).st_mode)
