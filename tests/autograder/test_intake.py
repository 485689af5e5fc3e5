"""What is handed in becomes a Submission, whatever it is."""

import json
import os
import stat
import time
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings, strategies
from nbgrader.nbgraderformat import MetadataValidator

from autograder import repair
from autograder.draft import draft, syntax
from autograder.errors import CourseError, EngineError, UsageError
from autograder.exercises import Lecture
from autograder.intake import find, handed_in_at, read
from autograder.repair import release_of
from autograder.settings import load_settings

from .broken import (
    BROKEN,
    LECTURE,
    answers,
    checks,
    code,
    grade_id,
    index,
    setup,
    small_release,
    small_solution,
    write,
)

RELEASE, SOLUTION = small_release(), small_solution()
LECTURE_RECORD = Lecture(LECTURE, Path("solutions") / LECTURE, (), (), "")


@pytest.fixture(scope="module")
def limits(tmp_path_factory):
    """Settings of a course whose release of the lecture holds a notebook, its checks and a data file."""
    root = tmp_path_factory.mktemp("root")
    write(root / "course" / LECTURE, RELEASE, f"{LECTURE}.ipynb")
    write(root / "course" / LECTURE, '{"released": true}', "checks.json")
    write(root / "course" / LECTURE, "1,2", "data/given.csv")
    return load_settings(root)


@pytest.fixture
def hand_in(tmp_path, limits):
    """hand_in(make, handed) -> the Submission that find and read make of what make(folder, handed) writes."""

    def submission(make, handed=SOLUTION):
        folder = tmp_path / "class" / "anna" / LECTURE
        folder.mkdir(parents=True)
        make(folder, handed, RELEASE)
        (found,) = find(tmp_path / "class", LECTURE)
        return read(found, LECTURE_RECORD, RELEASE, limits)

    return submission


def state(submission):
    return "ungradable" if submission.ungradable else "repaired" if submission.repairs else "graded"


def cells(submission):
    return json.loads(submission.notebook)["cells"]


def test_there_are_many_kinds_of_broken_submissions():
    assert len(BROKEN) >= 60


ABOUT_ANSWERS = {  # one that was never worked on is neither split nor found elsewhere, and nothing is lost with it
    "split_answer",
    "answer_in_a_cell_below_the_check",
    "answer_in_a_cell_above_its_own",
    "empty_answers_commented_and_doubled_around_the_real_one",
    "empty_copy_of_an_answer_without_its_mark",
    "answer_above_its_stub_with_a_helper_beside_it",
    "answer_above_its_stub_that_was_begun",
    "answer_above_its_stub_in_one_cell",
    "stub_pasted_into_another_answer",
    "answer_that_ends_like_the_stub",
    "all_answers_in_the_first",
    "all_answers_in_a_new_cell_at_the_end",
    "answers_that_changed_places",
}


