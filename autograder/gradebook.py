"""nbgrader's gradebook: what the cells of a lecture are worth, and what the students got.

Every change is one transaction that happens or does not. SQLite waits for others and lets them read meanwhile (WAL);
any other database that SQLAlchemy knows is opened by its URL. One process writes, workers never see a gradebook.
"""

import json
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import nbgrader
from alembic.script import ScriptDirectory
from nbformat import NotebookNode
from nbgrader.api import (
    Assignment,
    Base,
    BaseCell,
    Comment,
    Course,
    Grade,
    GradeCell,
    Notebook,
    SolutionCell,
    SourceCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)
from nbgrader.api import Gradebook as NbgraderGradebook
from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import ExportPlugin
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import is_grade, is_locked, is_solution, parse_utc
from sqlalchemy import Column, MetaData, String, Table, delete, insert, inspect, select, text

from . import release
from .autograded import autograded, score_of
from .database import in_one_transaction, keep_writers_out, patient_url, shown_url
from .errors import GradebookError
from .exercises import Lecture
from .files import write_whole
from .intake import handed_in_at
from .records import Report
from .report import csv_text
from .settings import Settings

__all__ = [
    "ensure_assignment",
    "export",
    "feedback",
    "points_by_hand",
    "prepare",
    "restore",
    "save_cells",
    "scores",
    "shown_url",
    "snapshot",
    "write",
]

# Which files each submission's grades belong to. nbgrader's own tables have no place for it, and leave others alone.
OURS = MetaData()
ATTEMPT = Table(
    "autograder_attempt", OURS, Column("submission_id", String(32), primary_key=True), Column("digest", String(64))
)


# ---- its tables -----------------------------------------------------------------------------------------------------


def prepare(settings: Settings) -> None:
    """Make the gradebook where there is none.

    Raises:
        GradebookError: it cannot be used.
    """
    _in_one_transaction(settings.db_url, lambda session: None)


def _in_one_transaction(url, work):
    return in_one_transaction(url, _prepare, work)


def _prepare(connection):
    """Make a new database one that nbgrader takes for its own."""
    tables = inspect(connection).get_table_names()
    if ATTEMPT.name not in tables or Grade.__tablename__ not in tables:
        Base.metadata.create_all(connection)
        OURS.create_all(connection)
    if not tables:
        head = ScriptDirectory(str(Path(nbgrader.__file__).parent / "alembic")).get_current_head()
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("INSERT INTO alembic_version (version_num) VALUES (:head)"), {"head": head})
    keep_writers_out(connection, Grade.__tablename__, Comment.__tablename__)


# ---- the lecture ----------------------------------------------------------------------------------------------------


def ensure_assignment(lecture: Lecture, settings: Settings) -> None:
    """Bring the gradebook's record of a lecture up to date: its cells, their points and texts, as they are released.

    Grades of cells that are gone go with them; all others stay, and cells that are new wait for theirs.

    Raises:
        GradebookError: the gradebook cannot be used; it is as it was.
        CourseError: the lecture cannot be released.
    """
    notebook = release.released_notebook(lecture, settings)
    course = release.course_config(settings).CourseDirectory.get("course_id", "")
    save_cells(settings.db_url, lecture.name, notebook, course)


def save_cells(url: str, lecture_name: str, notebook: NotebookNode, course: str = "") -> None:
    """Make the gradebook's record of a lecture that of its released `notebook`.

    Raises:
        GradebookError: the gradebook cannot be used; it is as it was.
    """
    _in_one_transaction(
        url, lambda session: _store_lecture(session, lecture_name, notebook, course or "default_course")
    )


def _store_lecture(session, lecture_name, notebook, course):
    if session.get(Course, course) is None:
        session.add(Course(id=course))
        session.flush()
    assignment = _only(session, Assignment, name=lecture_name)
    if assignment is None:
        assignment = Assignment(name=lecture_name, course_id=course)
        session.add(assignment)
        session.flush()
    for other in session.scalars(select(Notebook).where(Notebook.assignment_id == assignment.id)):
        if other.name != lecture_name:
            _remove_notebook(session, other)
    row = _only(session, Notebook, name=lecture_name, assignment_id=assignment.id)
    if row is None:
        row = Notebook(name=lecture_name, assignment_id=assignment.id)
        session.add(row)
    row.kernelspec = json.dumps(notebook.metadata.get("kernelspec", {}))
    session.flush()
    cells = [cell for cell in notebook.cells if is_grade(cell) or is_solution(cell) or is_locked(cell)]
    _store(session, row, GradeCell, {_id(c): _worth(c) for c in cells if is_grade(c)})
    _store(session, row, SolutionCell, {_id(c): {} for c in cells if is_solution(c)})
    _store(session, row, TaskCell, {})
    _store(session, row, SourceCell, {_id(c): _source(c) for c in cells})
    for submitted in session.scalars(select(SubmittedNotebook).where(SubmittedNotebook.notebook_id == row.id)):
        _complete(session, submitted)


