"""The executed notebook of a Report as nbgrader reads it: in each graded cell one result that can be trusted, first.

nbgrader takes for the score what the first result of a cell says (nbgrader/utils.py, determine_grade). What the
student's code displayed stays in the notebook for people, behind it.
"""

import json
import math

import nbformat
from nbformat import NotebookNode
from nbformat.v4.rwbase import rejoin_lines, strip_transient

from . import probe
from .errors import EngineError
from .exercises import Exercise, Lecture
from .notebooks import KERNELSPEC, LANGUAGE, marks
from .records import Report, Verdict


def autograded(report: Report, lecture: Lecture) -> NotebookNode:
    """The notebook that belongs into autograded/: the executed one, or a page that says why there is none."""
    notebook = rejoin_lines(nbformat.from_dict(json.loads(report.notebook))) if report.notebook else _page(report)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": LANGUAGE})
    verdicts = {verdict.exercise: verdict for verdict in report.verdicts}
    graded = {exercise.check_cell: exercise for exercise in lecture.exercises}
    for cell, mark in _marked(notebook.cells, marks(lecture)):
        kept = {key: value for key, value in cell.metadata.nbgrader.items() if key == "checksum"}
        cell.metadata.nbgrader = nbformat.from_dict({**kept, **mark, "cell_type": cell.cell_type})
        if cell.cell_type == "code":
            cell.outputs = [shown for shown in map(_without_replies, cell.outputs) if shown is not None]
            if mark["grade"]:
                exercise = graded[mark["grade_id"]]
                cell.outputs.insert(0, _result(score_of(exercise, verdicts.get(exercise.id)), cell))
    notebook.cells = [shown for cell in notebook.cells for shown in (cell, *_for_graders(cell, graded))]
    return notebook


def notebook_text(notebook: NotebookNode) -> str:
    """The file of an autograded notebook: what nbformat.writes says, in one line, which takes a twentieth of the time.

    nbformat copies and validates the notebook first, and only logs what it finds.
    """
    return json.dumps(strip_transient(notebook), ensure_ascii=False) + "\n"


FOR_GRADERS = "for-graders"  # the tag of cells that formgrader shows and feedback does not


def _for_graders(cell, graded):
    """The rubric and the model answer of a written answer, as a cell behind it."""
    exercise = graded.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
    if exercise is not None and exercise.written:
        text = (
            f"**For graders, not for students**\n\nRubric: {exercise.rubric}\n\nModel answer: {exercise.model_answer}"
        )
        yield nbformat.v4.new_markdown_cell(text, id=f"graders-{exercise.id}"[:64], metadata={"tags": [FOR_GRADERS]})


def _page(report):
    text = f"This submission could not be graded. {report.reason or ''}".strip()
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text, id="reason")])


def _marked(cells, known):
    """(cell, mark) of every cell that nbgrader shall see; all others lose what makes it look at them, doubles too."""
    for cell in cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id") if isinstance(cell.metadata, dict) else None
        mark = known.pop(grade_id, None) if isinstance(grade_id, str) else None
        if mark is None:
            cell.metadata.pop("nbgrader", None)
        else:
            yield cell, mark


def score_of(exercise: Exercise, verdict: Verdict | None) -> float:
    """The points of an exercise as nbgrader can hold them; none where there is no verdict.

    Raises:
        EngineError: the verdict's score is no number from 0 to the exercise's points.
    """
    if verdict is None:
        return 0.0
    if not (math.isfinite(verdict.score) and 0 <= verdict.score <= exercise.points):
        raise EngineError(f"{exercise.id} has the score {verdict.score}; expected 0 to {exercise.points:g}")
    return float(verdict.score)


def _result(score, cell):
    data, count = {"text/plain": repr(score)}, cell.get("execution_count")
    return nbformat.from_dict({"output_type": "execute_result", "data": data, "execution_count": count, "metadata": {}})


def _without_replies(output):
    """An output without the messages of probes; None where nothing else was in it."""
    if probe.MIME not in output.get("data", {}):
        return output
    output.data.pop(probe.MIME)
    return output if output.data else None
