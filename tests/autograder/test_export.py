"""Each learning management system gets the columns that its importer reads."""

import csv
import io

import pytest

from autograder import export
from autograder.errors import UsageError
from autograder.identities import Identity, identities, remember

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


PEOPLE = {
    "o_brien@uni.edu-1a2b3c": Identity("", "o'brien@uni.edu", "o'brien@uni.edu"),
    "bob_77": Identity("canvas", "77", "bob"),
    "Ann Lee": Identity("moodle", "12", "Ann Lee"),
    "a_lee": Identity("blackboard", "a+lee", "Ann Lee"),
}
NAMED = {  # one student each: (lms, student, what stands in their line before the score)
    "a folder's own name": ("moodle", "o_brien@uni.edu-1a2b3c", ["o'brien@uni.edu"]),
    "the same for Canvas": ("canvas", "o_brien@uni.edu-1a2b3c", ["o'brien@uni.edu", "", "", "o'brien@uni.edu", ""]),
    "the same for Blackboard": ("blackboard", "o_brien@uni.edu-1a2b3c", ["o'brien@uni.edu"]),
    "Canvas's own number": ("canvas", "bob_77", ["bob", "77", "", "", ""]),
    "Blackboard's user": ("blackboard", "a_lee", ["a+lee"]),
    "Moodle's participant": ("moodle", "Ann Lee", ["Participant 12", "Ann Lee"]),
    "of another system the name": ("blackboard", "Ann Lee", ["Ann Lee"]),
    "of a user, that": ("moodle", "a_lee", ["a+lee"]),
    "nobody that is known": ("canvas", "ada", ["ada", "", "", "ada", ""]),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_student_is_named_as_the_system_knows_them(name):
    lms, student, expected = NAMED[name]
    assert export.export_rows(lms, {student: 1.5}, 2.0, "HW", PEOPLE)[-1][: len(expected) + 1] == [*expected, "1.5"]


def test_what_was_collected_from_moodle_goes_back_as_its_grading_worksheet():
    people = {name: Identity("moodle", number, "Ann Lee") for name, number in (("Ann Lee_1", "1"), ("Ann Lee_2", "2"))}
    assert export.export_rows("moodle", {"Ann Lee_2": 1.0, "Ann Lee_1": 0.5}, 2.0, "HW", people) == [
        ["Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)"],
        ["Participant 1", "Ann Lee", "0.5", "2", ""],
        ["Participant 2", "Ann Lee", "1", "2", ""],
    ]
    mixed = export.export_rows("moodle", {"Ann Lee_1": 0.5, "ada": 1.0}, 2.0, "HW", people)
    assert mixed == [["Username", "HW"], ["Ann Lee", "0.5"], ["ada", "1"]]


def test_what_an_lms_told_is_not_lost_to_a_folders_name(tmp_path):
    told, folder = Identity("canvas", "77", "bob", "2026-01-02T03:04:05", "yes"), Identity("", "bob's", "bob's")
    remember(tmp_path, "02", {"bob_s-1": folder, "bob": folder})
    remember(tmp_path, "02", {"bob": told})
    remember(tmp_path, "02", {"bob": folder})
    assert identities(tmp_path, "02") == {"bob_s-1": folder, "bob": told} and identities(tmp_path, "03") == {}


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