def _id(cell):
    return cell.metadata.nbgrader.grade_id


def _worth(cell):
    return {"max_score": float(cell.metadata.nbgrader.points), "cell_type": cell.cell_type}


def _source(cell):
    checksum = cell.metadata.nbgrader.get("checksum")
    return {"cell_type": cell.cell_type, "locked": is_locked(cell), "source": cell.source, "checksum": checksum}


def _store(session, notebook, kind, wanted):
    """Make the rows of one kind of cell of a notebook the `wanted` ones: their attributes by name."""
    present = {row.name: row for row in session.scalars(select(kind).where(kind.notebook_id == notebook.id))}
    for name in present.keys() - wanted.keys():
        _remove_cell(session, present[name])
    for name, attributes in wanted.items():
        if name not in present:
            session.add(kind(name=name, notebook_id=notebook.id, **attributes))
        else:
            for key, value in attributes.items():
                setattr(present[name], key, value)
    session.flush()


def _remove_cell(session, cell):
    if isinstance(cell, BaseCell):
        session.execute(delete(Grade).where(Grade.cell_id == cell.id))
        session.execute(delete(Comment).where(Comment.cell_id == cell.id))
    session.delete(cell)


def _remove_notebook(session, notebook):
    for submitted in session.scalars(select(SubmittedNotebook).where(SubmittedNotebook.notebook_id == notebook.id)):
        _remove_submitted(session, submitted)
    for kind in (GradeCell, SolutionCell, TaskCell, SourceCell):
        _store(session, notebook, kind, {})
    session.delete(notebook)
    session.flush()


def _remove_submitted(session, submitted):
    session.execute(delete(Grade).where(Grade.notebook_id == submitted.id))
    session.execute(delete(Comment).where(Comment.notebook_id == submitted.id))
    session.delete(submitted)
    session.flush()


def _complete(session, submitted):
    """Give a submitted notebook the grades and comments that its cells ask for and that it lacks."""
    for kind, row in ((GradeCell, Grade), (SolutionCell, Comment)):
        cells = set(session.scalars(select(kind.id).where(kind.notebook_id == submitted.notebook_id)))
        present = set(session.scalars(select(row.cell_id).where(row.notebook_id == submitted.id)))
        session.add_all(row(cell_id=id, notebook_id=submitted.id) for id in sorted(cells - present))
    session.flush()


def _only(session, kind, **attributes):
    return session.scalars(select(kind).filter_by(**attributes)).one_or_none()


# ---- one submission -------------------------------------------------------------------------------------------------


def write(
    report: Report,
    lecture: Lecture,
    settings: Settings,
    attempt_changed: bool | None = None,
    timestamp: datetime | str | None = None,
) -> None:
    """Put one Report into the gradebook, and its notebook into OUT/autograded.

    Every graded cell of the lecture gets its score, the ones that were not handed in too. Of a new attempt nothing old
    remains: no score, no points or comments by hand. When the same files are graded again, what people gave stays, and
    where the automatic score changed beneath it, the cell waits for a second look. A Report in state "error" changes
    nothing, unless the attempt is new: then the grades of the old one are taken away.

    Args:
        attempt_changed: whether the files differ from those graded last; None to find out from the gradebook, by the
            Report's provenance "submission".
        timestamp: when it was handed in, naive for UTC; None for what OUT/submitted/STUDENT/LECTURE/timestamp.txt says.

    Raises:
        GradebookError: the gradebook cannot be used, or does not know the lecture; it is as it was.
        StorageError: OUT/autograded cannot be written; the gradebook is as it was.
    """
    handed_in = parse_utc(timestamp) if timestamp else _handed_in(report, settings)

    def work(session):
        notebook = _lecture_row(session, lecture)
        submitted = _submitted(session, notebook, report.student)
        if report.state == "error" and submitted is None:
            return
        submitted = submitted or _new_submission(session, notebook, report.student)
        digest = report.provenance.get("submission", "")
        changed = _is_new(session, submitted, digest) if attempt_changed is None else attempt_changed
        if report.state == "error" and not changed:
            return
        if changed:
            _forget(session, submitted)
        _remember(session, submitted, digest)
        submitted.assignment.timestamp = handed_in or submitted.assignment.timestamp
        if report.state == "error":
            _comment(session, submitted, dict.fromkeys(_names(lecture), f"Not graded yet: {report.reason}"))
            _clear(_autograded_path(report.student, lecture, settings).parent, settings)
            return
        _score(session, submitted, report, lecture)
        _comment(session, submitted, _messages(report, lecture))
        session.flush()
        submitted.late_submission_penalty = _late_penalty(session, submitted, settings)
        session.flush()
        path = _autograded_path(report.student, lecture, settings)
        write_whole(path, nbformat.writes(autograded(report, lecture)) + "\n")

    _in_one_transaction(settings.db_url, work)