@pytest.mark.parametrize("handed", [RELEASE, SOLUTION], ids=["released", "solved"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_submission_gets_its_state_and_its_sentences(name, handed, hand_in):
    broken = BROKEN[name]
    submission = hand_in(broken.make, handed)
    sentences = " ".join([*submission.repairs, submission.ungradable or ""])
    if handed is SOLUTION or name not in ABOUT_ANSWERS:
        assert (state(submission), sentences) == (broken.state, sentences)
        assert all(words in sentences for words in broken.says), sentences
    assert all(sentence.endswith((".", ".)")) for sentence in submission.repairs), submission.repairs


@pytest.mark.parametrize("name", [name for name in BROKEN if BROKEN[name].state != "ungradable"])
def test_a_repaired_notebook_is_valid_and_holds_every_released_cell_in_order(name, hand_in):
    submission = hand_in(BROKEN[name].make)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notebook = nbformat.reads(submission.notebook, as_version=4)
        nbformat.validate(notebook)
        MetadataValidator().validate_nb(notebook)
    assert submission.notebook.encode()  # nothing in it that cannot be written
    released = {grade_id(cell): cell for cell in json.loads(RELEASE)["cells"] if grade_id(cell)}
    handed = {grade_id(cell): cell for cell in cells(submission) if grade_id(cell)}
    assert len(released) - len(handed) == BROKEN[name].gone and set(handed) <= set(released)
    for id, cell in handed.items():
        assert cell["metadata"] == released[id]["metadata"]
        if cell["metadata"]["nbgrader"]["locked"]:
            assert cell["source"] == released[id]["source"]
    order = [grade_id(cell) for cell in cells(submission)]
    for id in ("last_row", "column"):
        assert id not in order or order.index("setup") < order.index(id) < order.index(f"check_{id}")


@pytest.mark.parametrize("name", [name for name in BROKEN if BROKEN[name].state != "ungradable"])
def test_a_solved_notebook_keeps_its_answers_whatever_happened_to_it(name, hand_in):
    """Run with the released locked cells, it still defines every function as the student did."""
    order = cells(hand_in(BROKEN[name].make))
    lost = BROKEN[name].lost
    right = 0
    for check in checks({"cells": order}):
        names = {"check": lambda function: None}
        for cell in order[: next(i for i, cell in enumerate(order) if cell is check)]:
            if cell["cell_type"] == "code" and cell["source"].lstrip().startswith(("def ", "import math", "\n")):
                exec(cell["source"], names)
        try:
            function = names[grade_id(check).removeprefix("check_")]
            right += function(_Probe(), 2) == "answer"
        except KeyError:
            pass
    assert right == 2 - lost


@pytest.mark.parametrize("name", [name for name in BROKEN if BROKEN[name].state != "ungradable"])
def test_a_repaired_notebook_needs_no_repair(name, hand_in, tmp_path, limits):
    first = hand_in(BROKEN[name].make)
    write(tmp_path / "again" / "anna" / LECTURE, first.notebook, f"{LECTURE}.ipynb")
    second = read(find(tmp_path / "again", LECTURE)[0], LECTURE_RECORD, RELEASE, limits)
    assert [sentence for sentence in second.repairs if " is missing; " not in sentence] == []
    assert second.notebook == first.notebook


class _Probe:
    """Stands for a tensor: whatever is taken from it is "answer"."""

    def __getitem__(self, key):
        return "answer"


def test_nothing_handed_in_is_changed(tmp_path, limits):
    for name, broken in BROKEN.items():
        folder = tmp_path / name / "anna" / LECTURE
        folder.mkdir(parents=True)
        broken.make(folder, SOLUTION, RELEASE)
        before = snapshot(tmp_path / name)
        (found,) = find(tmp_path / name, LECTURE)
        read(found, LECTURE_RECORD, RELEASE, limits)
        assert snapshot(tmp_path / name) == before


def snapshot(folder):
    return sorted((str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*"))


# Rules that deserve a test of their own


def edit(notebook_text, change):
    notebook = json.loads(notebook_text)
    change(notebook)
    return json.dumps(notebook)


def hand_in_edited(hand_in, change, handed=SOLUTION):
    return hand_in(lambda folder, text, _: write(folder, edit(text, change)), handed)


def test_a_check_that_was_put_back_stands_right_after_its_answer(hand_in):
    submission = hand_in_edited(hand_in, lambda notebook: notebook["cells"].remove(checks(notebook)[0]))
    order = [grade_id(cell) for cell in cells(submission)]
    assert order.index("check_last_row") == order.index("last_row") + 1


def test_the_first_answer_that_was_worked_on_counts_and_the_others_still_run(hand_in):
    def change(notebook):
        answer = answers(notebook)[0]
        second = json.loads(json.dumps(answer)) | {"id": "second"}
        second["source"] += "  # again"
        notebook["cells"].insert(notebook["cells"].index(answer) + 1, second)

    order = cells(hand_in_edited(hand_in, change))
    texts = [(grade_id(cell), cell["source"]) for cell in order if "def last_row" in cell["source"]]
    assert [id for id, _ in texts] == ["last_row", ""] and texts[1][1].endswith("# again")


def test_checks_of_answers_in_one_cell_follow_it_in_their_order(hand_in):
    submission = hand_in(BROKEN["all_answers_in_a_new_cell_at_the_end"].make)
    assert [grade_id(cell) for cell in cells(submission)][-3:] == ["last_row", "check_last_row", "check_column"]
    assert sum("def " in cell["source"] for cell in cells(submission)) == 1  # no stub is left that would undo it


def test_checks_put_back_below_one_cell_stand_in_their_order(hand_in):
    def change(notebook):
        first, second = answers(notebook)
        first["source"] += f"\n\n\n{second['source']}"
        for cell in (second, *checks(notebook)):
            notebook["cells"].remove(cell)

    order = [grade_id(cell) for cell in cells(hand_in_edited(hand_in, change))]
    at = order.index("last_row")
    assert order[at : at + 3] == ["last_row", "check_last_row", "check_column"]


def test_a_function_that_the_release_defines_itself_is_no_answer(tmp_path, limits):
    """A lecture may show a first attempt under the name of the exercise."""

    def with_demo(text):
        def change(notebook):
            demo = code("demo", "def last_row(x, k):\n    return x")
            notebook["cells"].insert(index(notebook, setup(notebook)) + 1, demo)

        return edit(text, change)

    release = with_demo(RELEASE)
    for name, handed in {"blank": release, "solved": with_demo(SOLUTION)}.items():
        stripped = edit(handed, lambda notebook: [cell.update(metadata={}) for cell in notebook["cells"]])
        for kind, text in {"marked": handed, "stripped": stripped}.items():
            write(tmp_path / f"{name}-{kind}" / LECTURE, text, f"{LECTURE}.ipynb")
    read_all = {f.student: read(f, LECTURE_RECORD, release, limits) for f in find(tmp_path, LECTURE)}
    for name, submission in read_all.items():
        wanted = release if name.startswith("blank") else SOLUTION
        (answer,) = (c["source"] for c in cells(submission) if grade_id(c) == "last_row")
        assert answer == answers(json.loads(wanted))[0]["source"], name
    assert not read_all["blank-marked"].repairs and not read_all["solved-marked"].repairs


def test_of_two_real_answers_the_last_one_holds_whatever_stub_is_below_it(hand_in):
    def change(notebook):
        answer = answers(notebook)[0]
        stub = answers(json.loads(RELEASE))[0]["source"]
        more = [
            answer["source"],
            f"helper = 1\n\n{stub}",
            "def last_row(x, k):\n    return x[k]",
            f"{stub}\n\nhelper = 2",
        ]
        answer["source"] = stub
        notebook["cells"][1:1] = [code(f"own{i}", source) for i, source in enumerate(more)]

    defining = [c for c in cells(hand_in_edited(hand_in, change)) if "def last_row" in c["source"]]
    assert "return x[k]" in defining[-1]["source"] and grade_id(defining[-1]) == "last_row"


def test_a_function_that_is_released_whole_is_no_stub_where_something_beside_it_was_written(tmp_path, limits):
    def beside(body):
        def change(notebook):
            answer = answers(notebook)[0]
            answer["source"] = f"class Row:\n{body}\n\n\ndef last_row(x, k):\n    return Row().of(x, k)"

        return change

    blank, whole = (
        "    def of(self, x, k):\n        raise NotImplementedError()",
        "    def of(self, x, k):\n        return x[-1]",
    )
    release, handed = edit(RELEASE, beside(blank)), json.loads(edit(RELEASE, beside(whole)))
    at = index(handed, answers(handed)[0])
    handed["cells"].insert(at, code("first", "def last_row(x, k):\n    return x"))
    write(tmp_path / "anna" / LECTURE, json.dumps(handed), f"{LECTURE}.ipynb")
    order = cells(read(find(tmp_path, LECTURE)[0], LECTURE_RECORD, release, limits))
    defining = [cell["source"] for cell in order if "def last_row" in cell["source"]]
    assert "return x[-1]" in defining[-1] and "return Row().of(x, k)" in defining[-1]


def test_a_helper_beside_a_stub_that_is_left_out_still_runs(hand_in):
    sources = [c["source"] for c in cells(hand_in(BROKEN["answer_above_its_stub_with_a_helper_beside_it"].make))]
    (kept,) = (source for source in sources if "def helper" in source)
    assert kept.startswith("import math") and "def last_row" not in kept and kept.endswith("    return x")


def test_a_file_that_a_cell_writes_is_no_answer(hand_in):
    def change(notebook):
        answer = answers(notebook)[0]
        notebook["cells"].append(code("own", "%%writefile helper.py\n" + answer["source"]))
        answer["source"] = answers(json.loads(RELEASE))[0]["source"]

    assert not hand_in_edited(hand_in, change).repairs


def test_an_import_added_to_the_setup_cell_still_runs(hand_in):
    submission = hand_in(BROKEN["setup_with_an_import_added"].make)
    order = cells(submission)
    at = next(i for i, cell in enumerate(order) if grade_id(cell) == "setup")
    assert order[at]["source"] == setup(json.loads(RELEASE))["source"] and order[at + 1]["source"] == "import math"


def test_what_a_student_adds_to_a_locked_cell_cannot_rebind_its_names(hand_in):
    def change(notebook):
        setup(notebook)["source"] += "\ncheck = print\npredict, hint = 1, 2\nN = 3"

    sources = [cell["source"] for cell in cells(hand_in_edited(hand_in, change))]
    assert "N = 3" in sources and not any("check = print" in source for source in sources)


def test_a_written_answer_that_lost_its_mark_is_found_below_its_question(hand_in):
    def change(notebook):
        notebook["cells"][-1]["metadata"] = {}

    order = cells(hand_in_edited(hand_in, change))
    assert [cell["source"] for cell in order if grade_id(cell) == "why_view"] == [
        "It shares the storage, with another stride."
    ]


def test_a_deleted_written_answer_is_put_back_unanswered(hand_in):
    submission = hand_in_edited(hand_in, lambda notebook: notebook["cells"].pop())
    assert [c["source"] for c in cells(submission) if grade_id(c) == "why_view"] == ["YOUR ANSWER HERE"]
    assert "written answer why_view was missing" in " ".join(submission.repairs)


def test_outputs_and_counts_and_tags_of_students_never_reach_the_run(hand_in):
    def change(notebook):
        for cell in notebook["cells"]:
            cell["metadata"]["tags"] = ["skip-execution"]
            if cell["cell_type"] == "code":
                cell["outputs"], cell["execution_count"] = (
                    [{"output_type": "stream", "name": "stdout", "text": "2.0"}],
                    7,
                )

    for cell in cells(hand_in_edited(hand_in, change)):
        assert "tags" not in cell["metadata"] and not cell.get("outputs") and cell.get("execution_count") is None


def test_pictures_in_a_text_cell_are_kept(hand_in):
    order = cells(hand_in(BROKEN["attachments_malformed"].make))
    assert order[0]["attachments"] == {"a.png": {"image/png": "iVBORw0KGgo="}}


@pytest.mark.parametrize("kind", ["markdown", "code"])
@pytest.mark.parametrize("deep", ["dicts", "lists"])
def test_nothing_nested_deeply_and_no_half_of_a_pair_reaches_the_run(hand_in, deep, kind):
    nest = {"dicts": lambda inner: {"\ud800": inner}, "lists": lambda inner: [inner]}[deep]
    value = "\udfff"
    for _ in range(600):
        value = nest(value)

    def change(notebook):
        cell = code("own", "![a](attachment:a.png)") | {"cell_type": kind}
        png = {
            "a\ud800.png": {"image/png": ["iVBO\ud800", value], "text/\ud800": value},
            "b": value,
            "c": {"x": {"y": value}},
        }
        cell |= {"attachments": png, "outputs": [{"data": value}], "metadata": {"deep": value}, "id": value, "x": value}
        marked = code("own-2", "2", grade=value, locked="\ud800", points=value)
        marked["metadata"]["nbgrader"]["grade_id"] = "\ud800"
        notebook["cells"] += [cell, marked, {"cell_type": value, "source": "3", "metadata": value}]
        notebook["metadata"] = {"kernelspec": value, "language_info": {"name": value}}

    submission = hand_in_edited(hand_in, change)
    assert submission.ungradable is None
    assert depth(json.loads(submission.notebook)) < 8
    for sentence in (submission.notebook, *submission.repairs):
        sentence.encode()
    own = next(cell for cell in cells(submission) if "attachment:a.png" in cell["source"])
    assert ("attachments" in own) == (kind == "markdown")


def depth(value):
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, below), default=0)


def another_lecture(name):
    """The solved notebook of another lecture of the same make, with exercises of its own."""
    text = SOLUTION.replace(LECTURE, name).replace("last_row", "softmax").replace("column", "entropy")
    return text.replace("why_view", "why_stable").replace("slice a view", "shift stable")


def test_of_another_lectures_notebook_the_first_exercise_and_the_lecture_are_told(hand_in, limits):
    def make(folder, handed, _):
        write(folder, another_lecture("03_activations"))

    write(limits.course / "03_activations", another_lecture("03_activations"), "03_activations.ipynb")
    write(limits.course / "04_broken", "{", "04_broken.ipynb")
    assert hand_in(make).ungradable == (
        "None of the exercises of 02_indexing is in the notebook (it has softmax, which 02_indexing lacks, and it looks "
        "like 03_activations). Hand in the 02_indexing.ipynb that you worked on."
    )


EMPTY_BESIDE_WORKED = [  # the untouched release, and the notebook that was worked on
    (f"{LECTURE}.ipynb", f"{LECTURE} (1).ipynb"),
    (f"{LECTURE}.ipynb", "my_work.ipynb"),
    (f"{LECTURE}.ipynb", f"old/{LECTURE}.ipynb"),
    (f"{LECTURE} (1).ipynb", f"{LECTURE}.ipynb"),
    (f"{LECTURE}_original.ipynb", f"{LECTURE}_Anna.ipynb"),
    ("a.ipynb", "b.ipynb"),
    ("b.ipynb", "a.ipynb"),
]


@pytest.mark.parametrize("worked_is_newer", [True, False], ids=["newer", "older"])
@pytest.mark.parametrize("answered", ["all", "one"])
@pytest.mark.parametrize(("empty", "worked"), EMPTY_BESIDE_WORKED)
def test_the_notebook_that_was_worked_on_counts_whatever_its_name_and_time(
    hand_in, empty, worked, answered, worked_is_newer
):
    def one(notebook):
        answers(notebook)[0]["source"] = answers(json.loads(SOLUTION))[0]["source"]
        notebook["cells"] = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" or grade_id(cell)]

    def make(folder, handed, released):
        os.utime(write(folder, edit(released, one) if answered == "one" else handed, worked), (2, 2))
        os.utime(write(folder, released, empty), (1, 1) if worked_is_newer else (3, 3))

    submission = hand_in(make)
    assert "return x[-1, ::k]" in submission.notebook
    said = f"There are 2 notebooks; {worked} was graded, not {empty} (in which nothing is answered)."
    assert said in submission.repairs


@pytest.mark.parametrize(
    ("names", "graded"),
    [
        ((f"{LECTURE}.ipynb", "z.ipynb"), f"{LECTURE}.ipynb"),
        (("z.ipynb", f"{LECTURE}.ipynb"), f"{LECTURE}.ipynb"),
        (("a.ipynb", "z.ipynb"), "z.ipynb"),
        (("z.ipynb", "a.ipynb"), "a.ipynb"),
    ],
)
def test_of_notebooks_with_as_many_answers_the_name_counts_and_then_the_time(hand_in, names, graded):
    def make(folder, handed, _):
        for seconds, name in enumerate(names, start=1):
            os.utime(write(folder, handed.replace("return y", f"return y  # {name}"), name), (seconds, seconds))

    assert f"# {graded}" in hand_in(make).notebook


def test_a_file_without_the_ending_counts_only_where_none_with_it_is_worked_on(hand_in):
    def make(folder, handed, released):
        write(folder, edit(handed, lambda notebook: answers(notebook)[1].update(answers(json.loads(released))[1])))
        write(folder, handed, f"{LECTURE}.json")

    submission = hand_in(make)
    assert "return y" not in submission.notebook and not submission.repairs
    assert f"{LECTURE}.json" in submission.files


def test_of_notebooks_that_were_worked_on_the_one_with_more_answers_counts(hand_in):
    def make(folder, handed, released):
        write(folder, edit(handed, lambda notebook: answers(notebook)[1].update(answers(json.loads(released))[1])))
        write(folder, handed, "z.ipynb")

    assert "There are 2 notebooks; z.ipynb was graded, not 02_indexing.ipynb." in hand_in(make).repairs


def test_last_years_release_with_other_docstrings_is_not_worked_on(hand_in):
    def make(folder, handed, released):
        write(
            folder, released.replace("Every k-th element", "All k-th elements").replace("Column k", "The k-th column")
        )
        write(folder, handed, "z.ipynb")

    assert "return y" in hand_in(make).notebook


def test_a_notebook_beside_the_copies_of_a_tool_is_the_one_that_counts(hand_in):
    def make(folder, handed, released):
        write(folder, released)
        write(folder, handed, f".ipynb_checkpoints/{folder.name}-checkpoint.ipynb")

    submission = hand_in(make)
    assert not submission.repairs and "return y" not in submission.notebook


def test_files_go_with_the_copy_of_a_tool_and_what_it_holds_is_in_the_digest(hand_in, tmp_path, limits):
    def make(folder, handed, _):
        write(folder, handed, f".ipynb_checkpoints/{folder.name}-checkpoint.ipynb")
        write(folder, "1,2", "data.csv")

    first = hand_in(make)
    assert first.files["data.csv"] == b"1,2"
    write(tmp_path / "class" / "anna" / LECTURE, RELEASE, f".ipynb_checkpoints/{LECTURE}-checkpoint.ipynb")
    (found,) = find(tmp_path / "class", LECTURE)
    assert read(found, LECTURE_RECORD, RELEASE, limits).digest != first.digest


@pytest.mark.parametrize("handed", [SOLUTION, "{}"], ids=["gradable", "not"])
def test_of_too_many_notebooks_it_is_said_how_many_were_looked_at(hand_in, handed):
    def make(folder, _, released):
        for i in range(25):
            write(folder, handed, f"{folder.name} ({i}).ipynb")
        for i in range(5):
            write(folder, handed, f"a{i}.ipynb")

    submission = hand_in(make)
    told = submission.ungradable or " ".join(submission.repairs)
    assert "Only 20 of the 30 files that could be the notebook were looked at" in told


def test_the_notebook_named_after_the_lecture_is_looked_at_before_a_heap_of_others(hand_in):
    def make(folder, handed, released):
        for i in range(50):
            write(folder, released, f"{i}.ipynb")
        write(folder, handed, f"my {folder.name}.ipynb")

    submission = hand_in(make)
    assert "return y" in submission.notebook and any("Only 20 of the 51" in said for said in submission.repairs)


def test_notebooks_that_are_too_many_bytes_are_not_said_to_be_too_large_themselves(hand_in, limits, tmp_path):
    def make(folder, handed, _):
        for i in range(5):
            write(folder, handed + " " * 700_000, f"{i}.ipynb")

    hand_in(make)
    (found,) = find(tmp_path / "class", LECTURE)
    said = " ".join(read(found, LECTURE_RECORD, RELEASE, replace(limits, submission_mib=1.0)).repairs)
    assert "Only 2 of the 5 files" in said and "Clear the outputs" not in said


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_told_and_never_opened(hand_in):
    def make(folder, handed, _):
        os.mknod(folder / f"{LECTURE}.ipynb", stat.S_IFCHR | 0o666, os.makedev(1, 5))

    assert "02_indexing.ipynb is a device" in hand_in(make).ungradable


def test_files_of_the_release_win_over_those_handed_in(hand_in):
    def make(folder, handed, _):
        write(folder, handed)
        write(folder, "forged", "checks.json")
        write(folder, "mine", "data/own.csv")

    files = hand_in(make).files
    assert files == {"checks.json": b'{"released": true}', "data/given.csv": b"1,2", "data/own.csv": b"mine"}


def test_files_go_by_their_path_from_the_notebooks_folder(hand_in):
    assert hand_in(BROKEN["notebook_in_a_folder_of_its_own"].make).files["data.csv"] == b"1,2"


def test_of_files_that_shadow_libraries_only_the_others_are_kept(hand_in):
    files = hand_in(BROKEN["files_that_shadow_libraries"].make).files
    assert set(files) == {"checks.json", "data/given.csv", "helper.py"}


def test_a_timestamp_is_kept_only_where_it_is_one(hand_in):
    assert "timestamp.txt" not in hand_in(BROKEN["timestamp_unreadable"].make).files


def test_the_digest_tells_contents_and_names_apart(tmp_path, limits):
    def digest(name, files):
        for file, content in files.items():
            write(tmp_path / name / "anna" / LECTURE, content, file)
        (found,) = find(tmp_path / name, LECTURE)
        return read(found, LECTURE_RECORD, RELEASE, limits).digest

    first = digest("a", {f"{LECTURE}.ipynb": SOLUTION, "x.csv": "1"})
    assert first == digest("b", {f"{LECTURE}.ipynb": SOLUTION, "x.csv": "1", ".DS_Store": "junk"})
    others = [{"x.csv": "2"}, {"y.csv": "1"}, {}]
    digests = {digest(str(i), {f"{LECTURE}.ipynb": SOLUTION, **files}) for i, files in enumerate(others)}
    assert len(digests | {first}) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"2024-01-02 03:04:05 UTC", "2024-01-02T03:04:05+00:00"),
        (b"2024-01-02 03:04:05.123456 UTC\n", "2024-01-02T03:04:05.123456+00:00"),
        (b"2024-01-02T03:04:05+02:00", "2024-01-02T01:04:05+00:00"),
        ("2024-01-02 03:04:05 UTC".encode("utf-16"), "2024-01-02T03:04:05+00:00"),
        ("2024-01-02 03:04:05.123456+02:00\r\n".encode("utf-16-le"), "2024-01-02T01:04:05.123456+00:00"),
        (b"\xef\xbb\xbf2024-01-02 03:04:05", "2024-01-02T03:04:05+00:00"),
        (b"next tuesday", None),
        (b"\xff\xfe\0", None),
        (b"0001-01-01T00:00:00+23:00", None),
        (b"", None),
    ],
)
def test_a_timestamp_is_a_time_or_nothing(text, expected):
    found = handed_in_at({"timestamp.txt": text})
    assert (found and found.isoformat()) == expected


