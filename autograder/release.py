"""The students' notebooks in course/: made from the solved ones by nbgrader, and proved to give nothing away.

nbgrader's own GenerateAssignment does the work with the course's configuration, without a gradebook, so that the same
sources give the same bytes on every run. What comes out is looked through before anyone gets it.
"""

import contextlib
import filecmp
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import compute_checksum, is_solution
from traitlets.config import Config, PyFileConfigLoader
from traitlets.log import get_logger

from . import leaks, notebooks
from .check import PROGRESS_FILE, RUNS
from .errors import CourseError
from .exercises import Lecture, lecture_names, load_lecture
from .settings import CONFIG_FILE, Settings

log = logging.getLogger(__name__)


def release(names, settings: Settings, check: bool = False) -> list[Path]:
    """The files of course/ that were written: those that changed.

    Args:
        names: of lectures; none for all.
        check: write nothing, only compare.

    Raises:
        CourseError: a solved notebook is not that of its source, the released one would give something away or score
            as it stands, or (with `check`) course/ is not what would be released. It names the files.
    """
    names = list(names) or lecture_names(settings.solutions)
    lectures = [load_lecture(name, settings.solutions) for name in names]
    notebooks.demand_fresh(names, settings.solutions)
    changed, found = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for lecture in lectures:
            made = generate(lecture, settings, Path(scratch))
            found += leaks.leaks(lecture, made, settings.seed)
            changed += differing(made, settings.course / lecture.name)
        if found:
            raise CourseError(f"not released: {'; '.join(found)}")
        if check:
            _demand_unchanged(changed, names, settings)
            return []
        for lecture in lectures:
            _put(Path(scratch) / lecture.name, settings.course / lecture.name)
    return changed


def generate(lecture: Lecture, settings: Settings, into: Path) -> Path:
    """The folder of the released files of a lecture, made anew as `into/<lecture>` by nbgrader.

    Raises:
        CourseError: nbgrader refuses the solved notebook, or the course has no configuration file.
    """
    config = course_config(settings)
    root = settings.solutions.parent
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.source_directory = settings.solutions.name
    config.CourseDirectory.release_directory = os.path.relpath(into, root)
    config.CourseDirectory.assignment_id = lecture.name
    config.CourseDirectory.notebook_id = lecture.name
    config.GenerateAssignment.no_database = True
    config.GenerateAssignment.pre_convert_hook = _nothing
    config.GenerateAssignment.preprocessors = [
        name for name in config.GenerateAssignment.preprocessors if not name.endswith(".SaveCells")
    ]
    with said_by_nbgrader() as said:
        try:
            GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()
        except NbGraderException as error:
            raise CourseError(f"{lecture.name}: nbgrader cannot release it: {' '.join(said) or error}") from error
    return into / lecture.name


def _nothing(**_):
    """In place of the hook that opens the gradebook: a release needs none."""


def course_config(settings: Settings) -> Config:
    """nbgrader's configuration of the course.

    Raises:
        CourseError: it has none beside its solutions/, or it cannot be run.
    """
    folder = settings.solutions.parent
    if not (folder / CONFIG_FILE).exists():
        raise CourseError(f"there is no {CONFIG_FILE} in {folder}: nbgrader needs it, as the course's folder has it")
    try:
        return PyFileConfigLoader(CONFIG_FILE, path=str(folder)).load_config()
    except Exception as error:  # the file is Python: anything can go wrong in it
        raise CourseError(f"{folder / CONFIG_FILE} cannot be run: {error}") from error


@contextlib.contextmanager
def said_by_nbgrader() -> Iterator[list[str]]:
    """What nbgrader logs meanwhile: kept rather than printed, the telling line of each error in the list given."""
    logger, said = get_logger(), []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: said.append(_telling(record.getMessage().strip().splitlines()))
    before, logger.propagate = (logger.handlers[:], logger.propagate), False
    logger.handlers[:] = [handler]
    try:
        yield said
    finally:
        logger.handlers[:], logger.propagate = before


def _telling(lines: list[str]) -> str:
    """The last line; of a traceback, that which names the exception, for its text may have several."""
    named = [line for line in lines[1:] if re.match(r"[\w.]+: ", line)]
    return named[-1] if lines[0].startswith("Traceback") and named else lines[-1]


def differing(made: Path, there: Path) -> list[Path]:
    """The files under `there` that are not those of `made`: changed, missing, or too many."""
    wanted = {path.relative_to(made) for path in made.rglob("*") if path.is_file()}
    present = {path.relative_to(there) for path in there.rglob("*") if path.is_file() and not _personal(path)}
    changed = {path for path in wanted & present if not filecmp.cmp(made / path, there / path, shallow=False)}
    return sorted(there / path for path in (wanted ^ present) | changed)


def _personal(path: Path) -> bool:
    """Whether a file in course/ is somebody's work or trace and no part of the release."""
    traces = path.name == PROGRESS_FILE or ".edited" in path.name or RUNS in path.parts
    return traces or any(part.startswith(".") for part in path.parts[-2:])


def _demand_unchanged(changed, names, settings):
    if names == lecture_names(settings.solutions) and settings.course.is_dir():
        changed = changed + [path for path in sorted(settings.course.iterdir()) if path.name not in names]
    if changed:
        listed = ", ".join(os.path.relpath(path, settings.course.parent) for path in changed)
        raise CourseError(f"stale: {listed}; run `make release` and commit what it writes")


def _put(made: Path, there: Path) -> None:
    """Make `there` what `made` is; a notebook that somebody has worked in is kept beside the new one."""
    for path in differing(made, there):
        new = made / path.relative_to(there)
        if path.suffix == ".ipynb" and path.exists() and _worked_in(path):
            kept = _free_name(path)
            os.replace(path, kept)
            log.warning("%s holds answers: kept as %s", path, kept.name)
        if new.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{path.name}.part")
            shutil.copyfile(new, part)
            os.replace(part, path)
        else:
            path.unlink(missing_ok=True)


def _worked_in(path: Path) -> bool:
    """Whether an answer in a released notebook differs from what was released: its checksum tells."""
    try:
        cells = nbformat.read(path, as_version=4).cells
        return any(
            is_solution(cell) and cell.metadata.nbgrader.get("checksum") != compute_checksum(cell) for cell in cells
        )
    except Exception:  # not a notebook any more: whatever it is, it is not the release
        return True


def _free_name(path: Path) -> Path:
    numbered = (path.with_suffix(f".edited-{n}.ipynb") for n in range(1, 1_000_000))
    return next(name for name in numbered if not name.exists())


def released_notebook(lecture: Lecture, settings: Settings) -> NotebookNode:
    """The released notebook of a lecture, made anew."""
    with tempfile.TemporaryDirectory() as scratch:
        return notebooks.read(generate(lecture, settings, Path(scratch)) / f"{lecture.name}.ipynb")
