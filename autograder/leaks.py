"""What a released folder would give away: answers, hidden cases, references, unlocked checks, points for nothing.

Texts are compared without white space and comment signs, Python also in the form that its tree has, so that a copied
answer is found reformatted or commented out. What is shorter than TRIVIAL says nothing: `return x` is no secret.
"""

import ast
import base64
import binascii
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from . import checks, judge, notebooks, probe
from .errors import CourseError
from .exercises import Exercise, Lecture, standalone_text
from .records import Reply

TRIVIAL = 12  # characters of a whole body, without white space
TELLING_LINE = 21  # characters of one line of it
TELLING_SENTENCE = 30  # characters of a sentence of prose
HIDDEN_SEED = 1  # stands for any seed of hidden cases when the blank notebook is judged


def leaks(lecture: Lecture, folder: Path, seed: int = 0) -> list[str]:
    """One sentence for everything that is wrong with the released `folder` of a lecture.

    Args:
        seed: the private seed of the hidden cases, where the configuration fixes one; else 0.
    """
    path = folder / f"{lecture.name}.ipynb"
    try:
        notebook = notebooks.read(path)
    except CourseError as error:
        return [str(error)]
    texts = dict(_texts(folder))
    found = [
        *_files(lecture, folder),
        *_secret_texts(lecture, texts),
        *_seeds(seed, texts),
        *_data(lecture, folder),
        *_cells(lecture, notebook),
        *_points(lecture, notebook),
    ]
    return [f"{lecture.name}: {sentence}" for sentence in found]


# ---- everything that can be read ------------------------------------------------------------------------------------


def _texts(folder) -> Iterator[tuple[str, str]]:
    """(where, text) for every text of a released folder: cells, metadata, data and what is encoded in it."""
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        raw = path.read_bytes().decode("utf-8", errors="replace")
        if path.suffix not in (".ipynb", ".json"):
            yield name, raw
            continue
        try:
            strings = list(_strings(json.loads(raw)))
        except ValueError:
            strings = [raw]
        for number, text in enumerate(strings, start=1):
            yield f"{name}, text {number}", text


def _strings(node) -> Iterator[str]:
    """Every text in a JSON tree, a list of lines as one; base64 also decoded."""
    if isinstance(node, str):
        yield node
        yield from _decoded(node)
    elif isinstance(node, list) and node and all(isinstance(item, str) for item in node):
        yield "".join(node)
        for item in node:
            yield from _decoded(item)
    elif isinstance(node, (list, dict)):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _strings(item)


def _decoded(text):
    try:
        yield base64.b64decode(text, validate=True).decode("latin-1") if len(text) > 40 else ""
    except (binascii.Error, ValueError):
        return


# ---- files, texts, seeds --------------------------------------------------------------------------------------------


def _files(lecture, folder):
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".pyc") or "exercises" in path.name:
            yield f"{path.relative_to(folder).as_posix()} is no file for students"
    sources = [path.read_bytes() for path in lecture.folder.glob("*.py")]
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path.read_bytes() in sources:
            yield f"{path.relative_to(folder).as_posix()} is a copy of a source"


def _secret_texts(lecture, texts):
    forms = {where: (_compact(text), _compact(_as_parsed(text)), _prose(text)) for where, text in texts.items()}
    hints = {"".join(exercise.hints) for exercise in lecture.exercises}
    told = set()
    for secret in secrets(lecture):
        for where, three in forms.items():
            allowed = secret.line and texts[where] in hints
            if not allowed and (secret.what, where) not in told and any(secret.needle in form for form in three):
                told.add((secret.what, where))
                yield f"{where} holds {secret.what}"
                break
    for where, text in texts.items():
        for mark in (notebooks.BEGIN, notebooks.END, "autograder.exercises", "@exercise("):
            if mark in text:
                yield f"{where} holds {mark!r}, which belongs to the sources"


@dataclass(frozen=True)
class Secret:
    """A text that no student may find.

    Attributes:
        needle: the text as it is looked for.
        line: it is one line of several: a hint may say it.
    """

    what: str
    needle: str
    line: bool = False


def secrets(lecture: Lecture) -> Iterator[Secret]:
    """Everything that no student may find."""
    cells = notebooks.read(notebooks.stored_path(lecture)).cells
    graded = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in cells}
    shown = [_compact(cell.source) for cell in cells if cell not in graded.values()]
    for exercise in lecture.exercises:
        id, solution = exercise.id, graded[exercise.id].source
        if exercise.written:
            yield from _sentences(f"the rubric of {id}", exercise.rubric)
            yield from _sentences(f"the model answer of {id}", exercise.model_answer)
            yield from _sentences(f"the answer of {id}", solution)
            continue
        for part in _between_marks(solution):
            yield from _code(f"the solution of {id}", part)
        given = [_compact(form(_outside_marks(solution))) for form in (str, _as_parsed)]
        for secret in _code(f"the reference of {id}", _body(standalone_text(exercise.function, id))):
            if not (
                secret.line and any(secret.needle in text for text in given)
            ):  # it stands in the cell for everybody
                yield secret
        yield from _code(f"the cases of {id}", _body(standalone_text(exercise.case_source, "cases")))
        for right in exercise.right_answers:
            yield from _whole(f"a right answer of {id}", _body(standalone_text(right, id)))
        for wrong in exercise.wrong_answers:
            for secret in _whole(f"the wrong answer {wrong.code} of {id}", _body(standalone_text(wrong.function, id))):
                if not any(secret.needle in text for text in shown):  # what a lecture shows as wrong is no secret
                    yield secret
    for cell in cells:
        if "instructor" in cell.metadata.get("tags", []):
            yield from _whole("an instructor's note", cell.source)
            if cell.cell_type == "markdown":
                yield from _sentences("an instructor's note", cell.source)


