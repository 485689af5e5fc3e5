"""Stock nbgrader with the course's configuration: its own commands give what the autograder gives."""

import csv
import html
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbconvert.filters import ansi2html
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.validator import Validator
from sqlalchemy.exc import SAWarning

from autograder import nbgrader_plugin, notebooks
from autograder.exercises import load_lecture
from autograder.nbgrader_plugin import DropUnusableMetadata, as_markdown, harmless_markdown, quick_ansi2html
from autograder.release import course_config, release
from autograder.settings import load_settings

TINY = "10_tiny"
RIGHT = "def even_numbers(x):\n    return x[x % 2 == 0]"
WRONG = "def even_numbers(x):\n    return x[x.remainder(2).eq(1)]"


@pytest.fixture(scope="session")
def graded_course(built_course, tmp_path_factory):
    """A course folder whose lecture was released by `nbgrader generate_assignment`; not to be changed."""
    root = Path(shutil.copytree(built_course, tmp_path_factory.mktemp("stock") / "course"))
    config = root / "nbgrader_config.py"
    config.write_text(config.read_text() + "\nc.Grading.trust_code = True\nc.Grading.cell_seconds = 20\n")
    done = nbgrader(root).generate_assignment(TINY)
    assert done["success"], done["log"]
    return root


@pytest.fixture
def stock(graded_course, tmp_path, monkeypatch):
    """A copy of it, and the current folder."""
    root = Path(shutil.copytree(graded_course, tmp_path / "course"))
    monkeypatch.chdir(root)
    return root


def nbgrader(root):
    """nbgrader's own interface, configured by the course's file as its commands are."""
    return NbGraderAPI(config=course_config(load_settings(root)))


def autograde(root, student="*"):
    with (
        warnings.catch_warnings()
    ):  # nbgrader's way of adding a submission, and of reading a notebook as it was handed in
        warnings.filterwarnings("ignore", "Object of type <Submitted(Assignment|Notebook)> not in session", SAWarning)
        warnings.filterwarnings("ignore", "Non-unique cell id", nbformat.warnings.DuplicateCellId)
        return nbgrader(root).autograde(TINY, student)


def hand_in(root, student, change=lambda cells, notebook: None, answers=None):
    """A submission made from the released notebook: the solved one's answers, then `answers`, then `change`."""
    notebook = notebooks.read(root / "course" / TINY / f"{TINY}.ipynb")
    solved = notebooks.read(notebooks.stored_path(load_lecture(TINY, root / "solutions")))
    texts = {c.id: c.source for c in solved.cells} | (answers or {})
    cells = {c.metadata.nbgrader.grade_id: c for c in notebook.cells if "nbgrader" in c.metadata}
    for id, cell in cells.items():
        if cell.metadata.nbgrader.solution:
            cell.source = texts[id]
    change(cells, notebook)
    folder = root / "grading" / "submitted" / student / TINY
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{TINY}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    return folder


def scores(root):
    found = {}
    with Gradebook(load_settings(root).db_url, "") as book:
        for submission in book.assignment_submissions(TINY):
            (submitted,) = submission.notebooks
            found[submission.student.id] = {g.name: (g.auto_score, g.needs_manual_grade) for g in submitted.grades}
    return found


FULL = {"check_every_kth": (2.0, False), "check_even_numbers": (3.0, False), "why_copies": (None, True)}
LESS = {**FULL, "check_even_numbers": (0.0, False)}


# ---- release --------------------------------------------------------------------------------------------------------


def test_generate_assignment_releases_and_stores_the_lecture(stock):
    assert sorted(p.name for p in (stock / "course" / TINY).iterdir()) == [f"{TINY}.ipynb", "checks.json"]
    with Gradebook(load_settings(stock).db_url, "") as book:
        assert book.find_assignment(TINY).max_score == 6.5


def test_generate_assignment_and_release_give_the_same_bytes(stock):
    assert release([], load_settings(stock), check=True) == []


