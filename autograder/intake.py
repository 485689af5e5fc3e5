"""A submitted folder becomes a Submission: found, read within limits, its notebook chosen and repaired.

Whatever a student can hand in ends as a Submission, gradable or not, with a sentence that says why. Nothing handed in
is ever changed on disk, and no link is followed.
"""

import hashlib
import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path, PurePosixPath

from .draft import Draft, decoded, draft
from .errors import EngineError, UsageError
from .exercises import Lecture
from .records import Submission
from .repair import (
    Release,
    answered,
    exercise_marked,
    looks_like,
    notebook_text,
    recognised,
    release_of,
    repaired,
    similarity,
)
from .settings import Settings
from .shadows import shadowed
from .students import marked, student_id

log = logging.getLogger(__name__)

MAX_ENTRIES = 2000  # files and folders of one submission that are looked at
MAX_FILES = 500  # files beside the notebook that are kept
MAX_NOTEBOOKS = 20  # notebooks of one submission that are read
MAX_DEPTH = 8  # folders in folders
MAX_SAID = 10  # files left out that are named one by one
LEFT_BEHIND = {
    "__macosx",
    "thumbs.db",
    "desktop.ini",
    "$recycle.bin",
    "system volume information",
}  # by operating systems
JUNK = LEFT_BEHIND | {"__pycache__", "node_modules", "venv"}  # and by tools, inside a student's folder
RENAMED = (".ipynb.txt", ".json", ".txt")  # what browsers and systems make of .ipynb
EXPECTED = "expected a folder that holds STUDENT/{lecture}/{lecture}.ipynb for every student"


@dataclass(frozen=True)
class Found:
    """One student's folder, not yet read.

    Attributes:
        student: an id that nbgrader can hold.
        original: the name of the folder as it is on disk.
        folder: where the files of this lecture are, the student's whole folder when there is none for the lecture.
        whole: `folder` is the student's whole folder, in which only what belongs to the lecture counts.
        problem: why it is not to be read, as a sentence; "" when it is.
    """

    student: str
    lecture: str
    folder: Path
    original: str
    whole: bool = False
    problem: str = ""


# Finding


def find(path: Path | str, lecture_name: str) -> list[Found]:
    """One record for every student's folder in `path`, in the order of their names.

    `path` holds STUDENT/LECTURE/*.ipynb. It may also be one student's folder, or that student's folder of the lecture.
    Loose files, hidden files and what operating systems leave behind are passed over.

    Raises:
        UsageError: `path` is missing, a file, empty, or holds the notebooks of many students without a folder for each.
    """
    path, expected = Path(os.path.abspath(path)), EXPECTED.format(lecture=lecture_name)
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        hint = (
            "; for a zip from an LMS call `autograder collect` first"
            if path.suffix.lower() in (".zip", ".ipynb")
            else ""
        )
        raise UsageError(f"{path} {what}; {expected}{hint}")
    entries = _listed(path, LEFT_BEHIND)
    folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False) or entry.is_symlink()]
    notebooks = [entry for entry in entries if entry.name.lower().endswith(".ipynb")]
    own = _lecture_folder(path, lecture_name)
    if own is not None and not any(_lecture_folder(Path(e.path), lecture_name) for e in folders if e.path != str(own)):
        if _holds_students(own):
            raise UsageError(
                f"{path} holds {own.name}/STUDENT; give {own} instead, or {expected.removeprefix('expected ')}"
            )
        return [Found(student_id(path.name), lecture_name, own, path.name)]
    if notebooks and not folders:
        return [_one_student(path, lecture_name, notebooks, expected)]
    if not folders:
        raise UsageError(f"there is no student's folder in {path}; {expected}")
    return _with_distinct_ids([_found(entry, lecture_name) for entry in folders])


def _listed(path: Path, junk: set[str] | None = JUNK) -> list[os.DirEntry]:
    """What is in a folder, by name, without hidden entries and junk; all of it where `junk` is None."""
    try:
        with os.scandir(path) as entries:
            kept = [entry for entry in entries if junk is None or not is_aside(entry.name, junk)]
    except OSError as error:
        raise EngineError(
            f"{path} cannot be listed ({error.strerror}); check its permissions and call again"
        ) from error
    return sorted(kept, key=lambda entry: entry.name)


def is_aside(path: str, junk: set[str] = JUNK) -> bool:
    """Whether a path is hidden or junk, or in a folder that is: what a tool keeps, not what a person meant to hand in."""
    parts = PurePosixPath(path).parts
    return any((part.startswith(".") and part != "..") or part.lower() in junk for part in parts)