def _code(what, text):
    """The whole, and each line that is long enough to tell something."""
    yield from _whole(what, text)
    for line in text.splitlines():
        if len(_compact(line)) >= TELLING_LINE and not line.lstrip().startswith(("import ", "from ")):
            yield Secret(what, _compact(line), line=True)


def _whole(what, text):
    """The text as it stands, and as its tree would be written."""
    for whole in dict.fromkeys((_compact(text), _compact(_as_parsed(textwrap.dedent(text))))):
        if len(whole) >= TRIVIAL:
            yield Secret(what, whole)


def _sentences(what, text):
    for part in map(_prose, re.split(r"[.!?;:\n]+", text)):
        if len(part) >= TELLING_SENTENCE:
            yield Secret(what, part)


def _between_marks(source):
    lines = source.split("\n")
    starts, ends = ([i for i, line in enumerate(lines) if mark in line] for mark in (notebooks.BEGIN, notebooks.END))
    return ["\n".join(lines[first + 1 : last]) for first, last in zip(starts, ends, strict=True)]


def _outside_marks(source):
    for part in _between_marks(source):
        source = source.replace(part, part[: len(part) - len(part.lstrip())] + "pass")
    return source


def _body(source):
    """The statements of a function, without its docstring."""
    definition = ast.parse(source).body[0]
    documented = ast.get_docstring(definition) is not None
    return "\n".join(map(ast.unparse, definition.body[documented:]))


def _compact(text):
    return re.sub(r"[\s#]+", "", text)


def _prose(text):
    return re.sub(r"[\W_]+", "", text).lower()


def _as_parsed(text):
    return ast.unparse(notebooks.parsed(text.replace("\t", "    ")))


def _seeds(seed, texts):
    if seed < 1000:  # a small number stands everywhere
        return
    for where, text in texts.items():
        if re.search(rf"(?<!\d){seed}(?!\d)", text):
            yield f"{where} holds the seed of the hidden cases"


# ---- data -----------------------------------------------------------------------------------------------------------


def _data(lecture, folder):
    """The checks hold the visible cases of each exercise and no other."""
    try:
        exercises = checks.load(folder / checks.FILE, lecture.name).exercises
    except CourseError as error:
        yield str(error)
        return
    for exercise in lecture.exercises:
        if exercise.written:
            continue
        if exercise.id not in exercises:
            yield f"{checks.FILE} lacks {exercise.id}"
        elif exercises[exercise.id].question != judge.visible_question(exercise).message:
            yield f"{checks.FILE} holds other cases of {exercise.id} than the visible ones"


# ---- cells ----------------------------------------------------------------------------------------------------------


def _cells(lecture, notebook):
    by_id = {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}
    locked = ["setup", *(exercise.check_cell for exercise in lecture.exercises if not exercise.written)]
    for id in [*locked, *(exercise.id for exercise in lecture.exercises)]:
        if id not in by_id:
            yield f"the cell {id} is missing"
    for id in locked:
        if id in by_id and not _is_locked(by_id[id]):
            yield f"the cell {id} is not locked"
    for cell in notebook.cells:
        if cell.get("outputs") or cell.get("execution_count"):
            yield f"the cell {cell.id} has outputs"
        for call in notebooks.predictions_in(cell):
            if not (isinstance(call.args[-1], ast.Constant) and call.args[-1].value is ...):
                yield f"the cell {cell.id} tells the answer of a prediction"


def _is_locked(cell):
    metadata = cell.metadata
    return metadata.nbgrader.locked and metadata.get("editable") is False and metadata.get("deletable") is False


# ---- points ---------------------------------------------------------------------------------------------------------


def _points(lecture, notebook):
    """The notebook, handed in as it is released, scores nothing."""
    for exercise in lecture.exercises:
        if exercise.written:
            continue
        try:
            verdict = blank_verdict(exercise, notebook)
        except Exception as error:  # released code is ours, but anything can be wrong with it
            yield f"the released cell of {exercise.id} does not run ({type(error).__name__}: {error})"
            continue
        if verdict.score > 0:
            yield f"the released cell of {exercise.id} scores {verdict.score:g} of {verdict.points:g} as it stands"


def blank_verdict(exercise: Exercise, notebook: NotebookNode):
    """The Verdict on an exercise's cell as it was released, on visible and hidden cases. It runs in this process."""
    asked = judge.question(exercise, HIDDEN_SEED)
    function = _defined(exercise.id, notebook)
    given = judge.answers(asked, Reply(exercise.id, probe.answer(function, asked.message)))
    return judge.verdict(asked, given, [cell.source for cell in notebook.cells if cell.cell_type == "code"])


def _defined(id, notebook):
    """The object that a notebook defines as `id`: imports and definitions are run, nothing else."""
    space = {"__name__": "released"}
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        for node in notebooks.parsed(cell.source).body:
            if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
                exec(compile(ast.Module([node], []), "<released>", "exec"), space)
    return space[id]
