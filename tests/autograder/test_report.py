"""What people read afterwards: right numbers, nothing hostile, nothing hidden, readable everywhere."""

import csv
import errno
import io
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from autograder import analysis, compare, judge, ledger
from autograder import report as reporting
from autograder.errors import StorageError
from autograder.ledger import SCORE_FROM, Run
from autograder.records import FAILURES, STATES, Answers, Report, Verdict

RUN = Run("20260301T101500-ab", "2026-03-01 10:15 UTC", "10_tiny", 987654321, "cpu", "strict: bubblewrap", 2, 12.3456)
COPIES = "Indexing with a list copies. Use a slice with a step."

HOSTILE = [
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "=cmd|' /C calc'!A0", "+1", "-2+3", "@SUM(A1)",
    "\t=1+1", "a\x1b[31mred", "a\u202egnp.exe", "half \udcff", "[red]x[/]", "{{ 7*7 }}", "O'Brien, \"Pat\"", "محمد",
    "naïve 🙂",
]  # fmt: skip


def verdicts(lecture, scores, codes=(), message="", seconds=0.002):
    """The verdicts of the code exercises with these scores; the written answer waits for a person."""
    code = [e for e in lecture.exercises if not e.written]
    judged = [
        Verdict(e.id, e.number, score, e.points, seconds=seconds)
        if score
        else Verdict(e.id, e.number, score, e.points, tuple(codes), message, seconds=seconds)
        for e, score in zip(code, scores, strict=True)
    ]
    return (*judged, *(Verdict(e.id, e.number, 0.0, e.points, by_hand=True) for e in lecture.exercises if e.written))


@pytest.fixture(scope="module")
def full(tiny):
    return [e.points for e in tiny.exercises if not e.written]


@pytest.fixture(scope="module")
def one_of_each(tiny, full):
    """A Report in each state, and an error that shows earlier points."""
    nothing, shown = [0.0] * len(full), {SCORE_FROM: "an earlier run"}
    right, blank = verdicts(tiny, full), verdicts(tiny, nothing, (), compare.ASPECTS["unanswered"], None)
    return [
        Report("graded", "10_tiny", "graded", right, seconds=1.25, provenance={"torch": "2.13.0", "seed": "987654321"}),
        Report("repaired", "10_tiny", "repaired", right, repairs=("The check cell of 10.1 was put back.",)),
        Report("ungradable", "10_tiny", "ungradable", blank, "Half a file: hand it in again."),
        Report("error", "10_tiny", "error", blank, "The kernel did not start."),
        Report("shown", "10_tiny", "error", right, "The kernel did not start.", provenance=shown),
    ]


@pytest.fixture(scope="module")
def hostile(tiny, full):
    nothing = [0.0] * len(full)
    return [
        Report(name, "10_tiny", "repaired", verdicts(tiny, nothing, ["M09"], name), name, (name,), (name,))
        for name in HOSTILE
    ]


# ---- results.json and grades.csv


def test_results_hold_what_the_contract_says_and_nothing_else(tiny, one_of_each, tmp_path):
    reporting.write(tmp_path, tiny, RUN, one_of_each)
    found = json.loads((tmp_path / "report" / "results.json").read_text(encoding="utf-8"))
    assert set(found) == {"lecture", "run", "submissions"}
    run = {"seed": 987654321, "device": "cpu", "sandbox": "strict: bubblewrap", "workers": 2, "seconds": 12.346}
    assert found["run"] == run
    kinds = {
        "student": str, "lecture": str, "state": str, "reason": (str, type(None)), "repairs": list, "score": float,
        "max_score": float, "seconds": float, "exercises": list, "provenance": dict,
    }  # fmt: skip
    for submission in found["submissions"]:
        assert submission.keys() == kinds.keys()
        assert all(isinstance(submission[name], kind) for name, kind in kinds.items())
        assert submission["state"] in STATES
        for exercise in submission["exercises"]:
            assert set(exercise) == {"id", "number", "score", "points", "codes", "message"}
    assert [s["student"] for s in found["submissions"]] == ["error", "graded", "repaired", "shown", "ungradable"]