def _lecture_row(session, lecture):
    assignment = _only(session, Assignment, name=lecture.name)
    notebook = assignment and _only(session, Notebook, name=lecture.name, assignment_id=assignment.id)
    if notebook is None:
        raise GradebookError(
            f"the gradebook does not know {lecture.name}; call ensure_assignment, or `nbgrader generate_assignment`"
        )
    return notebook


def _submitted(session, notebook, student):
    query = select(SubmittedNotebook).join(
        SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id
    )
    query = query.where(SubmittedNotebook.notebook_id == notebook.id, SubmittedAssignment.student_id == student)
    return session.scalars(query).one_or_none()


def _new_submission(session, notebook, student):
    if session.get(Student, student) is None:
        session.add(Student(id=student))
        session.flush()
    handed_in = _only(session, SubmittedAssignment, assignment_id=notebook.assignment_id, student_id=student)
    if handed_in is None:
        handed_in = SubmittedAssignment(assignment_id=notebook.assignment_id, student_id=student)
        session.add(handed_in)
        session.flush()
    submitted = SubmittedNotebook(notebook_id=notebook.id, assignment_id=handed_in.id)
    session.add(submitted)
    session.flush()
    _complete(session, submitted)
    return submitted


def _is_new(session, submitted, digest):
    known = session.scalar(select(ATTEMPT.c.digest).where(ATTEMPT.c.submission_id == submitted.assignment_id))
    return known != digest or not digest


def _remember(session, submitted, digest):
    session.execute(delete(ATTEMPT).where(ATTEMPT.c.submission_id == submitted.assignment_id))
    session.execute(insert(ATTEMPT).values(submission_id=submitted.assignment_id, digest=digest))


def _forget(session, submitted):
    """Take away everything that belongs to an earlier attempt."""
    for _, grade in _grades(session, submitted):
        grade.auto_score = grade.manual_score = grade.extra_credit = None
        grade.needs_manual_grade = True
    for _, comment in _comments(session, submitted):
        comment.auto_comment = comment.manual_comment = None
    submitted.flagged, submitted.late_submission_penalty = False, None
    session.flush()


def _score(session, submitted, report, lecture):
    verdicts = {verdict.exercise: verdict for verdict in report.verdicts}
    exercises = {exercise.check_cell: exercise for exercise in lecture.exercises}
    for name, grade in _grades(session, submitted):
        exercise = exercises.get(name)
        verdict = verdicts.get(exercise.id) if exercise else None
        if verdict is not None and verdict.by_hand and report.state != "ungradable":
            grade.needs_manual_grade = grade.needs_manual_grade or grade.manual_score is None
            grade.auto_score = None
            continue
        score = score_of(exercise, verdict) if exercise and report.state != "ungradable" else 0.0
        by_hand = grade.manual_score is not None
        grade.needs_manual_grade = by_hand and (grade.needs_manual_grade or grade.auto_score != score)
        grade.auto_score = score


def _messages(report, lecture):
    """The automatic comment of each answer's cell, by its name; None where there is nothing to say."""
    if report.state == "ungradable":
        return dict.fromkeys(_names(lecture), report.reason)
    return {verdict.exercise: verdict.message or None for verdict in report.verdicts if not verdict.by_hand}


def _names(lecture):
    return [exercise.id for exercise in lecture.exercises]


def _comment(session, submitted, messages):
    for name, comment in _comments(session, submitted):
        message = messages.get(name)
        comment.auto_comment = message and UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", message)


UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # PostgreSQL takes no NUL, nobody takes half of a surrogate pair


def _grades(session, submitted):
    query = select(GradeCell.name, Grade).join(GradeCell, GradeCell.id == Grade.cell_id)
    return session.execute(query.where(Grade.notebook_id == submitted.id).order_by(GradeCell.name)).all()


