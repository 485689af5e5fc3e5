"""The solved notebook of a lecture: built from its py:percent source, executed and stored beside it.

    python -m autograder.notebooks [LECTURE...] [--check]

`solutions/<lecture>/<lecture>.py` is what people edit. Added to it are nbgrader's cell metadata, cell ids that stay the
same, and from exercises.py the exercise cards and the questions of predictions: the same source and the same torch give
the same bytes. `--check` executes nothing: it fails where the stored notebook is not that of the source.
"""

import argparse
import ast
import copy
import re
import shutil
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from . import checks, checks_writer
from .check import PROGRESS_FILE, RUNS
from .errors import AutograderError, CourseError
from .exercises import Exercise, Lecture, Prediction, lecture_names, load_lecture
from .files import write_whole
from .settings import load_settings

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python", "pygments_lexer": "ipython3"}
KEYS = ("setup", "exercise", "check", "concepts", "facts", "tags", "reason")  # that a cell of the source may carry
BEGIN, END = "BEGIN SOLUTION", "END SOLUTION"
CELL_SECONDS = 600  # of one cell of a solved notebook


# ---- from the source to the cells -----------------------------------------------------------------------------------


def solved(lecture: Lecture) -> NotebookNode:
    """The solved notebook as its source says, not executed.

    Raises:
        CourseError: there is no source, or it and exercises.py contradict each other.
    """
    path = lecture.folder / f"{lecture.name}.py"
    try:
        cells = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent").cells
    except FileNotFoundError:
        raise CourseError(f"{lecture.name}: there is no {path}") from None
    except UnicodeDecodeError as error:
        raise CourseError(f"{lecture.name}: {path} is not UTF-8 ({error.reason} at byte {error.start})") from error
    for fault in _faults(lecture, cells):
        raise CourseError(f"{lecture.name}: {fault}")
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNELSPEC, "language_info": LANGUAGE})
    filled = {"times": times(lecture, class_minutes(cells))}
    filled |= {f"card {exercise.id}": card(exercise) for exercise in lecture.exercises}
    filled |= {f"question {prediction.id}": question(prediction) for prediction in lecture.predictions}
    notebook.cells = [_finished(cell, number, lecture, filled) for number, cell in enumerate(cells, start=1)]
    return notebook


def _finished(cell, number, lecture, filled):
    graded = nbgrader_metadata(cell, lecture)
    metadata = {key: cell.metadata[key] for key in ("concepts", "facts", "tags", "reason") if key in cell.metadata}
    if graded:
        metadata["nbgrader"] = graded
    source = PLACE.sub(lambda place: filled[place[1]], cell.source) if cell.cell_type == "markdown" else cell.source
    new = nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
    return new(source, metadata=metadata, id=graded["grade_id"] if graded else f"cell-{number:03}")


def nbgrader_metadata(cell: NotebookNode, lecture: Lecture) -> dict | None:
    """What nbgrader must know of a cell of the source; None of a cell that is nothing to it."""
    if cell.metadata.get("setup"):
        id = "setup"
    elif "check" in cell.metadata:
        id = lecture[cell.metadata["check"]].check_cell
    else:
        id = cell.metadata.get("exercise")
    return marks(lecture).get(id)


def marks(lecture: Lecture) -> dict[str, dict]:
    """nbgrader's metadata of every cell of a lecture that means something to it, by grade_id."""
    found = {"setup": _mark("setup", locked=True)}
    for exercise in lecture.exercises:
        if exercise.written:
            found[exercise.id] = _mark(exercise.id, grade=True, solution=True, points=exercise.points)
        else:
            found[exercise.id] = _mark(exercise.id, solution=True)
            found[exercise.check_cell] = _mark(exercise.check_cell, grade=True, locked=True, points=exercise.points)
    return found


def _mark(grade_id, grade=False, solution=False, locked=False, points=None):
    mark = {"grade": grade, "grade_id": grade_id, "locked": locked, "solution": solution, "task": False}
    return mark | {"schema_version": 3} | ({"points": points} if grade else {})


PLACE = re.compile(r"^\{\{(times|card \S+|question \S+)\}\}$", re.MULTILINE)  # a line that is replaced
IN_CLASS = re.compile(r"\*\*Instructor, (\d+) minutes")