def test_grades_have_a_column_for_each_exercise_and_no_zero_for_what_was_not_graded(tiny, one_of_each):
    header, *rows = reporting.grade_rows(tiny, one_of_each)
    first = header.index("10.1 every_kth (2)")
    by_student = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert header[first : first + len(tiny.exercises)] == [f"{e.number} {e.id} ({e.points:g})" for e in tiny.exercises]
    assert by_student["graded"]["10.1 every_kth (2)"] == "2"
    assert by_student["error"]["score"] == by_student["error"]["10.1 every_kth (2)"] == ""
    assert by_student["shown"]["score"] == by_student["graded"]["score"] != ""
    assert by_student["ungradable"]["score"] == "0"
    written = next(name for name in header if any(e.written and e.id in name for e in tiny.exercises))
    assert by_student["graded"][written] == "", "what waits for a person has no points yet"


def test_a_spreadsheet_finds_no_formula_and_a_reader_every_cell(tiny, hostile):
    rows = reporting.grade_rows(tiny, hostile)
    read = list(csv.reader(io.StringIO(reporting.csv_text(rows), newline="")))
    assert [len(row) for row in read] == [len(row) for row in rows]
    for row in read:
        for cell in row:
            assert not re.match(r"\s*[=+\-@]", cell) or re.fullmatch(r"-?[\d.]+", cell), cell
            assert "\x1b" not in cell and "\u202e" not in cell


# ---- the page of the class


