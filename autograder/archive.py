"""The zip that an LMS gives for an assignment, unpacked to submitted/STUDENT/LECTURE/ with one plan row for every file.

Names are read as Moodle, Canvas and Blackboard write them:

    moodle      Ann Lee_12345_assignsubmission_file_/x.ipynb, or the same without the slash
    canvas      leeann_late_12345_67890_x.ipynb           (-1, -2 before the ending: handed in again)
    blackboard  Week 2_alee_attempt_2024-01-02-03-04-05_x.ipynb, beside a .txt of the same name

The archive is hostile: what an entry is called never leads out of the folder, links are not made, sizes are counted
while unpacking, and whatever cannot be unpacked is a row that says why. A dry run writes nothing.

What is not unpacked costs no points. Of a damaged or encrypted entry, and of a notebook that is too large, what was
collected before stays, or the folder stays empty and `grade` reports an error of ours until `collect` was called again.
What else is left out is told with the score; where there is none without it, that is an error of ours, too.
"""

import io
import logging
import os
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from .errors import EngineError, UsageError
from .identities import Identity, identities, remember
from .intake import LEFT_BEHIND, handed_in_at, is_aside
from .settings import Settings
from .students import marked, student_id

log = logging.getLogger(__name__)

MAX_ENTRIES = 100_000
MAX_FILES = 1000  # of one student
SPACE = 10  # times submission_mib: so much of one student is unpacked; what is more than is graded is still handed in
MAX_SAID = 5  # files left out that are named to whoever reads the score
LONGEST_NAME = 1000  # characters of an entry's name
ENCRYPTED = "it is encrypted"
LEFT_OUT = "; it was left out"
NOTEBOOKS = (".ipynb", ".ipynb.txt", ".zip")  # how a file ends that may be the notebook, or hold it
TIME = "timestamp.txt"  # where the time of an attempt stands, as nbgrader writes it
UNREADABLE = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, KeyError)

MOODLE = re.compile(
    r"(?:.*/)?(?P<name>[^/]+?)_(?P<id>\d+)_assignsubmission_(?P<kind>file|onlinetext)(?:_?/|_)(?P<file>.+)", re.S | re.I
)
CANVAS = re.compile(
    r"(?:.*/)?(?P<name>[^/]+?)(?P<late>_late)?_(?P<id>\d+)_(?P<attempt>\d+)_(?P<file>[^/]+)", re.S | re.I
)
BLACKBOARD = re.compile(
    r"(?:.*/)?(?P<front>[^/]+)_[^\W\d_]+_(?P<attempt>\d{4}(?:-\d{2}){5})(?:_(?P<file>[^/]+)|(?P<receipt>\.txt))",
    re.S | re.I,
)


@dataclass(frozen=True)
class Row:
    """What becomes of one file of the archive.

    Attributes:
        student: id of the student; "" when the name says nothing.
        file: its name in the archive; for a file of a zip inside it, "outer.zip: inner".
        target: POSIX path below OUT/submitted; "" when it is left out.
        note: why it is left out, or what is special about it; "" for most.
        name: the student's name as the LMS writes it.
        lms_id: the LMS's own number or name of the student, which its gradebook's import asks for.
        handed_in: the time of the attempt where the LMS tells it, in its own zone.
        lost: why the student is not to be graded from what is here; "" where they are.
    """

    student: str
    file: str
    target: str = ""
    note: str = ""
    name: str = ""
    lms_id: str = ""
    handed_in: datetime | None = None
    late: bool = False
    lost: str = ""

    def __str__(self) -> str:
        """One line of a plan: who, what, and where it goes or why it does not."""
        file = "".join(c if c.isprintable() else "?" for c in self.file.encode("utf-8", "replace").decode())
        parts = [
            self.student or "(nobody)",
            *([file] if file else []),
            f"-> {self.target}" if self.target else "left out",
        ]
        note = self.note.removesuffix(LEFT_OUT)
        return "  ".join(parts) + (f": {note}" if note else "")


@dataclass(frozen=True)
class Entry:
    """A file of the archive: `read(limit)` gives its bytes, or raises Oversize; `refused` says why it is not to be read.

    Attributes:
        size: in bytes, as a zip tells it.
    """

    file: str
    read: Callable[[int], bytes]
    changed: tuple = ()
    size: int = 0
    refused: str = ""


