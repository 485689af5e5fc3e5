"""Many submissions at once: one task mapped over them, on the cores of this machine or on any Dask cluster.

A submission and its Report travel as messages and the lecture as a bundle, so workers need no shared disk and no
database. Only a few submissions are under way at any time, however many there are.

    what goes wrong                          what happens
    our own failure (EngineError, a bug)     once more; then state "error"
    a worker dies                            its submissions once more, each alone, so that the guilty one is known
    a worker dies with one that was alone    state "error"
    a worker that joins late cannot grade    it is closed, its submissions go to others
    nothing comes back for too long          as if the workers that are busy had died
    a killed process leaves files            whoever comes next removes them (leftovers)
    wrong use, a course that is wrong        raised: it would be the same for every submission
"""

import atexit
import contextlib
import importlib
import itertools
import logging
import os
import queue
import signal
import tempfile
import threading
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import dask
import torch
from distributed import Client, Future, LocalCluster, WorkerPlugin, get_worker
from distributed.scheduler import KilledWorker
from distributed.security import Security

from . import cgroup, leftovers, sandbox, workers
from .bundle import Bundle, bundle, unpacked
from .errors import AutograderError, CourseError, EngineError, Refused, UsageError
from .exercises import Lecture
from .ledger import foundations
from .records import Report, Submission, Verdict
from .settings import Settings

log = logging.getLogger(__name__)

IN_FLIGHT = 2  # submissions per worker: one that runs, one that waits there
JOIN_SECONDS = 60.0  # how long a cluster may take until its first worker is there
MOST_MOVES = 5
GRACE_SECONDS = 60.0  # what a worker may take over the limits of a submission before it counts as dead

Task = Callable[[Submission, Lecture, Settings, int], Report]
Warm = Callable[[Lecture, Settings], contextlib.AbstractContextManager]

QUIET = {
    "distributed.worker.multiprocessing-method": workers.METHOD,
    "distributed.scheduler.allowed-failures": 0,  # the retries are counted here, where we know who was alone
    "distributed.scheduler.worker-saturation": 1.1,  # more, and the innocent wait on a worker that is about to die
    "distributed.scheduler.http.routes": [],  # no pages for others to look at
    "distributed.worker.http.routes": [],
    "distributed.worker.memory.terminate": False,  # kernels are processes of their own, with limits of their own
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.low-level-log-length": 0,  # or the last 1000 submissions sent to each worker stay in memory
    "distributed.admin.large-graph-warning-threshold": "1 GiB",  # a submission may be large
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",  # this and the tick: a twentieth of two cores, for graphs that nobody sees
    "distributed.admin.tick.interval": "2s",
    "distributed.comm.timeouts.connect": "30s",
}


def graded(
    task: Task,
    submissions: Iterable[Submission],
    lecture: Lecture,
    settings: Settings,
    seed: int,
    *,
    warm: Warm | None = None,
) -> Iterator[Report]:
    """One Report for each submission, as they are done; ends the cluster it started when it is closed or interrupted.

    Args:
        task: a function of a module that workers can import, e.g. grade.grade_submission. May raise EngineError.
        submissions: read as they are needed, never all at once.
        warm: a context entered once in each worker before its first task: where its zygote of warm kernels starts.
    Raises:
        UsageError: there is no such scheduler, no worker joins, or a worker runs another version.
        CourseError: the lecture cannot be loaded on a worker.
        AutograderError: the cluster is gone; the Reports that were yielded are good.
    """
    first = list(itertools.islice(submissions := iter(submissions), settings.workers))
    if not first:
        return
    wanted, submissions = len(first), itertools.chain(first, submissions)
    del first  # nothing that is done stays in memory
    without_secrets = replace(settings, db_url="")  # it may hold a password, and no worker needs the gradebook
    bench = Bench(task, bundle(lecture), without_secrets, seed, warm, foundations(lecture))
    with _cluster(settings, wanted) as client, _registered(client, bench):
        yield from _Walk(client, bench, lecture).over(submissions)


@dataclass(frozen=True)
class Machine:
    """What there is where submissions are run.

    Attributes:
        level: of the sandbox.
        gpu: whether torch can use one.
    """

    level: sandbox.Level
    gpu: bool