class Page(HTMLParser):
    """What a browser would make of a page: tags with their attributes, and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.open = [], [], []
        self.feed(text)
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "line", "rect", "br", "wbr", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    def all(self, tag):
        return [attributes for found, attributes in self.tags if found == tag]


@pytest.fixture(params=["one_of_each", "hostile", "empty"])
def class_page(request, tiny):
    reports = [] if request.param == "empty" else request.getfixturevalue(request.param)
    return Page(reporting.class_html(tiny, RUN, reports, ["The number of processes <is> counted over this user."]))


def test_the_page_loads_nothing_and_runs_only_our_script(class_page):
    for tag, attributes in class_page.tags:
        assert tag not in ("img", "link", "iframe", "object", "form", "base")
        assert not [name for name in attributes if name.startswith("on")]
        assert not re.match(r"[a-z]+:|//", attributes.get("href", "") + attributes.get("src", ""))
    policy = next(a["content"] for a in class_page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'") and "unsafe-inline'; script-src 'sha256-" in policy
    assert len(class_page.all("script")) == 1


def test_the_page_can_be_read_by_everyone(class_page):
    assert class_page.all("html") == [{"lang": "en"}]
    assert any(a.get("name") == "viewport" for a in class_page.all("meta"))
    assert all("scope" in a for a in class_page.all("th"))
    assert len(class_page.all("table")) == len(class_page.all("caption"))
    assert all(a["role"] == "img" and a["aria-labelledby"] for a in class_page.all("svg"))
    assert len(class_page.all("h1")) == len(class_page.all("main")) == 1
    ids = [a["id"] for _, a in class_page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a in class_page.all("a") if a["href"].startswith("#")} <= set(ids)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_student_wrote_is_text(tiny, hostile, text):
    page = Page(reporting.class_html(tiny, RUN, hostile))
    shown = " ".join(reporting.printable(text).split())
    assert shown in page.text
    plain = {"reason": "r", "repairs": ("r",), "events": ("e",)}
    harmless = [replace(report, student=f"s{i}", **plain) for i, report in enumerate(hostile)]
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in Page(reporting.class_html(tiny, RUN, harmless)).tags]


def test_a_page_names_everyone_and_links_to_each_page_that_is_there(tiny, hostile, one_of_each, tmp_path):
    index = reporting.write(tmp_path, tiny, RUN, [*hostile, *one_of_each])
    page = Page(index.read_text(encoding="utf-8"))
    links = {a["href"] for a in page.all("a") if a["href"].startswith("students/")}
    assert len(links) == len(hostile) + len(one_of_each)
    assert all((index.parent / link).is_file() for link in links)


def test_the_page_says_what_an_instructor_has_to_know(tiny, one_of_each):
    page = Page(reporting.class_html(tiny, RUN, one_of_each, ["The number of processes is counted over this user."]))
    for fact in [
        "5 submissions", "Not graded: our failure: 2", "The kernel did not start.",
        "Half a file: hand it in again.", "Repaired: The check cell of 10.1 was put back.", "strict: bubblewrap",
        "The number of processes is counted over this user.", "987654321", "2.13.0",
        "2 of 2 (100 %)", "to read by hand",
    ]:  # fmt: skip
        assert fact in page.text, fact


def test_pages_of_submissions_that_are_gone_are_removed(tiny, one_of_each, tmp_path):
    reporting.write(tmp_path, tiny, RUN, one_of_each)
    reporting.write(tmp_path, tiny, RUN, one_of_each[:1])
    assert [path.name for path in tmp_path.rglob("students/*/*.html")] == ["graded.html"]


def test_a_full_disk_is_one_sentence_and_the_last_report_stays(tiny, one_of_each, tmp_path, monkeypatch):
    reporting.write(tmp_path, tiny, RUN, one_of_each)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}

    def full_disk(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(StorageError, match=r"the disk is full\. Free some space"):
        reporting.write(tmp_path, tiny, RUN, one_of_each[:2])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


# ---- the page of a student


def test_a_student_reads_every_message_and_neither_seed_nor_others(tiny, hostile):
    page = Page(reporting.student_html(tiny, replace(hostile[0], student="ada", provenance={"seed": str(RUN.seed)})))
    assert page.text.count("<script>alert(1)</script>") == len([e for e in tiny.exercises if not e.written]) + 3
    assert all(f"{e.number} {e.id}" in page.text for e in tiny.exercises)
    assert str(RUN.seed) not in page.text and not page.all("script")


def test_a_student_is_told_of_our_failure_without_its_inside(tiny, one_of_each):
    for report, earlier in ((one_of_each[3], False), (one_of_each[4], True)):
        text = Page(reporting.student_html(tiny, report)).text
        assert "not graded yet" in text and "It does not count as zero" in text and report.reason not in text
        assert ("of an earlier run" in text) == ("10.1 every_kth" in text) == earlier


def test_a_student_learns_no_hidden_input(tiny):
    """The judge's own message about an answer that fails on hidden cases only."""
    exercise = tiny["every_kth"]
    asked = judge.question(exercise, 12345)
    visible = [repr(case) for case in exercise.visible_cases()]

    def right_where_seen(x, k):
        return exercise.function(x, k) if repr((x, k)) in visible else x[-1, ::k] + 77777

    given = Answers(exercise.id, judge.seen_by(right_where_seen, asked.message))
    verdict = judge.verdict(asked, given, [])
    page = reporting.student_html(tiny, Report("ada", "10_tiny", "graded", (verdict,)))
    assert verdict.score == 0 and verdict.seconds > 0
    assert "On a hidden case" in page
    for x, k in exercise.all_cases(12345):
        for value in (x, exercise.function(x, k), right_where_seen(x, k)):
            assert repr((x, k)) in visible or compare.show_values(value) not in page
    assert "77777" not in page and "77778" not in page


# ---- item analysis


def test_items_count_those_who_ran(tiny, full, one_of_each):
    nothing = [0.0] * len(full)
    ways = [(["M09"], "x"), (["M09"], "x"), ((), FAILURES["timeout"]), ((), f"y {compare.ASPECTS['dtype']}"), ((), "z")]
    lost = [Report(f"l{i}", "10_tiny", "graded", verdicts(tiny, nothing, *way)) for i, way in enumerate(ways)]
    item = analysis.items(tiny, [*one_of_each, *lost])[0]
    assert (item.graded, item.full, item.share, item.waiting, item.seconds) == (7, 2, 2 / 7, 0, 0.002)
    assert [(loss.code, loss.count) for loss in item.losses] == [("M09", 2), ("", 1), ("", 1), ("", 1)]
    assert item.losses[0].text == COPIES
    assert [loss.text for loss in item.losses[1:]] == [
        FAILURES["timeout"],
        "No known misconception: the dtype differs.",
        "No known misconception.",
    ]
    written = analysis.items(tiny, one_of_each)[-1]
    assert (written.graded, written.waiting) == (0, 2)
    (topic,) = analysis.topics(tiny, lost)
    assert (topic.code, topic.students, topic.numbers[0]) == ("M09", 2, "10.1")