@dataclass(frozen=True)
class HandedIn:
    """An entry whose name was understood.

    Attributes:
        who: the student's name, and the number that tells students of one name apart where the name does not.
        path: the file's own name, with its folders.
        attempt: greater for a later one.
        receipt: the LMS's own note about an attempt, no file of the student's.
    """

    entry: Entry
    who: tuple[str, str]
    name: str
    lms_id: str
    path: str
    attempt: tuple
    late: bool = False
    handed_in: datetime | None = None
    receipt: bool = False


class Oversize(Exception):
    """An entry unpacks to more than allowed."""


class Unread(Exception):
    """An entry that is not unpacked; its text says why. `lost`: the student is not to be graded without it."""

    def __init__(self, why: str, lost: bool = False):
        super().__init__(why)
        self.lost = lost


class Damaged(Unread):
    """One of which something came, but not all."""


def collect(
    archive: Path | str, lecture: str, settings: Settings, lms: str | None = None, dry_run: bool = False
) -> tuple[Row, ...]:
    """One row for every file in an LMS's zip (or in the folder it was unpacked to), unpacked unless `dry_run`.

    A student who was collected before is replaced as a whole when the new files differ, unless the old ones carry a
    later time or the new ones cannot be unpacked; nothing of other students is touched.

    Args:
        lms: one of LMS; None to tell it from the names.
    Raises:
        UsageError: `archive` is no zip, is empty, or its names are those of no LMS we know.
    """
    archive = Path(archive)
    if lms is not None and lms not in LMS:
        raise UsageError(f"lms is {lms!r}; choose one of {', '.join(LMS)}")
    people, known = {}, identities(settings.out, lecture)
    with ExitStack() as opened:
        entries = _entries(archive, opened)
        if lms is None:
            lms = _recognised(archive, entries, lecture)
        handed = [item for entry in entries if (item := LMS[lms](entry)) is not None]
        if not handed:
            raise UsageError(_not_of(lms, archive, entries))
        understood = {id(item.entry) for item in handed}
        strange = f"the name is not one that {lms.capitalize()} gives"
        rows = [
            Row("", entry.file, note=f"{entry.refused or strange}{LEFT_OUT}")
            for entry in entries
            if id(entry) not in understood and not is_aside(entry.file)
        ]
        if lms == "blackboard":
            handed = _with_names_from_receipts(handed)
        for student, own in _by_student(handed).items():
            own = _without_kept_aside(own, lambda item: item.path) or own[:1]
            files, plan = _planned(student, own, lecture, int(settings.submission_mib * 2**20))
            who = _who(lms, plan)
            folder = settings.out / "submitted" / student / lecture
            keep, note = _decided(folder, files, who.lost)
            if note:
                plan.append(Row(student, "", f"{student}/{lecture}", note, lost=who.lost))
            rows += plan
            if not keep and not dry_run:
                _write(folder, files)
            # of what is kept although the archive differs, the archive tells no time
            people[student] = (
                known.get(student, replace(who, handed_in="", late="", lost="", left_out="")) if keep and note else who
            )
    if not dry_run:
        remember(settings.out, lecture, people)
    return tuple(rows)


def _who(lms: str, plan: list[Row]) -> Identity:
    latest = plan[-1]
    handed_in = latest.handed_in.isoformat() if latest.handed_in else ""
    left_out = "" if latest.lost else _left_out_of(plan)
    return Identity(lms, latest.lms_id, latest.name, handed_in, "yes" if latest.late else "", latest.lost, left_out)


def _left_out_of(plan: list[Row]) -> str:
    """What was left out of a student's files, in sentences; "" for nothing."""
    told = [
        f"{PurePosixPath(row.file).name[:60]} was left out when the archive was unpacked: {row.note.removesuffix(LEFT_OUT)}."
        for row in plan
        if row.note.endswith(LEFT_OUT)
    ]
    more = [f"{len(told) - MAX_SAID} more files were left out."] * (len(told) > MAX_SAID)
    return " ".join(told[:MAX_SAID] + more)


