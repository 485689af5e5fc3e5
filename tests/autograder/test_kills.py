"""A hundred submissions while kernels, workers and the coordinator are killed: nothing is lost, doubled or left behind."""

import collections
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from autograder import release
from autograder.settings import load_settings

LECTURE = "10_tiny"
WRONG = {"every_kth": "def every_kth(x, k):\n    return x[-1, list(range(0, x.shape[1], k))]"}
SECONDS = 100  # for one call of the command line; a quiet machine needs a fifth

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.xdist_group("kills"),
]


@pytest.fixture(scope="module")
def course(built_course, tmp_path_factory):
    """The folder of a released course."""
    root = shutil.copytree(built_course, tmp_path_factory.mktemp("kills") / "course")
    release.release([LECTURE], load_settings(root))
    return root


@pytest.fixture
def room():
    """An empty folder for temporary files; whatever is in it in the end was left behind."""
    folder = Path(tempfile.mkdtemp(prefix="kt", dir="/tmp"))  # short: paths of sockets begin with it
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


# ---- processes, as /proc shows them


def processes():
    """{pid: (parent, start time, command)} of every process that is no zombie."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if fields[0] != "Z":
                found[int(folder.name)] = (int(fields[1]), fields[19], command or name)
    return found


class Run:
    """One call of `autograder grade`, watched: every process of it and its control group are remembered."""

    def __init__(self, course, out, handed, room, workers=2):
        command = [sys.executable, "-m", "autograder", "grade", LECTURE, "--submissions", str(handed)]
        options = ["--out", str(out), "--workers", str(workers), "--cell-seconds", "20", "--trust-code"]
        self.out, self.seen, self.groups, self.over = out, {}, set(), threading.Event()
        self.process = subprocess.Popen(
            command + options, cwd=course, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env={**os.environ, "TMPDIR": str(room)},
        )  # fmt: skip
        self.watcher = threading.Thread(target=self._watch)
        self.watcher.start()

    def _watch(self):
        while not self.over.wait(0.02):
            self.look()

    def look(self):
        known = processes()
        family = [self.process.pid, *descendants(self.process.pid, known)]
        # whoever lost its parent was seen before it did
        for pid in family:
            if pid in known and pid not in self.seen:
                self.seen[pid] = known[pid][1]
                with contextlib.suppress(OSError):
                    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
                    self.groups |= {line.rpartition("/")[2] for line in lines if "/autograder-" in line}
        return {pid: known[pid] for pid in family if pid in known}

    def workers(self):
        """The worker processes: those that have started bubblewrap or a zygote, or are about to."""
        return [pid for pid, (_, _, command) in self.look().items() if "multiprocessing.spawn" in command]

    def kernels(self):
        """Processes below a zygote in which a student's code runs: the youngest generation."""
        family = self.look()
        zygotes = [pid for pid, (_, _, command) in family.items() if "autograder.zygote" in command]
        parents = {parent for parent, *_ in family.values()}
        return [pid for pid in zygotes if pid not in parents and family[pid][0] in zygotes]

    def graded(self):
        return len(list((self.out / "report" / "submissions" / LECTURE).glob("[!.]*.json")))

    def wait_for(self, fact):
        end = time.monotonic() + SECONDS
        while not (found := fact()):
            assert time.monotonic() < end, "it did not come to that"
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.01)
        return found

    def end(self):
        """(exit code, stderr), once it has ended and nothing of it runs any more."""
        _, err = self.process.communicate(timeout=SECONDS)
        end = time.monotonic() + 20
        while (alive := self.alive()) and time.monotonic() < end:
            time.sleep(0.05)
        self.over.set()
        self.watcher.join()
        assert not alive, "processes are left"
        return self.process.returncode, " ".join(err.split())

    def alive(self):
        known = processes()
        return [known[pid] for pid, start in self.seen.items() if pid in known and known[pid][1] == start]


def descendants(pid, known):
    """The processes below one, by id."""
    children = collections.defaultdict(list)
    for child, (parent, *_) in known.items():
        children[parent].append(child)
    found = list(children[pid])
    for child in found:
        found += children[child]
    return found


