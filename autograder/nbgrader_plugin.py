"""What stock nbgrader calls in this course, by the names in nbgrader_config.py: preprocessors, hooks, filters."""

import contextlib
import dataclasses
import functools
import html
import re
import secrets
from pathlib import Path
from urllib.parse import unquote

import jsonschema
from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.ansi import ansi2html, strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor
from nbgrader.preprocessors import SaveCells as StockSaveCells
from traitlets import Bool

from . import gradebook, intake, notebooks, sandbox
from .autograded import FOR_GRADERS, autograded
from .errors import EngineError
from .exercises import load_lecture
from .grade import grade_submission
from .gradebook import QuotedCsvExport
from .judge import lost
from .records import Report
from .settings import load_settings

__all__ = ["QuotedCsvExport"]

INSTRUCTOR = "instructor"  # tag of the cells that only teachers see

# ---- solved -> released ---------------------------------------------------------------------------------------------


class RemoveInstructorCells(NbGraderPreprocessor):
    """Takes out what is written for teachers."""

    def preprocess(self, nb, resources):
        """Called by GenerateAssignment, on the solved notebook."""
        nb.cells = [cell for cell in nb.cells if INSTRUCTOR not in cell.metadata.get("tags", [])]
        return nb, resources


class BlankPredictions(NbGraderPreprocessor):
    """Takes the letters out of a cell of predictions, and whatever stands there besides."""

    def preprocess_cell(self, cell, resources, index):
        """Called by GenerateAssignment, on every cell of the solved notebook."""
        calls = notebooks.predictions_in(cell)
        if calls:
            cell.source = "\n".join(f'predict("{call.args[0].value}", ...)' for call in calls)
        return cell, resources


class SaveCells(StockSaveCells):
    """Stores the cells of a lecture, also where there are submissions: nbgrader refuses then (its issue 1646)."""

    def preprocess(self, nb, resources):
        """Called by GenerateAssignment, after the checksums."""
        names = resources["nbgrader"]
        if names["notebook"] != names["assignment"]:  # not a lecture of ours
            return super().preprocess(nb, resources)
        course = self.config.CourseDirectory.get("course_id", "")
        gradebook.save_cells(names["db_url"], names["assignment"], nb, course)
        return nb, resources


def open_gradebook(**_):
    """Called by GenerateAssignment before anything else, in the course's folder: the gradebook exists and can wait."""
    gradebook.prepare(load_settings())


# ---- submitted -> autograded ----------------------------------------------------------------------------------------


def know_lecture(assignment, **_):
    """Called by Autograde before each submission, in the course's folder: the gradebook knows the lecture as it is."""
    _known_once(Path.cwd(), assignment, load_lecture(assignment, load_settings().solutions).digest)


@functools.cache
def _known_once(folder, name, digest):
    """For all submissions of a run at once; again when the exercises changed, which `digest` tells."""
    settings = load_settings(folder)
    gradebook.ensure_assignment(load_lecture(name, settings.solutions), settings)


class DropUnusableMetadata(NbGraderPreprocessor):
    """Takes nbgrader's metadata from cells where they are of no use, and would stop the run for a whole class.

    A cell that a student doubled has empty metadata after DeduplicateIds, which nbgrader takes for an old format (its
    issue 1083); one that the lecture no longer has loses its id in OverwriteCells. `intake` finds what is graded.
    """

    def preprocess_cell(self, cell, resources, index):
        """Called by Autograde, on every cell handed in."""
        mark = cell.metadata.get("nbgrader")
        if mark is not None and not _usable(mark):
            self.log.warning("cell %s: nbgrader metadata that are of no use are left out", index)
            del cell.metadata["nbgrader"]
        return cell, resources


def _usable(mark):
    try:
        jsonschema.validate(mark, MetadataValidator().schema)
    except jsonschema.ValidationError:
        return False
    meant = mark["grade"] or mark["solution"] or mark["locked"] or mark.get("task")
    return bool(meant and mark.get("grade_id")) and ("points" in mark or not mark["grade"])


class IsolatedExecute(NbGraderPreprocessor):
    """Grades a submission as `autograder grade` does, in place of nbgrader's Execute; hands on the executed notebook.

    The submitted folder is read anew, so that what is repaired and how it is judged is the same on both ways.
    """

    def preprocess(self, nb, resources):
        """Called by Autograde, on the sanitised notebook, which only says that there is one."""
        names, course = resources["nbgrader"], self._course_directory()
        settings = dataclasses.replace(load_settings(course.root), db_url=names["db_url"])
        lecture = load_lecture(names["assignment"], settings.solutions)
        folder = course.format_path(course.submitted_directory, names["student"], names["assignment"])
        found = intake.Found(names["student"], lecture.name, Path(folder), names["student"])
        released = notebooks.read(settings.course / lecture.name / f"{lecture.name}.ipynb")
        submission = intake.read(found, lecture, notebooks.text(released), settings)
        sandbox.at_least(trust_code=settings.trust_code)
        seed = settings.seed or secrets.randbits(52) + 1
        try:
            report = grade_submission(submission, lecture, settings, seed)
        except EngineError as error:
            gradebook.write(_error(submission, lecture, error), lecture, settings)
            raise
        resources["autograder"] = report, lecture, settings
        return autograded(report, lecture), resources

    def _course_directory(self):
        above = self
        while above is not None and not hasattr(above, "coursedir"):
            above = above.parent
        return above.coursedir