def test_a_release_that_cannot_be_read_is_the_courses_fault(hand_in, tmp_path, limits):
    hand_in(BROKEN["untouched"].make)
    (found,) = find(tmp_path / "class", LECTURE)
    for text in ("", "[]", '{"cells": [], "metadata": {}}', '{"cells": [3]}'):
        with pytest.raises(CourseError, match="autograder release"):
            read(found, LECTURE_RECORD, text, limits)


# Finding


NAMES = {
    "anna": "anna",
    "Åsa Öberg": "Åsa Öberg",
    "anna.lee@example.org": "anna.lee@example.org",
    "o'neil": None,
    'qu"ote': None,
    "-rf": None,
    "50%": None,
    "a+b": None,
    "a..b": "a..b",
    "..x": None,
    "new\nline": None,
    "*[a-z]?": None,
    "x" * 200: None,
    "CON": None,
    " blank ": None,
    "$(reboot)": None,
}


def test_every_folder_gets_an_id_of_its_own_that_nbgrader_can_hold(tmp_path):
    names = [name for name in NAMES if not name.startswith(".")]
    for name in names:
        write(tmp_path / name / LECTURE, SOLUTION, f"{LECTURE}.ipynb")
    os.mkdir(os.path.join(os.fsencode(tmp_path), b"\xff\xfe"))
    found = {record.original: record.student for record in find(tmp_path, LECTURE)}
    assert set(names) < set(found) and len(set(found.values())) == len(names) + 1
    for original, student in found.items():
        assert student == NAMES.get(original) or (original != student and NAMES.get(original) is None)
        assert student.isprintable() and student == student.strip() and len(student) < 100 and student.encode()
        assert not set(student) & set("/\\%+*?[]{},'\"#") and student[0] not in "-."


