"""Many submissions on a real Dask cluster: what dies, hangs or fails costs its own submission only."""

import collections
import dataclasses
import functools
import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import dask
import pytest
from distributed import LocalCluster
from distributed.security import Security

from autograder import farm
from autograder.errors import AutograderError, CourseError, Refused, UsageError
from autograder.plans import PLANS
from autograder.records import Submission

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def stub_tasks():
    """The module of tasks, imported under a name that workers can import, too."""
    sys.path.insert(0, str(HERE))
    import stub_tasks

    yield stub_tasks
    sys.path.remove(str(HERE))


@pytest.fixture(scope="module")
def settings(tiny_settings, tmp_path_factory):
    return dataclasses.replace(tiny_settings, workers=2, out=tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def elsewhere(settings, stub_tasks):
    """Settings that name a scheduler which was started by someone else."""
    threads = {"OMP_NUM_THREADS": 2}  # what torch would use, if nobody told it otherwise
    quiet = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0, "distributed.nanny.pre-spawn-environ": threads}),
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", memory_limit=0, **quiet) as cluster,
    ):
        yield dataclasses.replace(settings, scheduler=cluster.scheduler_address)


def handed_in(student, **acts):
    files = {name: str(argument).encode() for name, argument in acts.items()}
    return Submission(student, "10_tiny", "{}", files, digest=f"of {student}")


def held(references):
    return sum(reference() is not None for reference in references)


# ---- a class in which everything goes wrong

MISHAPS = {  # student: what it does to its worker, the state it must end in, what the reason says
    "kills its worker": ({"die": ""}, "error", "Twice the worker process ended"),
    "kills its worker once": ({"die_once": "{out}/died"}, "graded", None),
    "fails": ({"fail": "the kernel did not start"}, "error", "the kernel did not start"),
    "fails once": ({"fail_once": "{out}/failed"}, "graded", None),
    "meets a bug": ({"bug": ""}, "error", "A fault in the autograder: KeyError: 'not there'"),
}
INNOCENT = [f"student {i:02}" for i in range(12)]


@pytest.fixture(scope="module")
def mishaps(tiny, settings, stub_tasks):
    """The Reports of a class on a cluster of this machine, started and ended by the farm; and the folder of notes."""
    notes = settings.out / "notes"
    notes.mkdir()
    students = [*INNOCENT[:6], *MISHAPS, *INNOCENT[6:]]
    acts = {name: {key: value.format(out=settings.out) for key, value in MISHAPS[name][0].items()} for name in MISHAPS}
    alive = []

    def class_():
        for name in students:
            submission = handed_in(name, note=notes / name, **acts.get(name, {}))
            alive.append(weakref.ref(submission))
            yield submission
            del submission

    reports = []
    for report in farm.graded(stub_tasks.grade, class_(), tiny, settings, 7, warm=stub_tasks.warm):
        reports.append(report)
        if len(reports) == len(students):  # before the cluster ends, which would let go of everything
            assert wait_until(lambda: gc.collect() >= 0 and held(alive) <= 3), "submissions are held in memory"
    return reports, notes


def test_everyone_gets_exactly_one_report(mishaps):
    reports, _ = mishaps
    assert collections.Counter(report.student for report in reports) == collections.Counter([*INNOCENT, *MISHAPS])


@pytest.mark.parametrize("student", MISHAPS)
def test_a_mishap_ends_in_its_state(mishaps, student):
    report = next(report for report in mishaps[0] if report.student == student)
    _, state, reason = MISHAPS[student]
    assert report.state == state
    assert reason is None or reason in report.reason


def test_the_innocent_are_graded(mishaps, tiny):
    reports = [report for report in mishaps[0] if report.student in INNOCENT]
    assert {report.state for report in reports} == {"graded"}
    assert {report.score for report in reports} == {tiny.points}