def class_minutes(cells) -> int:
    """How long the sections of a lecture take in class without its exercises: what the notes for instructors say, together."""
    notes = [cell.source for cell in cells if "instructor" in cell.metadata.get("tags", [])]
    return sum(int(minutes) for note in notes for minutes in IN_CLASS.findall(note))


def times(lecture: Lecture, in_class: int) -> str:
    """How long a lecture takes, as Markdown; what its exercises take is the sum of what their cards say."""
    home = [exercise for exercise in lecture.exercises if exercise.homework]
    here = sum(exercise.minutes for exercise in lecture.exercises if not exercise.homework)
    parts = [f"reading, predictions and pictures about {max(5, round(in_class / 5) * 5)} minutes"]
    parts += [f"exercises in between {here} minutes"]
    if home:
        numbers = ", ".join(exercise.number for exercise in home)
        parts += [f"homework {sum(exercise.minutes for exercise in home)} minutes ({numbers})"]
    return f"**Time** · {' · '.join(parts)}"


def card(exercise: Exercise) -> str:
    """What a student must know before an exercise, as Markdown."""
    minutes = f"about {exercise.minutes} minute{'s' if exercise.minutes != 1 else ''}"
    minutes += " of homework" if exercise.homework else ""
    points = f"{exercise.points:g} point{'s' if exercise.points != 1 else ''}"
    facts = [f"difficulty {'★' * exercise.stars} ({exercise.stars} of 5)", minutes, points]
    facts += [f"needs {', '.join(exercise.needs)}"] if exercise.needs else []
    lines = [f"**Exercise {exercise.number}** · `{exercise.id}` · " + " · ".join(facts)]
    if exercise.written:
        lines.append("Answer in your own words. A person reads it, so the line of progress does not count it.")
    else:
        checked = ["value, shape and dtype", "errors", "inputs left as they should be"]
        checked += [wanted.text for wanted in exercise.properties]
        if exercise.forbidden:
            checked.append("written without " + ", ".join(f"`{name}`" for name in exercise.forbidden))
        lines.append(f"Checked: {'; '.join(checked)}. `hint({exercise.id})` gives the next of three hints.")
    return "\n\n".join(lines)


def question(prediction: Prediction) -> str:
    """A prediction's question and its lettered choices, as Markdown."""
    choices = [f"- **{letter}** · {text}" for letter, (text, _) in prediction.choices.items()]
    return "\n".join([f"**Prediction {prediction.id}** · {prediction.question}", "", *choices])


# ---- what a source must be ------------------------------------------------------------------------------------------


def setup_lines(lecture_name: str) -> list[str]:
    """The lines that the setup cell of a lecture must have."""
    return [
        "from autograder.check import Checker",
        f'check = Checker("{lecture_name}")',
        "predict, hint = check.predict, check.hint",
    ]


def _faults(lecture, cells):
    """One sentence for everything in which the source and exercises.py contradict each other or the conventions."""
    yield from _metadata_faults(cells)
    yield from _setup_faults(lecture, cells)
    yield from _order_faults(lecture, cells)
    for where, cell in enumerate(cells, start=1):
        yield from _cell_faults(lecture, cell, f"cell {where}")
        yield from _placeholder_faults(lecture, cell, f"cell {where}")
    yield from _prediction_faults(lecture, cells)


def _metadata_faults(cells):
    ours = (*KEYS, "title", "lines_to_next_cell", "lines_to_end_of_cell_marker", "region_name", "cell_marker")
    for where, cell in enumerate(cells, start=1):
        unknown = [key for key in cell.metadata if key not in ours]
        if "incorrectly_encoded_metadata" in unknown:
            given = cell.metadata["incorrectly_encoded_metadata"]
            yield f'cell {where}: cannot read {given!r}; values are JSON, e.g. exercise="name"'
        elif unknown:
            yield f"cell {where}: unknown metadata {', '.join(unknown)}; there are {', '.join(KEYS)}"