def _one_student(path: Path, lecture_name: str, notebooks: list[os.DirEntry], expected: str) -> Found:
    """`path` holds notebooks and no folders: it is a student's folder of this lecture, or nothing we understand."""
    if _same(path.name, lecture_name):
        return Found(student_id(path.parent.name), lecture_name, path, path.parent.name)
    if [entry.name for entry in notebooks] == [f"{lecture_name}.ipynb"]:
        return Found(student_id(path.name), lecture_name, path, path.name)
    raise UsageError(
        f"{path} holds {len(notebooks)} notebooks and no folders, so it is not known whose they are; {expected}. "
        "For the downloads of an LMS call `autograder collect`"
    )


def _found(entry: os.DirEntry, lecture_name: str) -> Found:
    student, folder = student_id(entry.name), Path(entry.path)
    if entry.is_symlink():
        return Found(
            student,
            lecture_name,
            folder,
            entry.name,
            problem="The folder is a link to another place; links are not followed.",
        )
    own = _lecture_folder(folder, lecture_name)
    return Found(student, lecture_name, own or folder, entry.name, whole=own is None)


def _lecture_folder(folder: Path, lecture_name: str) -> Path | None:
    """The folder of the lecture inside a student's: of that name, or one that differs in case and punctuation only."""
    try:
        if folder.is_symlink() or not folder.is_dir():
            return None
        inside = [entry for entry in _listed(folder) if entry.is_dir(follow_symlinks=False)]
    except (OSError, EngineError):  # said of this student alone, when the folder is read
        return None
    exact = [entry for entry in inside if entry.name == lecture_name]
    alike = [entry for entry in inside if _same(entry.name, lecture_name)]
    return Path((exact + alike)[0].path) if alike else None


def _holds_students(folder: Path) -> bool:
    """Whether there are several folders with notebooks in them and no notebook beside them."""
    entries = _listed(folder)
    inside = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    beside = any(entry.name.lower().endswith(".ipynb") for entry in entries)
    return not beside and sum(any(e.name.lower().endswith(".ipynb") for e in _listed(path)) for path in inside) > 1


def _same(name: str, lecture_name: str) -> bool:
    return _letters(name) == _letters(lecture_name)


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _with_distinct_ids(found: list[Found]) -> list[Found]:
    """Ids that differ in more than case and accents' spelling, as some file systems and databases demand."""
    taken, distinct = set(), []
    for record in found:
        student = record.student if record.student.casefold() not in taken else marked(record.student, record.original)
        taken.add(student.casefold())
        distinct.append(Found(student, *list(vars(record).values())[1:]))
    return distinct


# Reading


def read(found: Found, lecture: Lecture, released_notebook_json: str, settings: Settings) -> Submission:
    """The Submission in one student's folder: its notebook repaired, or the reason why there is none.

    Args:
        released_notebook_json: what the notebook is repaired to; files of the release beside it (checks.json, data) are
            taken from `settings.course` and win over those handed in.
    Raises:
        CourseError: the released notebook cannot be read.
        EngineError: the folder cannot be read now, for a reason not the student's (permissions, a failing disk).
    """
    release, limit = release_of(released_notebook_json), int(settings.submission_mib * 2**20)
    if found.problem:
        return Submission(found.student, lecture.name, None, ungradable=found.problem)
    listing = list_files(found.folder)
    chosen = choose(listing, lecture.name, release, limit, found.whole, settings.course)
    if not chosen.path:
        listing, chosen = _or_aside(listing, chosen, lecture.name, release, limit, found.whole)
    digest = _digest(listing, limit)
    if chosen.reason:
        return Submission(
            found.student, lecture.name, None, repairs=chosen.repairs, ungradable=chosen.reason, digest=digest
        )
    files, said = _files_beside(chosen.path, listing, limit)
    files |= release_files(settings.course / lecture.name, lecture.name)
    repairs = tuple(dict.fromkeys((*chosen.repairs, *said)))
    return Submission(found.student, lecture.name, chosen.notebook, files, repairs, digest=digest)


@dataclass(frozen=True)
class Listing:
    """The files of one folder by relative POSIX path.

    Attributes:
        sizes: in bytes.
        newest: times of change, nanoseconds.
        strange: what is neither a file nor a folder, or a folder that is called like a notebook, and what it is, in words;
            never opened.
        contents: what was read so far.
        full: there was more than is looked at.
    """

    folder: Path
    sizes: dict[str, int]
    newest: dict[str, int]
    strange: dict[str, str]
    contents: dict[str, bytes]
    full: bool

    def read(self, path: str) -> bytes:
        if path not in self.contents:
            self.contents[path] = _content(self.folder / path, self.sizes[path])
        return self.contents[path]

    def begins_like_json(self, path: str) -> bool:
        """Whether a file's first character is "{", in whatever encoding."""
        return _content(self.folder / path, 16).lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"{")


