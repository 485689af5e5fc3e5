"""What a student sees: the table, the hints, the predictions, the progress line."""

import base64
import json
from pathlib import Path

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from autograder import check as check_module
from autograder import checks, checks_writer, probe, wire
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


def test_a_known_slip_is_told_beside_its_line_also_in_a_class(check, shown):
    class Positive(torch.nn.Module):
        def forward(self, x):
            return x if x > 0 else 0 * x

    kind = type("MyReLU", (Positive,), {"functional": staticmethod(Positive().forward)})
    course = Path(__file__).parents[2] / "course" / "03_activations"
    with pytest.raises(CheckFailed, match="ambiguous"):
        Checker("03_activations", course)(kind)
    rows = dict(shown[0].rows)
    assert rows["in your code"].endswith(": `return x if x > 0 else 0 * x`") and "several answers" in rows["next step"]


def test_the_line_is_also_shown_where_another_error_is_asked_for(check, shown):
    def multiples_of(x, k):
        assert k != 0
        return x[x % k == 0]

    with pytest.raises(CheckFailed, match="expected ValueError, got AssertionError"):
        check(multiples_of)
    assert dict(shown[0].rows)["in your code"].endswith(": `assert k != 0`")


def test_a_damaged_note_costs_nothing(check, tmp_path, shown):
    (tmp_path / "progress.json").write_text("[1")
    check.hint(every_kth_of_last_row)
    assert shown


def test_a_letter_may_be_written_as_people_write_it_and_another_one_is_refused(check, shown):
    asked = LECTURE.predictions[0]
    for typed in (asked.answer.upper(), f" {asked.answer}", f"{asked.answer})", f"{asked.answer}."):
        check.predict(asked.id, typed)
        assert shown[-1].title.startswith("✓")
    check.predict(asked.id, "z")
    assert "'z' is none of the letters a, b" in shown[-1].footer
    for typed in (torch.ones(2), ["a"]):  # a without its quotes is whatever the notebook calls a
        check.predict(asked.id, typed)
        assert f"A {type(typed).__name__} is none of the letters a, b" in shown[-1].footer
    check.predict(asked.id)
    assert shown[-1].footer.startswith("Commit yourself")


def test_a_wrong_prediction_sends_nobody_to_a_cell_that_may_not_be_there(check, shown):
    asked = LECTURE.predictions[0]
    check.predict(asked.id, next(letter for letter in asked.choices if letter != asked.answer))
    assert shown[-1].footer.startswith("Read on and compare")


CALLS = {
    "another function": (lambda check: check(named("other", lambda: 1)), "other is no exercise"),
    "a name in quotes": (lambda check: check("multiples_of"), r"check\(multiples_of\), without the quotes"),
    "a result": (lambda check: check(torch.ones(2)), "not a Tensor: do not call it"),
    "nothing": (lambda check: check(), r"as in check\(every_kth_of_last_row\)"),
    "a hint for nothing": (lambda check: check.hint(), r"as in hint\(every_kth_of_last_row\)"),
    "a prediction": (lambda check: check.predict("P99", "a"), f"there are: {LECTURE.predictions[0].id}"),
}


@pytest.mark.parametrize(("call", "said"), CALLS.values(), ids=CALLS)
def test_a_wrong_call_is_answered_in_one_line_that_shows_the_right_one(check, call, said):
    with pytest.raises(UsageError, match=said) as refused:
        call(check)
    assert refused.value._render_traceback_() == [str(refused.value)]


def test_a_hint_can_be_had_before_the_function_is_defined(check, shown):
    check.hint("multiples_of")
    assert "hint 1 of 3" in repr(shown[-1])


def broken_answer(x, k):
    position = len(x)
    return x[position, ::k]


def in_a_helper(x, k):
    return broken_answer(x, k)


@pytest.mark.parametrize("function", [broken_answer, in_a_helper])
def test_an_error_is_shown_with_the_line_that_raised_it(check, shown, function):
    with pytest.raises(CheckFailed, match="IndexError"):
        check(named("every_kth_of_last_row", lambda x, k: function(x, k)))
    rows = dict(shown[0].rows)
    assert rows["in your code"].endswith(": `return x[position, ::k]`") and rows["next step"] == check_module.AT_LINE