def test_an_error_decides_no_points_but_names_every_exercise(mishaps, tiny):
    report = next(report for report in mishaps[0] if report.student == "fails")
    assert [verdict.exercise for verdict in report.verdicts] == [exercise.id for exercise in tiny.exercises]
    assert (report.score, report.max_score, report.provenance["submission"]) == (0, tiny.points, "of fails")


def test_who_kills_a_worker_is_tried_twice_and_who_was_there_is_graded_in_another(mishaps):
    _, notes = mishaps
    assert len((notes / "kills its worker").read_text().split()) == 2
    pids = (notes / "kills its worker once").read_text().split()
    assert len(pids) == len(set(pids)) == 2


def test_a_worker_has_the_lecture_from_a_message_in_a_private_folder(mishaps, tiny):
    seen = mishaps[0][0].provenance
    assert seen["files"] == "checks.json exercises.py"  # no notebook, nor its source
    assert seen["mode"] == "0o700"
    assert not Path(seen["folder"]).is_relative_to(tiny.folder.parent)
    assert seen["solutions"] == str(Path(seen["folder"]).parent)
    assert not Path(seen["solutions"]).exists(), "the private folder is left behind"


def test_a_worker_has_the_seed_of_the_run(mishaps):
    assert {report.provenance["seed"] for report in mishaps[0] if report.state == "graded"} == {"7"}


def test_a_worker_warms_up_once_before_its_first_task_also_in_the_place_of_one_that_died(mishaps):
    assert {report.provenance["warm"] for report in mishaps[0] if report.state == "graded"} == {"10_tiny"}


def test_no_process_is_left(mishaps):
    assert not [pid for report in mishaps[0] if (pid := report.provenance.get("pid")) and Path("/proc", pid).exists()]


# ---- a scheduler that someone else started


def test_a_class_is_graded_on_a_scheduler_elsewhere(tiny, elsewhere, stub_tasks):
    cooled = set(elsewhere.out.glob("cooled-*"))
    class_ = [handed_in(name) for name in INNOCENT]
    reports = list(farm.graded(stub_tasks.grade, class_, tiny, elsewhere, 7, warm=stub_tasks.warm))
    assert sorted(report.student for report in reports) == INNOCENT
    assert {report.provenance["threads"] for report in reports} == {"1"}
    assert not Path(reports[0].provenance["folder"]).exists(), "the bench is left on the workers"
    assert len(set(elsewhere.out.glob("cooled-*")) - cooled) == 2, "a worker did not cool down"


def test_only_a_few_submissions_are_read_ahead(tiny, elsewhere, stub_tasks):
    read = []

    def class_():
        for i in range(30):
            read.append(i)
            yield handed_in(f"s{i}")

    for done, _ in enumerate(farm.graded(stub_tasks.grade, class_(), tiny, elsewhere, 7), 1):
        assert len(read) - done <= 2 * farm.IN_FLIGHT


def test_what_is_wrong_for_everyone_is_raised(tiny, elsewhere, stub_tasks):
    class_ = [handed_in("ada", course="10_tiny: every_kth has no cases")]
    with pytest.raises(CourseError, match="every_kth has no cases"):
        list(farm.graded(stub_tasks.grade, class_, tiny, elsewhere, 7))


def test_a_worker_with_other_exercises_or_another_engine_is_refused(tiny, elsewhere, stub_tasks, monkeypatch):
    monkeypatch.setattr(farm, "foundations", lambda lecture: {"exercises": tiny.digest, "torch": "0.1"})
    with pytest.raises(UsageError, match="has another torch than this machine"):
        list(farm.graded(stub_tasks.grade, [handed_in("ada")], tiny, elsewhere, 7))


