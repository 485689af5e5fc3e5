"""A lecture as bytes, so that it reaches a worker that shares no disk with us."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from .exercises import Lecture, load_lecture

LEFT_OUT = {".ipynb", ".pyc"}  # built from the rest, or for people


@dataclass(frozen=True)
class Bundle:
    """The files of a lecture's source that grading needs, by their relative POSIX path."""

    lecture: str
    files: dict[str, bytes]


def bundle(lecture: Lecture) -> Bundle:
    """exercises.py, checks.json and every other file beside them, but not the notebook nor what it is built from."""
    paths = [path for path in sorted(lecture.folder.rglob("*")) if path.is_file() and _needed(lecture, path)]
    return Bundle(lecture.name, {path.relative_to(lecture.folder).as_posix(): path.read_bytes() for path in paths})


def _needed(lecture: Lecture, path: Path) -> bool:
    parts = path.relative_to(lecture.folder).parts
    hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
    return not hidden and path.suffix not in LEFT_OUT and parts != (f"{lecture.name}.py",)


@contextmanager
def unpacked(packed: Bundle, place: Path | None = None) -> Iterator[Lecture]:
    """The lecture, loaded from a private folder that only this user can enter and that is gone afterwards.

    Args:
        place: where the folder is made; None for the system's place for temporary files.
    """
    with TemporaryDirectory(prefix="lecture-", dir=place, ignore_cleanup_errors=True) as root:
        for name, content in packed.files.items():
            path = Path(root, packed.lecture, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield load_lecture(packed.lecture, Path(root))