def _setup_faults(lecture, cells):
    places = [i for i, cell in enumerate(cells) if cell.metadata.get("setup")]
    code = [i for i, cell in enumerate(cells) if cell.cell_type == "code"]
    if len(places) != 1 or places != code[:1]:
        yield "exactly one cell must carry setup=true, and it must be the first code cell"
        return
    lines = cells[places[0]].source.splitlines()
    for wanted in setup_lines(lecture.name):
        if wanted not in lines:
            yield f"the setup cell lacks the line {wanted!r}"


def _order_faults(lecture, cells):
    """Each exercise has its cell, then its check cell, in the order of exercises.py."""
    marked = []
    for where, cell in enumerate(cells, start=1):
        for kind in ("exercise", "check"):
            if kind in cell.metadata:
                marked.append((kind, cell.metadata[kind], where))
    known = {exercise.id: exercise for exercise in lecture.exercises}
    for kind, id, where in marked:
        if id not in known:
            yield f"cell {where}: there is no exercise {id!r} in exercises.py; there are {', '.join(known) or 'none'}"
            return
        if [(k, i) for k, i, _ in marked].count((kind, id)) > 1:
            yield f"cell {where}: there are two {kind} cells of {id}"
            return
    given = [(kind, id) for kind, id, _ in marked]
    for exercise in lecture.exercises:
        if ("exercise", exercise.id) not in given:
            yield f"exercises.py has {exercise.id}, but no cell carries exercise={exercise.id!r}"
        if exercise.written and ("check", exercise.id) in given:
            yield f"{exercise.id} is a written answer: it has no check cell"
        if not exercise.written and ("check", exercise.id) not in given:
            yield f"{exercise.id} has no check cell (check={exercise.id!r})"
    kinds = {False: ("exercise", "check"), True: ("exercise",)}
    wanted = [(kind, e.id) for e in lecture.exercises for kind in kinds[e.written]]
    for (kind, id, where), (wanted_kind, wanted_id) in zip(marked, wanted, strict=False):
        if (kind, id) != (wanted_kind, wanted_id):
            yield (
                f"cell {where}: the {kind} cell of {id} stands where the {wanted_kind} cell of {wanted_id} is "
                "expected; a check follows its exercise, and exercises stand in the order of exercises.py"
            )
            return


def _cell_faults(lecture, cell, where):
    kind = next((key for key in ("setup", "exercise", "check") if key in cell.metadata), "")
    solutions = [line for line in cell.source.splitlines() if BEGIN in line]
    if kind != "exercise" and (solutions or END in cell.source):
        yield f"{where}: it has {BEGIN} or {END} but carries no exercise"
    if kind == "check" and (cell.cell_type != "code" or cell.source.strip() != f"check({cell.metadata['check']})"):
        yield f"{where}: a check cell is exactly check({cell.metadata['check']}), not {cell.source!r}"
    if kind == "exercise":
        yield from _exercise_faults(lecture[cell.metadata["exercise"]], cell, where)
    if "nbval-ignore-output" in cell.metadata.get("tags", []) and not cell.metadata.get("reason"):
        yield f'{where}: nbval-ignore-output needs its reason="..."'


