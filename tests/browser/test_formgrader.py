"""A written answer in a running formgrader: the grader sees answer, rubric and model answer, and the points typed there count.

    python -m tests.browser.test_formgrader formgrader.png

makes a picture of the page.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import pytest

from autograder.exercises import load_lecture

from . import chromium, jupyter

ROOT = Path(__file__).parents[2]
LECTURE, EXERCISE = "03_activations", "why_softmax"
ANSWER = (
    "For 3 and -1 dividing by the sum gives 1.5 and -0.5, which is no distribution. exp makes both positive and keeps the "
    "order. Adding 10 to both changes nothing, doubling both makes softmax sharper."
)
COMMENT = "Say what it costs, too."
SERVER = [
    '--ServerApp.jpserver_extensions={"nbgrader.server_extensions.formgrader": True}',
    "--ServerApp.log_level=WARN",
]
# not formgrader.loaded: that waits for MathJax, which nbgrader's page fetches from the network
LOADED = "!!(window.formgrader && formgrader.grades && formgrader.grades.loaded && formgrader.comments.loaded)"
SAVED = f"""(() => {{
    const of = models => models.find(model => model.get("name") === "{EXERCISE}");
    const grade = of(formgrader.grades), comment = of(formgrader.comments);
    return [grade.get("manual_score"), grade.get("needs_manual_grade"), comment.get("manual_comment")];
}})()"""


def autograder(folder, *arguments):
    """What a verb of the command line prints, called in the folder of a course."""
    done = subprocess.run(
        [sys.executable, "-m", "autograder", *arguments], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def graded_course(folder):
    """A course with the lecture, and the graded submission of a student who has written one answer and no code."""
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    for built in ("solutions", "course"):
        shutil.copytree(ROOT / built / LECTURE, folder / built / LECTURE)
    notebook = json.loads((folder / "course" / LECTURE / f"{LECTURE}.ipynb").read_text(encoding="utf-8"))
    next(cell for cell in notebook["cells"] if cell["id"] == EXERCISE)["source"] = ANSWER
    handed_in = folder / "handed_in" / "ada" / LECTURE
    handed_in.mkdir(parents=True)
    (handed_in / f"{LECTURE}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    autograder(folder, "grade", LECTURE, "--submissions", "handed_in", "--trust-code")


def of_ada(folder):
    """The record of the written answer in the class report."""
    results = json.loads((folder / "grading" / "report" / "results.json").read_text(encoding="utf-8"))
    (ada,) = results["submissions"]
    return next(exercise for exercise in ada["exercises"] if exercise["id"] == EXERCISE), ada["score"]


def submission(address):
    """The id of ada's notebook, as formgrader knows it."""
    with urllib.request.urlopen(
        f"{address}/formgrader/api/submitted_notebooks/{LECTURE}/{LECTURE}", timeout=60
    ) as answer:
        (ada,) = (found for found in json.load(answer) if found["student"] == "ada")
    return ada["id"]


def typed(page, selector, text):
    """Put `text` into a field as from the keyboard, and leave it with the Tab key, upon which formgrader saves."""
    page.value(f"(() => {{ const field = document.querySelector('{selector}'); field.focus(); field.select(); }})()")
    page.call("Input.insertText", text=text)
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)


def grade_by_hand(folder, kept, picture=None):
    """Grade ada's answer in formgrader's page; returns the text that the page showed before."""
    with jupyter.served("jupyter_server", folder, kept, *SERVER) as address:
        with chromium.page(f"{address}/formgrader/submissions/{submission(address)}", seconds=60) as page:
            page.until(LOADED, bool, "the page of the submission")
            shown = page.value("document.body.innerText")
            if picture:
                page.value(f"document.querySelector('#{EXERCISE}').scrollIntoView()")
                page.screenshot(picture)
            typed(page, f"#{EXERCISE}", "2.5")
            typed(page, f"#{EXERCISE}-comment", COMMENT)
            page.until(SAVED, lambda saved: saved == [2.5, False, COMMENT], "what was typed")
        with urllib.request.urlopen(f"{address}/formgrader/api/submissions/{LECTURE}", timeout=60) as answer:
            (listed,) = json.load(answer)
    assert (listed["student"], listed["needs_manual_grade"], listed["score"]) == ("ada", False, 2.5)
    return shown


def plain(text):
    """Text without the differences that a page makes: white space, and the look of quotes."""
    return re.sub(r"\s+", " ", text).replace("’", "'")


@pytest.mark.browser
@pytest.mark.slow
def test_a_written_answer_is_graded_in_formgrader_beside_its_rubric_and_reaches_the_report(tmp_path):
    chromium.demand_browser()
    folder, kept = tmp_path / "class", tmp_path / "kept"
    folder.mkdir()
    kept.mkdir()
    graded_course(folder)
    waiting, score = of_ada(folder)
    assert (waiting["score"], score) == (0, 0) and "by hand" in waiting["message"]

    shown, exercise = plain(grade_by_hand(folder, kept)), load_lecture(LECTURE, ROOT / "solutions")[EXERCISE]
    for text in (ANSWER, f"Rubric: {exercise.rubric}", f"Model answer: {exercise.model_answer}"):
        assert plain(text) in shown
    assert shown.index(plain(ANSWER)) < shown.index("Rubric:") < shown.index("Model answer:")

    autograder(folder, "report", LECTURE)
    by_hand, score = of_ada(folder)
    assert (by_hand["score"], score, by_hand["message"]) == (2.5, 2.5, "Graded by hand.")
    autograder(folder, "feedback", LECTURE)
    (feedback,) = (folder / "grading" / "feedback").rglob("*.html")
    text = feedback.read_text(encoding="utf-8")
    assert COMMENT in text and "Rubric:" not in text and "Model answer:" not in text


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for name in ("class", "kept"):
            (Path(place) / name).mkdir()
        graded_course(Path(place) / "class")
        grade_by_hand(Path(place) / "class", Path(place) / "kept", Path(sys.argv[1]))