def test_an_error_outside_of_the_function_is_not_said_to_be_in_it(shown):
    course = Path(__file__).parents[2] / "course" / "01_storage"
    with pytest.raises(CheckFailed, match="must be tuple of ints"):
        Checker("01_storage", course)(named("strided_views", lambda rows, cols: {"last_column": (rows, cols, 0)}))
    rows = dict(shown[0].rows)
    assert "in your code" not in rows and rows["next step"] == check_module.OUTSIDE


def test_an_answer_that_takes_other_arguments_is_told_of_its_first_line(check, shown):
    with pytest.raises(CheckFailed, match="positional argument"):
        check(named("every_kth_of_last_row", lambda x: x[-1]))
    assert "leave the line with `def`" in dict(shown[0].rows)["next step"]


def endless(x, k):
    raise KeyboardInterrupt  # what a click on Interrupt does in the middle of it


def test_an_interrupted_check_says_where_it_was_and_shows_nothing_of_ours(check):
    check.passed["every_kth_of_last_row"] = True
    with pytest.raises(KeyboardInterrupt) as stopped:
        check(named("every_kth_of_last_row", lambda x, k: endless(x, k)))
    (line,) = stopped.value._render_traceback_()
    assert ": `raise KeyboardInterrupt" in line and "what ends the loop" in line
    assert not check.passed["every_kth_of_last_row"]


def unanswered(x, k):
    raise NotImplementedError()


@pytest.mark.parametrize("answer", [lambda x, k: x, unanswered], ids=["wrong", "unanswered"])
@pytest.mark.parametrize("typed", ["def every_kth_of_last_row(x, k)", "y = 1"])
def test_a_cell_that_does_not_parse_is_not_taken_for_an_answer(check, shown, answer, typed, monkeypatch, capsys):
    shell = InteractiveShell()
    monkeypatch.setattr(check_module, "get_ipython", lambda: shell)
    shell.run_cell(typed)
    with pytest.raises(CheckFailed):
        check(named("every_kth_of_last_row", answer))
    assert ("SyntaxError" in repr(shown[-1])) == typed.startswith("def")


def with_(**changed):
    return json.dumps(json.loads(TEXT) | changed)