def test_generate_assignment_goes_on_where_there_are_submissions(stock):
    hand_in(stock, "ada")
    assert autograde(stock)["success"]
    lecture = load_lecture(TINY, stock / "solutions")
    notebook = notebooks.read(notebooks.stored_path(lecture))
    notebook.cells = [c for c in notebook.cells if c.id not in ("even_numbers", "check_even_numbers")]
    notebooks.stored_path(lecture).write_text(notebooks.text(notebook), encoding="utf-8")
    done = nbgrader(stock).generate_assignment(TINY)
    assert done["success"], done["log"]
    assert set(scores(stock)["ada"]) == {"check_every_kth", "why_copies"}


# ---- autograde ------------------------------------------------------------------------------------------------------


def doubled(cells, notebook):
    notebook.cells.append(nbformat.from_dict(json.loads(json.dumps(cells["check_every_kth"]))))


def with_mark(mark):
    return lambda cells, notebook: notebook.cells[0].metadata.update(nbgrader=mark)


SUBMISSIONS = {
    "a_right": (hand_in, {}, FULL),
    "b_wrong": (hand_in, {"answers": {"even_numbers": WRONG}}, LESS),
    "c_doubled": (hand_in, {"change": doubled}, FULL),
    "d_deleted": (
        hand_in,
        {"change": lambda cells, notebook: notebook.cells.remove(cells["check_even_numbers"])},
        FULL,
    ),
    "e_old_format": (hand_in, {"change": with_mark({"grade": False, "solution": False})}, FULL),
    "f_gone": (
        hand_in,
        {
            "change": with_mark(
                {
                    "grade": True,
                    "solution": False,
                    "locked": False,
                    "points": 9,
                    "grade_id": "last_year",
                    "schema_version": 3,
                }
            )
        },
        FULL,
    ),
    "g_forged": (
        hand_in,
        {
            "answers": {
                "even_numbers": "def even_numbers(x):\n"
                "    from IPython import get_ipython\n"
                "    get_ipython().displayhook(3.0)\n"
                "    raise SystemExit"
            }
        },
        LESS,
    ),
    "h_stderr": (
        hand_in,
        {"answers": {"even_numbers": "import sys\nprint('warning', file=sys.stderr)\n" + RIGHT}},
        FULL,
    ),
}


def test_autograde_grades_a_class_as_the_autograder_does(stock):
    for student, (make, arguments, _) in SUBMISSIONS.items():
        make(stock, student, **arguments)
    done = autograde(stock)
    assert done["success"], done["log"]
    assert scores(stock) == {student: expected for student, (_, _, expected) in SUBMISSIONS.items()}
    with Gradebook(load_settings(stock).db_url, "") as book:
        comment = book.find_comment("even_numbers", TINY, TINY, "b_wrong").auto_comment
        assert "These are the odd numbers." in comment


def test_a_broken_file_stops_nobody_else(stock):
    hand_in(stock, "ada")
    (hand_in(stock, "aa_broken") / f"{TINY}.ipynb").write_text('{"cells": [')
    hand_in(stock, "zoe")
    done = autograde(stock)
    assert not done["success"] and "aa_broken" in done["log"]
    assert {s: v for s, v in scores(stock).items() if s != "aa_broken"} == {"ada": FULL, "zoe": FULL}


def test_a_new_attempt_by_nbgrader_leaves_nothing_old(stock):
    hand_in(stock, "ada")
    assert autograde(stock)["success"]
    with Gradebook(load_settings(stock).db_url, "") as book:
        book.find_grade("why_copies", TINY, TINY, "ada").manual_score = 1.5
        book.find_grade("why_copies", TINY, TINY, "ada").needs_manual_grade = False
        book.db.commit()
    assert autograde(stock)["success"]  # the same files again: what a person gave stays
    with Gradebook(load_settings(stock).db_url, "") as book:
        assert book.find_grade("why_copies", TINY, TINY, "ada").manual_score == 1.5
    hand_in(stock, "ada", answers={"even_numbers": WRONG})
    assert autograde(stock)["success"]
    assert scores(stock) == {"ada": LESS}
    with Gradebook(load_settings(stock).db_url, "") as book:
        assert book.find_grade("why_copies", TINY, TINY, "ada").manual_score is None