# What is in the archive


def _entries(archive: Path, opened: ExitStack) -> list[Entry]:
    if not archive.exists():
        raise UsageError(f"{archive} does not exist; give the zip that the LMS offers for download")
    try:
        found = _in_folder(archive) if archive.is_dir() else _in_zip(opened.enter_context(zipfile.ZipFile(archive)))
        found = [entry for entry in found if not _is_left_behind(entry.file)]
    except UNREADABLE as error:
        raise UsageError(f"{archive} cannot be read as a zip ({error}); download it again from the LMS") from error
    if not found:
        raise UsageError(f"{archive} is empty; give the zip that the LMS offers for download")
    return found


def _in_folder(folder: Path) -> list[Entry]:
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if _is_left_behind(name):
            continue
        if path.is_symlink():
            found.append(_refusing(name, "it is a link; links are not followed"))
        elif path.is_file():
            found.append(
                Entry(
                    name,
                    lambda limit, path=path: _limited(open(path, "rb"), limit),
                    (path.stat().st_mtime,),
                    path.stat().st_size,
                )
            )
        elif not path.is_dir():
            found.append(_refusing(name, "it is a pipe, a socket or a device"))
    return found


def _in_zip(zipped: zipfile.ZipFile) -> list[Entry]:
    """The files of a zip, those that are not to be unpacked among them."""
    found = []
    infos = zipped.infolist()
    if len(infos) > MAX_ENTRIES:
        raise ValueError(f"it holds {len(infos)} files, more than {MAX_ENTRIES}")
    for info in infos:
        name = _name(info)
        if info.is_dir() or name.endswith("/"):
            continue
        if why := _refused(info, name):
            found.append(_refusing(name[:LONGEST_NAME], why))
        else:
            found.append(
                Entry(
                    name,
                    lambda limit, info=info: _limited(zipped.open(info), limit),
                    tuple(info.date_time),
                    info.file_size,
                )
            )
    return found


def _refusing(name: str, why: str) -> Entry:
    return Entry(name, lambda limit: b"", refused=why)


def _name(info: zipfile.ZipInfo) -> str:
    """The entry's name: UTF-8 where the zip says so or the bytes are UTF-8, else as zipfile reads it (cp437)."""
    name = info.orig_filename
    if not info.flag_bits & 0x800:
        try:
            name = name.encode("cp437").decode("utf-8")
        except (UnicodeEncodeError, UnicodeDecodeError):
            pass
    return name.split("\0")[0].replace("\\", "/")


def _refused(info: zipfile.ZipInfo, name: str) -> str:
    kind = info.external_attr >> 16
    if kind and stat.S_IFMT(kind) not in (0, stat.S_IFREG):
        return "it is a link or a device"
    if info.flag_bits & 0x1:
        return ENCRYPTED
    if len(name) > LONGEST_NAME:
        return "its name is longer than any real one"
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in name.split("/"):
        return "its name leads out of the folder"
    return ""


def _is_left_behind(name: str) -> bool:
    """Whether an operating system left the file behind, wherever it is."""
    return any(part.lower() in LEFT_BEHIND for part in name.split("/"))


def _limited(file, limit: int) -> bytes:
    """What is in an open file, which is closed; counted while read, for the size that a zip tells may be a lie."""
    with file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise Oversize
    return content


# What the names say


def _moodle(entry: Entry) -> HandedIn | None:
    match = MOODLE.fullmatch(entry.file)
    if match is None:
        return None
    # Moodle numbers participants anew in every assignment: only the name stays the same through a course.
    path = match["file"] if match["kind"].lower() == "file" else f"onlinetext/{match['file']}"
    return HandedIn(entry, (match["name"], match["id"]), match["name"], match["id"], path, (0,))


def _canvas(entry: Entry) -> HandedIn | None:
    match = CANVAS.fullmatch(entry.file)
    if match is None:
        return None
    who = f"{match['name']}_{match['id']}"
    return HandedIn(
        entry, (who, ""), match["name"], match["id"], match["file"], (int(match["attempt"][:30]),), bool(match["late"])
    )


