"""A kernel that is dead or silent is replaced; what did it is told, and every other exercise earns what it earns."""

import json
from dataclasses import replace

import pytest

from autograder import kernels, sandbox
from autograder.grade import grade_submission
from autograder.records import FAILURES, Submission

from .misbehaving import DISTURBING, SILENCING

KTH, EVEN = "every_kth", "even_numbers"
ANSWER = "def every_kth(x, k):\n    return x[-1, ::k]\n"
WALLS = pytest.mark.skipif(sandbox.level().name == "none", reason="this code needs walls around it")


@pytest.fixture
def graded(tiny, tiny_settings, handed_in, monkeypatch):
    for name, seconds in {"INTERRUPT_SECONDS": 0.5, "SILENT_SECONDS": 1.0, "ECHO_SECONDS": 2.5}.items():
        monkeypatch.setattr(kernels, name, seconds)

    def grade(answers=(), extra=(), **settings):
        limits = {"cell_seconds": 3, "submission_seconds": 90, "memory_mib": 600, "output_mib": 0.2, **settings}
        submission = Submission("ada", "10_tiny", handed_in(answers, extra))
        return grade_submission(submission, tiny, replace(tiny_settings, **limits), seed=7)

    return grade


def scores(report):
    return {verdict.exercise: verdict.score for verdict in report.verdicts if not verdict.by_hand}


def message(report, exercise):
    return next(verdict.message for verdict in report.verdicts if verdict.exercise == exercise)


TOLD = {FAILURES["silent"], FAILURES["timeout"], FAILURES["died"]}


@WALLS
@pytest.mark.parametrize("name", SILENCING)
def test_a_cell_that_silences_its_kernel_costs_no_exercise(graded, name):
    report = graded(extra=["a = 1", SILENCING[name], "b = a + 1"])
    assert scores(report) == {KTH: 2, EVEN: 3}, [v.message for v in report.verdicts]
    assert any("code cell 3" in event.lower() for event in report.events), report.events


IN_AN_ANSWER = (  # one of each way to be lost
    "closes what it prints to",
    "displays something else",
    "replaces sys.modules",
    "replies to no request",
    "stops itself",
    "closes every descriptor",
)


@WALLS
@pytest.mark.parametrize("name", IN_AN_ANSWER)
def test_an_answer_that_silences_its_kernel_costs_its_own_exercise_which_says_so(graded, name):
    report = graded({KTH: f"{SILENCING[name]}\n{ANSWER}"})
    assert scores(report) == {KTH: 0, EVEN: 3}, [v.message for v in report.verdicts]
    assert message(report, KTH) in TOLD and report.events


CALLED = ("closes what it prints to", "drops what is displayed", "empties sys.modules", "replies to no request")


@WALLS
@pytest.mark.parametrize("name", CALLED)
def test_a_function_that_silences_its_kernel_when_it_is_called_does_so_too(graded, name):
    body = "".join(f"    {line}\n" for line in SILENCING[name].splitlines())
    report = graded({KTH: f"def every_kth(x, k):\n{body}    return x[-1, ::k]\n"})
    assert scores(report)[EVEN] == 3, [v.message for v in report.verdicts]


@WALLS
@pytest.mark.parametrize("name", ["fails at what is displayed", "closes what it prints to"])
def test_what_ran_in_a_kernel_silenced_before_is_run_again(graded, name):
    answer = "def every_kth(x, k):\n    return x[-1, ::k * factor]\n"
    assert scores(graded({KTH: answer}, extra=[SILENCING[name], "factor = 1"])) == {KTH: 2, EVEN: 3}


@WALLS
def test_several_silent_cells_are_all_found(graded):
    cells = [
        SILENCING[name] for name in ("drops what is displayed", "evaluates no expression", "closes what it prints to")
    ]
    report = graded(extra=[cells[0], "a = 1", cells[1], "b = a", cells[2]])
    assert scores(report) == {KTH: 2, EVEN: 3} and len(report.events) == 3


def test_a_kernel_that_is_well_is_asked_nothing(graded, monkeypatch):
    monkeypatch.setattr("autograder.wire.echo_code", lambda word: 1 / 0)
    assert scores(graded(extra=["a = 1", "1 / 0", "print('x')"])) == {KTH: 2, EVEN: 3}


def test_looking_for_a_silent_cell_ends_with_the_time_of_the_submission(graded):
    lasting = ["import time\ntime.sleep(1)"] * 4
    report = graded(extra=[*lasting, SILENCING["drops what is displayed"]], submission_seconds=6)
    assert report.seconds < 20 and any("whole notebook" in event for event in report.events)


@pytest.mark.parametrize("exercise", [KTH, EVEN])
def test_what_ends_the_kernel_in_an_answers_cell_is_told_by_its_exercise(graded, exercise):
    report = graded({exercise: "import os\nos._exit(1)"})
    assert message(report, exercise) == FAILURES["died"]
    assert sorted(scores(report).values()) == sorted({KTH: [0, 3], EVEN: [0, 2]}[exercise])


def test_an_answer_that_never_ends_at_the_top_level_is_told_as_one(graded):
    assert message(graded({KTH: "while True: pass"}), KTH) == FAILURES["timeout"]


def test_a_function_that_ends_without_an_answer_says_what_came_instead(graded):
    report = graded({KTH: "def every_kth(x, k):\n    raise KeyboardInterrupt('enough')"})
    assert message(report, KTH) == f"{FAILURES['unanswered']} What came instead: KeyboardInterrupt: enough."
    assert scores(report)[EVEN] == 3 and not report.events


NEEDS_ITS_NAMES = {"forgets all names": {KTH: 0, EVEN: 0}}  # torch is gone for Jupyter, too


@WALLS
@pytest.mark.parametrize("name", DISTURBING)
def test_a_cell_that_disturbs_costs_no_exercise(graded, name):
    report = graded(extra=["a = 1", DISTURBING[name], "b = a + 1"])
    assert scores(report) == NEEDS_ITS_NAMES.get(name, {KTH: 2, EVEN: 3}), [v.message for v in report.verdicts]
    assert report.state == "graded" and len(report.notebook) < 600_000
    json.loads(report.notebook)


@WALLS
def test_a_zygote_that_is_killed_with_its_kernel_is_started_anew_and_costs_nothing(
    graded, tiny, tiny_settings, monkeypatch
):
    """The system may do so when a kernel has used up the memory of both."""
    zygote = kernels.warm_up(tiny_settings, tiny.without)
    first_start, starts = kernels._Run.start, []

    async def start(run):
        starts.append(run)
        kernel = await first_start(run)
        if len(starts) == 1:
            zygote.process.kill()
            await kernel.kernel.died
        return kernel

    monkeypatch.setattr(kernels._Run, "start", start)
    report = graded()
    assert scores(report) == {KTH: 2, EVEN: 3}, [v.message for v in report.verdicts]
    assert len(starts) == 2 and report.state == "graded" and report.events
    assert kernels.warm_up(tiny_settings, tiny.without) is not zygote
