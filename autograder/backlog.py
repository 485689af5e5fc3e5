"""Whether a class has anything to grade, told from the times of files before anything large is imported.

A guess, for speed alone: where it is wrong workers start for nothing, or later than they could.
"""

import math
import os
from pathlib import Path

from .files import record_name, records
from .settings import Settings
from .students import student_id

MOST = 200  # files and folders of one student, or of what all scores rest on, that are looked at


def backlog(folder: Path, lecture: str, settings: Settings) -> int:
    """How many students' folders there are in `folder`; 0 where nothing has changed since the last of them was graded."""
    students = [entry for entry in _inside(folder) if entry.is_dir() and not entry.name.startswith(".")]
    place = records(settings.out, lecture)
    graded = [_changed(place / record_name(student_id(entry.name))) for entry in students]
    handed_in = [_newest(Path(entry.path)) for entry in students]
    below = [settings.solutions / lecture, settings.course / lecture, Path(__file__).parent]
    older = [max(map(_newest, below)) < min(graded, default=0), *map(float.__lt__, handed_in, graded)]
    return 0 if all(older) else len(students)


def _newest(folder: Path) -> float:
    """When the latest change was made in a folder; for ever later where there is more in it than is looked at."""
    newest, waiting, looked_at = _changed(folder), [folder], 0
    while waiting:
        for entry in _inside(waiting.pop()):
            if entry.name == "__pycache__":
                continue
            looked_at += 1
            newest = max(newest, _changed(Path(entry.path))) if looked_at <= MOST else math.inf
            if entry.is_dir(follow_symlinks=False) and looked_at <= MOST:
                waiting.append(Path(entry.path))
    return newest


def _inside(folder: Path) -> list[os.DirEntry]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # whoever grades says why
        return []


def _changed(path: Path) -> float:
    """When a file was last changed, or put where it is; 0 where it is not there."""
    try:
        found = path.lstat()
    except OSError:
        return 0.0
    return max(found.st_mtime, found.st_ctime)