def machines(settings: Settings) -> dict[str, Machine]:
    """The machine of each worker of settings.scheduler, by the worker's address; without a scheduler this one.

    Raises:
        UsageError: there is no such scheduler, no worker joins, or one cannot run the autograder.
        Refused: one has no sandbox, and the code is not trusted.
    """
    if not settings.scheduler:
        return {"here": _machine(settings.trust_code)}
    with dask.config.set(QUIET), _silent("distributed"), _connected(settings.scheduler) as client:
        found = client.run(_machine, settings.trust_code, on_error="return")
    for address, machine in found.items():
        if isinstance(machine, Refused):
            raise Refused(f"the worker at {address}: {machine}")
        if not isinstance(machine, Machine):
            said = f"{type(machine).__name__}: {machine}"
            raise UsageError(f"the worker at {address} cannot grade ({said}): install there what is installed here")
    return found


# ---- in the workers


def _machine(trust_code: bool) -> Machine:
    return Machine(sandbox.at_least(trust_code=trust_code), torch.cuda.is_available())


_ONE_AT_A_TIME = threading.Lock()  # the judge sets the process's random state and default dtype


class Bench(WorkerPlugin):
    """What a worker has at hand: the lecture, the settings, the warm kernels; set up before its first task comes."""

    def __init__(self, task: Task, packed: Bundle, settings: Settings, seed: int, warm: Warm | None, expected: dict):
        self.name = f"bench-{uuid.uuid4().hex}"
        self.task, self.packed, self.settings, self.seed, self.warm, self.expected = (
            task, packed, settings, seed, warm, expected,
        )  # fmt: skip

    def setup(self, worker) -> None:
        """Called by the worker when it starts, and again in the process that takes its place when it has died."""
        self.unfit, self.open = None, contextlib.ExitStack()
        try:
            self._set_up(worker)
        except Exception as error:  # raised by register_plugin, for whoever is there then; passed over for who is late
            self.unfit = error
            raise

    def _set_up(self, worker) -> None:
        if not self.settings.scheduler:
            atexit.register(os._exit, 0)  # our own worker: taking torch's modules apart takes a second, for nothing
        signal.signal(signal.SIGINT, _deaf)  # Ctrl-C reaches every process of a terminal; the coordinator ends us
        torch.set_num_threads(1)  # the number of threads changes float results
        importlib.import_module("autograder.imported_for_workers")  # here, not in the first submission's time
        with contextlib.ExitStack() as stack:
            if self.settings.scheduler:
                stack.enter_context(leftovers.temporary_place())
            else:  # to the end of the process, for what runs then may still make files; the coordinator removes it
                tempfile.tempdir = leftovers.lifelong_place()
            self.lecture = stack.enter_context(unpacked(self.packed, Path(worker.local_directory)))
            if (found := foundations(self.lecture)) != self.expected:
                raise UsageError(_unequal(worker.address, self.expected, found))
            self.settings = replace(self.settings, solutions=self.lecture.folder.parent)
            if self.warm is not None:  # the zygote of warm kernels starts here, from the thread that lives longest
                stack.enter_context(self.warm(self.lecture, self.settings))
            self.open = stack.pop_all()

    def teardown(self, worker) -> None:
        """Called by the worker when it ends in order, or when the class is graded."""
        self.open.close()


def _deaf(number, frame) -> None:
    """A handler and not SIG_IGN: the kernels that a worker starts would inherit that, and could not be interrupted."""


def _unequal(address: str, expected: dict, found: dict) -> str:
    names = [name for name in expected if found.get(name) != expected[name]]
    return f"the worker at {address} has another {', '.join(names)} than this machine: install the same there"


class _Unfit(Exception):
    """A worker that came late could not be set up, and closes itself."""


def _on_worker(submission: Submission, bench: str) -> Report:
    worker = get_worker()
    bench = worker.plugins[bench]
    if bench.unfit is not None:
        for_good = isinstance(bench.unfit, (UsageError, CourseError))  # else its nanny may try once more
        worker.loop.add_callback(worker.close, nanny=for_good, reason="it cannot grade")
        raise _Unfit(f"the worker at {worker.address} cannot grade: {bench.unfit}")
    with _ONE_AT_A_TIME:
        return bench.task(submission, bench.lecture, bench.settings, bench.seed)


# ---- here


@dataclass(frozen=True)
class _Try:
    """A submission under way.

    Attributes:
        alone: nothing else is under way, after a worker died with it.
        moves: how many workers it came to that could not grade.
    """

    submission: Submission
    future: Future
    alone: bool
    moves: int


