"""What a check answers to code typed into a released notebook, as a student reads it."""

import contextlib
import io
import linecache
from pathlib import Path

from autograder.check import Checker, CheckFailed

COURSE = Path(__file__).parents[2] / "course"


def transcript(lecture: str, code: str) -> str:
    """The text that the check of the function defined in `code` shows, the progress line left out."""
    name = f"<answer {len(linecache.cache)}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)  # so that its source can be read
    space: dict = {}
    exec(compile("import torch", "<setup>", "exec"), space)
    known = set(space)
    exec(compile(code, name, "exec"), space)
    function = next(value for key, value in space.items() if key not in known and callable(value))
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(CheckFailed):
        Checker(lecture, COURSE / lecture)(function)
    lines = shown.getvalue().splitlines()
    return "\n".join(line for line in lines if "exercises pass their visible checks" not in line)