def test_an_error_of_ours_is_no_grade(stock, monkeypatch):
    hand_in(stock, "ada")
    assert autograde(stock)["success"]

    def fail(*_):
        raise nbgrader_plugin.EngineError("no kernel could be started")

    monkeypatch.setattr(nbgrader_plugin, "grade_submission", fail)
    hand_in(stock, "ada", answers={"even_numbers": WRONG})
    done = autograde(stock)
    assert not done["success"] and "no kernel could be started" in done["log"]
    assert {score for score, _ in scores(stock)["ada"].values()} == {None}


def test_formgrader_sees_the_class(stock):
    hand_in(stock, "ada")
    assert autograde(stock)["success"]
    (seen,) = nbgrader(stock).get_submissions(TINY)
    assert (seen["student"], seen["score"], seen["max_score"], seen["autograded"]) == ("ada", 5.0, 6.5, True)
    assert seen["needs_manual_grade"] is True


# ---- pages ----------------------------------------------------------------------------------------------------------

HOSTILE = (
    "<script>steal()</script> <img src=x onerror=steal()> **bold**\n\n[a](javascript:steal()) ![b](attachment:none.png)"
)


def test_nothing_that_a_student_wrote_runs_in_a_feedback_page(stock):
    def display(cells, notebook):
        code = "from IPython.display import HTML, Javascript, display\ndisplay(HTML('<script>steal(1)</script>'))\n"
        notebook.cells.append(nbformat.v4.new_code_cell(code + "display(Javascript('steal(2)'))", id="mine"))
        notebook.cells.append(nbformat.v4.new_markdown_cell(HOSTILE, id="more"))

    hand_in(
        stock, "ada", display, {"why_copies": HOSTILE, "even_numbers": f"def even_numbers(x):\n    return {HOSTILE!r}"}
    )
    assert autograde(stock)["success"]
    done = nbgrader(stock).generate_feedback(TINY)
    assert done["success"], done["log"]
    page = (stock / "grading" / "feedback" / "ada" / TINY / f"{TINY}.html").read_text(encoding="utf-8")
    assert "<b>" in page or "<strong>bold</strong>" in page
    for sign in ("<script>steal", "<img src=x", '<img src="x"', 'href="javascript:'):
        assert sign not in page
    assert "&lt;script&gt;" in page and "(Score: 2.0 / 6.5)" in page


def test_automatic_comments_are_shown_as_they_stand():
    text = "For x = [[1, 2]], *k* = `2`: expected <b>__a__</b>, got a\\b $x$ #1 ~~no~~ [a](b) ![c](d) 1. e."
    shown = markdown2html_mistune(as_markdown(text))
    assert shown.strip() == "<p>" + text.replace("<", "&lt;").replace(">", "&gt;") + "</p>"


RUNNING = [
    "```mermaid\n</pre><script>steal()</script>\n```",
    "~~~ mermaid\n<img src=x onerror=steal()>\n~~~",
    "[a](javascript:steal())",
    "[a](JAVASCRIPT:steal())",
    "[a](vbscript:steal())",
    "[a](data:text/html,<script>steal()</script>)",
    "<javascript:steal()>",
    "[a]\n\n[a]: javascript:steal()",
    "![a](javascript:steal())",
    "![a](attachment:b.png)",
    "![a](x 'y\" onerror=\"steal()')",
    "$<script>steal()</script>$",
]


MATHJAX = "https://cdnjs.cloudflare.com/ajax/libs/mathjax/"


class Page(HTMLParser):
    """What of a page would run in a browser, and what would be fetched."""

    def __init__(self, text):
        super().__init__()
        self.running, self.fetched, self.policy = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.policy = self.policy or known.get("content", "") * (known.get("http-equiv") == "Content-Security-Policy")
        sources = [known.get(name) for name in ("src", "srcset", "poster", "data", "background")]
        sources += [known.get("href")] * (tag in ("link", "image", "use", "base"))
        self.fetched += [url for url in sources if url and not url.startswith("data:image/png")]
        self.fetched += ["a style"] * ("url(" in known.get("style", ""))
        for name, value in [("tag", tag), *attributes]:
            scheme = (value or "").strip().lower()
            if (
                name.startswith("on")
                or scheme == "script"
                or scheme.startswith(("javascript:", "vbscript:", "data:text"))
            ):
                self.running.append((tag, name, value))


