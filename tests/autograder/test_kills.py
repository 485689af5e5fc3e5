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
from types import SimpleNamespace

import pytest

from autograder import release
from autograder.settings import load_settings

LECTURE = "10_tiny"
WRONG = {"every_kth": "def every_kth(x, k):\n    return x[-1, list(range(0, x.shape[1], k))]"}
SLOW = ["import time\ntime.sleep(0.5)"]
SECONDS = 240  # for one step; a quiet machine needs a tenth

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
        command = [sys.executable, "-m", "autograder", "-v", "grade", LECTURE, "--submissions", str(handed)]
        options = ["--out", str(out), "--workers", str(workers), "--cell-seconds", "20", "--trust-code"]
        self.out, self.seen, self.groups, self.over = out, {}, set(), threading.Event()
        self.process = subprocess.Popen(
            command + options, cwd=course, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env={**os.environ, "TMPDIR": str(room)},
        )  # fmt: skip
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def _watch(self):
        while not self.over.wait(0.1):
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
        """The worker processes: forks of a fork of the coordinator."""
        family = self.look()
        own = self.process.pid
        forks = [pid for pid, (_, _, command) in family.items() if pid != own and command == family[own][2]]
        return [pid for pid in forks if family[pid][0] in forks]

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
            time.sleep(0.02)
        return found

    def stop(self):
        """Whatever has become of it."""
        self.over.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

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
    """Every fifth of them has one wrong answer; the first ones take their time, so that a kernel can be killed at work."""
    for number, student in enumerate(students):
        path = folder / student / LECTURE / f"{LECTURE}.ipynb"
        path.parent.mkdir(parents=True)
        notebook = handed_in(WRONG if number % 5 == 0 else (), SLOW if number < 20 else ())
        path.write_text(notebook, encoding="utf-8")


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


def seen_killed(out):
    """Whether a submission tells that its kernel was killed while it worked."""
    records = [path.read_text() for path in (out / "report" / "submissions" / LECTURE).glob("[!.]*.json")]
    return any("was killed in code cell" in event for text in records for event in json.loads(text)["report"]["events"])


def files_left(out, room):
    parts = [path for path in out.rglob(".*") if path.suffix == ".part"]
    return [path.name for path in room.iterdir()] + parts


STUDENTS = [f"s{number:03}" for number in range(100)]
POISON = "z_poison"  # hands in last


class Reaper(threading.Thread):
    """Kills each worker that has the poison in its hands. No submission is known that could: the sandbox is between."""

    def __init__(self, room, run):
        super().__init__(daemon=True)
        self.room, self.run_, self.reaped = room, run, []

    def run(self):
        while not self.run_.over.wait(0.01):
            with contextlib.suppress(OSError):  # folders come and go
                for poison in self.room.glob("autograder-*/run-*/poison.txt"):
                    owner = holder(poison.parents[1])
                    if owner and poison not in self.reaped:  # whoever removes it later holds it, too
                        self.reaped.append(poison)
                        kill(owner)


@pytest.fixture(scope="module")
def story(course, handed_in, tmp_path_factory):
    """What happens to a class; the tests below look at what came of it."""
    folder = tmp_path_factory.mktemp("story")
    handed, out = folder / "handed", folder / "out"
    hand_in(handed, handed_in, STUDENTS)
    room = Path(tempfile.mkdtemp(prefix="kt", dir="/tmp"))  # short: paths of sockets begin with it
    story = SimpleNamespace(out=out, room=room, runs=[])
    try:
        tell(story, course, handed_in, handed, out, room)
        yield story
    finally:
        for run in story.runs:
            run.stop()
        shutil.rmtree(room)


def tell(story, course, handed_in, handed, out, room):
    def started(**options):
        story.runs.append(Run(course, out, handed, room, **options))
        return story.runs[-1]

    # kernels are killed, then a worker, then the coordinator
    first = started()
    first.wait_for(lambda: first.graded() >= 3)  # before that, what looks like a kernel is the sandbox being tried out
    for number in range(30):  # one that is hit before its first cell, or after its last one, leaves no trace
        before = first.graded()
        chosen = first.wait_for(first.kernels)[0]
        time.sleep(0.05 * (number % 8))  # at another moment of its life each time
        kill(chosen)
        first.wait_for(lambda before=before: first.graded() > before)
        if number >= 4 and seen_killed(out):
            break
    first.wait_for(lambda: first.graded() >= 25)
    kill(first.workers()[0])
    first.wait_for(lambda: first.graded() >= 50)
    kill(first.process.pid)
    first.end()
    story.kept = first.graded()

    # the next call is ended by Ctrl-C, which reaches the whole process group, as from a terminal
    second = started()
    second.wait_for(lambda: second.graded() >= 80)
    os.killpg(second.process.pid, signal.SIGINT)
    story.interrupted = second.end()
    story.left_by_the_interrupted = files_left(out, room)

    # somebody hands in what ends its worker each time, and the class is done
    hand_in(handed, handed_in, [POISON])
    (handed / POISON / LECTURE / "poison.txt").write_text("poison")
    third = started(workers=1)
    reaper = Reaper(room, third)
    reaper.start()
    story.done = third.end()
    reaper.join()
    story.reaped = reaper.reaped


def test_every_score_is_there_once_and_right(story):
    assert 50 <= story.kept < 80
    scores = expected(STUDENTS)
    assert in_gradebook(story.out) == scores
    for found in (in_results(story.out), in_ledger(story.out)):
        assert found.pop(POISON) == 0 and found == scores
    assert sorted(path.name for path in (story.out / "autograded").iterdir()) == STUDENTS


def test_ctrl_c_is_one_sentence(story):
    code, err = story.interrupted
    assert code == 2 and "What is graded is kept" in err and "Traceback" not in err
    assert story.left_by_the_interrupted == []


def test_who_ends_their_worker_each_time_is_named_and_harms_nobody(story):
    assert story.done[0] == 1 and len(story.reaped) == 2
    records = json.loads((story.out / "report" / "results.json").read_text(encoding="utf-8"))["submissions"]
    states = {record["student"]: (record["state"], record["reason"] or "") for record in records}
    state, reason = states.pop(POISON)
    assert state == "error" and reason.startswith("Twice the worker process ended")
    assert set(states.values()) == {("graded", "")}


def test_nothing_is_left_behind(story):
    """No process: see Run.end. No temporary file of any of them, no control group."""
    assert files_left(story.out, story.room) == []
    assert left_groups(story.runs) == []


def test_kernels_were_killed_while_they_worked(story):
    """Else the tests above would hold for nothing."""
    assert seen_killed(story.out)


def holder(folder):
    """The process that holds a folder open, if any."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(link) == str(folder):
                return int(link.parts[2])
    return None