def test_names_that_differ_in_case_only_are_two_students(tmp_path):
    for name in ("Anna", "anna", "e\u0301va", "\u00e9va"):
        write(tmp_path / name / LECTURE, SOLUTION, f"{LECTURE}.ipynb")
    ids = [record.student.casefold() for record in find(tmp_path, LECTURE)]
    assert len(ids) == len(set(ids)) == 4


def test_loose_and_hidden_files_are_no_students(tmp_path):
    write(tmp_path / "anna" / LECTURE, SOLUTION, f"{LECTURE}.ipynb")
    for name in ("roster.csv", ".DS_Store", "__MACOSX/anna/x.ipynb", ".git/config", "stray.ipynb"):
        write(tmp_path, "junk", name)
    assert [record.student for record in find(tmp_path, LECTURE)] == ["anna"]


def test_a_folder_with_nothing_in_it_is_a_student_who_handed_in_nothing(tmp_path, limits):
    (tmp_path / "anna").mkdir()
    (found,) = find(tmp_path, LECTURE)
    assert "Nothing was handed in" in read(found, LECTURE_RECORD, RELEASE, limits).ungradable


def test_a_link_in_place_of_a_students_folder_is_not_followed(tmp_path, limits):
    write(tmp_path / "class" / "anna" / LECTURE, SOLUTION, f"{LECTURE}.ipynb")
    (tmp_path / "class" / "ben").symlink_to(tmp_path / "class" / "anna")
    (tmp_path / "class" / "cleo").mkdir()
    (tmp_path / "class" / "cleo" / LECTURE).symlink_to(tmp_path / "class" / "anna" / LECTURE)
    _, ben, cleo = (read(found, LECTURE_RECORD, RELEASE, limits) for found in find(tmp_path / "class", LECTURE))
    assert "links are not followed" in ben.ungradable and "links are not followed" in cleo.ungradable


