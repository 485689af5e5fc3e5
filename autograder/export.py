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

Only students with a score get a line: in each of these systems an empty grade would delete the one that is there.
"""

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from .errors import UsageError
from .files import write_whole
from .report import csv_text, no_formula, points

SYSTEMS = ("moodle", "canvas", "blackboard")


def export_rows(lms: str, scores: Mapping[str, float], max_score: float, column: str) -> list[list[str]]:
    """The rows of one grade column for `lms`, the header first.

    Args:
        scores: points by student, as the system knows the student; those without a score are not in it.
        column: the column's header, as the system itself exports it where it has that column already.
    Raises:
        UsageError: `lms` is none of SYSTEMS.
    """
    if lms not in SYSTEMS:
        raise UsageError(f"lms is {lms!r}; give one of: {', '.join(SYSTEMS)}")
    graded = sorted(scores.items())
    if lms == "moodle":
        return [[_moodle_name(scores), column], *([student, points(score)] for student, score in graded)]
    if lms == "blackboard":
        header = column if "[Total Pts:" in column else f"{column} [Total Pts: {points(max_score)} Score]"
        return [["Username", header], *([student, points(score)] for student, score in graded)]
    return [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", column],
        ["    Points Possible", "", "", "", "", points(max_score)],
        *([student, "", "", student, "", points(score)] for student, score in graded),
    ]


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


def export(path: Path, lms: str, scores: Mapping[str, float], max_score: float, column: str) -> None:
    """Write the file that `lms` imports, whole or not at all."""
    write_whole(Path(path), export_text(lms, export_rows(lms, scores, max_score, column)))


def _no_formula(cell: str) -> str:
    """As `report.no_formula`, but an account name such as "-ada" or "@bob" stays: it must match, and computes nothing.

    >>> _no_formula("@bob"), _no_formula("=1+1"), _no_formula("@SUM(A1)")
    ('@bob', "'=1+1", "'@SUM(A1)")
    """
    return cell if re.fullmatch(r"[-@+]?[A-Za-z][\w.-]*(@[\w.-]+)?", cell) else no_formula(cell)