def list_files(folder: Path, aside: bool = False) -> Listing:
    """What is in `folder` and the folders in it; nothing is opened and no link followed.

    Args:
        aside: of the files only notebooks that are hidden or junk, which are passed over else.
    """
    sizes, newest, strange, waiting, seen = {}, {}, {}, [(folder, 0)], 0
    while waiting:
        here, depth = waiting.pop(0)
        for entry in _listed(here, None if aside else JUNK):
            seen += 1
            if seen > MAX_ENTRIES:
                return Listing(folder, sizes, newest, strange, {}, True)
            path = Path(entry.path).relative_to(folder).as_posix()
            kind = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(kind.st_mode):
                if not aside or (_is_called_a_notebook(path) and is_aside(path)):
                    sizes[path], newest[path] = kind.st_size, kind.st_mtime_ns
            elif not stat.S_ISDIR(kind.st_mode):
                strange[path] = STRANGE.get(stat.S_IFMT(kind.st_mode), "neither a file nor a folder")
            else:
                if path.lower().endswith(".ipynb"):
                    strange[path] = "a folder"
                if depth < MAX_DEPTH:
                    waiting.append((Path(entry.path), depth + 1))
                else:
                    strange[path] = f"a folder {MAX_DEPTH} folders deep, and those are not looked into"
    return Listing(folder, sizes, newest, strange, {}, False)


