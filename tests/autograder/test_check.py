"""What a student sees: the table, the hints, the predictions, the progress line."""

import json
from pathlib import Path

import pytest

from autograder import check as check_module
from autograder import checks, checks_writer
from autograder.check import Checker, CheckFailed, Table
from autograder.errors import CourseError, UsageError
from autograder.exercises import load_lecture, standalone_text

LECTURE = load_lecture("02_indexing", Path(__file__).parents[2] / "solutions")
TEXT = checks_writer.to_json(LECTURE)


@pytest.fixture
def shown(monkeypatch):
    """Everything displayed, in order."""
    tables = []
    monkeypatch.setattr(check_module, "display", tables.append)
    return tables


@pytest.fixture
def check(tmp_path, shown):
    (tmp_path / checks.FILE).write_text(TEXT, encoding="utf-8")
    return Checker("02_indexing", tmp_path)


def every_kth_of_last_row(x, k):
    return x[-1, ::k]


def named(name, function):
    function.__name__ = name
    return function


def test_a_right_answer_passes_and_never_hears_that_all_passed(check, shown):
    check(every_kth_of_last_row)
    text = repr(shown[0])
    assert "visible checks passed" in text and "more cases run when graded" in text and "1 of" in text
    assert "all" not in text.split()


def test_a_wrong_answer_hears_expected_got_smallest_input_likely_cause_and_next_step(check, shown):
    wrong = LECTURE["every_kth_of_last_row"].wrong_answers[0]
    with pytest.raises(CheckFailed, match="expected memory shared with x"):
        check(named("every_kth_of_last_row", lambda x, k: x[-1, list(range(0, x.shape[1], k))]))
    rows = dict(shown[0].rows)
    assert set(rows) >= {"smallest failing input", "expected", "got", "likely cause", "next step", "hint"}
    assert wrong.message in rows["likely cause"] and "0 of" in shown[0].footer


def test_an_unanswered_exercise_is_told_so(check, shown):
    def blank(x, k):
        raise NotImplementedError()

    with pytest.raises(CheckFailed, match="not answered yet"):
        check(named("every_kth_of_last_row", blank))
    assert "○" in shown[0].title


def test_a_loop_is_seen_in_the_notebooks_own_text(check, shown):
    def multiples_of(x, k):
        if k == 0:
            raise ValueError("k is 0")
        for _ in range(2):
            pass
        return x[x % k == 0]

    with pytest.raises(CheckFailed, match="for loop"):
        check(multiples_of)


def test_the_failure_is_one_line_without_a_traceback():
    assert CheckFailed("short")._render_traceback_() == ["short"]


def test_hints_come_one_at_a_time_and_stay(check, shown):
    for _ in range(4):
        check.hint(every_kth_of_last_row)
    assert [len(table.rows) for table in shown] == [1, 2, 3, 3]


def test_every_choice_of_a_prediction_explains_itself(check, shown):
    asked = LECTURE.predictions[0]
    for letter, (_, why) in asked.choices.items():
        check.predict(asked.id, letter)
        assert why in repr(shown[-1])
    check.predict(asked.id, ...)
    assert "Commit yourself" in repr(shown[-1]) and not any(why in repr(shown[-1]) for _, why in asked.choices.values())


def test_predictions_and_hints_are_noted(check, tmp_path):
    asked = LECTURE.predictions[0]
    check.predict(asked.id, asked.answer)
    check.hint(every_kth_of_last_row)
    noted = json.loads((tmp_path / "progress.json").read_text())
    assert noted == {"predictions": {asked.id: [asked.answer]}, "hints": {"every_kth_of_last_row": [1]}}


@pytest.mark.parametrize("typed", ["B", " b ", "b)"])
def test_a_letter_counts_however_it_is_typed(check, shown, typed):
    asked = check.predictions[LECTURE.predictions[0].id]
    check.predict(LECTURE.predictions[0].id, typed)
    assert asked["choices"]["b"][1] in repr(shown[0])


def test_a_letter_that_is_no_choice_is_told_so_and_noted_nowhere(check, tmp_path, shown):
    check.predict("R1", "z")
    assert "There is no choice 'z' here, only a, b" in shown[0].footer
    assert not (tmp_path / "progress.json").exists()


def test_only_a_prediction_whose_answer_comes_next_sends_to_the_next_cell(check, shown):
    for id in ("R1", "P1"):
        asked = check.predictions[id]
        check.predict(id, next(letter for letter in asked["choices"] if letter != asked["answer"]))
    assert "next cell" not in shown[0].footer and "next cell" in shown[1].footer


def test_an_error_names_the_students_own_line(check, shown):
    def one_deeper(x):
        return x.nothing  # the line

    with pytest.raises(CheckFailed):
        check(named("every_kth_of_last_row", lambda x, k: one_deeper(x)))
    assert dict(shown[0].rows)["in the line"].startswith("`return x.nothing  # the line` (line ")
    with pytest.raises(CheckFailed):
        check(named("every_kth_of_last_row", lambda x: x))  # the call itself fails: no line of theirs
    assert "in the line" not in dict(shown[1].rows)


@pytest.mark.parametrize(
    "given, said",
    [
        ("every_kth_of_last_row", "without quotes: check\\(every_kth_of_last_row"),
        (type("every_kth_of_last_row", (), {})(), "without the second pair of brackets"),
        (named("other", lambda: 1), "other is no exercise"),
        ([0] * 1000, "\\[\\.\\.\\.\\] is no exercise .* not what it returns"),
    ],
)
def test_what_is_not_the_function_itself_is_told_what_to_write(check, given, said):
    with pytest.raises(UsageError, match=said) as refused:
        check(given)
    assert refused.value._render_traceback_() == [str(refused.value)]


def test_a_damaged_note_costs_nothing(check, tmp_path, shown):
    (tmp_path / "progress.json").write_text("[1")
    check.hint(every_kth_of_last_row)
    assert shown


def test_what_is_no_exercise_is_told_which_there_are(check):
    with pytest.raises(UsageError, match="every_kth_of_last_row"):
        check(named("other", lambda: 1))
    with pytest.raises(UsageError, match=LECTURE.predictions[0].id):
        check.predict("P99", "a")


def test_a_missing_checks_file_says_where_it_belongs(tmp_path):
    with pytest.raises(CourseError, match="its own folder"):
        Checker("02_indexing", tmp_path)
    (tmp_path / checks.FILE).write_text("{")
    with pytest.raises(CourseError, match="damaged"):
        Checker("02_indexing", tmp_path)


def test_student_text_is_escaped():
    table = Table("<b>", (("<script>", "<img src=x>"),), "<i>")
    assert (
        "<script>" not in table._repr_html_() and "<img" not in table._repr_html_() and "&lt;img" in table._repr_html_()
    )


def test_code_in_a_text_is_shown_as_code():
    assert "<code>x[&lt;i&gt;]</code>" in Table("t", (("a", "look at `x[<i>]`"),))._repr_html_()


def test_checks_data_is_the_same_every_time_and_holds_no_source():
    assert checks_writer.to_json(load_lecture("02_indexing", LECTURE.folder.parent)) == TEXT
    for exercise in LECTURE.exercises:
        for function in (exercise.function, *exercise.right_answers, *(w.function for w in exercise.wrong_answers)):
            assert json.dumps(standalone_text(function, exercise.id))[1:-1] not in TEXT
