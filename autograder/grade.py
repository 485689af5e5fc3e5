"""The walk of one submission: Submission -> Report."""

import hashlib
import json
import logging
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from . import judge, kernels, sandbox
from .checks import FILE
from .errors import AutograderError, EngineError
from .exercises import Exercise, Lecture, case_seed
from .files import storage_error
from .overtime import OutOfTime, within
from .records import Reply, Report, Submission, Transcript, Verdict
from .repair import defines
from .settings import Settings

log = logging.getLogger(__name__)

UNJUDGED = "What it returned could not be judged ({}), which is a fault in the autograder: tell your instructor."
# Of work on one answer: reading it, its facts, the comparison with the reference and the wrong answers.
JUDGE_SECONDS = 30.0
TOO_LONG = (
    f"What it returned takes more than {JUDGE_SECONDS:g} seconds to judge, and no answer that is expected here takes one: look at "
    "how large it is."
)
UNANSWERED_TEXT = "YOUR ANSWER HERE"  # nbgrader's stub of a written answer


def grade_submission(submission: Submission, lecture: Lecture, settings: Settings, seed: int) -> Report:
    """Run and judge one submission.

    Args:
        seed: the private seed of the run; each student's cases are made from it and the student's name.
    Raises:
        EngineError: for a reason that is ours; nothing the student handed in causes it.
    """
    started = time.monotonic()
    if submission.ungradable:
        verdicts = tuple(judge.lost(exercise, submission.ungradable) for exercise in lecture.exercises)
        return _report(submission, lecture, seed, "ungradable", verdicts, started, reason=submission.ungradable)
    questions = {
        exercise.id: judge.question(
            exercise, case_seed(seed, submission.student, exercise.id, submission.digest), settings.device
        )
        for exercise in lecture.exercises
        if not exercise.written
    }
    released = {FILE: (lecture.folder / FILE).read_bytes()}
    try:
        transcript = kernels.run(
            submission, [asked.probe for asked in questions.values()], settings, released, lecture.without
        )
    except OSError as error:
        raise EngineError(str(storage_error(Path(tempfile.gettempdir()), error))) from error
    cells, modules = json.loads(transcript.notebook)["cells"], _modules(submission.files)
    verdicts = tuple(_verdict(exercise, questions, transcript, cells, modules) for exercise in lecture.exercises)
    state = "repaired" if submission.repairs else "graded"
    return _report(submission, lecture, seed, state, verdicts, started, transcript=transcript)


def _report(submission, lecture, seed, state, verdicts, started, reason=None, transcript=None) -> Report:
    return Report(
        student=submission.student,
        lecture=lecture.name,
        state=state,
        verdicts=verdicts,
        reason=reason,
        repairs=submission.repairs,
        events=transcript.events if transcript else (),
        seconds=time.monotonic() - started,
        provenance={
            "submission": submission.digest,
            "exercises": lecture.digest,
            "seed": str(seed),
            "torch": version("torch"),
            "autograder": version("torch-lectures"),
            "sandbox": sandbox.level().name if transcript else "",
            "answers": _digest(transcript.replies) if transcript else "",
        },
        notebook=transcript.notebook if transcript else None,
    )


def _digest(replies: dict[str, Reply]) -> str:
    digest = hashlib.sha256()
    for id in sorted(replies):
        digest.update(id.encode() + (replies[id].data or replies[id].failure.encode()))
    return digest.hexdigest()


def _verdict(exercise: Exercise, questions, transcript: Transcript, cells, modules) -> Verdict:
    if exercise.written:
        return _written_verdict(exercise, cells)
    asked = questions[exercise.id]
    reply = transcript.replies[exercise.id]
    source = [*modules, *_code_before(exercise.check_cell, cells)]
    try:
        verdict = within(JUDGE_SECONDS, lambda: judge.verdict(asked, judge.answers(asked, reply), source))
    except AutograderError:
        raise
    except OutOfTime as error:
        log.warning("an answer to %s could not be judged: %s", exercise.id, error)
        return judge.lost(exercise, TOO_LONG)
    except Exception as error:  # an answer made for a fault of ours must not cost the other exercises their points
        log.exception("an answer to %s could not be judged", exercise.id)
        return judge.lost(exercise, UNJUDGED.format(type(error).__name__))
    told = reply.failure not in ("", "unanswered")  # why nothing came says more than where its cell was stopped
    if verdict.score < verdict.points and not told and (error := _cell_error(exercise.id, cells)):
        return judge.lost(exercise, f"Its cell did not run: {error}.")
    return verdict


def _written_verdict(exercise: Exercise, cells) -> Verdict:
    text = next((cell["source"] for cell in cells if _grade_id(cell) == exercise.id), "")
    if not text.strip() or text.strip() == UNANSWERED_TEXT:
        return judge.lost(exercise, "This question is not answered.")
    return Verdict(exercise.id, exercise.number, 0.0, exercise.points, message="To be graded by hand.", by_hand=True)


def _modules(files: dict[str, bytes]) -> list[str]:
    """The Python files that were handed in, each as the cell that would write it."""
    return [
        f"%%writefile {name}\n{content.decode(errors='replace')}"
        for name, content in files.items()
        if name.endswith(".py")
    ]


def _code_before(check_cell: str, cells) -> list[str]:
    """The texts of the code cells up to a graded one; all of them if it is not there."""
    texts = []
    for cell in cells:
        if _grade_id(cell) == check_cell:
            break
        if cell["cell_type"] == "code":
            texts.append(cell["source"])
    return texts


def _cell_error(exercise: str, cells) -> str:
    """The error that the cell of an answer ended with, or ""; without a cell of its own, the last that defines it."""
    own = [cell for cell in cells if _grade_id(cell) == exercise]
    shared = [cell for cell in cells if cell["cell_type"] == "code" and defines(cell["source"], exercise)]
    for cell in own or shared[-1:]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                return f"{output['ename']}: {output['evalue']}"[:300]
    return ""


def _grade_id(cell) -> str | None:
    return cell.get("metadata", {}).get("nbgrader", {}).get("grade_id")
