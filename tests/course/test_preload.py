"""Kernels start with everything that a lecture imports: no submission pays for it."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import preload
from autograder.exercises import load_lecture

SOLUTIONS = Path(__file__).parents[2] / "solutions"
NOTEBOOKS = sorted(SOLUTIONS.glob("[0-9][0-9]_*/*.ipynb"))
TELL = "import json, sys; from autograder import preload; preload.import_all(sys.argv[1:]); print(json.dumps([*sys.modules]))"


@pytest.fixture(scope="module")
def warm():
    """Names of the modules in a process that has imported the list."""
    command = [sys.executable, "-c", TELL, *preload.NOTEBOOKS]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(json.loads(shown.splitlines()[-1]))


def imported(notebook):
    """Names of the modules that the code cells of a notebook import."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        lines = "".join(cell["source"]).splitlines() if cell["cell_type"] == "code" else []
        for node in ast.walk(ast.parse("\n".join("pass" if line.startswith(("%", "!")) else line for line in lines))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_lecture_hides_is_known_before_it_is_loaded(notebook):
    """Then its kernels come from a stem, as those of the others do."""
    lecture = load_lecture(notebook.stem, SOLUTIONS)
    assert preload.hidden_by(lecture.folder / "exercises.py") == lecture.without


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_lecture_imports_is_there_before(notebook, warm):
    hidden = load_lecture(notebook.stem, SOLUTIONS).without
    needed = {name for name in imported(notebook) if name.split(".")[0] not in hidden}
    assert needed <= warm | set(sys.builtin_module_names), "add it to autograder.preload.NOTEBOOKS"
