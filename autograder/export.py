"""Scores as the gradebook files that learning management systems import.

Which columns, and why:

moodle      The person who imports chooses which column names the student and which grade item a column is for; the
            header is for their eyes. A line whose student is unknown there stops the whole import.
            Source: docs.moodle.org, Grade import; grade/import/csv/classes/load_data.php
canvas      The first columns are Student, ID, SIS User ID, SIS Login ID, Section, in this order, then the assignments;
            the row "Points Possible" comes second. Students are found by ID, else the two SIS columns, else name.
            Source: instructure/canvas-lms, lib/gradebook_importer.rb
blackboard  Username, then the columns; each cell in quotation marks. A column is found by the number after "|" in its
            header ("Homework 2 [Total Pts: 10 Score] |4711"); without one, a new column is made.
            Source: Blackboard Help for Instructors, Working offline with grade data

A student stands there as the system itself named them in what was collected from it, else under the name of their folder.
What was collected from Moodle names nobody but by the number that a participant has in one assignment, which only that
assignment's grading worksheet takes ("Upload grading worksheet"): then it is such a worksheet.
Source: moodle, mod/assign/feedback/offline/importgradeslib.php

Only students with a score get a line: in each of these systems an empty grade would delete the one that is there.
"""

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from .errors import UsageError
from .files import write_whole
from .identities import Identity
from .report import csv_text, no_formula, points

SYSTEMS = ("moodle", "canvas", "blackboard")
NOBODY: Mapping[str, Identity] = {}


def export_rows(
    lms: str, scores: Mapping[str, float], max_score: float, column: str, people: Mapping[str, Identity] = NOBODY
) -> list[list[str]]:
    """The rows of one grade column for `lms`, the header first.

    Args:
        scores: points by student; those without a score are not in it.
        people: who the students are to an LMS, as far as that is another name than theirs here.
        column: the column's header, as the system itself exports it where it has that column already.
    Raises:
        UsageError: `lms` is none of SYSTEMS.
    """
    if lms not in SYSTEMS:
        raise UsageError(f"lms is {lms!r}; give one of: {', '.join(SYSTEMS)}")
    graded = [(_named(student, people), points(scores[student]), people.get(student)) for student in sorted(scores)]
    graded.sort(key=lambda row: row[0])
    own = [who for _, _, who in graded if who is not None and who.lms == lms]
    if lms == "moodle" and graded and len(own) == len(graded):
        rows = [[f"Participant {who.lms_id}", who.name, score, points(max_score), ""] for _, score, who in graded]
        return [["Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)"], *rows]
    if lms == "moodle":
        return [[_moodle_name([name for name, *_ in graded]), column], *([name, score] for name, score, _ in graded)]
    if lms == "blackboard":
        header = column if "[Total Pts:" in column else f"{column} [Total Pts: {points(max_score)} Score]"
        return [["Username", header], *([name, score] for name, score, _ in graded)]
    return [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", column],
        ["    Points Possible", "", "", "", "", points(max_score)],
        *(
            [who.name, who.lms_id, "", "", "", score] if who in own else [name, "", "", name, "", score]
            for name, score, who in graded
        ),
    ]


def _named(student: str, people: Mapping[str, Identity]) -> str:
    """The name under which any LMS may know a student."""
    who = people.get(student)
    if who is None:
        return student
    return who.name if who.lms in ("moodle", "canvas") else who.lms_id  # whose numbers mean nothing to others


def _moodle_name(students) -> str:
    """The field of a Moodle profile that these names most likely are."""
    if students and all("@" in student for student in students):
        return "Email address"
    if students and all(student.isdecimal() for student in students):
        return "ID number"
    return "Username"


def export_text(lms: str, rows: list[list[str]]) -> str:
    """The rows as the file that `lms` reads."""
    return csv_text(rows, guard=_no_formula, quoting=csv.QUOTE_ALL if lms == "blackboard" else csv.QUOTE_MINIMAL)


def export(
    path: Path,
    lms: str,
    scores: Mapping[str, float],
    max_score: float,
    column: str,
    people: Mapping[str, Identity] = NOBODY,
) -> None:
    """Write the file that `lms` imports, whole or not at all."""
    write_whole(Path(path), export_text(lms, export_rows(lms, scores, max_score, column, people)))


def _no_formula(cell: str) -> str:
    """As `report.no_formula`, but an account name such as "-ada" or "@bob" stays: it must match, and computes nothing.

    >>> _no_formula("@bob"), _no_formula("=1+1"), _no_formula("@SUM(A1)")
    ('@bob', "'=1+1", "'@SUM(A1)")
    """
    return cell if re.fullmatch(r"[-@+]?[A-Za-z][\w.-]*(@[\w.-]+)?", cell) else no_formula(cell)
