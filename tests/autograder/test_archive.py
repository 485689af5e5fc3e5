"""What an LMS hands out becomes folders of students, safely."""

import io
import os
import stat
import struct
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.archive import LMS, Row, collect
from autograder.errors import EngineError, StorageError, UsageError
from autograder.exercises import Lecture
from autograder.identities import Identity, identities
from autograder.intake import find, handed_in_at, read
from autograder.settings import load_settings

from .broken import LECTURE, small_release

N = f"{LECTURE}.ipynb"
NOTEBOOK = small_release().encode()
RECEIPT = b"Name: Ann Lee (a_lee)\nAssignment: Week 2\nDate Submitted: Tuesday, 2 January 2024 03:04:05 CET\n"


@pytest.fixture
def course(tmp_path):
    return load_settings(tmp_path, submission_mib=1.0)


@pytest.fixture
def zipped(tmp_path):
    """zipped({name or ZipInfo: bytes}) -> path of a zip with these entries, in their order."""

    def make(entries, name="download.zip"):
        (tmp_path / name).write_bytes(as_zip(entries))
        return tmp_path / name

    return make


def as_zip(entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def tree(folder):
    """Every file below a folder, by relative path; links are shown as such."""
    paths = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    return {path.relative_to(folder).as_posix(): "link" if path.is_symlink() else path.read_bytes() for path in paths}


def submitted(course):
    return tree(course.out / "submitted")


def targets(rows):
    return {row.target for row in rows if row.target}


def notes(rows):
    return " ".join(row.note for row in rows)


MOODLE = {
    "Ann Lee_12345_assignsubmission_file_/x.ipynb": ("moodle", "Ann Lee", "Ann Lee", "12345", "x.ipynb"),
    "Åsa Öberg_7_assignsubmission_file_/deep/x.ipynb": ("moodle", "Åsa Öberg", "Åsa Öberg", "7", "deep/x.ipynb"),
    "Jean_Luc Picard_12_assignsubmission_file_x.ipynb": (
        "moodle",
        "Jean_Luc Picard",
        "Jean_Luc Picard",
        "12",
        "x.ipynb",
    ),
    "Participant_99_assignsubmission_file/x.ipynb": ("moodle", "Participant", "Participant", "99", "x.ipynb"),
    "CS1-Week 2-5/Bo Li_8_assignsubmission_onlinetext_/onlinetext.html": (
        "moodle",
        "Bo Li",
        "Bo Li",
        "8",
        "onlinetext/onlinetext.html",
    ),
}
CANVAS = {
    "leeann_12345_67890_x.ipynb": ("canvas", "leeann_12345", "leeann", "12345", "x.ipynb"),
    "leeann_late_12345_67890_my_note 2_3.ipynb": ("canvas", "leeann_12345", "leeann", "12345", "my_note 2_3.ipynb"),
    "öbergåsa_LATE_1_2_x.ipynb": ("canvas", "öbergåsa_1", "öbergåsa", "1", "x.ipynb"),
    f"leeann_12345_67890_{LECTURE}-2.ipynb": ("canvas", "leeann_12345", "leeann", "12345", N),
    "submissions/leeann_12345_67890_x-1.ipynb": ("canvas", "leeann_12345", "leeann", "12345", "x-1.ipynb"),
}
BLACKBOARD = {
    "Week 2_alee_attempt_2024-01-02-03-04-05_x.ipynb": ("blackboard", "alee", "alee", "alee", "x.ipynb"),
    "Week_2_alee_attempt_2024-01-02-03-04-05_my_x.ipynb": ("blackboard", "alee", "alee", "alee", "my_x.ipynb"),
    "Week 2_a.lee@example.org_poging_2024-01-02-03-04-05_x.ipynb": (
        "blackboard",
        *["a.lee@example.org"] * 3,
        "x.ipynb",
    ),
}


@pytest.mark.parametrize(("name", "expected"), [*MOODLE.items(), *CANVAS.items(), *BLACKBOARD.items()])
def test_the_names_of_every_lms_are_understood_without_being_told_which(name, expected, zipped, course):
    lms, student, who, number, path = expected
    for told in (None, lms):
        rows = collect(zipped({name: b"content"}), LECTURE, course, lms=told, dry_run=told is None)
        (row,) = [row for row in rows if row.target]
        assert (row.student, row.name, row.lms_id, row.target) == (student, who, number, f"{student}/{LECTURE}/{path}")
    assert submitted(course)[f"{student}/{LECTURE}/{path}"] == b"content"
    assert identities(course.out, LECTURE)[student].lms_id == number
    assert row.late == ("late_" in name.lower())


def test_a_dry_run_plans_the_same_and_writes_nothing(zipped, course, tmp_path):
    archive = zipped(
        {f"Ann Lee_1_assignsubmission_file_/{N}": NOTEBOOK, "Bo_2_assignsubmission_file_/y.zip": as_zip({"a": b"1"})}
    )
    before = tree(tmp_path)
    planned = collect(archive, LECTURE, course, dry_run=True)
    assert tree(tmp_path) == before
    assert collect(archive, LECTURE, course) == planned
    assert set(submitted(course)) == targets(planned)


def test_what_was_collected_is_found_and_read(zipped, course):
    collect(
        zipped({f"Ann Lee_1_assignsubmission_file_/{N}": NOTEBOOK, f"O'Neil_2_assignsubmission_file_/{N}": NOTEBOOK}),
        LECTURE,
        course,
    )
    lecture = Lecture(LECTURE, Path(), (), (), "")
    submissions = [read(found, lecture, small_release(), course) for found in find(course.out / "submitted", LECTURE)]
    assert [submission.ungradable for submission in submissions] == [None, None]
    assert [submission.repairs for submission in submissions] == [(), ()]


def test_two_students_of_one_name_are_two_students(zipped, course):
    rows = collect(zipped({f"Ann Lee_{i}_assignsubmission_file_/{N}": b"%d" % i for i in (1, 2)}), LECTURE, course)
    assert targets(rows) == {f"Ann Lee_1/{LECTURE}/{N}", f"Ann Lee_2/{LECTURE}/{N}"}


def test_of_blackboards_attempts_the_latest_counts_whatever_the_order(zipped, course):
    names = {day: f"W_alee_attempt_2024-01-{day:02}-03-04-05_{N}" for day in (3, 9, 5)}
    rows = collect(zipped({name: b"%d" % day for day, name in names.items()}), LECTURE, course)
    assert submitted(course) == {f"alee/{LECTURE}/{N}": b"9", f"alee/{LECTURE}/timestamp.txt": b"2024-01-09 03:04:05\n"}
    assert [row.file for row in rows if "earlier attempt" in row.note] == [names[3], names[5]]


def test_blackboards_receipt_tells_a_user_whose_name_has_an_underscore(zipped, course):
    stem = "Week 2_a_lee_attempt_2024-01-02-03-04-05"
    rows = collect(zipped({f"{stem}.txt": RECEIPT, f"{stem}_{N}": NOTEBOOK}), LECTURE, course)
    assert targets(rows) == {f"a_lee/{LECTURE}/{N}"} and {row.name for row in rows} == {"Ann Lee"}
    assert identities(course.out, LECTURE)["a_lee"] == Identity(
        "blackboard", "a_lee", "Ann Lee", "2024-01-02T03:04:05", ""
    )


def test_a_student_with_a_receipt_only_is_there_with_nothing(zipped, course):
    collect(zipped({"Week 2_a_lee_attempt_2024-01-02-03-04-05.txt": RECEIPT}), LECTURE, course, lms="blackboard")
    assert set(submitted(course)) == {f"a_lee/{LECTURE}/timestamp.txt"}


def test_of_canvas_files_of_one_name_the_later_wins_and_the_row_says_so(zipped, course):
    names = [f"leeann_1_{attempt}_{N.replace('.', again)}" for attempt, again in ((30, "-2."), (9, "."), (20, "-1."))]
    rows = collect(zipped({name: name.encode() for name in names}), LECTURE, course)
    assert submitted(course) == {f"leeann_1/{LECTURE}/{N}": names[0].encode()}
    assert sorted(row.file for row in rows if "replaced by the later" in row.note) == sorted(names[1:])


def test_a_zip_handed_in_is_unpacked_one_level(zipped, course):
    inner = as_zip(
        {
            f"homework/{N}": NOTEBOOK,
            "homework/data.csv": b"1",
            "__MACOSX/._x": b"junk",
            "homework/old.zip": as_zip({"a": b"1"}),
        }
    )
    rows = collect(zipped({"Ann_1_assignsubmission_file_/hand-in.zip": inner}), LECTURE, course)
    assert (
        set(submitted(course)) == {f"Ann/{LECTURE}/homework/{name}" for name in (N, "data.csv", "old.zip")}
        and len(rows) == 3
    )


# Hostile archives


def link(name):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def encrypted(content):
    """The same zip with the flag of encryption set on every entry."""
    content = bytearray(content)
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(signature)
        while place >= 0:
            content[place + at] |= 1
            place = content.find(signature, place + 4)
    return bytes(content)


def lying(content, claimed=10):
    """A zip whose entry claims to be small when unpacked."""
    content = bytearray(content)
    struct.pack_into("<I", content, content.find(b"PK\x01\x02") + 24, claimed)
    return bytes(content)


def damaged(content):
    content = bytearray(content)
    content[60:70] = b"\xff" * 10
    return bytes(content)


BOMB = as_zip({"bomb.ipynb": bytes(30 * 2**20)})
HOSTILE = {
    "climbing": (as_zip({"../../../evil.ipynb": b"x", N: b"good"}), "leads out of the folder", {N}),
    "absolute": (as_zip({"/etc/evil.ipynb": b"x", N: b"good"}), "leads out of the folder", {N}),
    "drive": (as_zip({"C:\\evil.ipynb": b"x", N: b"good"}), "leads out of the folder", {N}),
    "backslashes": (as_zip({"..\\..\\evil.ipynb": b"x", N: b"good"}), "leads out of the folder", {N}),
    "link": (as_zip({link("to"): b"/etc/passwd", N: b"good"}), "a link or a device", {N}),
    "encrypted": (encrypted(as_zip({N: NOTEBOOK})), "it is encrypted; it was left out", {"hand-in.zip"}),
    "bomb": (BOMB, "unpacks to 30.0 MiB, and all files of a student to 10 MiB at most", set()),
    "lying bomb": (lying(BOMB), "kept as a zip", {"hand-in.zip"}),
    "truncated": (as_zip({N: NOTEBOOK})[:200], "damaged", {"hand-in.zip"}),
    "damaged": (damaged(as_zip({N: NOTEBOOK})), "damaged", {"hand-in.zip"}),
    "no zip": (b"PK or not", "damaged", {"hand-in.zip"}),
    "empty": (as_zip({}), "nothing in it", {"hand-in.zip"}),
    "file and folder": (as_zip({"a": b"1", "a/b": b"2"}), "one file cannot be inside another", {"a"}),
    "strange names": (as_zip({'we:ird?"*.txt': b"1", " .. /x": b"2"}), "", {"we_ird___.txt", "x"}),
    "many": (as_zip({f"{i}": b"" for i in range(1200)}), "more than 1000 files", None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_zip_from_a_student_stays_in_that_students_folder(name, zipped, course, tmp_path):
    content, words, kept = HOSTILE[name]
    archive = zipped(
        {"Eve_1_assignsubmission_file_/hand-in.zip": content, f"Ann_2_assignsubmission_file_/{N}": NOTEBOOK}
    )
    before = set(tree(tmp_path))
    rows = collect(archive, LECTURE, course)
    assert words in notes(rows)
    written = set(tree(tmp_path)) - before - {f"grading/collected/{LECTURE}.csv"}
    own = {path for path in written if path.startswith(f"grading/submitted/Eve/{LECTURE}/")}
    assert written - own == {f"grading/submitted/Ann/{LECTURE}/{N}"}
    if kept is not None:
        assert {path.split("/", 4)[4] for path in own} == kept
    assert "link" not in tree(tmp_path).values() and not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize(
    ("entry", "content", "words"),
    [
        ("../../Eve_1_assignsubmission_file_/x.ipynb", b"x", "leads out"),
        ("/Eve_1_assignsubmission_file_/x.ipynb", b"x", "leads out"),
        ("Eve_1_assignsubmission_file_/../../x.ipynb", b"x", "leads out"),
        (link("Eve_1_assignsubmission_file_/x.ipynb"), b"/etc/passwd", "a link"),
        ("Eve_1_assignsubmission_file_/x.ipynb", bytes(12 * 2**20), "unpacks to 12.0 MiB"),
        ("stray.ipynb", b"x", "not one that Moodle gives"),
        (f"Eve_1_assignsubmission_file_/{'x' * 2000}.ipynb", b"x", "longer than any real one"),
    ],
)
def test_a_hostile_entry_of_the_lms_zip_is_left_out_and_said(entry, content, words, zipped, course, tmp_path):
    rows = collect(zipped({entry: content, f"Ann_2_assignsubmission_file_/{N}": NOTEBOOK}), LECTURE, course)
    assert words in notes(rows)
    assert submitted(course) == {f"Ann/{LECTURE}/{N}": NOTEBOOK}
    assert {path.split("/")[0] for path in tree(tmp_path)} == {"download.zip", "grading"}


@pytest.mark.parametrize("student", ["..", "a/..", "-rf", "x" * 300, "a\tb", "CON", "%2e%2e", "<script>"])
def test_whatever_a_student_is_called_the_folder_is_theirs_alone(student, zipped, course):
    rows = collect(zipped({f"{student}_1_assignsubmission_file_/{N}": b"x"}), LECTURE, course, lms="moodle")
    for target in targets(rows):
        folder = target.split("/")[0]
        assert folder.isprintable() and folder[0] not in "-." and len(folder) < 100 and not set(folder) & set("%<>")
    assert set(submitted(course)) == targets(rows)


def test_names_in_utf8_are_read_with_and_without_the_flag_that_says_so(tmp_path, course):
    content = bytearray(as_zip({f"Åsa Öberg_1_assignsubmission_file_/{N}": b"x"}))
    struct.pack_into("<H", content, 6, 0)
    struct.pack_into("<H", content, content.find(b"PK\x01\x02") + 8, 0)
    (tmp_path / "download.zip").write_bytes(content)
    rows = collect(tmp_path / "download.zip", LECTURE, course)
    assert targets(rows) == {f"Åsa Öberg/{LECTURE}/{N}"}


def test_an_archive_that_was_unpacked_already_is_read_as_a_folder(tmp_path, course):
    folder = tmp_path / "download" / "Ann Lee_1_assignsubmission_file_"
    folder.mkdir(parents=True)
    (folder / N).write_bytes(NOTEBOOK)
    (folder / "passwd").symlink_to("/etc/passwd")
    rows = collect(tmp_path / "download", LECTURE, course)
    assert submitted(course) == {f"Ann Lee/{LECTURE}/{N}": NOTEBOOK} and "links are not followed" in notes(rows)


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (Row("anna", "x.ipynb", "anna/02/x.ipynb"), "anna  x.ipynb  -> anna/02/x.ipynb"),
        (Row("anna", "x.ipynb", note="it is encrypted; it was left out"), "anna  x.ipynb  left out: it is encrypted"),
        (Row("", "a\nb\x1b[0m", note="odd"), "(nobody)  a?b?[0m  left out: odd"),
        (
            Row("anna", "", "anna/02", "replaces what was collected before"),
            "anna  -> anna/02: replaces what was collected before",
        ),
    ],
)
def test_a_row_reads_as_one_line(row, line):
    assert str(row) == line


# Again, and refused


def attempt(day, content=b"x"):
    return {f"W_alee_attempt_2024-01-{day:02}-03-04-05_{N}": content}


def test_collecting_again_replaces_a_submission_as_a_whole_and_says_so(zipped, course):
    collect(
        zipped({"Ann_1_assignsubmission_file_/old.ipynb": b"1", "Bo_2_assignsubmission_file_/x.ipynb": b"2"}),
        LECTURE,
        course,
    )
    rows = collect(zipped({"Ann_1_assignsubmission_file_/new.ipynb": b"3"}), LECTURE, course)
    assert submitted(course) == {f"Ann/{LECTURE}/new.ipynb": b"3", f"Bo/{LECTURE}/x.ipynb": b"2"}
    assert "replaces what was collected before" in notes(rows)
    assert set(identities(course.out, LECTURE)) == {"Ann", "Bo"}


def test_collecting_the_same_again_touches_nothing(zipped, course):
    archive = zipped(attempt(3))
    collect(archive, LECTURE, course)
    before = [(path, path.stat().st_mtime_ns) for path in (course.out / "submitted").rglob("*")]
    assert notes(collect(archive, LECTURE, course)) == ""
    assert [(path, path.stat().st_mtime_ns) for path in (course.out / "submitted").rglob("*")] == before


def test_an_older_archive_does_not_undo_a_later_attempt(zipped, course):
    collect(zipped(attempt(9, b"later")), LECTURE, course)
    rows = collect(zipped(attempt(3, b"earlier"), "older.zip"), LECTURE, course)
    assert submitted(course)[f"alee/{LECTURE}/{N}"] == b"later" and "handed in later" in notes(rows)
    assert handed_in_at({"timestamp.txt": submitted(course)[f"alee/{LECTURE}/timestamp.txt"]}).day == 9


@pytest.mark.parametrize(
    ("make", "lms", "words"),
    [
        (lambda path: None, None, "does not exist"),
        (lambda path: path.write_bytes(b"no zip"), None, "cannot be read as a zip"),
        (lambda path: path.write_bytes(as_zip({"a": b""})[:40]), None, "cannot be read as a zip"),
        (lambda path: path.write_bytes(as_zip({})), None, "is empty"),
        (lambda path: path.mkdir(), None, "is empty"),
        (lambda path: path.write_bytes(as_zip({f"anna/{LECTURE}/{N}": b"x"})), None, "no LMS that is known"),
        (lambda path: path.write_bytes(as_zip({"a": b"x"})), "ilias", "choose one of moodle, canvas, blackboard"),
    ],
)
def test_what_is_no_archive_of_an_lms_is_refused_in_one_sentence(make, lms, words, tmp_path, course):
    make(tmp_path / "download.zip")
    with pytest.raises(UsageError, match=words):
        collect(tmp_path / "download.zip", LECTURE, course, lms=lms)
    assert not course.out.exists()


def test_a_folder_that_cannot_be_written_keeps_what_was_there(zipped, course, monkeypatch):
    collect(zipped({"Ann_1_assignsubmission_file_/x.ipynb": b"1"}), LECTURE, course)
    before, later = submitted(course), zipped({"Ann_1_assignsubmission_file_/x.ipynb": b"2"})

    def full(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(EngineError, match=r"No space left.*as it was"):
        collect(later, LECTURE, course)
    monkeypatch.undo()
    assert submitted(course) == before and os.listdir(course.out / "submitted" / "Ann") == [LECTURE]


# What cannot be unpacked costs nobody points


def spoilt(archive, name):
    """The zip with a byte of the compressed content of one entry changed."""
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as zipped:
        info = zipped.getinfo(name)
    place = info.header_offset + 30 + len(info.filename.encode()) + info.compress_size // 2
    content[place] ^= 0xFF
    archive.write_bytes(content)
    return archive


ANN, CY = f"Ann_1_assignsubmission_file_/{N}", f"Cy_2_assignsubmission_file_/{N}"
UNREADABLE = {
    "damaged": lambda archive: spoilt(archive, ANN),
    "encrypted": lambda archive: (archive.write_bytes(encrypted(archive.read_bytes())), archive)[1],
}


@pytest.mark.parametrize("how", UNREADABLE)
def test_what_cannot_be_unpacked_replaces_nothing(how, zipped, course):
    collect(zipped({ANN: NOTEBOOK, CY: NOTEBOOK}), LECTURE, course)
    before = submitted(course), identities(course.out, LECTURE)
    rows = collect(
        UNREADABLE[how](zipped({ANN: NOTEBOOK + b" ", "Ann_1_assignsubmission_file_/b": b"x"})), LECTURE, course
    )
    assert (submitted(course), identities(course.out, LECTURE)) == before
    assert how in notes(rows) and "what was collected before stays: download the archive again" in notes(rows)
    assert {row.student for row in rows if row.lost} == {"Ann"} and targets(rows) == {f"Ann/{LECTURE}"}


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_student_of_whom_nothing_could_be_unpacked_is_recorded_until_the_next_download(how, zipped, course):
    rows = collect(UNREADABLE[how](zipped({ANN: NOTEBOOK})), LECTURE, course)
    assert "no zero but an error of ours: download the archive again" in notes(rows)
    assert [found.student for found in find(course.out / "submitted", LECTURE)] == ["Ann"] and not submitted(course)
    assert how in identities(course.out, LECTURE)["Ann"].lost
    collect(zipped({ANN: NOTEBOOK}), LECTURE, course)
    assert identities(course.out, LECTURE)["Ann"] == Identity("moodle", "1", "Ann")
    assert submitted(course) == {f"Ann/{LECTURE}/{N}": NOTEBOOK}


def test_a_receipt_collected_before_is_no_submission_that_could_stay(zipped, course):
    stem = "W_alee_attempt_2024-01-02-03-04-05"
    collect(zipped({f"{stem}.txt": RECEIPT}), LECTURE, course, lms="blackboard")
    name = f"{stem}_{N}"
    collect(spoilt(zipped({f"{stem}.txt": RECEIPT, name: NOTEBOOK}), name), LECTURE, course)
    assert not submitted(course) and "damaged" in identities(course.out, LECTURE)["alee"].lost


def test_a_link_in_place_of_the_only_file_is_no_empty_submission(zipped, course):
    rows = collect(zipped({link(ANN): b"/etc/passwd"}), LECTURE, course)
    assert [row.lost for row in rows if row.file] == ["it is a link or a device"]


def test_a_file_that_is_too_large_is_the_students_own(zipped, course):
    rows = collect(zipped({ANN: NOTEBOOK, "Ann_1_assignsubmission_file_/big": bytes(12 * 2**20)}), LECTURE, course)
    assert submitted(course) == {f"Ann/{LECTURE}/{N}": NOTEBOOK} and not any(row.lost for row in rows)


BIG = bytes(12 * 2**20)
TOO_LARGE = {
    "loose": {ANN: BIG},
    "in a zip": {"Ann_1_assignsubmission_file_/a.zip": as_zip({N: BIG, "data.csv": b"1"})},
    "zip of many": {"Ann_1_assignsubmission_file_/a.zip": as_zip({f"{i}.ipynb": BIG[: 2**20] for i in range(12)})},
    "beside others": {ANN: BIG, "Ann_1_assignsubmission_file_/data.csv": b"1"},
    "no notebook": {"Ann_1_assignsubmission_file_/big": BIG},
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_notebook_that_is_too_large_to_unpack_is_recorded_with_sizes_and_setting(name, zipped, course):
    rows = collect(zipped(TOO_LARGE[name] | {CY: NOTEBOOK}), LECTURE, course)
    lost = identities(course.out, LECTURE)["Ann"].lost
    assert "all files of a student to 10 MiB at most (10 times submission_mib" in lost
    assert submitted(course) == {f"Cy/{LECTURE}/{N}": NOTEBOOK} and {row.student for row in rows if row.lost} == {"Ann"}
    assert [found.student for found in find(course.out / "submitted", LECTURE)] == ["Ann", "Cy"]
    collect(zipped(TOO_LARGE[name]), LECTURE, replace(course, submission_mib=2.0))
    assert not identities(course.out, LECTURE)["Ann"].lost and submitted(course).keys() != {f"Cy/{LECTURE}/{N}"}


@pytest.mark.parametrize(
    ("entries", "left_out"),
    [
        ({"Ann_1_assignsubmission_file_/big": BIG}, "big was left out when the archive was unpacked: it unpacks to 12.0 MiB"),
        ({"Ann_1_assignsubmission_file_/a.zip": as_zip({"a/big": BIG, "small": b"1"})}, "big was left out"),
        ({link("Ann_1_assignsubmission_file_/passwd"): b"/etc"}, "passwd was left out when the archive was unpacked: it is a link"),
        ({"Ann_1_assignsubmission_file_/a.zip": as_zip({"../x": b"1", "y": b""})}, "x was left out"),
        ({f"Ann_1_assignsubmission_file_/{i}": b"" for i in range(1100)}, "96 more files were left out."),
        ({"Ann_1_assignsubmission_file_/timestamp.txt": b"2020-01-01 00:00:00"}, ""),
        ({"Ann_1_assignsubmission_file_/.DS_Store": b"x", "__MACOSX/y": b"x"}, ""),
    ],
)  # fmt: skip
def test_what_is_left_out_beside_a_notebook_is_kept_in_words(entries, left_out, zipped, course):
    rows = collect(zipped({ANN: NOTEBOOK} | entries), LECTURE, course)
    assert not any(row.lost for row in rows) and submitted(course)[f"Ann/{LECTURE}/{N}"] == NOTEBOOK
    said = identities(course.out, LECTURE)["Ann"].left_out
    assert left_out in said and bool(said) == bool(left_out) and len(said) < 1200


CHECKPOINT = f".ipynb_checkpoints/{LECTURE}-checkpoint.ipynb"


@pytest.mark.parametrize(
    ("entries", "kept"),
    [
        ({CHECKPOINT: NOTEBOOK, "a.csv": b"1"}, {CHECKPOINT, "a.csv"}),
        ({CHECKPOINT: NOTEBOOK, N: NOTEBOOK}, {N}),
        ({"a.zip": as_zip({CHECKPOINT: NOTEBOOK, "a.csv": b"1"})}, {CHECKPOINT, "a.csv"}),
        ({"a.zip": as_zip({CHECKPOINT: NOTEBOOK, N: NOTEBOOK, ".x": b""})}, {N}),
        ({"a.zip": as_zip({f"__MACOSX/{N}": NOTEBOOK})}, {f"__MACOSX/{N}"}),
        ({".DS_Store.x": b"junk"}, {".DS_Store.x"}),
    ],
)
def test_copies_that_a_tool_keeps_are_unpacked_only_where_there_is_no_other_notebook(entries, kept, zipped, course):
    collect(zipped({f"Ann_1_assignsubmission_file_/{name}": data for name, data in entries.items()}), LECTURE, course)
    assert submitted(course).keys() == {f"Ann/{LECTURE}/{name}" for name in kept}


@pytest.mark.parametrize(
    "comment",
    ["\n" * 2**20, "Name:" + " " * 2**20, "Name: a" + "(" * 2**20, "Name: (\n" * 2**17, " \t" * 2**19 + "\nName: x (y"],
    ids=["lines", "blanks", "brackets", "names", "tabs"],
)
def test_a_receipt_that_is_made_to_be_long_to_read_is_not_read_for_long(comment, zipped, course):
    stem, started = "W_a_lee_attempt_2024-01-02-03-04-05", time.process_time()
    archive = zipped({f"{stem}.txt": comment.encode()[: 2**20], f"{stem}_{N}": NOTEBOOK})
    assert collect(archive, LECTURE, course, lms="blackboard")[0].student == "lee"
    assert time.process_time() - started < 2


def test_names_of_another_lms_than_the_one_told_are_refused(zipped, course):
    with pytest.raises(UsageError, match=r"no name that Canvas gives.*those of Moodle: leave --lms out"):
        collect(zipped({ANN: NOTEBOOK}), LECTURE, course, lms="canvas")
    assert not course.out.exists()


@pytest.mark.parametrize("name", ["timestamp.txt", "TimeStamp.TXT"])
@pytest.mark.parametrize("inside", [False, True])
def test_when_something_was_handed_in_is_not_the_students_to_say(name, inside, zipped, course):
    early = b"2020-01-01 00:00:00"
    told = {f"W_alee_attempt_2026-11-30-10-00-00_{N}": NOTEBOOK}
    more = {"W_alee_attempt_2026-11-30-10-00-00_a.zip": as_zip({name: early, "b": b"1"})}
    rows = collect(
        zipped(told | (more if inside else {f"W_alee_attempt_2026-11-30-10-00-00_{name}": early})), LECTURE, course
    )
    assert submitted(course)[f"alee/{LECTURE}/timestamp.txt"] == b"2026-11-30 10:00:00\n"
    assert "not the student's to say" in notes(rows) and early not in submitted(course).values()
    rows = collect(zipped({ANN: NOTEBOOK, f"Ann_1_assignsubmission_file_/{name}": early}), LECTURE, course)
    assert f"Ann/{LECTURE}/{N}" in submitted(course) and early not in submitted(course).values()


# The list of who was collected, after somebody opened it in a spreadsheet


@pytest.mark.parametrize("change", [lambda text: text.replace(",", ";"), lambda text: "\ufeff" + text])
def test_the_list_of_students_is_read_as_a_spreadsheet_saves_it(change, zipped, course):
    collect(zipped(attempt(3)), LECTURE, course)
    path, before = course.out / "collected" / f"{LECTURE}.csv", identities(course.out, LECTURE)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    assert identities(course.out, LECTURE) == before and len(before) == 1


@pytest.mark.parametrize(
    "content", [b"student,lms\n\xc5sa,moodle\n", b"who,lms\nada,moodle\n", b"student\n" + b"x" * 200000]
)
def test_a_list_of_students_that_is_none_is_named_in_one_sentence(content, zipped, course):
    path = course.out / "collected" / f"{LECTURE}.csv"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(StorageError, match=f"{LECTURE}.csv cannot be read.*UTF-8.*collect again"):
        collect(zipped(attempt(3)), LECTURE, course)
    assert path.read_bytes() == content


def test_every_lms_has_its_names_tested():
    assert {expected[0] for expected in [*MOODLE.values(), *CANVAS.values(), *BLACKBOARD.values()]} == set(LMS)