@pytest.mark.parametrize(
    ("where", "student"),
    [("class/anna", "anna"), (f"class/anna/{LECTURE}", "anna"), ("class", "anna"), ("flat", "flat")],
)
def test_the_path_may_be_a_class_a_student_or_a_lecture(tmp_path, where, student):
    write(tmp_path / "class" / "anna" / LECTURE, SOLUTION, f"{LECTURE}.ipynb")
    write(tmp_path / "class" / "anna" / "77_other", SOLUTION, "77_other.ipynb")
    write(tmp_path / "flat", SOLUTION, f"{LECTURE}.ipynb")
    (found,) = find(tmp_path / where, LECTURE)
    assert (found.student, found.lecture, found.folder.is_dir()) == (student, LECTURE, True)


def test_a_stray_folder_of_the_lecture_does_not_hide_the_class(tmp_path):
    for name in ("anna", "ben"):
        write(tmp_path / name / LECTURE, SOLUTION, f"{LECTURE}.ipynb")
    write(tmp_path / LECTURE, SOLUTION, f"{LECTURE}.ipynb")
    assert [record.original for record in find(tmp_path, LECTURE)] == [LECTURE, "anna", "ben"]


def test_one_folder_that_cannot_be_listed_fails_alone(tmp_path, limits, monkeypatch):
    for name in ("anna", "ben"):
        write(tmp_path / name / LECTURE, SOLUTION, f"{LECTURE}.ipynb")
    scandir = os.scandir

    def refusing(path):
        if Path(path).is_relative_to(tmp_path / "anna"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    anna, ben = find(tmp_path, LECTURE)
    with pytest.raises(EngineError, match=r"Permission denied.*check its permissions"):
        read(anna, LECTURE_RECORD, RELEASE, limits)
    assert read(ben, LECTURE_RECORD, RELEASE, limits).ungradable is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda path: [write(path / LECTURE / name, RELEASE, f"{LECTURE}.ipynb") for name in ("anna", "ben")],
            f"give .*{LECTURE} instead",
        ),
        (lambda path: None, "does not exist"),
        (lambda path: path.write_text("x"), "is a file"),
        (lambda path: path.mkdir(), "no student's folder"),
        (lambda path: [write(path, RELEASE, f"{name}.ipynb") for name in ("anna", "ben")], "autograder collect"),
        (lambda path: write(path, "x", "roster.csv"), "no student's folder"),
    ],
)
def test_a_path_that_holds_no_class_is_refused_with_what_was_expected(tmp_path, make, words):
    make(tmp_path / "class")
    with pytest.raises(UsageError, match=words) as refused:
        find(tmp_path / "class", LECTURE)
    assert f"STUDENT/{LECTURE}/{LECTURE}.ipynb" in str(refused.value)


