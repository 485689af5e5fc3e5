"""What stock nbgrader calls in this course, by the names in nbgrader_config.py: preprocessors, a hook, an exporter."""

from nbgrader.preprocessors import NbGraderPreprocessor

from .notebooks import predictions_in

INSTRUCTOR = "instructor"  # tag of the cells that only teachers see


class RemoveInstructorCells(NbGraderPreprocessor):
    """Takes out what is written for teachers."""

    def preprocess(self, nb, resources):
        """Called by GenerateAssignment, on the solved notebook."""
        nb.cells = [cell for cell in nb.cells if INSTRUCTOR not in cell.metadata.get("tags", [])]
        return nb, resources


class BlankPredictions(NbGraderPreprocessor):
    """Takes the letter out of `predict("P1", "b")`, and whatever stands behind it."""

    def preprocess_cell(self, cell, resources, index):
        """Called by GenerateAssignment, on every cell of the solved notebook."""
        for call in predictions_in(cell):
            before = cell.source.split("\n")[: call.lineno - 1]
            cell.source = "\n".join([*before, f'predict("{call.args[0].value}", ...)'])
        return cell, resources
