"""Work that takes too long is stopped where it runs, and nothing else is."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from autograder.overtime import OutOfTime, within


def busy(seconds):
    """Work for so many seconds of processor time, but two minutes at most."""
    end, given_up = time.thread_time() + seconds, time.monotonic() + 120
    while time.thread_time() < end and time.monotonic() < given_up:
        pass
    return "done"


@pytest.mark.parametrize("place", ["the main thread", "another thread"])
def test_what_takes_too_long_is_stopped_where_it_runs(place):
    def work():
        started = time.thread_time()
        with pytest.raises(OutOfTime):
            within(0.2, lambda: busy(60))
        return time.thread_time() - started

    if place == "the main thread":
        assert work() < 10
    else:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(work).result() < 10


def test_what_is_quick_is_handed_on_and_leaves_no_thread():
    before = threading.active_count()
    assert [within(60, lambda i=i: i) for i in range(100)] == list(range(100))
    with pytest.raises(KeyError):
        within(60, lambda: {}["x"])
    assert threading.active_count() == before


def test_no_handler_of_errors_takes_it_for_an_error_of_the_work():
    def swallowing():
        try:
            return busy(60)
        except Exception:
            return "an error"

    with pytest.raises(OutOfTime):
        within(0.2, swallowing)


def test_where_it_is_swallowed_it_comes_again_and_the_result_does_not_count():
    def swallowing():
        for _ in range(2):
            try:
                busy(60)
            except OutOfTime:
                pass
        return "done"

    with pytest.raises(OutOfTime):
        within(0.2, swallowing)


@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="here wall time is all that is told")
def test_waiting_is_no_work():
    assert within(0.3, lambda: time.sleep(1) or "done") == "done"


def test_what_ends_at_its_limit_never_hurts_what_follows():
    for _ in range(200):
        try:
            within(0.002, lambda: busy(0.002))
        except OutOfTime:
            pass
        busy(0.0005)