SPOILT = {  # what stands in checks.json, and what is said of it
    "missing": (None, "checks.json is not in"),
    "empty": ("", "damaged or cut short"),
    "cut short": (TEXT[: len(TEXT) // 2], "damaged or cut short"),
    "a page of a login": ("<!doctype html><html></html>", "damaged or cut short"),
    "not an object": ("[]", "damaged or cut short"),
    "no text": ("\udcff", "damaged or cut short"),
    "nested too deeply": ("[" * 100_000, "damaged or cut short"),
    "a case cut short": (TEXT.replace('"question": "', '"question": "AAAA'), "damaged or cut short"),
    "without exercises": (with_(exercises=None), "damaged or cut short"),
    "predictions of another kind": (with_(predictions=["P1"]), "damaged or cut short"),
    "of the first version": (json.dumps({k: v for k, v in json.loads(TEXT).items() if k != "format"}), "has format 1"),
    "of a later version": (with_(format=99), "has format 99, and the autograder installed here reads format"),
    "of another lecture": (with_(lecture="03_activations"), "belongs to lecture 03_activations, not to 02_indexing"),
}


@pytest.mark.parametrize(("text", "said"), SPOILT.values(), ids=SPOILT)
def test_without_its_checks_the_setup_cell_answers_in_one_sentence_what_to_do(tmp_path, text, said, capsys):
    if text is not None:
        (tmp_path / checks.FILE).write_text(text, encoding="utf-8", errors="surrogateescape")
    shell = InteractiveShell(colors="nocolor")
    shell.run_cell(f"from autograder.check import Checker\ncheck = Checker('02_indexing', {str(tmp_path)!r})")
    shown = capsys.readouterr().out.strip()
    assert said in shown and str(tmp_path) in shown and len(shown.splitlines()) == 1
    assert "fetch the folder of lecture 02_indexing again" in shown and "Traceback" not in shown
    with pytest.raises(CourseError):
        Checker("02_indexing", tmp_path)


@pytest.fixture
def with_prose(tmp_path, shown):
    """The checks of a lecture with a written answer; a function that gives it hints, too."""
    tiny = load_lecture("10_tiny", Path(__file__).parent / "fixtures" / "solutions")
    data = json.loads(checks_writer.to_json(tiny))

    def checker(*hints):
        data["written"][0]["hints"] = list(hints) or data["written"][0]["hints"]
        (tmp_path / checks.FILE).write_text(json.dumps(data), encoding="utf-8")
        return Checker("10_tiny", tmp_path)

    return checker


def test_a_hint_for_a_written_answer_says_that_a_person_reads_it(with_prose, shown):
    with_prose().hint("why_copies")
    assert "Exercise 10.3  why_copies" in repr(shown[-1]) and "written answer" in repr(shown[-1])
    assert check_module.NO_HINTS in repr(shown[-1]) and "by hand" in repr(shown[-1])


def test_a_written_answer_that_has_hints_gives_them_one_at_a_time(with_prose, shown):
    check = with_prose("Think of memory.", "Think of strides.")
    check.hint("why_copies")
    assert "hint 1 of 2" in repr(shown[-1]) and "strides" not in repr(shown[-1]) and "by hand" in repr(shown[-1])
    check.hint("why_copies")
    assert "hint 2 of 2  Think of strides." in repr(shown[-1]) and check_module.NO_HINTS not in repr(shown[-1])


def test_a_check_of_a_written_answer_says_that_there_is_none(with_prose):
    with pytest.raises(UsageError, match=r"why_copies \(exercise 10.3\) is a written answer, graded by hand"):
        with_prose()("why_copies")


def test_of_a_written_answer_neither_rubric_nor_model_answer_is_released():
    tiny = load_lecture("10_tiny", Path(__file__).parent / "fixtures" / "solutions")
    (prose,) = (e for e in tiny.exercises if e.written)
    text = checks_writer.to_json(tiny)
    assert json.dumps(prose.rubric)[1:-1] not in text and json.dumps(prose.model_answer)[1:-1] not in text


def test_student_text_is_escaped():
    table = Table("<b>", (("<script>", "<img src=x>"),), "<i>")
    assert (
        "<script>" not in table._repr_html_() and "<img" not in table._repr_html_() and "&lt;img" in table._repr_html_()
    )


def test_code_in_a_text_is_shown_as_code():
    assert "<code>x[&lt;i&gt;]</code>" in Table("t", (("a", "look at `x[<i>]`"),))._repr_html_()


def test_checks_of_two_processors_say_the_same_and_edited_ones_do_not():
    def changed(part, change):
        data = json.loads(TEXT)
        for exercise in data["exercises"]:
            tree, tensors = wire.opened(base64.b64decode(exercise[part]))
            for t in tensors.values():
                if part == "question" or t.is_floating_point():
                    t.copy_(t * (1 + change))
            exercise[part] = base64.b64encode(probe.packed(tensors, json.dumps(tree))).decode()
        return json.dumps(data)

    last_bit = 2.0**-23
    assert checks_writer.same(TEXT, TEXT) and checks_writer.same(TEXT, changed("expected", last_bit))
    assert not checks_writer.same(TEXT, changed("expected", 0.01))
    assert not checks_writer.same(TEXT, changed("question", 1))
    assert not checks_writer.same(TEXT, TEXT.replace('"points": 2', '"points": 4', 1))
    for damaged in ("", "{}", "[]", TEXT[:-99], TEXT.replace('"expected": "', '"expected": "AAAA', 1)):
        assert not checks_writer.same(TEXT, damaged) and not checks_writer.same(damaged, TEXT)


def test_checks_data_is_the_same_every_time_and_holds_no_source():
    assert checks_writer.to_json(load_lecture("02_indexing", LECTURE.folder.parent)) == TEXT
    for exercise in LECTURE.exercises:
        for function in (exercise.function, *exercise.right_answers, *(w.function for w in exercise.wrong_answers)):
            assert json.dumps(standalone_text(function, exercise.id))[1:-1] not in TEXT
