"""What is wrong with one notebook before it is handed in: a student's own doctor."""

import json
from collections.abc import Iterator
from pathlib import Path

from . import checks
from .checks import FILE
from .doctor import Finding
from .errors import CourseError
from .examine import examine


def examine_notebook(path: Path, course: Path) -> Iterator[Finding]:
    """Findings about a notebook that is about to be handed in, each with the name of its lecture.

    Args:
        course: folder of the released notebooks; the notebook is compared with the one there, unless it is that one.
    Raises:
        UsageError: there is no such file.
    """
    lecture = _lecture(path)
    released = course / lecture / f"{lecture}.ipynb"
    known = released.is_file() and released.resolve() != path.resolve()
    sentences = examine(path, released.read_text(encoding="utf-8", errors="replace") if known else None, lecture)
    if (path.parent / FILE).exists():
        try:
            checks.load(path.parent / FILE, lecture)
        except CourseError as error:
            sentences = [*sentences, str(error)]
    for sentence in sentences:
        yield Finding("weak", f"{lecture}: {sentence}")
    if not sentences:
        yield Finding("ok", f"{path.name} can be handed in as it is.")


def _lecture(path: Path) -> str:
    """The lecture that the checks beside a notebook belong to; else the notebook's own name."""
    try:
        return str(json.loads((path.parent / FILE).read_text(encoding="utf-8"))["lecture"])
    except (OSError, ValueError, KeyError, TypeError):
        return path.stem