# Anything at all


PROPERTY = settings(
    max_examples=150, deadline=5000, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)
SCRAPS = strategies.sampled_from(
    ["cells", "cell_type", "source", "metadata", "nbgrader", "grade_id", "id", "last_row", "code", "check_column"]
)
JSON = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | SCRAPS
    | strategies.text(max_size=20),
    lambda below: (
        strategies.lists(below, max_size=4)
        | strategies.dictionaries(SCRAPS | strategies.text(max_size=5), below, max_size=5)
    ),
    max_leaves=25,
)


def submitted(folder, limits, data):
    (folder / f"{LECTURE}.ipynb").write_bytes(data)
    submission = read(find(folder.parents[1], LECTURE)[0], LECTURE_RECORD, RELEASE, limits)
    assert (submission.notebook is None) == (submission.ungradable is not None)
    if submission.notebook is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            nbformat.validate(nbformat.reads(submission.notebook, as_version=4))
        submission.notebook.encode()


@pytest.fixture(scope="module")
def one_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class") / "anna" / LECTURE
    folder.mkdir(parents=True)
    return folder


@PROPERTY
@given(data=strategies.binary(max_size=300))
def test_any_bytes_become_a_submission(one_folder, limits, data):
    submitted(one_folder, limits, data)


@PROPERTY
@given(
    at=strategies.integers(0, len(SOLUTION.encode())),
    cut=strategies.integers(0, 40),
    put=strategies.binary(max_size=20),
)
def test_a_notebook_with_any_damage_becomes_a_submission(one_folder, limits, at, cut, put):
    data = SOLUTION.encode()
    submitted(one_folder, limits, data[:at] + put + data[at + cut :])


