"""One submission from notebook to report, in real kernels: one bad cell costs its own exercise and no other."""

import asyncio
import collections
import errno
import json
from dataclasses import replace

import pytest

from autograder import grade, judge, kernels, probe
from autograder import messages as messages_of_kernels
from autograder.errors import EngineError
from autograder.exercises import case_seed
from autograder.grade import grade_submission
from autograder.records import Submission

KTH, EVEN = "every_kth", "even_numbers"


@pytest.fixture(scope="session")
def graded(tiny, tiny_settings, handed_in):
    def grade(answers=(), extra=(), blank=False, **settings):
        submission = Submission("ada", "10_tiny", handed_in(answers, extra, blank))
        return grade_submission(submission, tiny, replace(tiny_settings, **settings), seed=7)

    return grade


def scores(report):
    return {verdict.exercise: verdict.score for verdict in report.verdicts}


def messages(report):
    return {verdict.exercise: verdict.message for verdict in report.verdicts}


def test_the_solved_notebook_earns_every_point_that_is_not_given_by_hand(graded):
    report = graded()
    assert report.state == "graded" and scores(report) == {KTH: 2, EVEN: 3, "why_copies": 0}
    assert [v.by_hand for v in report.verdicts] == [False, False, True]


def test_the_blank_notebook_earns_nothing_and_waits_for_nobody(graded):
    report = graded(blank=True)
    assert report.score == 0 and not any(v.by_hand for v in report.verdicts)
    assert "not answered" in messages(report)[KTH]


ONE_BAD_CELL = {
    "does not parse": ("def every_kth(x, k)\n    pass", "SyntaxError"),
    "raises at once": ("1 / 0", "ZeroDivisionError"),
    "never returns": ("def every_kth(x, k):\n    while True: pass", "time limit"),
    "swallows the interrupt": (
        "def every_kth(x, k):\n    while True:\n        try:\n            while True: pass\n        except BaseException: continue",
        "time limit",
    ),
    "ends its process": ("import os\ndef every_kth(x, k):\n    os._exit(3)", "process ended"),
    "kills its process": (
        "import os, signal\ndef every_kth(x, k):\n    os.kill(os.getpid(), signal.SIGKILL)",
        "process ended",
    ),
    "exits": ("import sys\ndef every_kth(x, k):\n    sys.exit()", "SystemExit"),
    "never ends at the top level": ("while True: pass", ""),
    "kills at the top level": ("import os\nos._exit(1)", ""),
    "returns nonsense": ("def every_kth(x, k):\n    return every_kth", "expected a tensor"),
    "is missing": ("# forgotten", "no every_kth"),
    "has another name": ("def every_kht(x, k):\n    return x[-1, ::k]", "no every_kth"),
    "deletes what it needs": ("del every_kth, check", ""),
}


def test_an_error_in_a_cell_that_answers_two_exercises_is_told_for_both(tiny, tiny_settings, handed_in):
    notebook = json.loads(handed_in({KTH: "def every_kth(x, k)\n    pass\n\ndef even_numbers(n):\n    pass"}))
    notebook["cells"] = [
        cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") != EVEN
    ]
    report = grade_submission(Submission("ada", "10_tiny", json.dumps(notebook)), tiny, tiny_settings, seed=7)
    assert all("Its cell did not run: SyntaxError" in messages(report)[exercise] for exercise in (KTH, EVEN))


@pytest.mark.parametrize("name", ONE_BAD_CELL)
def test_one_bad_cell_costs_its_own_exercise_only(graded, name):
    source, reason = ONE_BAD_CELL[name]
    report = graded({KTH: source})
    if name == "deletes what it needs":
        assert scores(report)[KTH] == 0
        return
    assert (scores(report)[KTH], scores(report)[EVEN]) == (0, 3), messages(report)
    assert reason in messages(report)[KTH]


def test_a_cell_that_asks_the_kernel_to_end_costs_nothing_else(graded):
    report = graded(extra=["exit()"])
    assert (scores(report)[KTH], scores(report)[EVEN]) == (2, 3) and report.events


def killing(monkeypatch, times, *, probes=False, only=None):
    """Kills the kernel from outside as each cell (or each that has a probe) begins, the first `times` that it is run."""
    run, done = kernels._Run.execute, collections.Counter()

    async def killed_before(self, code, probe=""):
        if (probe or not probes) and only in (None, code):
            done[code] += 1
            if done[code] <= times:
                self.kernel.kernel.forked.kill()
                while self.kernel.alive():
                    await asyncio.sleep(0.01)
        return await run(self, code, probe)

    monkeypatch.setattr(kernels._Run, "execute", killed_before)


@pytest.mark.parametrize(("probes", "events"), [(False, 10), (True, 2)])
def test_a_kernel_that_is_killed_from_outside_costs_nothing(graded, monkeypatch, probes, events):
    killing(monkeypatch, 1, probes=probes)
    report = graded()
    assert (scores(report)[KTH], scores(report)[EVEN]) == (2, 3)
    assert len(report.events) == events and "that was run again" in report.events[0]