def test_a_submission_that_never_comes_back_is_given_up(tiny, elsewhere, stub_tasks, monkeypatch):
    monkeypatch.setattr(farm, "GRACE_SECONDS", 1)
    short = dataclasses.replace(elsewhere, submission_seconds=1, start_seconds=1)
    class_ = [handed_in("ada"), handed_in("sleeper", sleep=600), handed_in("bob")]
    reports = {report.student: report for report in farm.graded(stub_tasks.grade, class_, tiny, short, 7)}
    assert reports["ada"].state == reports["bob"].state == "graded"
    assert reports["sleeper"].state == "error" and "no answer came in time" in reports["sleeper"].reason


def test_a_machine_whose_workers_cannot_be_reached_is_told(tiny, settings, stub_tasks, monkeypatch):
    def unreachable(**options):
        raise RuntimeError("Cluster failed to start: Timed out trying to connect")

    monkeypatch.setattr(farm, "LocalCluster", unreachable)
    with pytest.raises(AutograderError, match=r"loopback network \(127.0.0.1\) up"):
        list(farm.graded(stub_tasks.grade, [handed_in("ada")], tiny, settings, 7))


def test_a_scheduler_that_is_not_there_is_named(tiny, settings, stub_tasks, monkeypatch):
    monkeypatch.setattr(farm, "JOIN_SECONDS", 1)
    nowhere = dataclasses.replace(settings, scheduler="tcp://127.0.0.1:9")
    with pytest.raises(UsageError, match="no Dask scheduler at tcp://127.0.0.1:9:".replace(".", "[.]")):
        list(farm.graded(stub_tasks.grade, [handed_in("ada")], tiny, nowhere, 7))


def test_a_scheduler_that_speaks_tls_is_named(tiny, settings, stub_tasks, monkeypatch):
    monkeypatch.setattr(farm, "JOIN_SECONDS", 2)
    options = {"host": "127.0.0.1", "security": Security.temporary(), "silence_logs": 50}
    with LocalCluster(n_workers=0, dashboard_address=None, **options) as cluster:
        for protocol, expected in (("tls", "tls:// needs a certificate"), ("tcp", "is reached by tls:// in place")):
            address = cluster.scheduler_address.replace("tls://", f"{protocol}://")
            with pytest.raises(UsageError, match=expected):
                farm.machines(dataclasses.replace(settings, scheduler=address))


def test_the_machines_of_the_workers_are_known(elsewhere):
    found = farm.machines(elsewhere)
    assert len(found) == 2 and {machine.level.name for machine in found.values()} <= set(PLANS)


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (Refused("this machine offers 'none'"), Refused, "the worker at tcp://.*: this machine offers 'none'"),
        (ImportError("no bubblewrap"), UsageError, "the worker at tcp://.* cannot grade .ImportError: no bubblewrap"),
    ],
)
def test_a_worker_that_cannot_grade_is_named(elsewhere, stub_tasks, monkeypatch, error, kind, sentence):
    monkeypatch.setattr(farm, "_machine", functools.partial(stub_tasks.raise_, error))
    with pytest.raises(kind, match=sentence):
        farm.machines(elsewhere)


def test_a_worker_that_joins_late_and_cannot_grade_is_closed_and_costs_nothing(tiny, settings, stub_tasks):
    quiet = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", memory_limit=0, **quiet) as cluster:
        there = dataclasses.replace(settings, scheduler=cluster.scheduler_address)
        seen, class_ = set(), []

        def handing_in():
            """Until the second worker has come and gone."""
            while len(seen) < 2 or len(cluster.scheduler_info["workers"]) > 1:
                seen.update(cluster.scheduler_info["workers"])
                class_.append(f"s{len(class_)}")
                yield handed_in(class_[-1], sleep=0.1)

        reports = []
        for report in farm.graded(stub_tasks.grade, handing_in(), tiny, there, 7, warm=stub_tasks.warm_the_first):
            reports.append(report)
            if len(reports) == 1:
                cluster.scale(2)
    assert collections.Counter((report.student, report.state) for report in reports) == collections.Counter(
        (student, "graded") for student in class_
    )