STRANGE = {
    stat.S_IFLNK: "a link, and links are not followed",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _content(path: Path, size: int) -> bytes:
    """The content of a regular file, at most `size` bytes of it."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            return file.read(size)
    except OSError as error:
        raise EngineError(f"{path} cannot be read ({error.strerror}); check its permissions and call again") from error


@dataclass(frozen=True)
class Choice:
    """The notebook that counts, repaired; or the reason why there is none.

    Attributes:
        answered: how many exercises are worked on in it.
    """

    path: str = ""
    notebook: str = ""
    repairs: tuple[str, ...] = ()
    reason: str = ""
    answered: int = 0


def choose(
    listing: Listing, lecture_name: str, release: Release, limit: int, whole: bool = False, course: Path | None = None
) -> Choice:
    """The notebook that counts: the one with most answers; of equals that named after the lecture, else the newest.

    A notebook that cannot be graded gives way to the next.

    Args:
        course: folder of the released lectures, to tell which of them another notebook is of; None where it is not at hand.
    """
    drafts, choices, unread, left = {}, {}, [], 2 * limit
    for candidates in _candidates(listing, lecture_name, whole):
        if any(choice.answered for choice in choices.values()):
            break
        for number, path in enumerate(candidates):
            size = listing.sizes[path]
            if size <= limit and (number >= MAX_NOTEBOOKS or size > left):
                unread.append(path)
                continue
            left -= size if size <= limit else 0
            drafts[path] = draft(listing.read(path)) if size <= limit else Draft(reason=_too_large(path, size, limit))
            choices[path] = _prepared(path, drafts[path], release, lecture_name, course)
    kept = [path for path in drafts if _is_called_a_notebook(path) or not choices[path].reason]
    kept = kept or [path for path in drafts if _is_renamed(path, lecture_name)]
    few = list(_about_the_number(listing, len(drafts), len(unread)))
    if not kept:
        return Choice(reason=" ".join([_nothing(listing, lecture_name, whole), *few]))

    def rank(path):
        exact, depth, alike = _exact(path, lecture_name), path.count("/"), similarity(drafts[path].cells, release)
        name = (exact, -depth if exact else 0, _is_called_a_notebook(path))
        return (not choices[path].reason, choices[path].answered, *name, alike, -depth, listing.newest[path], path)

    best, *_ = order = sorted(kept, key=rank, reverse=True)
    chosen = choices[best]
    if chosen.reason:
        return replace(chosen, reason=" ".join([chosen.reason, *few]))
    return replace(chosen, repairs=(*_about_the_name(best, order, choices, lecture_name), *few, *chosen.repairs))


def _or_aside(
    listing: Listing, nothing: Choice, lecture_name: str, release: Release, limit: int, whole: bool
) -> tuple[Listing, Choice]:
    """Where nobody handed in a notebook, the one that can be graded among those that a tool keeps, and the files with it."""
    aside = list_files(listing.folder, aside=True)
    found = choose(aside, lecture_name, release, limit, whole)
    if found.reason:
        return listing, nothing
    said = (
        f"There is no notebook but {_shown(found.path)}, where tools keep copies of their own; it was graded, and may lack "
        "your last changes."
    )
    size, newest, content = aside.sizes[found.path], aside.newest[found.path], aside.read(found.path)
    with_it = replace(
        listing,
        sizes={**listing.sizes, found.path: size},
        newest={**listing.newest, found.path: newest},
        contents={**listing.contents, found.path: content},
    )
    return with_it, replace(found, repairs=(said, *found.repairs))


def _candidates(listing: Listing, lecture_name: str, whole: bool) -> Iterator[list[str]]:
    """The files that may be the notebook, in the order in which they are read: by their names, then by how they begin."""
    counted = [path for path in listing.sizes if _counts(path, lecture_name, whole)]
    named = lambda path: (not _exact(path, lecture_name), not _named_after(path, lecture_name))
    counted.sort(key=lambda path: (*named(path), path.count("/"), path))
    yield [path for path in counted if _is_called_a_notebook(path)]
    others = [path for path in counted if not _is_called_a_notebook(path)]
    yield [path for path in others if _is_renamed(path, lecture_name) or listing.begins_like_json(path)]


def _is_called_a_notebook(path: str) -> bool:
    return path.lower().endswith(".ipynb")


def _is_renamed(path: str, lecture_name: str) -> bool:
    return path.lower().endswith(RENAMED) and _named_after(path, lecture_name)


def _counts(path: str, lecture_name: str, whole: bool) -> bool:
    """Whether a file belongs to the lecture; `whole`: it is one of a student's whole folder."""
    return not whole or "/" not in path or _named_after(path, lecture_name)


def _exact(path: str, lecture_name: str) -> bool:
    return PurePosixPath(path).name == f"{lecture_name}.ipynb"


def _named_after(path: str, lecture_name: str) -> bool:
    return _letters(lecture_name) in _letters(PurePosixPath(path).name)


def _prepared(path: str, read: Draft, release: Release, lecture_name: str, course: Path | None) -> Choice:
    if read.reason:
        return Choice(path, reason=read.reason, repairs=read.repairs)
    places, said = repaired(read.cells, release)
    if not recognised(places, release):
        return Choice(path, reason=_another_notebook(read, lecture_name, course))
    return Choice(path, notebook_text(places, release), (*read.repairs, *said), answered=answered(places, release))


def _another_notebook(read: Draft, lecture_name: str, course: Path | None) -> str:
    wanted = f"Hand in the {lecture_name}.ipynb that you worked on."
    if not any(cell.source.strip() for cell in read.cells):
        return f"The notebook has no cells with anything in them. {wanted}"
    if read.language:
        return f"The notebook is written in {read.language}, and has none of the exercises of {lecture_name}. {wanted}"
    strangers = (exercise_marked(cell.mark) for cell in read.cells)
    first, other = next(filter(None, strangers), ""), looks_like(read.cells, course, lecture_name)
    seen = f"it has {first[:60]}, which {lecture_name} lacks" if first else ""
    hint = ", and ".join(filter(None, [seen, f"it looks like {other}" if other else ""]))
    return f"None of the exercises of {lecture_name} is in the notebook{f' ({hint})' if hint else ''}. {wanted}"


def _about_the_name(best: str, order: list[str], choices: dict[str, Choice], lecture_name: str) -> Iterator[str]:
    if not _exact(best, lecture_name):
        yield f"The notebook is called {_shown(best)} and not {lecture_name}.ipynb; it was taken all the same."
    if len(order) > 1:
        others = ", ".join(_shown(path) + _why_not(choices[path]) for path in order if path != best)
        yield f"There are {len(order)} notebooks; {_shown(best)} was graded, not {others}."


def _about_the_number(listing: Listing, read: int, unread: int) -> Iterator[str]:
    """What is to be said where not all that could be the notebook was looked at."""
    if unread:
        yield (
            f"Only {read} of the {read + unread} files that could be the notebook were looked at, those named after the "
            "lecture first: hand in one notebook."
        )
    if listing.full:
        yield f"More than {MAX_ENTRIES} files were handed in; the rest was not looked at."


def _why_not(choice: Choice) -> str:
    return " (which cannot be read)" if choice.reason else "" if choice.answered else " (in which nothing is answered)"


def _nothing(listing: Listing, lecture_name: str, whole: bool) -> str:
    wanted = f"Hand in the file {lecture_name}.ipynb."
    others = [_shown(path) for path in listing.sizes if _counts(path, lecture_name, whole)]
    strange = {path: what for path, what in listing.strange.items() if _counts(path, lecture_name, whole)}
    for path, what in strange.items():
        if not others or path.lower().endswith(".ipynb"):
            return f"{_shown(path)} is {what}: there is no notebook in it that could be read. {wanted}"
    if not others:
        return f"Nothing was handed in for {lecture_name}. {wanted}"
    what = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    kinds = {
        ending: advice
        for ending, advice in ADVICE.items()
        if any(path.lower().endswith(ending) for path in listing.sizes)
    }
    advice = next(iter(kinds.values()), "")
    return f"There is no notebook (.ipynb) in what was handed in ({what}). {advice}{wanted}"


ADVICE = {
    ".py": "A Python script lacks the cells that are graded. ",
    ".zip": "Unpack the archive and hand in the notebook itself. ",
    ".html": "An exported web page cannot be run. ",
    ".pdf": "A PDF cannot be run. ",
}


def _too_large(path: str, size: int, limit: int) -> str:
    return (
        f"{_shown(path)} is {size / 2**20:.1f} MiB large; at most {limit / 2**20:.0f} MiB are read. "
        "Clear the outputs of all cells (Edit menu), save, and hand it in again."
    )


def _files_beside(notebook: str, listing: Listing, limit: int) -> tuple[dict[str, bytes], list[str]]:
    """The other files, by their path from the notebook's folder, and what was left out of them."""
    base = PurePosixPath(*takewhile(lambda part: not is_aside(part), PurePosixPath(notebook).parts[:-1]))
    left, files, said = limit - listing.sizes[notebook], {}, []
    others = [path for path in listing.sizes if path != notebook and not path.lower().endswith(".ipynb")]
    others = [path for path in others if base == PurePosixPath(".") or base in PurePosixPath(path).parents]
    for path in sorted(others, key=lambda path: (listing.sizes[path], path)):
        name = PurePosixPath(path).relative_to(base).as_posix()
        if reason := _left_out(name):
            said.append(f"{_shown(name)} was left out: {reason}.")
        elif listing.sizes[path] > left or len(files) >= MAX_FILES:
            said.append(
                f"{_shown(name)} ({listing.sizes[path] / 2**20:.1f} MiB) was left out: it is more than is read in all."
            )
        else:
            content = listing.read(path)
            left -= listing.sizes[path]
            if name == "timestamp.txt" and handed_in_at({name: content}) is None:
                log.debug("%s: timestamp.txt is no time", listing.folder)
            else:
                files[name] = content
    said += [
        f"{_shown(path)} was left out: it is {what}." for path, what in listing.strange.items() if what != "a folder"
    ]
    said = said[:MAX_SAID] + [f"{len(said) - MAX_SAID} more files were left out."] * (len(said) > MAX_SAID)
    return files, said


def _left_out(name: str) -> str:
    if name.encode("utf-8", "replace").decode() != name or "\\" in name or any(character < " " for character in name):
        return "its name cannot be used on every machine"
    if library := shadowed(name):
        return f"it would take the place of {library}; give it another name"
    return ""


def release_files(folder: Path, lecture_name: str) -> dict[str, bytes]:
    """The files that the release puts beside its notebook, by relative path; {} when there are none."""
    if not folder.is_dir():
        return {}
    listing = list_files(folder)
    return {path: listing.read(path) for path in listing.sizes if path != f"{lecture_name}.ipynb"}


def handed_in_at(files: dict[str, bytes]) -> datetime | None:
    """The time in timestamp.txt, as nbgrader writes it, UTC where it names no zone; None when there is none."""
    text = decoded(files.get("timestamp.txt", b"")[:200])[0].strip().removesuffix("UTC").strip()
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _digest(listing: Listing, limit: int) -> str:
    """SHA-256 over every file: path, size and content, or the time of its last change where it is too large."""
    total, left = hashlib.sha256(), 2 * limit
    for path in sorted(listing.sizes):
        left -= listing.sizes[path]
        content = listing.read(path) if left >= 0 else b"%d" % listing.newest[path]
        total.update(f"{len(path)} {path} {listing.sizes[path]} ".encode("utf-8", "surrogatepass"))
        total.update(hashlib.sha256(content).digest())
    return total.hexdigest()


def _shown(path: str) -> str:
    """A file name fit for a sentence."""
    text = path.encode("utf-8", "replace").decode()
    text = "".join(character if character.isprintable() else "?" for character in text)
    return text if len(text) <= 60 else f"{text[:40]}...{text[-15:]}"