def test_a_cell_in_which_the_kernel_is_killed_again_is_to_blame(graded, monkeypatch):
    killing(monkeypatch, 2, only=f"check({KTH})")
    report = graded()
    assert (scores(report)[KTH], scores(report)[EVEN]) == (0, 3) and len(report.events) == 2


def test_a_graded_cell_and_its_probe_are_one_request(graded, monkeypatch):
    sent, execute = [], messages_of_kernels.Client.execute
    record = lambda self, code, **options: sent.append(code) or execute(self, code, **options)
    monkeypatch.setattr(messages_of_kernels.Client, "execute", record)
    report = graded()
    assert scores(report)[KTH] == 2
    cells = [cell["source"] for cell in json.loads(report.notebook)["cells"] if cell["cell_type"] == "code"]
    assert sent == cells


def test_a_probe_is_asked_alone_where_its_cell_ends_with_an_error(graded):
    report = graded(extra=["check = None"])  # before the graded cells, which call it
    assert (scores(report)[KTH], scores(report)[EVEN]) == (2, 3)


def test_a_reply_counts_also_where_the_kernel_ends_after_it(graded):
    ends = (
        "import os, time\npub = get_ipython().display_pub\nold = pub.publish\n"
        f"def publish(data, *a, **k):\n    old(data, *a, **k)\n    if {probe.MIME!r} in data: time.sleep(0.3); os._exit(1)\n"
        "pub.publish = publish\n"
    )
    report = graded({KTH: f"{ends}def every_kth(x, k):\n    return x[-1, ::k]"})
    assert (scores(report)[KTH], scores(report)[EVEN]) == (2, 3) and report.events


def test_a_probe_has_its_own_time_where_its_cell_took_most_of_it(tiny, graded):
    asked, calls = judge.question(tiny[KTH], case_seed(7, "ada", KTH, "")), []
    probe.answer(lambda x, k: calls.append(1), asked.message)
    seconds = 4.0
    sleep = f"    import time; time.sleep({0.8 * seconds / len(calls)})\n"
    report = graded({KTH: f"def every_kth(x, k):\n{sleep}    return x[-1, ::k]"}, cell_seconds=seconds)
    assert (scores(report)[KTH], scores(report)[EVEN]) == (2, 3) and not report.events


def test_a_notebook_without_end_stops_at_its_time_limit(graded):
    report = graded(extra=["import time\ntime.sleep(2)"] * 5, submission_seconds=5)
    assert report.seconds < 20 and any("whole notebook" in event for event in report.events)


def test_a_flood_of_output_is_cut_and_costs_nothing(graded):
    report = graded(extra=["for i in range(200_000): print('x' * 100)"], output_mib=0.1)
    assert (scores(report)[KTH], scores(report)[EVEN]) == (2, 3) and len(report.notebook) < 400_000


def test_what_is_displayed_can_be_written_to_any_file(graded):
    deep = "shown = {}\nfor _ in range(600): shown = {'a': shown}\n"
    show = "display({'application/json': shown, 'text/plain': 'a'}, raw=True)\ndisplay({'text/html': 'b'}, raw=True)"
    pack = "import json\nget_ipython().kernel.session.pack = lambda o: json.dumps(o, default=str).encode()\n"
    half = f"{pack}print('c\\ud800')\ndisplay({{'application/json': {{'\\ud800': ['\\udfff']}}}}, raw=True)"
    report = graded(extra=[deep + show, half])
    assert (scores(report)[KTH], scores(report)[EVEN]) == (2, 3)
    cells = [cell for cell in json.loads(report.notebook)["cells"] if cell["cell_type"] == "code"]
    deep, half = ([output.get("data", output.get("text")) for output in cell["outputs"]] for cell in cells[1:3])
    assert deep == [{"text/plain": "a"}, {"text/html": "b"}]
    assert half == ["c?\n", {"application/json": {"?": ["?"]}}]


def test_an_answer_that_cannot_be_judged_costs_its_own_exercise(graded, monkeypatch):
    def verdict(asked, given, cells, real=judge.verdict):
        if asked.exercise.id == KTH:
            raise RecursionError
        return real(asked, given, cells)

    monkeypatch.setattr(judge, "verdict", verdict)
    report = graded()
    assert report.state == "graded" and (scores(report)[KTH], scores(report)[EVEN]) == (0, 3)
    assert "could not be judged (RecursionError)" in next(v.message for v in report.verdicts if v.exercise == KTH)


