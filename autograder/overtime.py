"""A piece of work that is stopped in the thread that does it, where it takes longer than it may."""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

AGAIN = 1.0  # seconds until it is told once more: a finaliser may have swallowed the first time


class OutOfTime(KeyboardInterrupt):
    """The work took too long; like Ctrl-C, no handler of errors takes it for one of its own."""


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """What `work()` returns.

    Args:
        seconds: of processor time of this thread; of wall time where the system does not tell that.
    Raises:
        OutOfTime: it took longer. One operation of torch or a regular expression is not interrupted, but what follows it.
    """
    thread, now = threading.get_ident(), _clock()
    ended, late, end = threading.Event(), threading.Event(), now() + seconds

    def watch():
        while not ended.wait(AGAIN if late.is_set() else max(end - now(), 0.05)):
            if now() >= end:
                late.set()
                _raise(thread, OutOfTime)

    watcher = threading.Thread(target=watch, daemon=True, name="overtime")
    watcher.start()
    try:
        result = work()
    except OutOfTime:
        result = None
    finally:
        while True:
            try:  # it may be told here, too
                ended.set()
                watcher.join()
                _raise(thread, None)
                break
            except OutOfTime:
                continue
    if late.is_set():  # also where it was swallowed: then what came is not to be relied on
        raise OutOfTime(f"it took longer than {seconds:g} s")
    return result


def _clock() -> Callable[[], float]:
    """The processor time of this thread, to be asked by another one."""
    if not hasattr(time, "pthread_getcpuclockid"):  # Windows, macOS
        return time.monotonic
    clock = time.pthread_getcpuclockid(threading.get_ident())
    return lambda: time.clock_gettime(clock)


def _raise(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error in a thread as soon as it runs Python; None takes back one that is on its way."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), error and ctypes.py_object(error))