def kill(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def left_groups(runs):
    names = set().union(*(run.groups for run in runs))
    return [str(path) for path in Path("/sys/fs/cgroup").glob("*/**/autograder-*") if path.name in names]


# ---- what came of it


def hand_in(folder, handed_in, students):
    """Every fifth of them has one wrong answer."""
    right, wrong = handed_in(), handed_in(WRONG)
    for number, student in enumerate(students):
        path = folder / student / LECTURE / f"{LECTURE}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(wrong if number % 5 == 0 else right, encoding="utf-8")


def expected(students):
    return {student: 3.0 if number % 5 == 0 else 5.0 for number, student in enumerate(students)}


def in_results(out):
    found = json.loads((out / "report" / "results.json").read_text(encoding="utf-8"))["submissions"]
    scores = {record["student"]: record["score"] for record in found}
    assert len(scores) == len(found), "somebody is there twice"
    return scores


def in_ledger(out):
    records = [json.loads(path.read_text()) for path in (out / "report" / "submissions" / LECTURE).glob("[!.]*")]
    return {
        record["report"]["student"]: sum(verdict["score"] for verdict in record["report"]["verdicts"])
        for record in records
    }


def in_gradebook(out):
    query = """select student_id, count(*), count(distinct cell_id), sum(auto_score) from grade
        join submitted_notebook on submitted_notebook.id = grade.notebook_id
        join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id group by student_id"""
    with contextlib.closing(sqlite3.connect(out / "gradebook.db")) as connection:
        found = connection.execute(query).fetchall()
        students = connection.execute("select count(*) from submitted_assignment").fetchone()[0]
    assert students == len(found) and {(rows, cells) for _, rows, cells, _ in found} <= {(3, 3)}, "grades are doubled"
    return {student: score for student, _, _, score in found}


def files_left(out, room):
    parts = [path for path in out.rglob(".*") if path.suffix == ".part"]
    return [path.name for path in room.iterdir()] + parts


# ---- the tests


def test_a_hundred_submissions_survive_every_kill(course, handed_in, tmp_path, room):
    students = [f"s{number:03}" for number in range(100)]
    handed, out = tmp_path / "handed", tmp_path / "out"
    hand_in(handed, handed_in, students)

    # kernels and a worker are killed, then the user loses patience: Ctrl-C reaches the whole group, as from a terminal
    first = Run(course, out, handed, room)
    killed = 0
    for _ in range(5):
        before = first.graded()
        kill(first.wait_for(first.kernels)[0])
        killed += 1
        first.wait_for(lambda before=before: first.graded() > before)
    kill(first.workers()[0])
    first.wait_for(lambda: first.graded() >= 30)
    os.killpg(first.process.pid, signal.SIGINT)
    code, err = first.end()
    assert code == 2 and "What is graded is kept" in err and "Traceback" not in err

    # the coordinator is killed
    second = Run(course, out, handed, room)
    second.wait_for(lambda: second.graded() >= 60)
    kill(second.process.pid)
    second.end()
    kept = second.graded()

    # a worker is killed once more, and the class is done
    third = Run(course, out, handed, room)
    third.wait_for(lambda: third.graded() >= 80)
    kill(third.workers()[0])
    code, err = third.end()
    assert code == 0 and f"{kept} of them unchanged and kept" in err

    assert killed == 5 and 60 <= kept < 100
    assert in_results(out) == in_ledger(out) == in_gradebook(out) == expected(students)
    assert files_left(out, room) == []
    assert left_groups([first, second, third]) == []
    assert len(list((out / "autograded").iterdir())) == len(students)


def test_who_kills_their_worker_each_time_is_named_and_harms_nobody(course, handed_in, tmp_path, room):
    """No submission is known that can: a reaper beside it kills the worker that has the poison in its hands."""
    students = [f"s{number:03}" for number in range(12)]
    handed, out = tmp_path / "handed", tmp_path / "out"
    hand_in(handed, handed_in, students)
    (handed / "s005" / LECTURE / "poison.txt").write_text("poison")
    run, reaped = Run(course, out, handed, room), []

    def reap():
        while not run.over.wait(0.01):
            for poison in room.glob("autograder-*/run-*/poison.txt"):
                owner = holder(poison.parents[1])
                if owner and owner not in reaped:
                    reaped.append(owner)
                    kill(owner)

    reaper = threading.Thread(target=reap)
    reaper.start()
    try:
        code, _ = run.end()
    finally:
        run.over.set()
        reaper.join()
    assert code == 1 and len(reaped) == 2
    records = {
        record["student"]: record
        for record in json.loads((out / "report" / "results.json").read_text(encoding="utf-8"))["submissions"]
    }
    assert records["s005"]["state"] == "error" and "Twice the worker process ended" in records["s005"]["reason"]
    unharmed = {student: score for student, score in expected(students).items() if student != "s005"}
    assert {student: records[student]["score"] for student in unharmed} == in_gradebook(out) == unharmed
    assert files_left(out, room) == [] and left_groups([run]) == []


def holder(folder):
    """The process that holds a folder open, if any."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(link) == str(folder):
                return int(link.parts[2])
    return None