@PROPERTY
@given(JSON)
def test_any_json_becomes_a_submission(one_folder, limits, value):
    submitted(one_folder, limits, json.dumps(value).encode())


@PROPERTY
@given(data=strategies.data())
def test_a_notebook_with_anything_in_place_of_its_parts_becomes_a_submission(one_folder, limits, data):
    notebook = json.loads(SOLUTION)
    for _ in range(data.draw(strategies.integers(1, 4))):
        place = (
            data.draw(strategies.sampled_from([notebook, *filter(dict.__instancecheck__, notebook["cells"])]))
            if isinstance(notebook.get("cells"), list)
            else notebook
        )
        place[data.draw(strategies.sampled_from(sorted(place, key=str) or ["x"]))] = data.draw(JSON)
    submitted(one_folder, limits, json.dumps(notebook).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"<<<<<<< \n" * 200_000,
        b"<<<<<<<\n=======\n>>>>>>>\n" * 50_000,
        b'"' + b'\\"' * 1_000_000,
        b'{"cells": ['
        + b'{"cell_type":"code","source":"def last_row","metadata":{"nbgrader":{"grade_id":"last_row"}}},' * 4000
        + b"{}]}",
        b'{"cells": [' + b"," * 1_000_000,
        b"\n" * 2_000_000 + b"%",
        b'{"cells": [{"cell_type": "code", "source": "'
        + b"\\n" * 2_000_000
        + b'", "metadata": {"nbgrader": {"grade_id": "setup"}}}]}',
        b'{"cells": [{"cell_type": "code", "source": "last_row' + b" " * 2_000_000 + b'"}]}',
        b'{"a":' * 900 + b"1" + b"}" * 900,
    ],
    ids=["conflicts", "resolved", "quotes", "doubles", "commas", "blank", "lines", "blanks", "deep"],
)
def test_what_is_made_to_take_long_does_not(one_folder, limits, data):
    started = time.process_time()
    submitted(one_folder, replace(limits, submission_mib=30.0), data)
    assert time.process_time() - started < 8


def test_a_cell_is_parsed_twice_at_most_whatever_it_holds_of_all_exercises(one_folder, limits, monkeypatch):
    parsed = Counter()
    monkeypatch.setattr(repair, "syntax", lambda source: parsed.update([source]) or syntax(source))
    stubs = "\n\n".join(marked.source for marked in release_of(RELEASE).of_role("answer"))
    cells = [{"cell_type": "code", "source": f"{stubs}\n# {number}", "metadata": {}} for number in range(9)]
    submitted(one_folder, limits, json.dumps({"cells": cells}).encode())
    assert len(parsed) >= 9 and max(parsed.values()) <= 2


EVERY_TOKEN = '{"a": [true, false, null, -1.5e-3, "\\u00e9\\n", {}], "b": 1}'


@pytest.mark.parametrize("end", range(1, len(EVERY_TOKEN)))
def test_wherever_a_file_breaks_off_it_is_said_so(end):
    assert "breaks off in the middle" in draft(EVERY_TOKEN[:end].encode()).reason


def test_what_is_wrong_inside_is_not_said_to_break_off():
    assert "not valid JSON" in draft(b'{"a": tru, "b": 1}').reason