class _Walk:
    """The submissions under way, and those that were there when a worker died."""

    def __init__(self, client: Client, bench: Bench, lecture: Lecture):
        self.client, self.bench, self.lecture = client, bench, lecture
        self.under_way: dict[str, _Try] = {}
        self.suspects: deque[Submission] = deque()
        self.ended: queue.SimpleQueue[Future] = queue.SimpleQueue()

    def over(self, submissions: Iterator[Submission]) -> Iterator[Report]:
        for submission in submissions:
            self._start(submission)
            while len(self.under_way) >= IN_FLIGHT * max(1, len(self.client.nthreads())):
                yield from self._one_end()
        while self.under_way:
            yield from self._one_end()
        while self.suspects:
            self._start(self.suspects.popleft(), alone=True)
            while self.under_way:
                yield from self._one_end()

    def _start(self, submission: Submission, alone: bool = False, moves: int = 0) -> None:
        key = f"grade-{uuid.uuid4().hex}"
        future = self.client.submit(_on_worker, submission, self.bench.name, key=key, pure=False, retries=1)
        self.under_way[key] = _Try(submission, future, alone, moves)
        future.add_done_callback(self.ended.put)

    def _one_end(self) -> Iterator[Report]:
        """Wait for one end; the Reports that come of it: one, or none when it is tried again."""
        future = self._next()
        if future is None:
            for trial in list(self.under_way.values()):
                yield from self._dead(trial, "no answer came in time")
            return
        trial = self.under_way.pop(future.key, None)
        if trial is None:  # given up before
            return
        report = self._outcome(trial)
        future.release()
        if isinstance(report, Report):
            yield report
        elif isinstance(report, _Unfit):
            log.warning("%s", report)
            self._start(trial.submission, trial.alone, trial.moves + 1)
        else:
            yield from self._dead(trial, report)

    def _outcome(self, trial: _Try) -> Report | _Unfit | str:
        """The Report of a task that ended, or how its worker died, or that it was not fit."""
        try:
            return trial.future.result()
        except KilledWorker:
            return "the worker process ended"
        except _Unfit as unfit:
            return unfit if trial.moves < MOST_MOVES else error_report(self.lecture, trial.submission, str(unfit))
        except EngineError as error:
            return error_report(self.lecture, trial.submission, str(error))
        except (UsageError, CourseError):
            raise
        except Exception as error:  # a bug of ours, in a worker
            if trial.future.status in ("cancelled", "lost"):
                raise AutograderError(_gone(self.client)) from error
            log.error("%s: %s", trial.submission.student, "".join(traceback.format_exception(error)))
            sentence = f"A fault in the autograder: {type(error).__name__}: {error}"
            return error_report(self.lecture, trial.submission, sentence)

    def _dead(self, trial: _Try, how: str) -> Iterator[Report]:
        self.under_way.pop(trial.future.key, None)
        if not trial.alone:
            log.info("%s: %s; it is tried again, alone", trial.submission.student, how)
            self.suspects.append(trial.submission)
            return
        sentence = f"Twice {how} while this was graded, the second time with nothing else under way."
        yield error_report(self.lecture, trial.submission, sentence)

    def _next(self) -> Future | None:
        """The next task that ended; None when none did for so long that the busy workers were ended instead."""
        settings = self.bench.settings
        once = settings.submission_seconds + settings.start_seconds
        patience = 2 * once + GRACE_SECONDS  # an EngineError is tried twice
        waited = deserted = 0.0
        while waited < patience:
            try:
                return self.ended.get(timeout=1)
            except queue.Empty:
                waited += 1
            if self.client.status != "running" or deserted > JOIN_SECONDS:
                raise AutograderError(_gone(self.client))
            deserted = 0.0 if self.client.nthreads() else deserted + 1  # all may have died at once, and come back
        busy = [address for address, keys in self.client.processing().items() if self.under_way.keys() & set(keys)]
        self.client.cancel([trial.future for trial in self.under_way.values()], force=True)
        self.client.restart_workers(busy, raise_for_error=False)
        return None


def _gone(client: Client) -> str:
    where = client.scheduler.address if client.scheduler else "its address"
    return f"the cluster at {where} is gone, or has no worker left; what is graded is kept: start it and call again"


def error_report(lecture: Lecture, submission: Submission, sentence: str) -> Report:
    """Our own failure, as a value: no points are decided."""
    verdicts = tuple(Verdict(exercise.id, exercise.number, 0.0, exercise.points) for exercise in lecture.exercises)
    seen = {"submission": submission.digest}
    return Report(submission.student, lecture.name, "error", verdicts, sentence, submission.repairs, provenance=seen)


_OPENING: list[ThreadFuture[Client]] = []  # the cluster of this machine that is being started, or none


