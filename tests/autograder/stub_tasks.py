"""Stand-ins for grade_submission: what a submission does to its worker stands in its files."""

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import torch

from autograder.errors import CourseError, EngineError, Refused
from autograder.records import Report, Verdict

WARM = []


def grade(submission, lecture, settings, seed):
    """Full points, unless `submission.files` holds the name of something else to do and an argument for it."""
    for name, argument in submission.files.items():
        ACTS[name](argument.decode())
    verdicts = tuple(Verdict(e.id, e.number, e.points, e.points) for e in lecture.exercises)
    return Report(submission.student, lecture.name, "graded", verdicts, provenance=seen(lecture, settings, seed))


def seen(lecture, settings, seed):
    return {
        "pid": str(os.getpid()),
        "threads": str(torch.get_num_threads()),
        "files": " ".join(sorted(path.name for path in lecture.folder.iterdir())),
        "mode": oct(lecture.folder.parent.stat().st_mode & 0o777),
        "folder": str(lecture.folder),
        "solutions": str(settings.solutions),
        "settings": repr(settings),
        "seed": str(seed),
        "warm": " ".join(WARM),
    }


def raise_(error, *_):
    raise error


@contextmanager
def warm(lecture, settings):
    WARM.append(lecture.name)
    yield
    Path(settings.out, f"cooled-{os.getpid()}").touch()


@contextmanager
def warm_the_first(lecture, settings):
    """Only the first worker can be set up."""
    if not _once(settings.out / "the first"):
        raise Refused("there is no sandbox here")
    yield


def _once(path):
    """Whether this is the first call with `path`."""
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def _die_once(path):
    if _once(path):
        _die("")


def _fail(text):
    raise EngineError(text)


def _fail_once(path):
    if _once(path):
        raise EngineError("the kernel did not start")


def _bug(_):
    return {}["not there"]


def _course(text):
    raise CourseError(text)


def _sleep(seconds):
    time.sleep(float(seconds))


def _note(path):
    """Append this process to a file: how often, and where, a submission was run."""
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")


ACTS = {
    "die": _die, "die_once": _die_once, "fail": _fail, "fail_once": _fail_once, "bug": _bug, "course": _course,
    "sleep": _sleep, "note": _note,
}  # fmt: skip
