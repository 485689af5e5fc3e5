"""Who the students of a lecture are to the LMS, and what their folders were called: OUT/collected/LECTURE.csv.

A student's id is made safe for file systems and nbgrader, so it may be another name than the LMS knows. What `collect`
reads from the names in an archive, and what `grade` finds as names of folders, is kept here for `export`.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from .errors import StorageError
from .files import write_whole


@dataclass(frozen=True)
class Identity:
    """One student, as the LMS knows them; all are texts.

    Attributes:
        lms: "moodle", "canvas" or "blackboard"; "" where the name of a folder is all that is known.
        lms_id: the LMS's own number or name of the student; the name of the folder where there is no LMS.
        name: the student's name as the LMS writes it.
        handed_in: time of the attempt (ISO), where the LMS tells it. late: "yes" or "".
        lost: why what was handed in could not be unpacked, for a reason that costs no points; "" where it could.
        left_out: what of it was not unpacked, in sentences; "" for nothing.
    """

    lms: str = ""
    lms_id: str = ""
    name: str = ""
    handed_in: str = ""
    late: str = ""
    lost: str = ""
    left_out: str = ""


COLUMNS = [field.name for field in fields(Identity)]


def identities(out: Path, lecture: str) -> dict[str, Identity]:
    """Every student of a lecture that was collected, or whose folder has another name than their id, by id.

    Raises:
        StorageError: somebody has made something else of the file.
    """
    path = _path(out, lecture)
    if not path.is_file():
        return {}
    try:
        text = path.read_bytes().decode("utf-8-sig")
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=_separator(text), restval="")
        return {row["student"]: Identity(*(row.get(name, "") for name in COLUMNS)) for row in rows}
    except (ValueError, KeyError, csv.Error) as error:
        raise StorageError(
            f"{path} cannot be read ({error!r}): expected CSV in UTF-8 with the columns student, {', '.join(COLUMNS)}. "
            "Save it so, or delete it and collect again"
        ) from error


def _separator(text: str) -> str:
    """A comma, or what a spreadsheet put in its place."""
    header = text.partition("\n")[0]
    return max(",;\t", key=header.count)


def remember(out: Path, lecture: str, found: Mapping[str, Identity]) -> None:
    """Add students, by id; a folder's name does not take the place of what an LMS told.

    Raises:
        StorageError: the file cannot be read or written; it is as it was.
    """
    known = identities(out, lecture)
    new = {student: who for student, who in found.items() if who.lms or not known.get(student, Identity()).lms}
    if new.items() <= known.items():
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, ["student", *COLUMNS])
    writer.writeheader()
    writer.writerows({"student": student, **asdict(who)} for student, who in sorted({**known, **new}.items()))
    write_whole(_path(out, lecture), text.getvalue())


def _path(out: Path, lecture: str) -> Path:
    return Path(out) / "collected" / f"{lecture}.csv"
