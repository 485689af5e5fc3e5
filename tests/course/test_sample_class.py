"""The sample class of every lecture comes out as the contract's table says, from the released notebook to the report."""

from pathlib import Path

import pytest

from autograder import intake
from autograder.exercises import lecture_names, load_lecture
from autograder.grade import grade_submission
from autograder.sample import EXPECTED, lost_exercise, write
from autograder.settings import load_settings

ROOT = Path(__file__).parents[2]
LECTURES = lecture_names(ROOT / "solutions")


@pytest.fixture
def reports(request, tmp_path_factory):
    """(lecture, reports by student)."""
    if request.param not in GRADED:
        GRADED[request.param] = graded(request.param, tmp_path_factory.mktemp("class"))
    return GRADED[request.param]


GRADED = {}  # by lecture: grading a class takes a while


def graded(name, folder):
    settings = load_settings(ROOT, cell_seconds=8, trust_code=True)
    lecture = load_lecture(name, settings.solutions)
    write(lecture, settings, folder)
    released = (settings.course / lecture.name / f"{lecture.name}.ipynb").read_text(encoding="utf-8")
    submissions = [intake.read(found, lecture, released, settings) for found in intake.find(folder, lecture.name)]
    return lecture, {s.student: grade_submission(s, lecture, settings, seed=11) for s in submissions}


by_lecture = pytest.mark.parametrize("reports", LECTURES, indirect=True)


@by_lecture
@pytest.mark.xdist_group("sample")
def test_every_row_has_its_state_and_score(reports):
    lecture, graded = reports
    came = {}
    for student, report in graded.items():
        lost = [v.exercise for v in report.verdicts if v.score < v.points and not v.by_hand]
        came[student] = (report.state, len(lost))
    by_hand = sum(e.written for e in lecture.exercises)
    expected = {
        student: (fate.state, fate.lost if fate.lost is not None else len(lecture.exercises)) for student, fate in EXPECTED.items()
    }
    assert came == expected, {s: [(v.exercise, v.message) for v in r.verdicts if v.score < v.points] for s, r in graded.items() if came[s] != expected[s]}
    assert graded["solved"].score == lecture.points - sum(e.points for e in lecture.exercises if e.written) and by_hand >= 0


@by_lecture
@pytest.mark.xdist_group("sample")
def test_each_misconception_is_reported_with_its_own_message(reports):
    lecture, graded = reports
    for student in ("wrong_copy", "wrong_duplicates", "wrong_rank"):
        exercise, code = lost_exercise(lecture, student)
        verdict = next(v for v in graded[student].verdicts if v.exercise == exercise.id)
        message = next(w.message for w in exercise.wrong_answers if w.code == code)
        assert verdict.codes == (code,) and message in verdict.message


@by_lecture
@pytest.mark.xdist_group("sample")
def test_repairs_and_reasons_are_told(reports):
    _, graded = reports
    assert "put back" in " ".join(graded["deleted_test"].repairs) and "twice" in " ".join(graded["duplicated_test"].repairs)
    assert "cut off" in graded["broken_json"].reason