def _blackboard(entry: Entry) -> HandedIn | None:
    match = BLACKBOARD.fullmatch(entry.file)
    if match is None:
        return None
    try:
        handed_in = datetime.strptime(match["attempt"], "%Y-%m-%d-%H-%M-%S")
    except ValueError:
        return None
    user = match["front"].rpartition("_")[2]
    path, receipt = match["file"] or "", bool(match["receipt"])
    return HandedIn(entry, (user, ""), user, user, path, (match["attempt"],), False, handed_in, receipt)


LMS: dict[str, Callable[[Entry], HandedIn | None]] = {"moodle": _moodle, "canvas": _canvas, "blackboard": _blackboard}


def _recognised(archive: Path, entries: list[Entry], lecture: str) -> str:
    """The LMS whose way of naming most files follow."""
    counts = _counted(entries)
    best = max(counts, key=lambda lms: counts[lms])  # the first wins a draw: Moodle's names are the most particular
    if 2 * counts[best] < len(entries):
        raise UsageError(
            f"{archive} holds names of no LMS that is known here, for example {entries[0].file[:100]!r}; expected the "
            "download of "
            "all submissions from Moodle, Canvas or Blackboard, or say which with --lms. "
            f"A zip of STUDENT/{lecture}/ is unpacked by hand"
        )
    return best


def _counted(entries: list[Entry]) -> dict[str, int]:
    """How many names each LMS may have given."""
    return {lms: sum(read(entry) is not None for entry in entries) for lms, read in LMS.items()}


def _not_of(lms: str, archive: Path, entries: list[Entry]) -> str:
    others = [other for other, count in _counted(entries).items() if count]
    hint = f"; they look like those of {others[0].capitalize()}: leave --lms out" if others else ""
    example = entries[0].file[:100]
    return f"{archive} holds no name that {lms.capitalize()} gives, for example {example!r}{hint}. Nothing was written"


def _with_names_from_receipts(handed: list[HandedIn]) -> list[HandedIn]:
    """Blackboard's .txt says "Name: Ann Lee (a_lee)": who that is, even where that name has an underscore."""
    known = {}
    for item in handed:
        name, user = _named_in(_text_of(item.entry)) if item.receipt else ("", "")
        if user and f"_{user}_" in PurePosixPath(item.entry.file).name:
            known[_front(item)] = (name, user)
    renamed = []
    for item in handed:
        name, user = known.get(_front(item), (item.name, item.lms_id))
        renamed.append(replace(item, who=(user, ""), lms_id=user, name=name))
    return renamed


def _named_in(receipt: str) -> tuple[str, str]:
    """The name and the user in the first "Name: Ann Lee (a_lee)" of a receipt, below which a student may write at any length."""
    for line in receipt.splitlines():
        start, _, rest = line.strip().partition(":")
        name, _, user = rest.removesuffix(")").rpartition("(")
        if start == "Name" and rest.endswith(")") and user and ")" not in user:
            return name.strip(), user
    return "", ""


def _front(item: HandedIn) -> str:
    return BLACKBOARD.fullmatch(item.entry.file)["front"] + item.attempt[0]


def _text_of(entry: Entry) -> str:
    try:
        return _content(entry, Space(2**20)).decode("utf-8", "replace")
    except Unread:
        return ""


def _by_student(handed: list[HandedIn]) -> dict[str, list[HandedIn]]:
    """The files of every student by id; students of one name are told apart by the number that the LMS gives them."""
    same_name: dict[str, dict[tuple[str, str], list[HandedIn]]] = {}
    for item in handed:
        same_name.setdefault(student_id(item.who[0]).casefold(), {}).setdefault(item.who, []).append(item)
    students = {}
    for people in same_name.values():
        for (name, number), items in people.items():
            if len(people) == 1:
                students[student_id(name)] = items
            else:
                students[student_id(f"{name}_{number}") if number else marked(student_id(name), name)] = items
    return students


# What goes where