def test_no_worker_hears_of_the_gradebook(tiny, elsewhere, stub_tasks):
    secret = dataclasses.replace(elsewhere, db_url="postgresql+psycopg://me:secret@there/book")
    (report,) = farm.graded(stub_tasks.grade, [handed_in("ada")], tiny, secret, 7)
    assert report.provenance["settings"] and "secret" not in report.provenance["settings"]


def test_an_empty_class_starts_no_cluster(tiny, settings, stub_tasks, monkeypatch):
    monkeypatch.setattr(farm, "LocalCluster", None)
    assert list(farm.graded(stub_tasks.grade, [], tiny, settings, 7)) == []


# ---- a run that is ended from outside


def test_a_cluster_that_was_opened_before_grades_and_is_closed_once(tiny, settings, stub_tasks, tmp_path):
    settings = dataclasses.replace(settings, workers=1, out=tmp_path)
    with farm.opening(settings, 5):
        pids = set()
        for student in ("ada", "bob"):
            (report,) = farm.graded(stub_tasks.grade, [handed_in(student)], tiny, settings, 7, warm=stub_tasks.warm)
            pids.add(report.provenance["pid"])
    assert len(pids) == 1, "each started workers of its own"
    assert not any(Path("/proc", pid).exists() for pid in pids)
    (later,) = farm.graded(stub_tasks.grade, [handed_in("cyd")], tiny, settings, 7)
    assert later.provenance["pid"] not in pids


def test_a_cluster_that_was_opened_for_nothing_is_closed(settings, monkeypatch):
    closed = []

    class Remembered(LocalCluster):
        def close(self, *arguments, **options):
            closed.append(self)
            return super().close(*arguments, **options)

    monkeypatch.setattr(farm, "LocalCluster", Remembered)
    with farm.opening(settings, 5):
        pass
    assert closed and closed[0].status.name == "closed"


@pytest.mark.parametrize("options, submissions", [({"scheduler": "tcp://127.0.0.1:1"}, 5), ({}, 0)])
def test_nothing_is_opened_for_a_scheduler_or_an_empty_class(settings, monkeypatch, options, submissions):
    monkeypatch.setattr(farm, "LocalCluster", lambda **_: pytest.fail("it was started"))
    with farm.opening(dataclasses.replace(settings, **options), submissions):
        assert farm._OPENING == []


def test_a_cluster_that_cannot_be_opened_is_told_to_who_grades(tiny, settings, stub_tasks, monkeypatch):
    def unreachable(**_):
        raise RuntimeError("no loopback")

    monkeypatch.setattr(farm, "LocalCluster", unreachable)
    with farm.opening(settings, 5), pytest.raises(AutograderError, match="no loopback"):
        list(farm.graded(stub_tasks.grade, [handed_in("ada")], tiny, settings, 7))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("end", "last_line"), [(signal.SIGINT, "stopped"), (signal.SIGKILL, "s")])
def test_a_run_that_is_ended_leaves_no_process_and_no_noise(tiny, tmp_path, end, last_line):
    """Ctrl-C reaches the whole process group, as from a terminal; SIGKILL the coordinator alone."""
    command = [sys.executable, str(HERE / "farm_script.py"), str(tiny.folder.parent), str(tmp_path)]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, start_new_session=True) as run:
        first = run.stdout.readline()
        assert len(members(run.pid)) >= 2  # the coordinator and its worker
        (os.killpg if end == signal.SIGINT else os.kill)(run.pid, end)
        rest, noise = run.communicate(timeout=60)
    assert [first, *rest.splitlines()][-1].startswith(last_line)
    assert noise == "" or end == signal.SIGKILL  # Python's own tracker of semaphores speaks up then
    assert wait_until(lambda: not members(run.pid)), "processes are left"


def members(session):
    """The processes of a session, by id."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def wait_until(fact, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if fact():
            return True
        time.sleep(0.1)
    return False