@pytest.mark.parametrize("text", RUNNING)
def test_nothing_in_a_written_answer_runs(text):
    cell = {"attachments": {"b.png": {"image/png": '"><script>steal()</script>'}}}
    assert Page(harmless_markdown({"cell": cell}, text)).running == []


FETCHING = [
    "![a](http://example.org/a.png)",
    "![a](HTTPS://example.org/a.png 'title')",
    "![a](//example.org/a.png)",
    "![a](a.png)",
    "![a](/formgrader/api/submissions)",
    "![a](data:image/svg+xml;base64,QUJD)",
    "![a][b]\n\n[b]: http://example.org/a.png",
    "[![a](http://example.org/a.png)](http://example.org)",
    "<img src=http://example.org/a.png>",
    "text <img src='http://example.org/a.png'> <video src=http://example.org/v></video>",
    "<style>body { background: url(http://example.org/a.png) }</style>",
    "<svg><image href='http://example.org/a.png'/></svg>",
    "<div style='background: url(http://example.org/a.png)'>",
    "| a |\n| --- |\n| ![a](http://example.org/a.png) |",
    "# ![a](http://example.org/a.png)",
]


@pytest.mark.parametrize("text", FETCHING)
def test_nothing_in_a_written_answer_is_fetched(text):
    shown = harmless_markdown({"cell": {}}, text)
    assert Page(shown).fetched == []
    if text.startswith("!["):
        assert "it is not fetched" in shown


