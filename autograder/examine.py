"""What would be repaired in a notebook, or is wrong with it, told to the student before it is handed in."""

import re
from collections import Counter
from pathlib import Path

from .draft import Cell, draft, syntax_error
from .errors import UsageError
from .repair import Place, Release, recognised, release_of, repaired, was_changed
from .shadows import shadowed

UNANSWERED = re.compile(r"raise NotImplementedError|YOUR (?:CODE|ANSWER) HERE")
NO_PYTHON = "The cell of {} is not valid Python ({}): it would earn nothing until that is corrected."
CLEAN = (
    "All this is put right by itself when the notebook is graded, and listed beside the score. To hand in a clean one, "
    "get the released notebook again and copy your answers into it."
)


def examine(path: Path | str, released: str | None, lecture_name: str, largest_mib: float = 20.0) -> list[str]:
    """Plain sentences about the notebook at `path`, each with what to do about it; none when nothing is to be said.

    Args:
        released: JSON text of the lecture's released notebook; None where it is not at hand, and then only what the
            notebook says about itself is looked at.
        largest_mib: the largest notebook that is read when graded.
    Raises:
        UsageError: there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(
            f"{path} is no file; give the path of a notebook, for example course/{lecture_name}/{lecture_name}.ipynb"
        )
    said = []
    if path.name != f"{lecture_name}.ipynb":
        said.append(f"The notebook is called {path.name}: rename it to {lecture_name}.ipynb before you hand it in.")
    size = path.stat().st_size / 2**20
    if size > largest_mib:
        return [
            *said,
            f"It is {size:.1f} MiB large, and at most {largest_mib:.0f} MiB are read: clear all outputs and save it.",
        ]
    read = draft(path.read_bytes())
    if read.reason:
        return [*said, read.reason]
    repairs = list(read.repairs)
    if released is None:
        said += _about_itself(read.cells)
    else:
        release = release_of(released)
        places, more = repaired(read.cells, release)
        if not recognised(places, release):
            return [*said, f"None of the exercises of {lecture_name} is in it: is it the notebook of another lecture?"]
        repairs += more
        said += _about_answers(places, release)
    return said + repairs + [CLEAN] * bool(repairs) + _about_files(path)


def _about_answers(places: list[Place], release: Release) -> list[str]:
    said = []
    for marked in release.of_role("answer", "written"):
        cell = next((place.cell for place in places if place.id == marked.id), None)
        if cell is None:
            continue  # said among the repairs
        if not was_changed(cell.source, marked.source):
            said.append(f"{marked.exercise} is not answered yet: its cell is as released.")
        elif marked.role == "answer" and (error := syntax_error(cell.source)):
            said.append(NO_PYTHON.format(marked.exercise, error))
    return said


def _about_itself(cells: tuple[Cell, ...]) -> list[str]:
    said = []
    counts = Counter(cell.grade_id for cell in cells if cell.grade_id)
    for cell in cells:
        if cell.kind == "code" and cell.mark.get("solution") and (error := syntax_error(cell.source)):
            said.append(NO_PYTHON.format(cell.grade_id, error))
        elif cell.mark.get("solution") and UNANSWERED.search(cell.source):
            said.append(f"{cell.grade_id} is not answered yet.")
        if cell.mark.get("solution") and not cell.mark.get("grade") and f"check_{cell.grade_id}" not in counts:
            said.append(f"The check of {cell.grade_id} is missing; it is put back when the notebook is graded.")
    said += [f"The cell {id} is there {count} times: delete the copies." for id, count in counts.items() if count > 1]
    if not counts:
        said.append("No cell has a mark for grading: is this the notebook that you were given?")
    return said


def _about_files(path: Path) -> list[str]:
    names = sorted(other.name for other in path.parent.iterdir() if not other.name.startswith("."))
    names += sorted(f"{other.parent.name}/{other.name}" for other in path.parent.glob("*/*.py"))
    found = [(name, shadowed(name)) for name in names]
    return [f"{name} beside the notebook takes the place of {what}: rename it." for name, what in found if what]