def _error(submission, lecture, error):
    verdicts = tuple(lost(exercise, str(error)) for exercise in lecture.exercises)
    provenance = {"submission": submission.digest}
    return Report(submission.student, lecture.name, "error", verdicts, reason=str(error), provenance=provenance)


class SaveVerdicts(NbGraderPreprocessor):
    """Writes the verdicts into the gradebook, in place of SaveAutoGrades: all cells, nothing old, one transaction."""

    def preprocess(self, nb, resources):
        """Called by Autograde, after IsolatedExecute."""
        report, lecture, settings = resources.pop("autograder")
        gradebook.write(report, lecture, settings)
        return nb, resources


# ---- autograded -> pages --------------------------------------------------------------------------------------------


class RemoveGraderCells(NbGraderPreprocessor):
    """Rubric and model answer leave the notebook before students get it as feedback."""

    model_answers = Bool(False, help="Whether students see rubric and model answer in their feedback.").tag(config=True)

    def preprocess(self, nb, resources):
        """Called by GenerateFeedback, first."""
        if not self.model_answers:
            nb.cells = [cell for cell in nb.cells if FOR_GRADERS not in cell.metadata.get("tags", [])]
        return nb, resources


class GetGradesAsText(GetGrades):
    """Puts grades and comments into the feedback page, the automatic ones as the plain text that they are."""

    def _get_comment(self, cell, resources):
        """Called by GetGrades, on every cell with an answer."""
        mark = cell.metadata["nbgrader"]
        comment = self.gradebook.find_comment(mark["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        mark["comment"] = comment.manual_comment or as_markdown(comment.auto_comment or "") or None


def as_markdown(text: str) -> str:
    """Markdown that shows `text` as it stands.

    >>> as_markdown("x[-1, ::k] is <b>")
    'x\\\\[\\\\-1, ::k\\\\] is &lt;b&gt;'
    """
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|~$])", r"\\\1", html.escape(text, quote=False))


class _Harmless(IPythonRenderer):
    """HTML of a cell's Markdown without what runs or is fetched: no HTML, no link that is a script, diagrams as the text that
    they are, no picture from elsewhere, which would tell its server who reads the answer and when.
    """

    pictures = ("image/png", "image/jpeg", "image/gif", "image/webp")

    def __init__(self, attachments):
        super().__init__(escape=True, allow_harmful_protocols=False, attachments=attachments)

    def block_mermaidjs(self, code):
        """The text of a diagram; the original puts it into the page as HTML."""
        return self.block_code(code)

    def image(self, text, url, title=None):
        """A picture that came with the cell; any other is named, where the original stops or fetches it."""
        if url.startswith("attachment:"):
            name = unquote(url.removeprefix("attachment:"))
            attached = self.attachments.get(name, {})
            kind = next((kind for kind in self.pictures if isinstance(attached.get(kind), str)), None)
            if kind is None:
                return f"<em>[The picture {html.escape(name)} was not handed in.]</em>"
            url = f"data:{kind};base64,{attached[kind]}"
        elif not url.lower().startswith(tuple(f"data:{kind};" for kind in self.pictures)):
            return f"<em>[The picture {html.escape(url)} is not in the notebook; it is not fetched.]</em>"
        return super().image(text, url, title)


CLOSED = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data: {0}; script-src 'unsafe-eval' {0}; connect-src "
    "https://api.cdnjs.com; base-uri 'none'; form-action 'none'"
).format("https://cdnjs.cloudflare.com/ajax/libs/mathjax/")


class ClosedPage(HTMLExporter):
    """A page that fetches nothing but MathJax, which nbgrader's template asks for, and tells nobody that it is read."""

    def from_notebook_node(self, nb, resources=None, **more):
        """Called by GenerateFeedback."""
        page, resources = super().from_notebook_node(nb, resources, **more)
        policy = f'<meta http-equiv="Content-Security-Policy" content="{CLOSED}">\n<meta name="referrer" content="no-referrer">'
        return page.replace("<head>", f"<head>\n{policy}", 1), resources


@pass_context
def harmless_markdown(context, source: str) -> str:
    """Markdown of a submission as HTML in which nothing runs: HTML that a student wrote is shown, not obeyed.

    What is longer than prose is, or nested too deeply to be read, is shown as the text that it is: some of it takes the
    square of its length. Called by the templates of feedback and formgrader: the browser is that of a teacher, who may
    change grades.
    """
    texts = (cell.get("source", "") for cell in context.get("nb", {}).get("cells", ()) if cell["cell_type"] != "code")
    if len(source) <= LONGEST_PROSE and sum(map(len, texts)) <= MOST_PROSE:
        attachments = context.get("cell", {}).get("attachments", {})
        with contextlib.suppress(Exception):
            return MarkdownWithMath(renderer=_Harmless(attachments)).render(source)
    return f"<pre>{html.escape(source)}</pre>"


LONGEST_PROSE = 10_000  # characters of a cell
MOST_PROSE = 300_000  # characters of all text cells of a notebook


def quick_ansi2html(text: str) -> str:
    """An output of a submission as HTML with its colours; of more colours than anybody looks at none.

    nbconvert's own takes the square of their number, and that of the digits in one. Called by the templates as above.
    """
    text = NO_CODE.sub("", text)
    return ansi2html(text if text.count("\x1b") <= MOST_COLOURS else strip_ansi(text))


NO_CODE = re.compile(r"\x1b(?!\[[^@-~\n]{0,30}[@-~])")  # what begins no code, or one that is made to be long
MOST_COLOURS = 1000