def test_a_feedback_page_fetches_nothing_but_mathjax(stock):
    hand_in(stock, "ada", answers={"why_copies": "\n\n".join(FETCHING)})
    assert autograde(stock)["success"]
    done = nbgrader(stock).generate_feedback(TINY)
    assert done["success"], done["log"]
    text = (stock / "grading" / "feedback" / "ada" / TINY / f"{TINY}.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.fetched and all(url.startswith(MATHJAX) for url in page.fetched), page.fetched
    policy = dict(part.split(" ", 1) for part in page.policy.split("; "))
    assert text.index("Content-Security-Policy") < min(text.index(sign) for sign in ("<script", "<style", "<title"))
    assert (policy["default-src"], policy["img-src"]) == ("'none'", "data:")
    assert all(
        source.startswith(("'", "data:", MATHJAX, "https://api.cdnjs.com"))
        for part in policy.values()
        for source in part.split()
    )


@pytest.mark.parametrize("unit", ["\\begin{a}", "[", "[a](", "\\\\[", "`a", "*a ", "> ", "- ", "<a ", "$a"])
def test_a_text_that_is_made_to_be_long_to_read_is_shown_without_being_read_for_long(unit):
    started = time.process_time()
    for length in (9_000, 2_000_000):
        text = unit * (length // len(unit))
        shown = html.unescape(harmless_markdown({"cell": {}}, text))
        assert length < 10_000 or text in shown
    cells = [nbformat.v4.new_markdown_cell(text[:9_000])] * 100
    for cell in cells:
        harmless_markdown({"cell": cell, "nb": {"cells": cells}}, cell.source)
    assert time.process_time() - started < 20  # seconds; it was minutes


LONG_CODES = {"many zeros": ";" * 1_000_000 + "m", "one number": "9" * 1_000_000, "many codes": "1ma\x1b[" * 300_000}


@pytest.mark.parametrize("name", LONG_CODES)
def test_colours_that_are_made_to_be_long_to_read_are_not_read_for_long(name):
    started = time.process_time()
    assert quick_ansi2html(f"text \x1b[{LONG_CODES[name]}").startswith("text ")
    assert time.process_time() - started < 10  # seconds; it was minutes


def test_colours_of_an_output_are_shown():
    text = "\x1b[31mred\x1b[0m \x1b[2Kplain \x1b[38;5;196mmore & more\x1b[m"
    assert quick_ansi2html(text) == ansi2html(text) and "ansi-red-fg" in quick_ansi2html(text)


@pytest.mark.parametrize("attachments", [{}, {"a.png": {}}, {"a.png": {"text/html": "x"}}])
def test_a_picture_that_was_not_handed_in_is_named(attachments):
    shown = harmless_markdown({"cell": {"attachments": attachments}}, "![picture](attachment:a.png) and **more**")
    assert "The picture a.png was not handed in" in shown and "<strong>more</strong>" in shown


def test_a_picture_whose_name_has_a_blank_is_found():
    cell = {"attachments": {"my a.png": {"image/png": "QUJD"}}}
    assert "base64,QUJD" in harmless_markdown({"cell": cell}, "![picture](attachment:my%20a.png)")


def test_pictures_in_written_answers_are_shown():
    cell = {"attachments": {"a.png": {"image/png": "QUJD"}}}
    assert "data:image/png;base64,QUJD" in harmless_markdown({"cell": cell}, "![picture](attachment:a.png)")


@pytest.mark.parametrize(
    "mark, kept",
    [
        ({}, False),
        ([], False),
        ("x", False),
        ({"grade": True, "solution": False, "locked": True, "grade_id": "a", "points": 1, "schema_version": 3}, True),
        ({"grade": True, "solution": False, "locked": True, "grade_id": "a", "schema_version": 3}, False),
        ({"grade": True, "solution": False, "locked": True, "points": 1, "schema_version": 3}, False),
        ({"grade": False, "solution": True, "locked": False, "grade_id": "a", "schema_version": 2}, False),
        ({"grade": False, "solution": True, "locked": False, "grade_id": "a", "schema_version": 4}, False),
        ({"grade": False, "solution": False, "locked": False, "grade_id": "a", "schema_version": 3}, False),
    ],
)
def test_metadata_that_would_stop_the_class_are_left_out(mark, kept):
    cell = nbformat.v4.new_code_cell(metadata={"nbgrader": mark})
    DropUnusableMetadata().preprocess_cell(cell, {}, 0)
    assert ("nbgrader" in cell.metadata) == kept


# ---- validate, and the commands as people type them -----------------------------------------------------------------


@pytest.mark.parametrize("answer, failed", [(RIGHT, []), (WRONG, ["check(even_numbers)"])])
def test_validate_works_with_the_visible_checks(stock, answer, failed):
    folder = hand_in(stock, "ada", answers={"even_numbers": answer})
    shutil.copy(stock / "course" / TINY / "checks.json", folder)
    found = Validator().validate(str(folder / f"{TINY}.ipynb"))
    assert [cell["source"] for cell in found.get("failed", [])] == failed
    assert set(found) <= {"failed"}


def test_validate_fails_the_released_notebook(stock):
    found = Validator().validate(str(stock / "course" / TINY / f"{TINY}.ipynb"))
    assert [cell["source"] for cell in found["failed"]] == [
        "check(every_kth)",
        "check(even_numbers)",
        "YOUR ANSWER HERE",
    ]


@pytest.mark.slow
def test_the_commands_work_from_the_courses_folder(built_course, tmp_path):
    root = Path(shutil.copytree(built_course, tmp_path / "course"))
    config = root / "nbgrader_config.py"
    config.write_text(config.read_text() + "\nc.Grading.trust_code = True\n")
    home = {"HOME": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path / "none"), "PATH": os.environ["PATH"]}

    def command(*words):
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *words], cwd=root, env=home, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    command("generate_assignment", TINY)
    hand_in(root, "ada")
    hand_in(root, "bo", answers={"even_numbers": WRONG})
    command("autograde", TINY)
    command("generate_feedback", TINY)
    command("export", "--to", "grades.csv")
    assert scores(root) == {"ada": FULL, "bo": LESS}
    assert (root / "grading" / "feedback" / "bo" / TINY / f"{TINY}.html").exists()
    with (root / "grades.csv").open(newline="") as file:
        assert {row["student_id"]: row["score"] for row in csv.DictReader(file)} == {"ada": "5.0", "bo": "2.0"}
    shutil.copy(root / "course" / TINY / "checks.json", root / "grading" / "submitted" / "bo" / TINY)
    assert "FAILED ON 1 CELL" in command("validate", f"grading/submitted/bo/{TINY}/{TINY}.ipynb").upper()