def _planned(student: str, own: list[HandedIn], lecture: str, budget: int) -> tuple[dict[str, bytes], list[Row]]:
    """The student's files by relative path, none where some are lost; and a row for each of the entries."""
    rows, files, places = [], {}, {}
    latest = max(item.attempt for item in own)
    space = Space(SPACE * budget)
    for item in sorted(own, key=lambda item: (item.attempt, item.entry.changed)):
        row = Row(student, item.entry.file, "", "", item.name, item.lms_id, item.handed_in, item.late)
        if item.receipt or (item.handed_in and item.attempt != latest):
            rows.append(
                replace(row, note="the LMS's own receipt" if item.receipt else "an earlier attempt; the latest counts")
            )
            continue
        try:
            content = _content(item.entry, space)
        except Unread as why:
            rows.append(replace(row, note=f"{why}{LEFT_OUT}", lost=str(why) if why.lost else ""))
            continue
        unpacked, more = _inside(item, content, row, space)
        rows += more
        for path, data in unpacked.items():
            path = _safe(_without_copy_number(path, lecture))
            one = replace(row, file=row.file if len(unpacked) == 1 else f"{row.file}: {path}")
            if path.casefold() == TIME:
                rows.append(replace(one, note="when it was handed in is not the student's to say"))
                continue
            if len(files) >= MAX_FILES or _in_the_way(path, files):
                why = (
                    "one file cannot be inside another"
                    if _in_the_way(path, files)
                    else f"more than {MAX_FILES} files of one student"
                )
                rows.append(replace(one, note=f"{why}{LEFT_OUT}"))
                continue
            if path.casefold() in places:
                at, earlier = places[path.casefold()]
                rows[at] = replace(rows[at], target="", note=f"replaced by the later {one.file}")
                del files[earlier]
            places[path.casefold()], files[path] = (len(rows), path), data
            rows.append(replace(one, target=f"{student}/{lecture}/{path}"))
    left_out = [row.note.removesuffix(LEFT_OUT) for row in rows if row.note.endswith(LEFT_OUT)]
    lost = [row.lost for row in rows if row.lost] or (left_out if not files else [])
    if lost:
        why = "not all of this student's files can be unpacked"
        return {}, [replace(row, target="", note=row.note or why, lost=lost[0]) for row in rows]
    when = max((item.handed_in for item in own if item.handed_in), default=None)
    if when:  # the LMS's own zone is not known, so none is named; nbgrader takes that for UTC
        files[TIME] = f"{when:%Y-%m-%d %H:%M:%S}\n".encode()
    return files, rows


@dataclass
class Space:
    """How many bytes of one student are unpacked, and how many of them are left."""

    most: int

    def __post_init__(self):
        self.left = self.most


def _content(entry: Entry, space: Space) -> bytes:
    """The bytes of an entry, which are taken from the space.

    Raises:
        Unread: there are none.
    """
    if entry.refused:
        raise Unread(entry.refused, lost=entry.refused == ENCRYPTED)
    try:
        content = entry.read(space.left)
    except Oversize:
        large = f"it unpacks to {entry.size / 2**20:.1f} MiB, and all files of a student to {space.most / 2**20:.4g} MiB at most"
        why = f"{large} ({SPACE} times submission_mib, which nbgrader_config.py sets)"
        raise Unread(why, lost=_may_be_the_notebook(entry.file)) from None
    except Exception as error:  # damaged data raise zlib's, lzma's and struct's own errors, too
        log.debug("%s: %s", entry.file, error)
        raise Damaged(f"it is damaged ({error or type(error).__name__})", lost=True) from error
    space.left -= len(content)
    return content


def _may_be_the_notebook(path: str) -> bool:
    return path.lower().endswith(NOTEBOOKS)


def _without_kept_aside(files: list, path: Callable) -> list:
    """The files that a person meant to hand in; without a notebook among them, the notebooks that a tool keeps as well."""
    meant = [file for file in files if not is_aside(path(file))]
    if any(_may_be_the_notebook(path(file)) for file in meant):
        return meant
    return [file for file in files if not is_aside(path(file)) or _may_be_the_notebook(path(file))]


def _in_the_way(path: str, files: dict[str, bytes]) -> bool:
    """Whether one of the files already there would have to be a folder for `path`, or the other way round."""
    parents = {parent.as_posix() for parent in PurePosixPath(path).parents}
    return any(other in parents or other.startswith(f"{path}/") for other in files)


