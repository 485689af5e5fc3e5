"""Files that are replaced whole or not at all, and names for them that any file system takes."""

import errno
import hashlib
import os
import re
import tempfile
from pathlib import Path

from .errors import StorageError

_PART = ".part"
_PLAIN = re.compile(r"[a-z0-9_][a-z0-9._-]{0,59}")
_HASHED = re.compile(r"-[0-9a-f]{12}$")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")  # devices on Windows, with any extension


def write_whole(path: Path, content: str | bytes) -> None:
    """Put `content` at `path`: a reader, or a crash at any moment, leaves all of the old file or all of the new one.

    Text is written as UTF-8; what that cannot hold (half of a surrogate pair in a folder's name) as a backslash escape.

    Raises:
        StorageError: the disk is full, or the place cannot be written; the old file is still there.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=_PART)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise storage_error(path, error) from error
        raise


def make_empty(path: Path) -> None:
    """Make an empty file, which says by being there all that it says; where the machine stops it may be lost.

    Raises:
        StorageError: the place cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise storage_error(path, error) from error


def demand_writable(folder: Path, inside: tuple[str, ...] = ()) -> None:
    """Make sure, before any work is done, that files can be made in `folder`, and in those of the named ones that are in it.

    Raises:
        StorageError: one of them cannot be written.
    """
    for place in (folder, *(folder / name for name in inside if (folder / name).exists())):
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place, prefix=".", suffix=_PART):
                pass
        except OSError as error:
            raise storage_error(place, error) from error


def remove_parts(folder: Path) -> None:
    """Remove what `write_whole` left below `folder` when its process was killed; nobody may be writing there."""
    for part in folder.rglob(f".*{_PART}"):
        part.unlink(missing_ok=True)


def storage_error(path: Path, error: OSError) -> StorageError:
    """What kept `path` from being written, as a sentence that says what to do."""
    why, step = _WHY.get(error.errno, (error.strerror or str(error), "Put that right"))
    return StorageError(f"{path} cannot be written: {why}. {step} and call again; what is graded is kept.")


_FULL = ("the disk is full", "Free some space")
_IN_THE_WAY = ("a file is in the place of a folder", "Move it away, or give another folder,")
_WHY = {  # what the system says: what it means, what to do
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
}


def safe_name(text: str) -> str:
    """A file name for any text: `text` itself where every file system takes it, else what is readable of it and a hash.

    Two texts never share a name, also where upper and lower case are the same.

    >>> safe_name("ada"), safe_name("Ada L."), safe_name("../etc")
    ('ada', 'ada-l-ddd52c224a98', 'etc-f7f9121fdb53')
    """
    if _PLAIN.fullmatch(text) and not text.endswith(".") and not _HASHED.search(text) and not _RESERVED.match(text):
        return text
    readable = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}-{digest}" if readable else f"name-{digest}"


def records(out: Path, lecture: str) -> Path:
    """The folder of OUT that holds a record of every student who was graded."""
    return Path(out) / "report" / "submissions" / safe_name(lecture)


def record_name(student: str) -> str:
    """What the record of a student is called there."""
    return f"{safe_name(student)}.json"