def _comments(session, submitted):
    query = select(SolutionCell.name, Comment).join(SolutionCell, SolutionCell.id == Comment.cell_id)
    return session.execute(query.where(Comment.notebook_id == submitted.id).order_by(SolutionCell.name)).all()


def _handed_in(report, settings):
    path = settings.out / "submitted" / report.student / report.lecture / "timestamp.txt"
    try:
        found = handed_in_at({path.name: path.read_bytes()})
    except OSError:
        return None
    return found and found.replace(tzinfo=None)  # as nbgrader keeps it: naive, in UTC


def _late_penalty(session, submitted, settings):
    """The points that the course's own rule takes from a late submission; None where it is not late."""
    if submitted.assignment.assignment.duedate is None:  # nbgrader fails on an extension of nothing
        return None
    late = submitted.assignment.total_seconds_late
    if not late:
        return None
    rule = AssignLatePenalties(config=release.course_config(settings))
    rule.init_plugin()
    session.refresh(submitted, ["score"])
    penalty = rule.plugin_inst.late_submission_penalty(submitted.assignment.student_id, submitted.score, late)
    return None if penalty is None else min(max(penalty, 0.0), submitted.score)


def _autograded_path(student, lecture, settings) -> Path:
    return settings.out / "autograded" / student / lecture.name / f"{lecture.name}.ipynb"


# ---- taking back ----------------------------------------------------------------------------------------------------


def scores(lecture: Lecture, settings: Settings) -> dict[str, float]:
    """Points by student, those given by hand and penalties included; without the students of whom a cell waits for a person."""

    def work(session):
        _lecture_row(session, lecture)
        query = select(SubmittedAssignment).join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        submitted = session.scalars(query.where(Assignment.name == lecture.name)).all()
        return {
            row.student_id: float(row.score - (row.late_submission_penalty or 0))
            for row in submitted
            if not row.needs_manual_grade and all(n.grades for n in row.notebooks)
        }

    return _in_one_transaction(settings.db_url, work)


def points_by_hand(lecture: Lecture, settings: Settings) -> dict[tuple[str, str], float]:
    """Points that people gave, by student and exercise, extra credit included."""
    exercises = {exercise.check_cell: exercise.id for exercise in lecture.exercises}

    def work(session):
        notebook = _lecture_row(session, lecture)
        return {
            (submitted.assignment.student_id, exercises[name]): float(grade.manual_score + (grade.extra_credit or 0))
            for submitted in session.scalars(
                select(SubmittedNotebook).where(SubmittedNotebook.notebook_id == notebook.id)
            )
            for name, grade in _grades(session, submitted)
            if grade.manual_score is not None and name in exercises
        }

    return _in_one_transaction(settings.db_url, work)


def snapshot(student: str, lecture: Lecture, settings: Settings) -> dict[str, Any]:
    """Everything that `write` may change for one student, as data that JSON can hold."""
    path = _autograded_path(student, lecture, settings)

    def work(session):
        submitted = _submitted(session, _lecture_row(session, lecture), student)
        if submitted is None:
            return None
        timestamp, extension = submitted.assignment.timestamp, submitted.assignment.extension
        known = select(ATTEMPT.c.digest).where(ATTEMPT.c.submission_id == submitted.assignment_id)
        return {
            "timestamp": timestamp and timestamp.isoformat(),
            "extension": extension and extension.total_seconds(),
            "digest": session.scalar(known),
            "flagged": submitted.flagged,
            "late_submission_penalty": submitted.late_submission_penalty,
            "grades": {name: _values(grade, GRADE_VALUES) for name, grade in _grades(session, submitted)},
            "comments": {name: _values(comment, COMMENT_VALUES) for name, comment in _comments(session, submitted)},
        }

    return {
        "student": student,
        "submission": _in_one_transaction(settings.db_url, work),
        "autograded": path.read_text(encoding="utf-8") if path.exists() else None,
    }


GRADE_VALUES = ("auto_score", "manual_score", "extra_credit", "needs_manual_grade")
COMMENT_VALUES = ("auto_comment", "manual_comment")


def _values(row, names):
    return {name: getattr(row, name) for name in names}