def test_an_exercise_that_strong_students_solve_separates(tiny, full):
    def class_of(pairs):
        return [Report(f"s{i}", "10_tiny", "graded", verdicts(tiny, pair)) for i, pair in enumerate(pairs)]

    both, neither, first, second = full, [0.0, 0.0], [full[0], 0.0], [0.0, full[1]]
    assert analysis.items(tiny, class_of([both, neither] * 5))[0].discrimination == pytest.approx(1)
    assert analysis.items(tiny, class_of([first, second] * 5))[0].discrimination == pytest.approx(-1)
    assert analysis.items(tiny, class_of([both] * 10))[0].discrimination is None
    assert analysis.items(tiny, class_of([both, neither]))[0].discrimination is None


@pytest.mark.parametrize(("score", "bin"), [(0.0, 0), (0.9, 0), (1.0, 1), (5.5, 5), (9.99, 9), (10.0, 9)])
def test_a_score_falls_into_its_bin(score, bin):
    graded = Report("ada", "10_tiny", "graded", (Verdict("a", "1", score, 10.0),))
    assert [b.count for b in analysis.histogram([graded])].index(1) == bin
    assert analysis.histogram([replace(graded, state="error")])[bin].count == 0


# ---- terminals


@pytest.mark.parametrize("width", [20, 40, 71, 72, 120])
def test_the_table_fits_any_terminal_and_loses_no_word(one_of_each, width):
    console = Console(width=width, force_terminal=True, color_system=None, file=io.StringIO())
    reporting.print_table(one_of_each, console)
    lines = console.file.getvalue().splitlines()
    assert max(len(line) for line in lines) <= width
    words = set(re.findall(r"\w+", " ".join(lines)))
    assert {"graded", "repaired", "ungradable", "error"} <= words
    assert {"kernel", "Half", "file", "hand"} <= words or width < 40  # words longer than the column are folded


def test_a_pipe_gets_a_whole_line_for_each_submission(hostile):
    console = Console(force_terminal=False, file=io.StringIO(), width=30)
    reporting.print_table(hostile, console)
    lines = console.file.getvalue().split("\n")
    assert len(lines) == len(hostile) + 2  # the heading; nothing after the last line's end
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e\udcff]", console.file.getvalue())
    assert "[red]x[/]" in console.file.getvalue()


def test_the_score_of_what_was_not_graded_is_a_dash(one_of_each):
    console = Console(force_terminal=False, file=io.StringIO())
    reporting.print_table(one_of_each, console)
    lines = {line.split()[0]: line for line in console.file.getvalue().splitlines()}
    assert " – / " in lines["error"] and " – / " not in lines["shown"] and " 0 / " in lines["ungradable"]


def test_changes_are_shown_with_their_exercises(tiny, full, one_of_each):
    after = replace(one_of_each[0], verdicts=verdicts(tiny, [0.0, *full[1:]]))
    console = Console(width=100, force_terminal=False, file=io.StringIO())
    console.print(reporting.changes_table(ledger.changes({"graded": one_of_each[0]}, {"graded": after})))
    assert re.search(r"graded +\S+ +\S+ +-2 +10.1: 2 → 0", console.file.getvalue())


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_report_of_a_gpu_says_that_it_is_untested(tiny, device):
    page = reporting.class_html(tiny, replace(RUN, device=device), [])
    assert ("not yet tested on a real one" in page) == (device == "cuda")