@contextlib.contextmanager
def opening(settings: Settings, submissions: int) -> Iterator[None]:
    """Start the cluster of this machine for so many submissions in a thread, while this one imports: nbgrader takes as long.

    What is graded meanwhile is graded on it, and it ends with this context. Where there is a scheduler nothing is started.
    """
    if settings.scheduler or submissions < 1:
        yield
        return
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        _OPENING.append(pool.submit(lambda: stack.enter_context(_of_this_machine(settings, submissions))))
        try:
            yield
        finally:
            _OPENING.clear()


@contextlib.contextmanager
def _cluster(settings: Settings, submissions: int) -> Iterator[Client]:
    """A client of the cluster at settings.scheduler, or of one that lives as long as this context or as `opening`."""
    if settings.scheduler:
        with dask.config.set(QUIET), _silent("distributed"), _connected(settings.scheduler) as client:
            yield client
    elif _OPENING:
        yield _OPENING[0].result()
    else:
        with _of_this_machine(settings, submissions) as client:
            yield client


@contextlib.contextmanager
def _of_this_machine(settings: Settings, submissions: int) -> Iterator[Client]:
    with dask.config.set(QUIET), _silent("distributed"), contextlib.ExitStack() as stack:
        workers.start_importing(settings)
        stack.callback(_forget_killed)
        place = stack.enter_context(leftovers.temporary_place())
        cluster = stack.enter_context(
            _local_cluster(
                n_workers=min(settings.workers, submissions),
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                security=Security.temporary(),
                memory_limit=0,
                local_directory=place,
                silence_logs=logging.CRITICAL,
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
            )
        )
        client = Client(cluster)
        stack.callback(client.close)  # as a context it would have to be left in the thread that entered it
        yield client


def _local_cluster(**options) -> LocalCluster:
    """The cluster of this machine.

    Raises:
        AutograderError: its processes cannot reach one another.
    """
    try:
        return LocalCluster(**options)
    except (RuntimeError, OSError) as error:
        raise AutograderError(
            f"the workers on this machine cannot be reached ({error}): is its loopback network (127.0.0.1) up, and does nothing "
            "block it? Nothing was graded"
        ) from error


def _forget_killed() -> None:
    """Nothing stays of a worker that died and had no successor to clean up."""
    leftovers.forget_killed()
    cgroup.forget_all_killed()


@contextlib.contextmanager
def _silent(library: str) -> Iterator[None]:
    """What a library logs is not shown: what of it matters here becomes a value or an error of ours."""
    names = {library, *(name for name in logging.root.manager.loggerDict if name.startswith(f"{library}."))}
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _connected(address: str) -> Client:
    _demand_address(address)
    try:
        client = Client(address, timeout=JOIN_SECONDS)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        for sign, meaning in TLS.items():
            if sign in str(error):
                raise UsageError(f"the Dask scheduler at {address}: {meaning} (docs/cluster.md)") from error
        step = "start it, or look at host and port (docs/cluster.md)"
        raise UsageError(f"there is no Dask scheduler at {address}: {error}; {step}") from error
    try:
        client.wait_for_workers(1, timeout=JOIN_SECONDS)
    except TimeoutError as error:
        client.close()
        found = f"no worker joined the scheduler at {address} within {JOIN_SECONDS:.0f} s"
        raise UsageError(f"{found}: start workers, then call again") from error
    return client


def _demand_address(address: str) -> None:
    """One that nothing can answer at is refused at once, not waited for."""
    try:
        parts = urlsplit(address)
        if parts.scheme and parts.hostname and parts.port:
            return
        why = ""
    except ValueError as error:
        why = f" ({error})"
    raise UsageError(f"the Dask scheduler is {address!r}{why}; give tcp://HOST:PORT or tls://HOST:PORT")


TLS = {  # what Dask says: what it means
    "ssl_context": "tls:// needs a certificate: name it to Dask, as tls.sh does",
    "encryption required": "your Dask configuration demands TLS: give tls:// in place of tcp://",
    "certificate": "your certificate is not one that it trusts: take the cluster.pem with which it was started",
    "No such file": "the certificate that your Dask configuration names is not there: look at the paths in tls.sh",
    "reset by peer": "it hung up: one that speaks TLS is reached by tls:// in place of tcp://",
}


@contextlib.contextmanager
def _registered(client: Client, bench: Bench) -> Iterator[None]:
    """The bench stands in every worker, also in those that join later, and is taken away in the end."""
    client.register_plugin(bench)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the cluster may be what failed
            client.unregister_worker_plugin(bench.name)