def _without_copy_number(path: str, lecture: str) -> str:
    """The lecture's own name for its notebook, from which an LMS or a browser made "name-1" or "name (1)"."""
    return re.sub(rf"(^|/){re.escape(lecture)}(?:-\d{{1,2}}| ?\(\d{{1,2}}\))\.ipynb$", rf"\g<1>{lecture}.ipynb", path)


def _inside(item: HandedIn, content: bytes, row: Row, space: Space) -> tuple[dict[str, bytes], list[Row]]:
    """The files of a zip that a student handed in, one level deep, notebooks first; of anything else, the file itself."""
    as_it_is = {item.path: content}
    if not item.path.lower().endswith(".zip"):
        return as_it_is, []
    try:
        entries = _in_zip(zipfile.ZipFile(io.BytesIO(content)))
    except Exception as error:  # as in _content
        return as_it_is, [replace(row, note=f"kept as a zip: it is damaged ({error or type(error).__name__})")]
    entries = _without_kept_aside(entries, lambda entry: entry.file)
    entries.sort(key=lambda entry: (not entry.refused, not _may_be_the_notebook(entry.file)))
    unpacked, rows = {}, []
    for entry in entries:
        if len(unpacked) > MAX_FILES:  # one more, which is told
            break
        try:
            unpacked[entry.file] = _content(entry, space)
        except Damaged as why:
            return as_it_is, [replace(row, note=f"kept as a zip: in it, {entry.file[:80]}: {why}")]
        except Unread as why:
            lost = str(why) if why.lost and not entry.refused else ""
            rows.append(replace(row, file=f"{row.file}: {entry.file}", note=f"{why}{LEFT_OUT}", lost=lost))
    if unpacked:
        return unpacked, rows
    return as_it_is, [*rows, replace(row, note="kept as a zip: nothing in it can be unpacked")]


def _safe(path: str) -> str:
    """A relative POSIX path that stays where it is put, on every system."""
    parts = [
        re.sub(r'[\x00-\x1f\x7f<>:"|?*\ud800-\udfff]', "_", part).strip() for part in path.replace("\\", "/").split("/")
    ]
    parts = [part.rstrip(".") if part.strip(".") else "" for part in parts]
    kept = [_shortened(part) for part in parts if part]
    return "/".join(kept[-6:]) or "file"


def _shortened(part: str) -> str:
    stem, dot, ending = part.rpartition(".")
    if len(part.encode()) <= 150:
        return part
    stem, ending = (stem, ending) if dot and len(ending) < 10 else (part, "")
    return marked(stem.encode()[:100].decode("utf-8", "ignore"), part) + (f".{ending}" if ending else "")


# Writing

AGAIN = "download the archive again, or put right what is named, and call collect again"


def _decided(folder: Path, files: dict[str, bytes], lost: str) -> tuple[bool, str]:
    """Whether what was collected before is kept, and a sentence about it."""
    before = _written(folder)
    if lost:
        earlier = bool(before.keys() - {TIME})
        kept = "what was collected before stays" if earlier else "stays empty, which is no zero but an error of ours"
        return earlier, f"{kept}: {AGAIN}"
    if before == files:
        return folder.is_dir(), ""
    old, new = handed_in_at(before), handed_in_at(files)
    if old and new and old > new:
        return True, f"kept what was collected before, for it was handed in later ({old:%Y-%m-%d %H:%M})"
    return False, "replaces what was collected before" if before else ""


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """The files in place of what was in the folder, all or nothing."""
    fresh = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".collecting-", dir=folder.parent))
        for path, content in files.items():
            (fresh / path).parent.mkdir(parents=True, exist_ok=True)
            (fresh / path).write_bytes(content)
        os.chmod(fresh, 0o755)
        aside = fresh.with_name(fresh.name.replace("collecting", "replaced"))
        if folder.exists():
            os.rename(folder, aside)
        os.rename(fresh, folder)
        shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise EngineError(
            f"{folder} cannot be written ({error.strerror}); what was collected before is as it was"
        ) from error
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)


def _written(folder: Path) -> dict[str, bytes]:
    """What stands in the folder now."""
    if not folder.is_dir() or folder.is_symlink():
        return {}
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