def _exercise_faults(exercise, cell, where):
    if exercise.written:
        if cell.cell_type != "markdown":
            yield f"{where}: {exercise.id} is a written answer, so its cell must be Markdown"
        return
    if cell.cell_type != "code":
        yield f"{where}: the cell of {exercise.id} must be code"
        return
    marks = [line.strip().strip("# ") for line in cell.source.splitlines() if BEGIN in line or END in line]
    if not marks or marks != [BEGIN, END] * (len(marks) // 2):
        yield f"{where}: {exercise.id} needs ### {BEGIN} and ### {END} around its body, or around several of its parts, in this order"
        return
    definition = next((n for n in parsed(cell.source).body if getattr(n, "name", None) == exercise.id), None)
    if definition is None:
        yield f"{where}: it does not define {exercise.id}"
    elif not ast.get_docstring(definition):
        yield f"{where}: {exercise.id} has no docstring to say what is asked"


def _placeholder_faults(lecture, cell, where):
    if cell.cell_type != "markdown":
        return
    known = {"card": [e.id for e in lecture.exercises], "question": [p.id for p in lecture.predictions], "times": [""]}
    for place in PLACE.findall(cell.source):
        kind, _, id = place.partition(" ")
        if id not in known[kind]:
            yield f"{where}: {{{{{place}}}}}: there is no {id!r}; there are {', '.join(known[kind]) or 'none'}"
    if "{{" in PLACE.sub("", cell.source):
        yield f"{where}: {{{{...}}}} must be {{{{card ID}}}}, {{{{question ID}}}} or {{{{times}}}}, alone on its line"


def _prediction_faults(lecture, cells):
    known = {prediction.id: prediction for prediction in lecture.predictions}
    asked = []
    for where, cell in enumerate(cells, start=1):
        calls = predictions_in(cell)
        if not calls:
            continue
        alone = ast.unparse(parsed(cell.source)) == "\n".join(map(ast.unparse, calls))
        if not alone or any(len(call.args) != 2 for call in calls):
            yield f'cell {where}: predict("P1", "b") must stand in a code cell of its own, or with other predictions only'
            continue
        for call in calls:
            id, letter = (argument.value if isinstance(argument, ast.Constant) else None for argument in call.args)
            if id not in known:
                yield f"cell {where}: exercises.py has no prediction {id!r}; it has {', '.join(known) or 'none'}"
            elif letter != known[id].answer:
                yield f"cell {where}: the answer of prediction {id} is {known[id].answer!r}, not {letter!r}"
            else:
                asked.append(id)
    for id in known:
        if asked.count(id) != 1:
            yield f"prediction {id} of exercises.py is asked {asked.count(id)} times; ask it once"


def predictions_in(cell: NotebookNode) -> list[ast.Call]:
    """The calls `predict(...)` in a code cell."""
    if cell.cell_type != "code" or "predict" not in cell.source:
        return []
    calls = [node for node in ast.walk(parsed(cell.source)) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "predict"]


def parsed(source: str) -> ast.Module:
    """The tree of a cell's Python, its magics left out; an empty one where it does not parse."""
    lines = [re.sub(r"^(\s*)[%!].*$", r"\1pass", line) for line in source.split("\n")]
    try:
        return ast.parse("\n".join(lines))
    except SyntaxError:
        return ast.parse("")


# ---- executing ------------------------------------------------------------------------------------------------------


def executed(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """A copy with the outputs that a fresh kernel gives; what depends on time, process or machine is not kept of them.

    It runs in a copy of `folder`, so that nothing is left there.

    Raises:
        CourseError: a cell raised (and is not tagged raises-exception), took too long, or ended its kernel.
    """
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / folder.name
        shutil.copytree(
            folder, place, ignore=shutil.ignore_patterns("*.py", "*.ipynb", "__pycache__", PROGRESS_FILE, RUNS)
        )
        notebook = _run(copy.deepcopy(notebook), place)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": LANGUAGE})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [_settled(output) for output in cell.outputs]
    return notebook


def _run(notebook, place):
    running = []
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name=KERNELSPEC["name"],
        resources={"metadata": {"path": str(place)}},
        record_timing=False,
        store_widget_state=False,
        extra_arguments=["--HistoryManager.hist_file=:memory:", "--IPKernelApp.log_level=ERROR"],
        coalesce_streams=True,
        on_cell_start=lambda cell, cell_index: running.append(cell_index),
    )
    try:
        client.execute(cleanup_kc=True)
    except CellExecutionError as error:
        raise CourseError(f"{_where(notebook, running, place)} raised {error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise CourseError(f"{_where(notebook, running, place)} did not finish within {CELL_SECONDS} s") from error
    except (DeadKernelError, RuntimeError, NoSuchKernel) as error:
        raise CourseError(f"{_where(notebook, running, place)} has no kernel any more ({error})") from error
    return notebook


def _where(notebook, running, place):
    if not running:
        return f"{place.name}: the notebook"
    cell = notebook.cells[running[-1]]
    first = next(iter(cell.source.strip().splitlines()), "")
    return f"{place.name}: cell {running[-1] + 1} ({cell.id}, {first[:60]!r})"


# The file of a cell, in a warning: process and hash.
CELL_FILE = re.compile(r"(?<![^\s\"'])[^\s\"']*ipykernel_\d+[/\\]\d+\.py")
WIDGET = "application/vnd.jupyter.widget-view+json"  # names a model of a kernel that is gone


def _settled(output):
    """An output without what differs from run to run."""
    for key in ("text", "traceback"):
        if isinstance(output.get(key), str):
            output[key] = CELL_FILE.sub("cell.py", output[key])
        elif key in output:
            output[key] = [CELL_FILE.sub("cell.py", line) for line in output[key]]
    output.get("data", {}).pop(WIDGET, None)
    return output


# ---- the stored notebook --------------------------------------------------------------------------------------------


def stored_path(lecture: Lecture) -> Path:
    """Where the solved notebook stands."""
    return lecture.folder / f"{lecture.name}.ipynb"


def build(lecture: Lecture) -> Path:
    """Build, execute and store the solved notebook, and beside it the checks that it reads; the path of it."""
    notebook = solved(lecture)
    _store(lecture.folder / checks.FILE, checks_writer.to_json(lecture))
    _store(stored_path(lecture), text(executed(notebook, lecture.folder)))
    return stored_path(lecture)


def _store(path, text):
    write_whole(path, text)
    path.chmod(0o644)  # a file of the course, for everyone to read


def text(notebook: NotebookNode) -> str:
    """A notebook as the text of a file."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def read(path: Path) -> NotebookNode:
    """A stored notebook of the course.

    Raises:
        CourseError: there is none, or it cannot be read.
    """
    try:
        return nbformat.read(path, as_version=4)
    except FileNotFoundError:
        raise CourseError(f"there is no {path}; build it with `make notebooks`") from None
    except Exception as error:  # nbformat's own errors have no common class
        reason = type(error).__name__
        raise CourseError(f"{path} cannot be read as a notebook ({reason}); build it with `make notebooks`") from error


def difference(lecture: Lecture) -> str:
    """What tells the stored notebook from the one its source would give, as a sentence; "" when nothing does.

    Outputs are not compared, for nothing is executed; that every code cell was executed, in order, is.
    """
    wanted, stored = solved(lecture), read(stored_path(lecture))
    if stored.metadata != wanted.metadata:
        return "its notebook metadata differ"
    for where, (one, other) in enumerate(zip(wanted.cells, stored.cells, strict=False), start=1):
        for what in ("cell_type", "source", "metadata", "id"):
            if one[what] != other[what]:
                return f"cell {where} ({one.id}) has another {what.replace('_', ' ')}"
    if len(wanted.cells) != len(stored.cells):
        return f"the source has {len(wanted.cells)} cells, the notebook {len(stored.cells)}"
    counts = [cell.execution_count for cell in stored.cells if cell.cell_type == "code" and cell.source.strip()]
    if counts != list(range(1, len(counts) + 1)):
        return "not every code cell of the notebook was executed, once and in order"
    path = lecture.folder / checks.FILE
    if not path.exists() or not checks_writer.same(path.read_text(encoding="utf-8"), checks_writer.to_json(lecture)):
        return f"{checks.FILE} is not that of exercises.py"
    return ""


def demand_fresh(names, solutions: Path) -> None:
    """Fail where a stored notebook is not that of its source.

    Raises:
        CourseError: naming every such lecture.
    """
    found = {}
    for name in names:
        found[name] = difference(load_lecture(name, solutions))
    stale = [f"{name}: {what}" for name, what in found.items() if what]
    if stale:
        raise CourseError(f"{'; '.join(stale)}: run `make notebooks`, for source and notebook must agree")


def main(arguments=None) -> int:
    """Build the named lectures' notebooks, or all of them; with --check, only compare."""
    parser = argparse.ArgumentParser(prog="python -m autograder.notebooks", description=main.__doc__)
    parser.add_argument("lectures", nargs="*", metavar="LECTURE")
    parser.add_argument("--check", action="store_true", help="execute nothing; fail where source and notebook differ")
    options = parser.parse_args(arguments)
    try:
        solutions = load_settings().solutions
        names = options.lectures or lecture_names(solutions)
        if options.check:
            demand_fresh(names, solutions)
        for name in names if not options.check else []:
            print(build(load_lecture(name, solutions)), flush=True)
    except AutograderError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
