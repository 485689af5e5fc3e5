"""Each learning management system gets the columns that its importer reads."""

import csv
import io

import pytest

from autograder import export
from autograder.errors import UsageError

SCORES = {"bob": 7.5, "ada": 10.0, 'O\'Brien, "Pat"': 0.0, "=cmd|' /C calc'!A0": 1.0, "-carl": 1 / 3}

EXPECTED = {
    "moodle": [
        ["Username", "HW 2"],
        ["-carl", "0.33"], ["'=cmd|' /C calc'!A0", "1"], ["O'Brien, \"Pat\"", "0"], ["ada", "10"], ["bob", "7.5"],
    ],
    "canvas": [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "HW 2"],
        ["    Points Possible", "", "", "", "", "10"],
        ["-carl", "", "", "-carl", "", "0.33"],
        ["'=cmd|' /C calc'!A0", "", "", "'=cmd|' /C calc'!A0", "", "1"],
        ["O'Brien, \"Pat\"", "", "", "O'Brien, \"Pat\"", "", "0"],
        ["ada", "", "", "ada", "", "10"], ["bob", "", "", "bob", "", "7.5"],
    ],
    "blackboard": [
        ["Username", "HW 2 [Total Pts: 10 Score]"],
        ["-carl", "0.33"], ["'=cmd|' /C calc'!A0", "1"], ["O'Brien, \"Pat\"", "0"], ["ada", "10"], ["bob", "7.5"],
    ],
}  # fmt: skip


@pytest.mark.parametrize("lms", export.SYSTEMS)
def test_an_importer_reads_these_rows(lms, tmp_path):
    export.export(tmp_path / "out.csv", lms, SCORES, 10.0, "HW 2")
    text = (tmp_path / "out.csv").read_bytes().decode()
    assert list(csv.reader(io.StringIO(text, newline=""))) == EXPECTED[lms]
    assert text.startswith('"Username"') == (lms == "blackboard")  # which wants every cell in quotation marks


FIELDS = [
    (["a@x.org", "b@y.org"], "Email address"),
    (["1", "02"], "ID number"),
    (["1", "a"], "Username"),
    ([], "Username"),
]


@pytest.mark.parametrize(("students", "field"), FIELDS)
def test_moodle_is_told_which_field_the_names_most_likely_are(students, field):
    assert export.export_rows("moodle", dict.fromkeys(students, 1.0), 1.0, "HW")[0] == [field, "HW"]


def test_a_column_that_blackboard_knows_keeps_its_header():
    known = "Homework 2 [Total Pts: 20 Score] |4711"
    assert export.export_rows("blackboard", {"ada": 1.0}, 10.0, known)[0] == ["Username", known]


def test_an_unknown_system_is_refused():
    with pytest.raises(UsageError, match="lms is 'sakai'; give one of: moodle, canvas, blackboard"):
        export.export_rows("sakai", {}, 1.0, "HW")