def restore(kept: dict[str, Any], lecture: Lecture, settings: Settings) -> None:
    """Make gradebook and OUT/autograded what they were when `kept = snapshot(...)` was taken; feedback given since is removed.

    Cells that the lecture got since then wait for a grade.
    """
    student, then = kept["student"], kept["submission"]
    path = _autograded_path(student, lecture, settings)

    def work(session):
        notebook = _lecture_row(session, lecture)
        submitted = _submitted(session, notebook, student)
        if then is None:
            _remove_submission(session, submitted)
        else:
            submitted = submitted or _new_submission(session, notebook, student)
            _forget(session, submitted)
            _remember(session, submitted, then["digest"])
            _put_back(session, submitted, then)
        _clear(settings.out / "feedback" / student / lecture.name, settings)  # it was about what is taken back
        if kept["autograded"] is None:
            _clear(path.parent, settings)
        else:
            write_whole(path, kept["autograded"])

    _in_one_transaction(settings.db_url, work)


def _clear(folder, settings):
    """Remove a folder below OUT, and each folder around it that is empty then."""
    shutil.rmtree(folder, ignore_errors=True)
    for around in folder.parents:
        if around == settings.out or not around.is_dir() or any(around.iterdir()):
            return
        around.rmdir()


def _put_back(session, submitted, then):
    handed_in, extension = submitted.assignment, then["extension"]
    handed_in.timestamp = then["timestamp"] and datetime.fromisoformat(then["timestamp"])
    handed_in.extension = None if extension is None else timedelta(seconds=extension)
    submitted.flagged, submitted.late_submission_penalty = then["flagged"], then["late_submission_penalty"]
    for rows, values in ((_grades, then["grades"]), (_comments, then["comments"])):
        for name, row in rows(session, submitted):
            for key, value in values.get(name, {}).items():
                setattr(row, key, value)


def _remove_submission(session, submitted):
    if submitted is None:
        return
    handed_in = submitted.assignment
    session.execute(delete(ATTEMPT).where(ATTEMPT.c.submission_id == handed_in.id))
    _remove_submitted(session, submitted)
    session.refresh(handed_in)
    session.delete(handed_in)


# ---- what nbgrader makes of it --------------------------------------------------------------------------------------


def feedback(lecture: Lecture, settings: Settings, student: str = "*") -> list[Path]:
    """The feedback pages that nbgrader wrote to OUT/feedback/STUDENT/LECTURE, of one student or of all.

    Raises:
        GradebookError: some page could not be written; those that could are there.
    """
    config = release.course_config(settings)
    config.CourseDirectory.root = str(settings.out)
    config.CourseDirectory.autograded_directory = "autograded"
    config.CourseDirectory.feedback_directory = "feedback"
    config.CourseDirectory.db_url = patient_url(settings.db_url)
    config.CourseDirectory.assignment_id = lecture.name
    config.CourseDirectory.student_id = student
    config.GenerateFeedback.force = True
    with release.said_by_nbgrader() as said:
        try:
            GenerateFeedback(coursedir=CourseDirectory(config=config), config=config).start()
        except NbGraderException as error:
            raise GradebookError(f"feedback of {lecture.name}: {' '.join(said) or error}") from error
    return sorted(settings.out.glob(f"feedback/{student}/{lecture.name}/{lecture.name}.html"))


class QuotedCsvExport(ExportPlugin):
    """nbgrader's export, its columns and its order, as CSV that stays CSV: quoted, and never a formula."""

    def export(self, gradebook):
        """Called by `nbgrader export`, and by export() below."""
        rows = [COLUMNS]
        for assignment in gradebook.assignments:
            if self.assignment and assignment.name not in map(str, self.assignment):
                continue
            for student in gradebook.students:
                if not self.student or student.id in map(str, self.student):
                    rows.append(_row(assignment, student))
        write_whole(
            Path(self.to or "grades.csv"), csv_text([["" if v is None else str(v) for v in row] for row in rows])
        )


COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
)


def _row(assignment, student):
    handed_in = next((s for s in student.submissions if s.assignment_id == assignment.id), None)
    timestamp, raw, penalty = (
        (handed_in.timestamp, handed_in.score, handed_in.late_submission_penalty) if handed_in else (None, 0.0, 0.0)
    )
    who = (student.id, student.last_name, student.first_name, student.email)
    score = max(0.0, raw - (penalty or 0.0))
    return (assignment.name, assignment.duedate, timestamp, *who, raw, penalty, score, assignment.max_score)


def export(settings: Settings, to: Path, lecture: str = "") -> Path:
    """The grades as nbgrader exports them, of one lecture or of all, written to `to`.

    Raises:
        GradebookError: the gradebook cannot be used.
        StorageError: `to` cannot be written.
    """
    exporter = QuotedCsvExport(to=str(to), assignment=[lecture] if lecture else [])
    prepare(settings)  # a gradebook that cannot be used says so here
    with NbgraderGradebook(patient_url(settings.db_url), "") as gradebook:
        exporter.export(gradebook)
    return Path(to)
