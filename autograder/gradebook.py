"""nbgrader's gradebook: what the cells of a lecture are worth, and what the students got.

Every change is one transaction that happens or does not. SQLite waits for others and lets them read meanwhile (WAL);
any other database that SQLAlchemy knows is opened by its URL. One process writes, workers never see a gradebook.
"""

import contextlib
import errno
import functools
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import nbgrader
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
from sqlalchemy import Column, MetaData, Row, String, Table, bindparam, delete, insert, inspect, select, text, update

from . import release
from .autograded import autograded, notebook_text, score_of
from .database import in_one_transaction, keep_writers_out, patient_url, shown_url
from .errors import GradebookError
from .exercises import Lecture
from .files import storage_error, write_whole
from .identities import identities
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
    """Make a new database one that nbgrader takes for its own; refuse one of another version."""
    tables = inspect(connection).get_table_names()
    if ALEMBIC in tables:
        _refuse_other_versions(connection)
    if ATTEMPT.name not in tables or Grade.__tablename__ not in tables:
        Base.metadata.create_all(connection)
        OURS.create_all(connection)
    if not tables:
        connection.execute(text(f"CREATE TABLE {ALEMBIC} (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text(f"INSERT INTO {ALEMBIC} (version_num) VALUES (:head)"), {"head": _latest_version()})
    keep_writers_out(connection, Grade.__tablename__, Comment.__tablename__)


ALEMBIC = "alembic_version"  # the table with the version of all others


def _refuse_other_versions(connection):
    versions = set(connection.scalars(text(f"SELECT version_num FROM {ALEMBIC}")))
    if others := versions - {_latest_version()}:
        raise GradebookError(
            f"the gradebook {shown_url(connection.engine.url)} was made by another version of nbgrader (its tables are of "
            f"version {', '.join(sorted(others))}, those of nbgrader {nbgrader.__version__} of {_latest_version()}): copy "
            "it, then call `nbgrader db upgrade`; one of a newer nbgrader needs that version. Nothing in it was changed"
        )


@functools.cache
def _latest_version():
    """The version of nbgrader's tables that no other one follows: alembic says it, too, but takes long to import."""
    scripts = sorted((Path(nbgrader.__file__).parent / "alembic" / "versions").glob("*.py"))
    found = [dict(VERSIONS.findall(script.read_text(encoding="utf-8"))) for script in scripts]
    (latest,) = {names["revision"] for names in found} - {names.get("down_revision") for names in found}
    return latest


VERSIONS = re.compile(r"""^(revision|down_revision)\b.*=\s*["'](\w+)["']""", re.M)


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
#
# What the gradebook holds of a submission is read as plain values, new ones are made from them, and what differs is
# stored, by statements that are made once: with nbgrader's objects in between it takes five times as long.

HANDED_IN = {"timestamp": None, "extension": None}
SUBMITTED = {"flagged": False, "late_submission_penalty": None}
WAITING = {"auto_score": None, "manual_score": None, "extra_credit": None, "needs_manual_grade": True}
SILENT = {"auto_comment": None, "manual_comment": None}


def write(
    report: Report,
    lecture: Lecture,
    settings: Settings,
    attempt_changed: bool | None = None,
    timestamp: datetime | str | None = None,
    note: Callable[[dict[str, Any]], Report] | None = None,
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
        note: called with what snapshot() returns, while nobody can change that and before anything is changed; it
            returns the Report to write. Called again where the gradebook has to be opened again.

    Raises:
        GradebookError: the gradebook cannot be used, or does not know the lecture; it is as it was.
        StorageError: OUT/autograded cannot be written; the gradebook is as it was.
    """
    handed_in = parse_utc(timestamp) if timestamp else _handed_in(report, settings)
    path = _autograded_path(report.student, lecture, settings)

    def work(session):
        connection = session.connection()
        held = _held(connection, lecture, report.student)
        counted = note(_kept(held, report.student, path)) if note else report
        if counted.state == "error" and held.submitted is None:
            return
        digest = counted.provenance.get("submission", "")
        changed = held.values["digest"] != digest or not digest if attempt_changed is None else attempt_changed
        if counted.state == "error" and not changed:
            return
        now = _forgotten(held.values) if changed else dict(held.values)
        now |= {"digest": digest, "timestamp": handed_in or held.values["timestamp"]}
        if counted.state == "error":
            said = dict.fromkeys(_names(lecture), f"Not graded yet: {counted.reason}")
            _put(connection, held, {**now, "comments": _commented(now["comments"], said)})
            _clear(path.parent, settings)
            return
        now["grades"] = _score(now["grades"], counted, lecture)
        now["comments"] = _commented(now["comments"], _messages(counted, lecture))
        submitted = _put(connection, held, now)
        penalty = _late_penalty(connection, held, submitted, now, settings)
        _update(connection, SubmittedNotebook, submitted, {"late_submission_penalty": penalty}, now)
        write_whole(path, notebook_text(autograded(counted, lecture)))

    _in_one_transaction(settings.db_url, work)


@dataclass(frozen=True)
class _Held:
    """What the gradebook holds of one student and lecture.

    Attributes:
        lecture: the lecture's row, see LECTURE.
        handed_in, submitted: ids of the rows of the submitted assignment and of its notebook, None where there are none.
        values: by name, and of every cell by its name in "grades" and "comments"; of a submission that is not there,
            those that it begins with.
        rows: in "grades" and "comments", by the name of the cell: the ids of the cell and of its row, None where there is none.
    """

    lecture: Row
    student: str
    handed_in: str | None
    submitted: str | None
    values: dict[str, Any]
    rows: dict[str, dict[str, tuple[str, str | None]]]


LECTURE = (
    select(Notebook.id, Notebook.assignment_id, Assignment.duedate)
    .join(Assignment, Assignment.id == Notebook.assignment_id)
    .where(Assignment.name == bindparam("lecture"), Notebook.name == bindparam("lecture"))
)
HANDED_IN_OF = (
    select(
        SubmittedAssignment.id.label("handed_in"),
        SubmittedNotebook.id.label("submitted"),
        *(getattr(SubmittedAssignment, name) for name in HANDED_IN),
        *(getattr(SubmittedNotebook, name) for name in SUBMITTED),
        ATTEMPT.c.digest,
    )
    .select_from(SubmittedAssignment)
    .outerjoin(
        SubmittedNotebook,
        (SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        & (SubmittedNotebook.notebook_id == bindparam("notebook")),
    )
    .outerjoin(ATTEMPT, ATTEMPT.c.submission_id == SubmittedAssignment.id)
    .where(
        SubmittedAssignment.assignment_id == bindparam("assignment"),
        SubmittedAssignment.student_id == bindparam("student"),
    )
)


def _of_cells(cell, row, names):
    """Asks for every cell of a kind, and for what a submitted notebook has of it."""
    return (
        select(cell.name, cell.id.label("cell_id"), row.id.label("row_id"), *(getattr(row, name) for name in names))
        .select_from(cell)
        .outerjoin(row, (row.cell_id == cell.id) & (row.notebook_id == bindparam("submitted")))
        .where(cell.notebook_id == bindparam("notebook"))
        .order_by(cell.name)
    )


OF_CELLS = {
    "grades": (Grade, _of_cells(GradeCell, Grade, WAITING), WAITING),
    "comments": (Comment, _of_cells(SolutionCell, Comment, SILENT), SILENT),
}
STUDENT = select(Student.id).where(Student.id == bindparam("student"))


def _held(connection, lecture, student) -> _Held:
    row = _lecture_row(connection, lecture)
    of = {"notebook": row.id, "assignment": row.assignment_id, "student": student}
    found = connection.execute(HANDED_IN_OF, of).mappings().one_or_none()
    values = dict(found or {"handed_in": None, "submitted": None, "digest": None, **HANDED_IN})
    handed_in, submitted = values.pop("handed_in"), values.pop("submitted")
    if submitted is None:
        values |= SUBMITTED
    rows = {}
    for key, (_, question, first) in OF_CELLS.items():
        cells = connection.execute(question, {"notebook": row.id, "submitted": submitted}).mappings().all()
        values[key] = {c["name"]: {name: c[name] for name in first} if c["row_id"] else first for c in cells}
        rows[key] = {c["name"]: (c["cell_id"], c["row_id"]) for c in cells}
    return _Held(row, student, handed_in, submitted, values, rows)


def _lecture_row(connection, lecture):
    found = connection.execute(LECTURE, {"lecture": lecture.name}).one_or_none()
    if found is None:
        raise GradebookError(
            f"the gradebook does not know {lecture.name}; call ensure_assignment, or `nbgrader generate_assignment`"
        )
    return found


def _put(connection, held, now) -> str:
    """Make what the gradebook holds of a submission `now`, where it is something else; returns the id of its notebook."""
    handed_in = held.handed_in or _insert_handed_in(connection, held)
    submitted = held.submitted or _insert(
        connection, SubmittedNotebook, notebook_id=held.lecture.id, assignment_id=handed_in, flagged=False
    )
    _update(connection, SubmittedAssignment, handed_in, {name: now[name] for name in HANDED_IN}, held.values)
    _update(connection, SubmittedNotebook, submitted, {name: now[name] for name in SUBMITTED}, held.values)
    if held.values["digest"] != now["digest"]:
        if held.handed_in:
            connection.execute(delete(ATTEMPT).where(ATTEMPT.c.submission_id == handed_in))
        connection.execute(insert(ATTEMPT), {"submission_id": handed_in, "digest": now["digest"]})
    for key, (kind, *_) in OF_CELLS.items():
        table, new, changed = kind.__table__, [], []
        for name, (cell, row) in held.rows[key].items():
            if row is None:
                new.append({"cell_id": cell, "notebook_id": submitted, **now[key][name]})
            elif now[key][name] != held.values[key][name]:
                changed.append({"row": row, **now[key][name]})
        if new:
            connection.execute(insert(table), new)
        if changed:
            connection.execute(update(table).where(table.c.id == bindparam("row")), changed)
    return submitted


def _insert_handed_in(connection, held):
    if connection.scalar(STUDENT, {"student": held.student}) is None:
        connection.execute(insert(Student), {"id": held.student})
    return _insert(connection, SubmittedAssignment, assignment_id=held.lecture.assignment_id, student_id=held.student)


def _insert(connection, kind, **values):
    values["id"] = uuid4().hex
    connection.execute(insert(kind), values)
    return values["id"]


def _update(connection, kind, id, values, then):
    """Store those of the values that were other ones `then`."""
    changed = {name: value for name, value in values.items() if value != then[name]}
    if changed:
        connection.execute(update(kind).where(kind.id == id), changed)


def _forgotten(values):
    """A submission without anything that belongs to an earlier attempt."""
    return {
        **values,
        **SUBMITTED,
        "grades": dict.fromkeys(values["grades"], WAITING),
        "comments": dict.fromkeys(values["comments"], SILENT),
    }


def _score(grades, report, lecture):
    """The grades, by cell, with the scores of a Report."""
    verdicts = {verdict.exercise: verdict for verdict in report.verdicts}
    exercises = {exercise.check_cell: exercise for exercise in lecture.exercises}
    scored = {}
    for name, grade in grades.items():
        exercise = exercises.get(name)
        verdict = verdicts.get(exercise.id) if exercise else None
        by_hand, waits = grade["manual_score"] is not None, grade["needs_manual_grade"]
        if verdict is not None and verdict.by_hand and report.state != "ungradable":
            score, waits = None, waits or not by_hand
        else:
            score = score_of(exercise, verdict) if exercise and report.state != "ungradable" else 0.0
            waits = by_hand and (waits or grade["auto_score"] != score)
        scored[name] = {**grade, "auto_score": score, "needs_manual_grade": waits}
    return scored


def _messages(report, lecture):
    """The automatic comment of each answer's cell, by its name; None where there is nothing to say."""
    if report.state == "ungradable":
        return dict.fromkeys(_names(lecture), report.reason)
    return {verdict.exercise: verdict.message or None for verdict in report.verdicts if not verdict.by_hand}


def _names(lecture):
    return [exercise.id for exercise in lecture.exercises]


def _commented(comments, messages):
    """The comments, by cell, with these as the automatic ones."""
    storable = {name: text and UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text) for name, text in messages.items()}
    return {name: {**comment, "auto_comment": storable.get(name)} for name, comment in comments.items()}


UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # PostgreSQL takes no NUL, nobody takes half of a surrogate pair


def _handed_in(report, settings):
    """The time that the LMS told, else that in timestamp.txt."""
    who = identities(settings.out, report.lecture).get(report.student)
    with contextlib.suppress(ValueError):  # a spreadsheet may have rewritten it
        if who and who.handed_in:
            return datetime.fromisoformat(who.handed_in)  # naive, which nbgrader takes for UTC
    path = settings.out / "submitted" / report.student / report.lecture / "timestamp.txt"
    try:
        found = handed_in_at({path.name: path.read_bytes()})
    except OSError:
        return None
    return found and found.replace(tzinfo=None)  # as nbgrader keeps it: naive, in UTC


def _late_penalty(connection, held, submitted, now, settings):
    """The points that the course's own rule takes from a late submission; None where it is not late."""
    due = held.lecture.duedate
    if due is None or now["timestamp"] is None:
        return None
    late = (now["timestamp"] - due - (now["extension"] or timedelta())).total_seconds()
    if late <= 0:
        return None
    rule = AssignLatePenalties(config=release.course_config(settings))
    rule.init_plugin()
    score = connection.scalar(select(SubmittedNotebook.score).where(SubmittedNotebook.id == submitted))
    penalty = rule.plugin_inst.late_submission_penalty(held.student, score, late)
    return None if penalty is None else min(max(penalty, 0.0), score)


def _autograded_path(student, lecture, settings) -> Path:
    return settings.out / "autograded" / student / lecture.name / f"{lecture.name}.ipynb"


# ---- taking back ----------------------------------------------------------------------------------------------------


def scores(lecture: Lecture, settings: Settings) -> dict[str, float]:
    """Points by student, those given by hand and penalties included; without the students of whom a cell waits for a person."""

    def work(session):
        _lecture_row(session.connection(), lecture)
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
        notebook = _lecture_row(session.connection(), lecture)
        found = session.connection().execute(BY_HAND, {"notebook": notebook.id})
        return {
            (row.student_id, exercises[row.name]): float(row.manual_score + (row.extra_credit or 0))
            for row in found
            if row.name in exercises
        }

    return _in_one_transaction(settings.db_url, work)


BY_HAND = (
    select(SubmittedAssignment.student_id, GradeCell.name, Grade.manual_score, Grade.extra_credit)
    .select_from(Grade)
    .join(GradeCell, GradeCell.id == Grade.cell_id)
    .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
    .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
    .where(SubmittedNotebook.notebook_id == bindparam("notebook"), Grade.manual_score.is_not(None))
)


def snapshot(student: str, lecture: Lecture, settings: Settings) -> dict[str, Any]:
    """Everything that `write` may change for one student, as data that JSON can hold."""
    path = _autograded_path(student, lecture, settings)
    held = _in_one_transaction(settings.db_url, lambda session: _held(session.connection(), lecture, student))
    return _kept(held, student, path)


def _kept(held, student, path):
    timestamp, extension = held.values["timestamp"], held.values["extension"]
    plain = {
        **held.values,
        "timestamp": timestamp and timestamp.isoformat(),
        "extension": extension and extension.total_seconds(),
    }
    return {
        "student": student,
        "submission": None if held.submitted is None else plain,
        "autograded": path.read_text(encoding="utf-8") if path.exists() else None,
    }


def restore(kept: dict[str, Any], lecture: Lecture, settings: Settings) -> None:
    """Make gradebook and OUT/autograded what they were when `kept = snapshot(...)` was taken; feedback given since is removed.

    Cells that the lecture got since then wait for a grade.
    """
    student, then = kept["student"], kept["submission"]
    path = _autograded_path(student, lecture, settings)

    def work(session):
        held = _held(session.connection(), lecture, student)
        if then is None:
            _remove_submission(session, held)
        else:
            _put(session.connection(), held, _as_then(held.values, then))
        _clear(settings.out / "feedback" / student / lecture.name, settings)  # it was about what is taken back
        if kept["autograded"] is None:
            _clear(path.parent, settings)
        else:
            write_whole(path, kept["autograded"])

    _in_one_transaction(settings.db_url, work)


def _as_then(values, then):
    """The values of a snapshot, for the cells that there are now."""
    timestamp, extension = then["timestamp"], then["extension"]
    known = _forgotten(values)
    return {
        **then,
        "timestamp": timestamp and datetime.fromisoformat(timestamp),
        "extension": None if extension is None else timedelta(seconds=extension),
        "grades": {name: {**waiting, **then["grades"].get(name, {})} for name, waiting in known["grades"].items()},
        "comments": {name: {**silent, **then["comments"].get(name, {})} for name, silent in known["comments"].items()},
    }


def _clear(folder, settings):
    """Remove a folder below OUT, and each folder around it that is empty then."""
    shutil.rmtree(folder, ignore_errors=True)
    for around in folder.parents:
        if around == settings.out or not around.is_dir() or any(around.iterdir()):
            return
        around.rmdir()


def _remove_submission(session, held):
    if held.submitted is None:
        return
    session.execute(delete(ATTEMPT).where(ATTEMPT.c.submission_id == held.handed_in))
    _remove_submitted(session, session.get(SubmittedNotebook, held.submitted))
    session.delete(session.get(SubmittedAssignment, held.handed_in))


# ---- what nbgrader makes of it --------------------------------------------------------------------------------------


def feedback(lecture: Lecture, settings: Settings, student: str = "*") -> list[Path]:
    """The feedback pages that nbgrader wrote to OUT/feedback/STUDENT/LECTURE, of one student or of all.

    Raises:
        GradebookError: some page could not be written, or the gradebook not be read; the pages that could are there.
        StorageError: the disk is full.
    """
    prepare(settings)  # a gradebook that cannot be used says so here, and not as nbgrader does
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
            raise _without_page(lecture, settings, said or [str(error)]) from error
    return sorted(settings.out.glob(f"feedback/{student}/{lecture.name}/{lecture.name}.html"))


def _without_page(lecture, settings, said):
    """What nbgrader logged about the pages that it could not write, as one sentence of ours."""
    if any(sign in line for line in said for sign in FULL):
        return storage_error(settings.out / "feedback", OSError(errno.ENOSPC, ""))
    students = [match[1] for line in said if (match := FAILED.search(line))]
    reasons = "; ".join(dict.fromkeys(line for line in said if RAISED.match(line))) or " ".join(said)
    if not students:
        return GradebookError(f"feedback of {lecture.name}: {reasons}")
    return GradebookError(
        f"feedback of {lecture.name}: there is no page for {', '.join(students)} ({reasons}); look at the notebook in "
        f"{settings.out / 'autograded'}. The other pages are written"
    )


FULL = ("disk is full", "No space left")
FAILED = re.compile(r"processing assignment '[^']*' for student '([^']*)'")
RAISED = re.compile(r"[\w.]+: ")  # the line of a traceback that names the exception


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
