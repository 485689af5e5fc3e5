"""The configuration of this course: nbgrader's own, and as `c.Grading` the autograder's (see autograder/settings.py).

nbgrader reads this file when it is called in this folder, the autograder always. Only names and numbers stand here, so
that reading it is quick.
"""

from pathlib import Path

c = get_config()  # noqa: F821  (given by traitlets)
root = Path(__file__).resolve().parent
ours, theirs = "autograder.nbgrader_plugin.", "nbgrader.preprocessors."

# ---- the folders ----------------------------------------------------------------------------------------------------

c.CourseDirectory.course_id = "torch-lectures"
c.CourseDirectory.root = str(root)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "course"
c.CourseDirectory.submitted_directory = "grading/submitted"
c.CourseDirectory.autograded_directory = "grading/autograded"
c.CourseDirectory.feedback_directory = "grading/feedback"
c.CourseDirectory.solution_directory = "grading/solution"
c.CourseDirectory.source_with_tests_directory = "grading/source_with_tests"
# A student's folder may be locked for a moment by someone who grades by hand: wait (seconds) rather than fail.
c.CourseDirectory.db_url = f"sqlite:///{root / 'grading' / 'gradebook.db'}?timeout=60"
# nbgrader copies every file that lies beside a source notebook, save these: no reference, no notes, no traces of work.
c.CourseDirectory.ignore = [".*", "*.py", "*.pyc", "__pycache__", "notes*", "*.md", "progress.json", "runs", "feedback"]

# ---- solved -> released ---------------------------------------------------------------------------------------------

c.GenerateAssignment.pre_convert_hook = ours + "open_gradebook"
c.GenerateAssignment.preprocessors = [
    ours + "RemoveInstructorCells",
    ours + "BlankPredictions",
    theirs + "LockCells",
    theirs + "ClearSolutions",
    theirs + "ClearOutput",
    theirs + "CheckCellMetadata",
    theirs + "ComputeChecksums",
    ours + "SaveCells",
]
c.ClearSolutions.code_stub = {
    "python": '# Your code here, in place of this line and the next.\nraise NotImplementedError("not answered yet")'
}

# ---- submitted -> autograded ----------------------------------------------------------------------------------------

c.Autograde.pre_convert_hook = ours + "know_lecture"
c.Autograde.sanitize_preprocessors = [
    theirs + "ClearOutput",
    ours + "DropUnusableMetadata",
    theirs + "DeduplicateIds",
    ours + "DropUnusableMetadata",
    theirs + "OverwriteKernelspec",
    theirs + "OverwriteCells",
    ours + "DropUnusableMetadata",
    theirs + "CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    ours + "IsolatedExecute",
    theirs + "LimitOutput",
    ours + "SaveVerdicts",
    theirs + "AssignLatePenalties",
    theirs + "CheckCellMetadata",
]

# ---- autograded -> feedback, grades ---------------------------------------------------------------------------------

c.GenerateFeedback.exporter_class = ours + "ClosedPage"
c.GenerateFeedback.preprocessors = [
    ours + "RemoveGraderCells",  # c.RemoveGraderCells.model_answers = True shows students rubric and model answer
    ours + "GetGradesAsText",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
c.ExportApp.plugin_class = ours + "QuotedCsvExport"
# What students wrote or displayed is shown in the browser of someone who may change grades: pictures and text, no HTML.
c.WidgetsDataTypeFilter.display_data_priority = ["image/png", "image/jpeg", "text/plain"]
c.HTMLExporter.filters = {"markdown2html": ours + "harmless_markdown", "ansi2html": ours + "quick_ansi2html"}
