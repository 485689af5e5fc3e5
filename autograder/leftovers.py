"""Folders that belong to a living process, and what is done with those whose process was killed.

A process holds a lock on each of its folders. The system lifts it when the process ends, however it ends: a folder
without a lock belongs to nobody, and whoever finds it removes it.
"""

import contextlib
import multiprocessing.util
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator

from . import folders

try:
    import fcntl
except ImportError:  # Windows: what a killed process leaves there stays until somebody empties the temporary folder
    fcntl = None

PLACE = re.compile(r"autograder-[0-9a-f]{16}")
TRIES = 10


def claimed(make: Callable[[], list[str]]) -> tuple[list[str], list[int]]:
    """New folders, ours until the descriptors are closed or this process ends.

    Args:
        make: makes the folders, under new names at every call: somebody may find one and remove it before it is ours.
    """
    for _ in range(TRIES):
        made, held = make(), []
        for folder in made:
            with contextlib.suppress(FileNotFoundError):
                held.append(_claim(folder))
        if len(held) == len(made):
            return made, held
        release(held)
        for folder in made:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    raise OSError(f"{made} vanish as soon as they are made")


def _claim(folder: str) -> int:
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if not os.path.samestat(os.fstat(descriptor), os.stat(folder)):
            raise FileNotFoundError(folder)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def release(held: list[int]) -> None:
    """Give folders up; whoever finds them may remove them."""
    for descriptor in held:
        os.close(descriptor)


def remove_abandoned(folder: str, remove: Callable[[str], None]) -> None:
    """Remove a folder that no living process has claimed; one that cannot be removed stays."""
    with contextlib.suppress(OSError):  # somebody else was quicker, or it is in use
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(folder)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def temporary_place() -> Iterator[str]:
    """A folder in which this process makes all its temporary files meanwhile; it goes with the process, even a killed one.

    A user that a kernel becomes may pass through it, and not look into it.
    """
    if fcntl is None:
        with tempfile.TemporaryDirectory(prefix="autograder-", ignore_cleanup_errors=True) as place:
            yield place
        return
    forget_killed()
    before = tempfile.gettempdir()
    (place,), held = claimed(lambda: [_new_place(before)])
    tempfile.tempdir = place
    try:
        yield place
    finally:
        tempfile.tempdir = before
        _end_of_life(place, held)


def lifelong_place() -> str:
    """A folder as `temporary_place` makes, for as long as this process lives."""
    (place,), held = claimed(lambda: [_new_place(tempfile.gettempdir())]) if fcntl else ([tempfile.mkdtemp()], [])
    # after multiprocessing has emptied its own folder in it, which it does at -100
    multiprocessing.util.Finalize(None, _end_of_life, (place, held), exitpriority=-200)
    return place


def _end_of_life(place: str, held: list[int]) -> None:
    with contextlib.suppress(OSError):
        _remove_place(place)
    release(held)


def _new_place(above: str) -> str:
    place = os.path.join(above, f"autograder-{secrets.token_hex(8)}")
    os.mkdir(place, 0o711)
    return place


def forget_killed() -> None:
    """Remove the temporary places of our processes that were killed."""
    above = tempfile.gettempdir()
    for name in os.listdir(above) if fcntl is not None else ():
        place = os.path.join(above, name)
        with contextlib.suppress(OSError):
            if PLACE.fullmatch(name) and os.lstat(place).st_uid == os.getuid():
                remove_abandoned(place, _remove_place)


def _remove_place(place: str) -> None:
    folders.empty(place)
    os.rmdir(place)