def test_an_answer_that_takes_too_long_to_judge_costs_its_own_exercise(graded, monkeypatch):
    def answers(asked, reply, real=judge.answers):
        while asked.exercise.id == KTH:  # as facts would that never end
            pass
        return real(asked, reply)

    monkeypatch.setattr(judge, "answers", answers)
    monkeypatch.setattr(grade, "JUDGE_SECONDS", 2.0)
    report = graded()
    assert report.state == "graded" and (scores(report)[KTH], scores(report)[EVEN]) == (0, 3)
    assert "seconds to judge" in messages(report)[KTH]


def test_what_a_cell_prints_or_displays_is_no_score(graded):
    forged = [
        "print('score: 5/5')\nget_ipython().displayhook(5.0)",
        "import torch\ntorch.equal = torch.allclose = lambda *a, **k: True",
        "class Yes:\n    def __eq__(self, other): return True\n    def __getattr__(self, name): return self\n    def __call__(self, *a, **k): return self",
        "type(check).__call__ = lambda self, function: None",
    ]
    assert graded(extra=forged, blank=True).score == 0
    assert graded({KTH: "def every_kth(x, k): return Yes()", EVEN: "even_numbers = Yes()"}, extra=forged).score == 0


def test_a_reply_that_is_forged_is_just_another_answer(graded):
    forged = (
        "from IPython import get_ipython\nimport base64\n"
        "def every_kth(x, k):\n"
        "    publisher = get_ipython().display_pub\n    publisher.unregister_hook(publisher._hooks[-1])\n"
        "    publisher.publish({'application/vnd.autograder.reply': base64.b64encode(b'all right').decode()})\n"
        "    return x[-1, ::k]\n"
    )
    report = graded({KTH: forged})
    assert scores(report)[KTH] == 0 and "unreadable" in messages(report)[KTH]


def test_what_a_function_shows_while_it_is_probed_stands_nowhere(graded):
    shows = (
        "import sys, matplotlib.pyplot as plt\n"
        "def every_kth(x, k):\n    print('seen'); print('seen', file=sys.stderr); display('seen')\n"
        "    display({'text/plain': 'seen'}, raw=True); plt.plot([1]); plt.title('seen'); plt.show()\n    return x[-1, ::k]\n"
    )
    report = graded({KTH: shows})
    assert scores(report)[KTH] == 2
    outputs = [cell.get("outputs") for cell in json.loads(report.notebook)["cells"]]
    assert "seen" not in json.dumps(outputs) and "image/png" not in json.dumps(outputs)


def test_what_an_earlier_cell_leaves_behind_changes_no_score(graded):
    report = graded(
        extra=[
            "import torch\ntorch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)",
            "sum = list = dict = len = None\nimport builtins",
            "mode = torch.inference_mode()\nmode.__enter__()\ntorch.device('meta').__enter__()",
        ]
    )
    assert (scores(report)[KTH], scores(report)[EVEN]) == (2, 3)


def test_stderr_and_warnings_cost_nothing(graded):
    noisy = "import sys, warnings\ndef every_kth(x, k):\n    warnings.warn('old'); print('!', file=sys.stderr)\n    return x[-1, ::k]"
    assert scores(graded({KTH: noisy}))[KTH] == 2


def test_the_executed_notebook_keeps_outputs_and_no_reply(graded):
    report = graded(extra=["print('hello')", "1 + 1"])
    cells = json.loads(report.notebook)["cells"]
    texts = json.dumps(cells)
    assert "hello" in texts and '"text/plain": "2"' in texts and "vnd.autograder" not in texts


def test_outputs_that_were_handed_in_are_gone_even_where_no_cell_ran(tiny, tiny_settings, handed_in):
    notebook = json.loads(handed_in(extra=["import time\ntime.sleep(30)"]))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [
                {"output_type": "execute_result", "data": {"text/plain": "5.0"}, "metadata": {}, "execution_count": 1}
            ]
    submission = Submission("ada", "10_tiny", json.dumps(notebook))
    report = grade_submission(submission, tiny, replace(tiny_settings, submission_seconds=1), seed=7)
    assert report.score == 0 and '"5.0"' not in report.notebook


def test_an_ungradable_submission_never_runs_and_says_why(tiny, tiny_settings):
    report = grade_submission(Submission("ada", "10_tiny", None, ungradable="Half a file."), tiny, tiny_settings, 1)
    assert (report.state, report.score, report.reason, report.notebook) == ("ungradable", 0, "Half a file.", None)
    assert [v.message for v in report.verdicts] == ["Half a file."] * 3


def test_the_same_seed_gives_the_same_answers(graded):
    once, again = graded(), graded()
    assert once.provenance["seed"] == again.provenance["seed"] and scores(once) == scores(again)


def test_a_disk_that_is_full_is_our_fault_and_says_which(tiny, tiny_settings, handed_in, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(grade.kernels, "run", full)
    with pytest.raises(EngineError, match="the disk is full"):
        grade.grade_submission(Submission("ada", "10_tiny", handed_in()), tiny, tiny_settings, seed=7)
