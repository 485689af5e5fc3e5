"""What is wrong with one notebook before it is handed in: a student's own doctor."""

from collections.abc import Iterator
from pathlib import Path

from .doctor import Finding
from .errors import UsageError
from .intake import examine


def examine_notebook(path: Path) -> Iterator[Finding]:
    """Findings about a notebook that is about to be handed in.

    Raises:
        UsageError: there is no such file.
    """
    if not path.is_file():
        raise UsageError(f"{path} is not there; give the notebook that you want to hand in")
    sentences = examine(path)
    for sentence in sentences:
        yield Finding("weak", sentence)
    if not sentences:
        yield Finding("ok", f"{path.name} can be handed in as it is.")
